"""Names of two checkpoints put together: by rules, by wrappers, and never by a guess."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hfbench.errors import UsageError
from hfbench.models.diff.facts import Clash, Rename
from hfbench.models.diff.rename import bare_name, match_names
from hfbench.models.diff.rules import parse_rule, parse_rules


@pytest.mark.parametrize(
    ("rule", "name", "renamed"),
    [
        (
            "model.layers.*.attn=model.layers.*.self_attn",
            "model.layers.3.attn.q.weight",
            "model.layers.3.self_attn.q.weight",
        ),
        ("attn=self_attn", "layers.0.attn.q", "layers.0.self_attn.q"),
        ("attn=self_attn", "layers.0.attn_norm.q", "layers.0.attn_norm.q"),
        ("attn=self_attn", "attn.attn", "self_attn.attn"),
        ("module.=", "module.w", "w"),
        ("module.=", "my_module.w", "my_module.w"),
        ("=model.", "w", "model.w"),
        ("._orig_mod=", "layers.0._orig_mod.w", "layers.0.w"),
        ("h.*=layers.*", "transformer.h.12.w", "transformer.layers.12.w"),
        ("h.*.mlp.*=layers.*.ffn.*", "h.1.mlp.up.weight", "layers.1.ffn.up.weight"),
        ("**.w=x.**.w", "a.b.c.w", "x.a.b.c.w"),
        ("w*=v*", "a.w1.b", "a.v1.b"),
        ("a.b=c\\1", "a.b.d", "c\\1.d"),
        ("re:(?P<n>\\d+)$=\\g<n>.weight", "h.12", "h.12.weight"),
        ("re:^(a=b)=x\\1", "a=b.c", "xa=b.c"),
        ("re:a+=b", "caad", "cbd"),
        ("line=x", "a\nline.b", "a\nline.b"),
    ],
)
def test_a_rule_replaces_the_first_place_where_it_fits(rule: str, name: str, renamed: str) -> None:
    assert parse_rule(rule).apply(name) == renamed


@pytest.mark.parametrize(
    ("rule", "found"),
    [
        ("", "has no '='"),
        ("abc", "has no '='"),
        ("a=b=c", "has more than one '='"),
        ("a=a", "changes nothing"),
        ("a=*", "has more stars behind '=' than before it"),
        ("re:=x", "has no pattern before '='"),
        ("re:(=x", "is no regular expression"),
        ("re:a=\\g<5>", "is no regular expression"),
    ],
)
def test_a_wrong_rule_is_told_with_what_to_write(rule: str, found: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_rule(rule)
    assert found in str(caught.value)
    assert caught.value.remedy


@pytest.mark.parametrize(
    "name",
    [
        "model.layers.0.w",
        "module.model.layers.0.w",
        "_orig_mod.layers.0.w",
        "model.layers.0._orig_mod.w",
        "base_model.model.model.layers.0.base_layer.w",
        "model.language_model.layers.0.w",
        "language_model.model.layers.0.w",
        "_fsdp_wrapped_module.layers.0._checkpoint_wrapped_module.w",
    ],
)
def test_wrappers_and_prefixes_do_not_make_another_tensor(name: str) -> None:
    assert bare_name(name) == "layers.0.w"


@pytest.mark.parametrize("name", ["model.", "_orig_mod", "", "model", "my_model.w", "modelx.w", "model.."])
def test_a_name_is_never_stripped_to_nothing_nor_inside_a_word(name: str) -> None:
    assert bare_name(name) == name


@pytest.mark.parametrize(
    ("a", "b", "rule"),
    [
        ("module.a.w", "model.a.w", "module.=model."),
        ("module.model.w", "model.w", "module.="),
        ("model.w", "model.model.w", "=model."),
        ("layers.0._orig_mod.w", "layers.0.w", "._orig_mod="),
        ("layers.0.w", "model.layers.0.base_layer.w", "=model., =.base_layer"),
        ("base_model.model.model.q.base_layer.w", "model.q.w", "base_model.model.=, .base_layer="),
    ],
)
def test_a_rename_by_wrappers_says_what_gives_way_to_what(a: str, b: str, rule: str) -> None:
    names = match_names([a], [b])
    assert names.renames == (Rename(a=a, b=b, rule=rule, by="wrapper"),)
    assert names.partner == {a: b}


def test_names_that_become_one_are_told_and_none_is_renamed() -> None:
    names = match_names(["model.w", "module.w"], ["w"])
    assert names.renames == ()
    assert names.clashes == (Clash(name="w", rule="", a=("model.w", "module.w"), b=("w",)),)


def test_a_name_that_both_have_is_its_own_whatever_would_unwrap_to_it() -> None:
    names = match_names(["w", "model.w"], ["w", "module.w"])
    assert names.partner == {"w": "w", "model.w": "module.w"}


def test_rules_come_one_after_the_other_and_before_equal_names() -> None:
    rules = parse_rules(["transformer.=model.", "h.*=layers.*"])
    names = match_names(["transformer.h.0.w"], ["model.layers.0.w"], rules)
    assert names.renames == (
        Rename(a="transformer.h.0.w", b="model.layers.0.w", rule="transformer.=model., h.*=layers.*", by="rule"),
    )
    swapped = match_names(["w1", "w3"], ["w1", "w3"], parse_rules(["w1=t", "w3=w1", "t=w3"]))
    assert swapped.partner == {"w1": "w3", "w3": "w1"}


def test_a_rule_that_leads_two_tensors_to_one_name_renames_neither() -> None:
    names = match_names(["a.w", "b.w"], ["c.w"], parse_rules(["a=c", "b=c"]))
    assert names.partner == {}
    assert names.clashes == (Clash(name="c.w", rule="a=c", a=("a.w", "b.w"), b=("c.w",)),)


def test_a_rule_that_leads_to_a_name_that_stays_renames_nothing_and_so_on_down_the_chain() -> None:
    names = match_names(["x", "y", "z"], ["y", "z", "q"], parse_rules(["re:^x$=y"]))
    assert names.partner == {"y": "y", "z": "z"}
    assert [each.a for each in names.clashes] == [("x", "y")]
    chain = match_names(["x", "y", "z"], ["y", "z"], parse_rules(["y=z", "x=y"]))
    assert chain.partner == {"y": "y", "z": "z"}
    assert {each.name for each in chain.clashes} == {"z", "y"}


def test_a_rule_that_leads_nowhere_is_noted_and_one_that_changes_nothing_is_wrong() -> None:
    names = match_names(["a.w"], ["a.w"], parse_rules(["a=b"]))
    assert names.partner == {"a.w": "a.w"}
    [note] = names.notes
    assert "leads 1 tensor to names that B lacks, such as 'b.w'" in note.found
    with pytest.raises(UsageError, match="'x=y' changes no tensor name of A"):
        match_names(["a"], ["a"], parse_rules(["x=y"]))
    with pytest.raises(UsageError, match="the other way round"):
        match_names(["y"], ["x"], parse_rules(["x=y"]))


NAMES = st.lists(
    st.lists(
        st.sampled_from(["model", "module", "_orig_mod", "base_layer", "a", "b", "w"]), min_size=1, max_size=4
    ).map(".".join),
    unique=True,
    max_size=8,
)
RULES = st.lists(
    st.sampled_from(["a=b", "b=a", "model.=", "=model.", "a=w", "*.a=*.b", "re:w$=a", "b=t", "t=a"]), max_size=3
)


@settings(deadline=None)
@given(NAMES, NAMES, RULES)
def test_every_name_is_used_once(a: list[str], b: list[str], texts: list[str]) -> None:
    try:
        names = match_names(a, b, parse_rules(texts))
    except UsageError:
        return
    assert set(names.partner) <= set(a)
    assert set(names.partner.values()) <= set(b)
    assert len(set(names.partner.values())) == len(names.partner)
    for each in names.renames:
        assert names.partner[each.a] == each.b != each.a
    for each in names.clashes:
        assert all(name not in names.partner or names.partner[name] == name for name in each.a)


@settings(deadline=None)
@given(NAMES)
def test_a_checkpoint_is_its_own_partner(a: list[str]) -> None:
    names = match_names(a, a)
    assert names.partner == {name: name for name in a}
    assert (names.renames, names.clashes) == ((), ())


@settings(deadline=None)
@given(NAMES, NAMES)
def test_pairs_are_the_same_from_either_side(a: list[str], b: list[str]) -> None:
    there, back = match_names(a, b), match_names(b, a)
    assert there.partner == {one: other for other, one in back.partner.items()}
    assert {(each.name, frozenset(each.a), frozenset(each.b)) for each in there.clashes} == {
        (each.name, frozenset(each.b), frozenset(each.a)) for each in back.clashes
    }


def test_the_rules_of_the_manual_are_rules() -> None:
    page = Path(__file__).parents[2] / "docs" / "diff.md"
    rules = re.findall(r"^\| `(\S*=\S*)` \|", page.read_text(), re.MULTILINE)
    assert len(rules) == 5
    assert len(parse_rules(rules)) == 5
