"""Conversions of folders, there and back, as the actions do them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hf_models import checkpoint, written

from hfbench.actions.convert_hf import ConvertHf
from hfbench.actions.convert_megatron import ConvertMegatron
from hfbench.convert.formats.open import megatron_facts, open_tensors
from hfbench.convert.megatron.converting import to_hf
from hfbench.convert.stored import Stored
from hfbench.errors import HfbenchError, UsageError
from hfbench.jobs.run import Run
from hfbench.line_width import lines_of


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return written(tmp_path / "model", checkpoint("llama_tied"))


def tensors_of(folder: Path) -> dict[str, bytes]:
    found = {}
    for name, tensor in open_tensors(folder).tensors.items():
        assert isinstance(tensor, Stored)
        with tensor.file.open("rb") as file:
            file.seek(tensor.begin)
            found[name] = file.read(2 * tensor.spec.rows * tensor.spec.columns)
    return found


@pytest.mark.parametrize("format", ["torch", "torch_dist"])
def test_a_folder_comes_back_to_the_bit(model: Path, tmp_path: Path, format: Any) -> None:
    (model / "chat_template.jinja").write_text("{{ messages }}")
    there = ConvertMegatron(model=str(model), out=tmp_path / "there", tp=2, pp=2, format=format).perform(Run())
    assert (there.tp, there.pp, there.format, there.dry_run) == (2, 2, format, False)
    back = ConvertHf(checkpoint=tmp_path / "there", out=tmp_path / "back", max_shard_size="4KiB").perform(Run())
    assert tensors_of(tmp_path / "back") == tensors_of(model)
    for name in ("config.json", "chat_template.jinja"):
        assert (tmp_path / "back" / name).read_bytes() == (model / name).read_bytes()
    assert len([name for name in back.files if name.endswith(".safetensors")]) > 1
    assert {each.name for each in back.ranks} == {name for name in back.files if name.endswith(".safetensors")}
    assert [each.name for each in there.ranks] == [f"mp_rank_0{tp}_00{pp}" for pp in (0, 1) for tp in (0, 1)]


def test_the_folder_is_what_megatron_looks_for(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "there"
    ConvertMegatron(model=str(model), out=out, tp=2, pp=2).perform(Run())
    assert (out / "latest_checkpointed_iteration.txt").read_text() == "release"
    assert sorted(each.name for each in (out / "release").iterdir()) == [
        f"mp_rank_0{tp}_00{pp}" for tp in (0, 1) for pp in (0, 1)
    ]
    assert "--norm-epsilon 1e-06\n" in (out / "launch_flags.txt").read_text()
    facts = megatron_facts(out)
    assert (facts.checkpoint_version, facts.args["padded_vocab_size"], facts.foreign) == (3.0, 256, ())
    assert json.loads((out / "hf" / "config.json").read_text())["model_type"] == "llama"


def test_bytes_of_ranks_are_those_of_their_files(tmp_path: Path) -> None:
    """What is said without laying files out, for torch_dist too, is what rank files hold."""
    for name in ("llama_tied", "deepseek_v3", "qwen2_moe"):
        model = written(tmp_path / name, checkpoint(name))
        ep = 1 if name == "llama_tied" else 2
        asked = {"model": str(model), "out": tmp_path / "x", "tp": 2, "pp": 2, "ep": ep, "dry_run": True}
        one = ConvertMegatron(**asked).perform(Run())
        assert ConvertMegatron(**asked, format="torch_dist").perform(Run()).ranks == one.ranks
        assert sum(each.bytes for each in one.ranks) == one.bytes
        assert not (tmp_path / "x").exists()


def test_the_plan_is_a_table_that_layers_do_not_lengthen(model: Path, tmp_path: Path) -> None:
    result = ConvertMegatron(model=str(model), out=tmp_path / "there", tp=2, dry_run=True).perform(Run())
    with lines_of(110):
        lines = result.lines()
    told = "decoder.layers.*.self_attention.linear_qkv.weight  8 x [16, 16] BF16 4.00 KiB"
    assert lines[lines.index(told) + 1] == (
        "  <- model.layers.*.self_attn.{q,k,v}_proj.weight  fuse q, k, v by group, chunk rows"
    )
    assert "  <- model.embed_tokens.weight  pad vocabulary, chunk rows, zeros" in lines
    assert lines[-1] == "llama: 52 tensors, 23.6 KiB; nothing was written"
    assert sum(row.count for row in result.plan) == result.tensors == 52


def test_ranks_that_should_hold_the_same_and_do_not_are_refused(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "there"
    ConvertMegatron(model=str(model), out=out, tp=2, pp=2).perform(Run())
    copy = open_tensors(out).tensors["mp_rank_01_001:output_layer.weight"]
    assert isinstance(copy, Stored)
    with copy.file.open("r+b") as file:
        file.seek(copy.begin)
        file.write(b"\x7f")
    found = to_hf(out)
    told = "output_layer.weight' differs from 'mp_rank_01_000:embedding.word_embeddings.weight'"
    with pytest.raises(HfbenchError, match=told):
        found.write(tmp_path / "back", Run(), action="convert.hf")
    assert not (tmp_path / "back").exists()


@pytest.mark.parametrize("others", [("mp_rank_00_000", "mp_rank_01_000"), ("mp_rank_01_000", "mp_rank_01_001")])
def test_files_of_two_ranks_that_were_exchanged_are_refused(
    model: Path, tmp_path: Path, others: tuple[str, str]
) -> None:
    """No shape and no repeated tensor tells halves of one matrix from each other: the number of the process does."""
    out = tmp_path / "there"
    ConvertMegatron(model=str(model), out=out, tp=2, pp=2).perform(Run())
    one, other = (out / "release" / name / "model_optim_rng.pt" for name in others)
    one.rename(tmp_path / "kept")
    other.rename(one)
    (tmp_path / "kept").rename(other)
    told = r"release: mp_rank_\S+ and mp_rank_\S+ hold files that the processes \d and \d saved\. Files were exchanged"
    with pytest.raises(HfbenchError, match=told):
        to_hf(out)


def test_a_configuration_may_be_named(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "there"
    ConvertMegatron(model=str(model), out=out).perform(Run())
    (out / "hf" / "config.json").unlink()
    rebuilt = to_hf(out).plan
    assert any("built from Megatron's arguments" in note for note in rebuilt.notes)
    assert to_hf(out, config=model / "config.json").plan.args == json.loads((model / "config.json").read_text())


def test_refusals_come_before_anything_is_written(model: Path, tmp_path: Path) -> None:
    for fields in ({"tp": 3}, {"pp": 3}, {"allow": ("rounding",), "tp": 2}):
        with pytest.raises(UsageError):
            ConvertMegatron(model=str(model), out=tmp_path / "there", **fields).perform(Run())
    assert not (tmp_path / "there").exists()


@pytest.mark.parametrize("format", ["torch", "torch_dist"])
def test_a_cast_on_the_way_back_looks_at_every_rank(model: Path, tmp_path: Path, format: Any) -> None:
    ConvertMegatron(model=str(model), out=tmp_path / "there", tp=2, pp=2, format=format, dtype="fp32").perform(Run())
    ConvertHf(checkpoint=tmp_path / "there", out=tmp_path / "back", dtype="bf16").perform(Run())
    assert tensors_of(tmp_path / "back") == tensors_of(model)
