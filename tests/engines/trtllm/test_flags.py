"""The table of trtllm-build's flags: what it accepts becomes words its recording accepts, and nothing else passes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hfbench.actions.engine_flags import EngineFlags
from hfbench.engines.trtllm.flags import FlagFault, build_flags, tool_flags
from hfbench.jobs.run import Run


@given(name=st.sampled_from(sorted(build_flags().flags)), text=st.text(max_size=12))
def test_a_value_that_is_read_becomes_words_that_read_the_same(name: str, text: str) -> None:
    flag = build_flags().flags[name]
    try:
        value = flag.read(text)
    except FlagFault:
        return
    words = flag.argv(value)
    if flag.type == "switch":
        assert words == ([f"--{name}"] if value else [])
        return
    assert words[0] == f"--{name}"
    assert flag.read(" ".join(words[1:])) == (value if not flag.many else " ".join(text.split()))


def test_every_default_of_the_table_is_a_value_of_its_flag() -> None:
    for table in (build_flags(), *tool_flags().values()):
        for flag in table.flags.values():
            if flag.default is not None:
                assert flag.read(flag.default) == flag.default


def test_what_is_gone_is_no_flag_any_more_and_says_how_sure_that_is() -> None:
    table = build_flags()
    assert not set(table.gone) & set(table.flags)
    for name, gone in table.gone.items():
        with pytest.raises(FlagFault, match="is obsolete"):
            table.find(name)
        assert gone.seen != gone.sentence.endswith("(from memory)")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("max_batch_size=many", "needs a whole number, not 'many'"),
        ("max_batch_size=0", "below the least value 1"),
        ("max_batch_size=99999999999", "above the greatest value"),
        ("kv_cache_type=page", "takes continuous, paged, disabled, not 'page'"),
        ("fast_build=perhaps", "needs true or false"),
        ("--max-seq-len=12x", "needs a whole number"),
        ("model_dir=/m", "trtllm-build has no flag model_dir"),
        ("gemm_plugn=auto", "has no flag 'gemm_plugn'"),
        ("paged_kv_cache=enable", "is obsolete: deprecated"),
    ],
)
def test_a_wrong_flag_is_told_in_a_sentence(text: str, found: str) -> None:
    result = EngineFlags.spec.build({"flags": [text]}).perform(Run())  # type: ignore[attr-defined]
    assert result.failed
    assert found in result.rows[0].found


def test_an_alias_means_its_flag() -> None:
    assert build_flags().find("max_decoder_seq_len").name == "max_seq_len"
