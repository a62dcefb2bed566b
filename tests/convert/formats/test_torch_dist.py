"""A torch_dist folder whose metadata is damaged, hostile or of another kind is refused in a sentence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hfbench.convert.boxes import TensorSpec
from hfbench.convert.formats.distcp_layout import lay_out_torch_dist
from hfbench.convert.formats.inert import Global, StandIn
from hfbench.convert.formats.joined import Joined
from hfbench.convert.formats.open import open_tensors
from hfbench.convert.formats.pickle_reader import unpickled
from hfbench.convert.formats.pickle_writer import pickled
from hfbench.convert.stored import Stored
from hfbench.errors import HfbenchError

STACK, VECTOR = TensorSpec("stack", "BF16", (3, 2, 4)), TensorSpec("vector", "F32", (5,))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two tensors, one of them in three chunks; all zero."""
    for layout in lay_out_torch_dist("", [STACK, VECTOR], {}, stacked={"stack": 1}):
        with (tmp_path / layout.path).open("wb") as file:
            file.truncate(layout.size)
            for at, data in layout.fixed:
                file.seek(at)
                file.write(data)
    return tmp_path


def changed(folder: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    """The folder after a change to the attributes of its metadata."""
    found = unpickled((folder / ".metadata").read_bytes(), where="x")
    assert isinstance(found, StandIn)
    change(found.state)
    (folder / ".metadata").write_bytes(pickled(found))
    return folder


def entry(state: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = state["state_dict_metadata"][name].state
    return found


def stored(state: dict[str, Any], name: str) -> dict[str, Any]:
    """Where the first chunk of a tensor is stored."""
    return next(info.state for index, info in state["storage_data"].items() if index.state["fqn"] == name)


def test_tensors_of_one_chunk_lie_in_a_file_others_are_joined(folder: Path) -> None:
    tensors = open_tensors(folder).tensors
    assert isinstance(tensors["vector"], Stored)
    assert isinstance(tensors["stack"], Joined)
    assert {name: source.spec for name, source in tensors.items()} == {"stack": STACK, "vector": VECTOR}


def test_bytes_beside_the_tensors_are_left_out(folder: Path) -> None:
    """Transformer Engine's `_extra_state` is stored as bytes, without offsets."""
    module = "torch.distributed.checkpoint.metadata"

    def add(state: dict[str, Any]) -> None:
        state["state_dict_metadata"]["x._extra_state"] = StandIn(Global(module, "BytesStorageMetadata"), (), {})
        index = StandIn(Global(module, "MetadataIndex"), (), {"fqn": "x._extra_state", "offset": None, "index": None})
        place = {"relative_path": "__0_0.distcp", "offset": 0, "length": 10}
        state["storage_data"][index] = StandIn(Global(module, "_StorageInfo"), (), place)

    assert set(open_tensors(changed(folder, add)).tensors) == {"stack", "vector"}


CHANGES: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "a chunk is missing": (
        lambda s: entry(s, "stack")["chunks"].pop(),
        "the chunks of 'stack' hold 16 of its elements",
    ),
    "a chunk is stored nowhere": (
        lambda s: s["storage_data"].clear(),
        r"the chunk of 'stack' at \[0, 0, 0\] is stored",
    ),
    "a tensor has no chunks": (lambda s: entry(s, "vector").update(chunks=[]), "tensor 'vector' has no chunks"),
    "a file outside": (lambda s: stored(s, "vector").update(relative_path="../x"), r"names '\.\./x' as a file"),
    "a file that is not there": (lambda s: stored(s, "vector").update(relative_path="__9_9.distcp"), "not there"),
    "a place beyond the file": (lambda s: stored(s, "vector").update(offset=2**60), "outside of the file"),
    "another chunk's place": (lambda s: stored(s, "vector").update(stored(s, "stack")), "is not what .metadata says"),
    "compressed": (lambda s: stored(s, "vector").update(transform_descriptors=["zstd"]), "are compressed"),
    "another shape": (lambda s: entry(s, "stack").update(size=(3, 2, 5)), "hold 24 of its elements"),
    "no shape": (lambda s: entry(s, "stack").update(size=("a",)), "tensor 'stack' has no shape"),
    "a dtype of its own": (lambda s: entry(s, "vector")["properties"].__setattr__("state", None), "a dtype that"),
    "chunks over each other": (
        lambda s: entry(s, "stack")["chunks"].__setitem__(2, entry(s, "stack")["chunks"][1]),
        "is written twice",
    ),
    "nothing of torch": (lambda s: s.clear(), "is not the metadata of torch.distributed.checkpoint"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_metadata_that_lies_is_refused(folder: Path, name: str) -> None:
    change, found = CHANGES[name]
    with pytest.raises(HfbenchError, match=found):
        open_tensors(changed(folder, change))


def test_a_stack_of_more_dimensions_than_there_are_is_refused() -> None:
    with pytest.raises(ValueError, match=r"1 leading dimensions of .* cannot be stacked"):
        lay_out_torch_dist("", [VECTOR], {}, stacked={"vector": 1})
