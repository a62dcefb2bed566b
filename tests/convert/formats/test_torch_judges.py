"""Files of torch are read as torch wrote them, and torch reads what is laid out here; torch itself is the judge."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest

from hfbench.convert.boxes import Box, Copy, TensorSpec
from hfbench.convert.formats.distcp_layout import lay_out_torch_dist
from hfbench.convert.formats.open import megatron_facts, open_tensors
from hfbench.convert.formats.pt_layout import lay_out_pt
from hfbench.convert.plan import Target
from hfbench.convert.stored import Decoded, Stored, TensorSet
from hfbench.convert.stream.assemble import read_box
from hfbench.convert.stream.convert import convert
from hfbench.errors import HfbenchError
from hfbench.jobs.run import Run


@pytest.fixture(scope="module")
def written(torch_judge: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A folder of files that torch wrote, and what is in them."""
    folder = tmp_path_factory.mktemp("torch")
    return folder, torch_judge("make", folder)


def digest(source: Stored | Decoded) -> list[Any]:
    spec = source.spec
    raw = read_box(source, Box(0, spec.rows, 0, spec.columns))
    return [spec.dtype, list(spec.shape), hashlib.sha256(raw).hexdigest()]


def digests(tensors: TensorSet) -> dict[str, list[Any]]:
    return {name: digest(source) for name, source in tensors.tensors.items()}


@pytest.mark.parametrize("name", ["state.bin", "megatron", "dist"])
def test_every_tensor_is_read_as_torch_wrote_it(written: tuple[Path, dict[str, Any]], name: str) -> None:
    """Of all dtypes; parameters, tied storages, rows, columns and transposes of others among them."""
    folder, found = written
    assert digests(open_tensors(folder / name)) == found[name]


def test_arguments_are_plain_data_and_a_foreign_class_is_its_name(written: tuple[Path, dict[str, Any]]) -> None:
    facts = megatron_facts(written[0] / "megatron")
    assert (facts.format, facts.iteration, facts.checkpoint_version, facts.ranks) == ("torch", 7, 3.0, ("mp_rank_00",))
    wanted = {"num_layers": 2, "eps": 1e-5, "names": ["a", "b"], "none": None, "big": 2**40}
    assert facts.args == {**wanted, "backend": "<__main__.Backend 1>"}
    assert facts.foreign == ("__main__.Backend",)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("strided.pt", "'steps' of .* is a view with strides .* Save it with .contiguous()"),
        ("old.bin", "is a file of torch before version 1.6"),
        ("script.pt", "is a TorchScript program, not a file of tensors"),
    ],
)
def test_other_files_of_torch_are_refused_by_name(written: tuple[Path, dict[str, Any]], name: str, found: str) -> None:
    with pytest.raises(HfbenchError, match=found):
        open_tensors(written[0] / name)


def copied(tensors: TensorSet, rank: str = "") -> list[Target]:
    """Each tensor as it is, and two of one shape stacked."""
    found = []
    for name, source in tensors.tensors.items():
        spec, box = source.spec, Box(0, source.spec.rows, 0, source.spec.columns)
        target = TensorSpec(f"{rank}{name}", spec.dtype, spec.shape)
        found.append(Target(target, "", (Copy(name, box, target.name, box),), ""))
    return found


def test_torch_loads_a_rank_file_mapped_and_read(
    written: tuple[Path, dict[str, Any]], torch_judge: Any, tmp_path: Path
) -> None:
    folder, found = written
    sources = open_tensors(folder / "state.bin")
    targets = copied(sources, "mp_rank_00:")
    args = Namespace(num_layers=2, eps=1e-5, names=["a", "b"], none=None, flag=True, big=2**40, minus=-3, text="é")
    layout = lay_out_pt("model.pt", [each.spec for each in targets], {"args": args, "checkpoint_version": 3.0})
    convert(targets, sources, [layout], tmp_path / "out", Run())
    others = repr({"args": args, "checkpoint_version": 3.0})
    for mmap in (True, False):
        loaded = torch_judge("load", tmp_path / "out" / "model.pt", mmap)
        assert loaded == {"tensors": found["state.bin"], "others": others}
    assert all(piece.begin % 64 == 0 for piece in layout.pieces)
    subprocess.run([sys.executable, "-m", "zipfile", "-t", tmp_path / "out" / "model.pt"], check=True, timeout=60)
    assert digests(open_tensors(tmp_path / "out" / "model.pt")) == found["state.bin"]


def test_torch_loads_a_torch_dist_folder_of_several_files(
    written: tuple[Path, dict[str, Any]], torch_judge: Any, tmp_path: Path
) -> None:
    """A stacked tensor is stored a layer at a time, over several files."""
    folder, found = written
    sources = open_tensors(folder / "dist")
    targets = copied(sources)
    layouts = lay_out_torch_dist(
        "iter_0000001", [each.spec for each in targets], {"args": Namespace(a=1)}, stacked={"stack": 1}, most_bytes=1000
    )
    convert(targets, sources, layouts, tmp_path / "out", Run())
    assert torch_judge("load_dist", tmp_path / "out" / "iter_0000001") == found["dist"]
    assert len(list((tmp_path / "out" / "iter_0000001").glob("*.distcp"))) == 4
    assert (
        digests(open_tensors(tmp_path / "out"))
        == digests(open_tensors(tmp_path / "out" / "iter_0000001"))
        == found["dist"]
    )
    facts = megatron_facts(tmp_path / "out" / "iter_0000001")
    assert (facts.format, facts.args) == ("torch_dist", {"a": 1})
