"""Two models set side by side: names, shapes, dtypes and the files beside the weights."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hfbench.errors import UsageError
from hfbench.models.diff.compare import diff_models
from hfbench.models.diff.facts import DtypeChange, KeyDiff, ModelDiff, ShapeChange
from hfbench.models.diff.files import FolderPair
from hfbench.models.diff.keys import diff_keys, same_value

Tensors = Mapping[str, tuple[str, tuple[int, ...], bytes]]


def weights(tensors: Tensors) -> bytes:
    """A whole safetensors file."""
    header: dict[str, Any] = {}
    end = 0
    for name, (dtype, shape, raw) in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [end, end + len(raw)]}
        end += len(raw)
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + b"".join(raw for _, _, raw in tensors.values())


def model(folder: Path, tensors: Tensors | None = None, **files: object) -> Path:
    """A folder; `tokenizer_config={}` becomes tokenizer_config.json."""
    folder.mkdir()
    if tensors is not None:
        (folder / "model.safetensors").write_bytes(weights(tensors))
    for name, content in {"config": {"model_type": "llama"}, **files}.items():
        (folder / f"{name}.json").write_text(content if isinstance(content, str) else json.dumps(content))
    return folder


def diff(a: Path, b: Path, **options: Any) -> ModelDiff:
    return diff_models(str(a), str(b), **options)


ONE: Tensors = {"w": ("F32", (2,), bytes(8))}


def test_a_model_is_the_same_as_its_copy(tmp_path: Path) -> None:
    found = diff(model(tmp_path / "a", ONE), model(tmp_path / "b", ONE))
    assert not found.differs
    assert (found.problems, found.compared, found.values) == ((), 1, None)


def test_the_same_tensors_in_other_files_and_another_order_are_the_same(tmp_path: Path) -> None:
    x, y = ("U8", (2,), b"xx"), ("U8", (2,), b"yy")
    a, b = model(tmp_path / "a", {"x": x, "y": y}), model(tmp_path / "b")
    (b / "model-00001-of-00002.safetensors").write_bytes(weights({"y": y}))
    (b / "model-00002-of-00002.safetensors").write_bytes(weights({"x": x}))
    places = {"x": "model-00002-of-00002.safetensors", "y": "model-00001-of-00002.safetensors"}
    (b / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    found = diff(a, b, values=True)
    assert not found.differs
    assert [each.verdict for each in found.values or ()] == ["equal", "equal"]


def test_added_removed_reshaped_and_retyped_tensors_are_told_apart(tmp_path: Path) -> None:
    a = model(tmp_path / "a", {"gone": ("U8", (1,), b"1"), "s": ("U8", (2, 1), b"12"), "t": ("U8", (2,), b"12")})
    b = model(tmp_path / "b", {"new": ("U8", (1,), b"1"), "s": ("U8", (1, 2), b"12"), "t": ("I8", (2,), b"12")})
    found = diff(a, b)
    assert [each.name for each in found.added] == ["new"]
    assert [each.name for each in found.removed] == ["gone"]
    assert found.shape == (ShapeChange(name="s", a=(2, 1), b=(1, 2), dtype="U8"),)
    assert found.dtype == (DtypeChange(name="t", a="U8", b="I8", shape=(2,)),)
    assert found.counts == {
        "added": 1,
        "removed": 1,
        "renamed": 0,
        "shape": 1,
        "dtype": 1,
        "unread": 0,
        "clashes": 0,
    }


def test_a_renamed_tensor_is_compared_and_neither_added_nor_removed(tmp_path: Path) -> None:
    a = model(tmp_path / "a", {"model.w": ("U8", (1,), b"1")})
    b = model(tmp_path / "b", {"w": ("U8", (1,), b"2")})
    found = diff(a, b, values=True)
    assert (found.added, found.removed, len(found.renamed)) == ((), (), 1)
    assert [(each.name, each.verdict) for each in found.values or ()] == [("model.w", "differ")]
    assert found.differs


def test_include_keeps_the_names_that_match_and_refuses_to_match_nothing(tmp_path: Path) -> None:
    a = model(tmp_path / "a", {"x": ("U8", (1,), b"1"), "model.y": ("U8", (1,), b"1")})
    b = model(tmp_path / "b", {"z": ("U8", (1,), b"1"), "y": ("U8", (1,), b"1")})
    found = diff(a, b, include=("y",))
    assert (found.added, found.removed, len(found.renamed), found.compared) == ((), (), 1, 1)
    assert [each.name for each in diff(a, b, include=("[xz]",)).added] == ["z"]
    with pytest.raises(UsageError, match="no tensor of either model matches 'nothing"):
        diff(a, b, include=("nothing*",))


def test_single_files_are_compared_without_what_lies_beside_them(tmp_path: Path) -> None:
    a, b = model(tmp_path / "a", ONE, config={"x": 1}), model(tmp_path / "b", ONE, config={"x": 2})
    assert diff(a, b).differs
    assert not diff(a / "model.safetensors", b / "model.safetensors").differs


def test_folders_of_configurations_alone_can_be_compared(tmp_path: Path) -> None:
    found = diff(model(tmp_path / "a", config={"x": 1}), model(tmp_path / "b", config={"x": 2}))
    assert found.problems == ()
    assert found.config == (KeyDiff(file="config.json", key="x", change="changed", a=1, b=2),)


def test_a_broken_or_missing_shard_is_a_problem_and_the_rest_is_still_compared(tmp_path: Path) -> None:
    a, b = model(tmp_path / "a", ONE), model(tmp_path / "b", config={"x": 1})
    (b / "model.safetensors").write_bytes(b"nonsense")
    found = diff(a, b)
    assert [each.where for each in found.problems] == ["B: model.safetensors"]
    assert found.config


def test_a_configuration_that_is_no_json_is_a_problem_unless_both_are_alike(tmp_path: Path) -> None:
    a, b = model(tmp_path / "a", config="{,}"), model(tmp_path / "b", config="{,}")
    assert diff(a, b).problems == ()
    (b / "config.json").write_text("{}")
    assert [each.where for each in diff(a, b).problems] == ["A: config.json"]


def test_a_template_that_moved_to_another_file_is_the_same_template(tmp_path: Path) -> None:
    a = model(tmp_path / "a", tokenizer_config={"chat_template": "{{ x }}"})
    b = model(tmp_path / "b", tokenizer_config={})
    (b / "chat_template.jinja").write_text("{{ x }}")
    assert not diff(a, b).differs
    (b / "chat_template.jinja").write_text("{{ y }}")
    [change] = diff(a, b).template
    assert (change.key, change.a, change.b) == ("default", "{{ x }}", "{{ y }}")


def test_a_template_as_long_as_a_book_is_told_around_its_first_difference(tmp_path: Path) -> None:
    a = model(tmp_path / "a", tokenizer_config={"chat_template": "x" * 5000 + "here" + "y" * 5000})
    b = model(tmp_path / "b", tokenizer_config={"chat_template": "x" * 5000 + "there" + "y" * 5000})
    [change] = diff(a, b).template
    assert "here" in change.a
    assert "there" in change.b
    assert len(change.a) < 300


def test_a_template_of_several_lines_is_told_line_by_line(tmp_path: Path) -> None:
    a = model(tmp_path / "a", tokenizer_config={"chat_template": "{% for m in messages %}\n{{ m }}\n{% endfor %}"})
    b = model(tmp_path / "b", tokenizer_config={"chat_template": "{% for m in messages %}\n{{ m.x }}\n{% endfor %}"})
    [change] = diff(a, b).template
    assert change.lines == (
        "@@ -1,3 +1,3 @@",
        " {% for m in messages %}",
        "-{{ m }}",
        "+{{ m.x }}",
        " {% endfor %}",
    )


def test_files_that_one_side_lacks_and_files_of_bytes_are_told(tmp_path: Path) -> None:
    a, b = model(tmp_path / "a", generation_config={"x": 1}), model(tmp_path / "b")
    (a / "tokenizer.model").write_text("abc")
    (b / "tokenizer.model").write_text("abcd")
    found = diff(a, b)
    assert [(each.file, each.key, each.change) for each in found.generation] == [
        ("generation_config.json", "", "removed")
    ]
    assert [(each.file, each.a, each.b) for each in found.tokenizer] == [("tokenizer.model", "3 bytes", "4 bytes")]


def test_nested_keys_are_named_by_their_path() -> None:
    found = diff_keys("f", {"rope": {"type": "yarn", "factor": 2}}, {"rope": {"type": "llama3", "low": None}})
    assert [(each.key, each.change, each.a, each.b) for each in found] == [
        ("rope.type", "changed", "yarn", "llama3"),
        ("rope.factor", "removed", 2, None),
        ("rope.low", "added", None, None),
    ]


def test_added_tokens_are_compared_by_content_not_by_place() -> None:
    a = [{"content": "<s>", "id": 1}, {"content": "</s>", "id": 2}]
    b = [{"content": "<x>", "id": 3}, {"content": "<s>", "id": 1}, {"content": "</s>", "id": 4}]
    found = diff_keys("f", {"t": a}, {"t": b})
    assert [(each.key, each.change) for each in found] == [("t[</s>].id", "changed"), ("t[<x>]", "added")]


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        (1, 1.0, True),
        (1, True, False),
        (0, False, False),
        (None, False, False),
        (float("nan"), float("nan"), True),
        ([1, [2]], [1, [2]], True),
        ([1, [2]], [1, [3]], False),
        ({"a": 1}, {"b": 1}, False),
        ("1", 1, False),
        ([], {}, False),
    ],
)
def test_values_are_the_same_as_json_means_it(a: object, b: object, same: bool) -> None:
    assert same_value(a, b) is same


def test_long_lists_that_differ_inside_are_not_told_alike() -> None:
    [change] = diff_keys("f", {"x": [*range(100)]}, {"x": [*range(99), 0]})
    assert (change.a, change.b) == ("[100 items]", "[100 items], item 99 differs")


def test_an_object_on_one_side_alone_is_told_key_by_key() -> None:
    added = diff_keys("f", {}, {"x": {"y": {"z": 1}, "e": {}}, "t": {"content": "<s>", "id": 1}})
    assert [(each.key, each.change, each.b) for each in added] == [
        ("x.y.z", "added", 1),
        ("x.e", "added", "{}"),
        ("t", "added", '{"content": "<s>", "id": 1}'),
    ]
    removed = diff_keys("f", {"x": {"y": 1}}, {})
    assert [(each.key, each.change, each.a) for each in removed] == [("x.y", "removed", 1)]
    long = {f"key_{number}": number for number in range(30)}
    into = diff_keys("f", {"x": None}, {"x": long})
    assert (into[0].key, into[0].change, into[0].b) == ("x", "changed", "{30 keys}")
    assert [(each.key, each.b) for each in into[1:]] == [(f"x.{key}", value) for key, value in long.items()]


def test_many_differing_keys_are_counted_in_place_of_being_told() -> None:
    found = diff_keys("f", {str(n): n for n in range(1000)}, {str(n): -1 for n in range(1000)})
    assert len(found) == 201
    assert found[-1].b == "800 more keys differ"


def test_nesting_as_deep_as_the_parser_allows_and_endless_integers_do_no_harm() -> None:
    deep: Any = 1
    other: Any = 2
    for _ in range(5000):
        deep, other = {"k": deep}, {"k": other}
    assert len(diff_keys("f", deep, other)) == 1
    [change] = diff_keys("f", {"x": 10**3999}, {"x": -(10**3999)})
    assert change.a == "an integer of 13,285 bits"


def test_a_configuration_nested_beyond_measure_is_compared_as_far_as_it_is_kept(tmp_path: Path) -> None:
    for side, leaf in (("a", "1"), ("b", "2")):
        (tmp_path / side).mkdir()
        (tmp_path / side / "config.json").write_text('{"k": ' * 900 + leaf + "}" * 900)
    pair = FolderPair(tmp_path / "a", tmp_path / "b")
    assert pair.diff_files(("config.json",)) == ()
    assert [problem.where for problem in pair.problems] == ["A: config.json", "B: config.json"]
    assert all("nested too deeply" in problem.found for problem in pair.problems)
