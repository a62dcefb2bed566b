"""Whatever two checkpoints hold: each is the same as itself, and swapping them swaps what is told."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hfbench.models.diff.compare import diff_models
from hfbench.models.diff.facts import ModelDiff

pytest.importorskip("numpy")

Tensors = Mapping[str, tuple[str, list[float]]]

NAMES = st.sampled_from(
    ["w", "model.w", "module.w", "model.layers.0.a", "layers.0.a", "layers.0._orig_mod.a", "b", "c"]
)
NUMBERS = st.sampled_from([0.0, -0.0, 1.0, 1.0 + 2**-9, -3.5, 300.0, math.inf, math.nan])
CHECKPOINTS = st.dictionaries(
    NAMES, st.tuples(st.sampled_from(["F32", "F64", "BF16", "I8"]), st.lists(NUMBERS, max_size=3)), max_size=5
)


def packed(dtype: str, values: list[float]) -> bytes:
    if dtype == "BF16":
        return b"".join(struct.pack("<f", value)[2:] for value in values)
    if dtype == "I8":
        return bytes(0 if not math.isfinite(value) else int(value) % 256 for value in values)
    return struct.pack(f"<{len(values)}{'f' if dtype == 'F32' else 'd'}", *values)


def write(path: Path, tensors: Tensors) -> str:
    header, data = {}, b""
    for name, (dtype, values) in tensors.items():
        raw = packed(dtype, values)
        header[name] = {"dtype": dtype, "shape": [len(values)], "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return str(path)


@settings(deadline=None, max_examples=60)
@given(CHECKPOINTS)
def test_a_checkpoint_is_the_same_as_itself_in_any_order(tensors: Tensors) -> None:
    with TemporaryDirectory() as folder:
        a = write(Path(folder) / "a.safetensors", tensors)
        b = write(Path(folder) / "b.safetensors", dict(reversed(tensors.items())))
        found = diff_models(a, b, values=True)
    assert not found.differs
    assert found.problems == ()
    assert found.counts["equal"] == len(tensors) == found.compared


@settings(deadline=None, max_examples=120)
@given(CHECKPOINTS, CHECKPOINTS)
def test_swapping_the_sides_swaps_what_is_told(one: Tensors, other: Tensors) -> None:
    with TemporaryDirectory() as folder:
        a, b = (write(Path(folder) / f"{n}.safetensors", each) for n, each in enumerate((one, other)))
        there, back = diff_models(a, b, values=True), diff_models(b, a, values=True)
    assert set(there.added) == set(back.removed)
    assert set(there.removed) == set(back.added)
    assert {(each.a, each.b, each.by) for each in there.renamed} == {(each.b, each.a, each.by) for each in back.renamed}
    assert {(each.a, each.b) for each in there.shape} == {(each.b, each.a) for each in back.shape}
    assert {(each.a, each.b) for each in there.dtype} == {(each.b, each.a) for each in back.dtype}
    assert told(there) == told(back, {each.a: each.b for each in back.renamed})
    assert there.differs == back.differs


def told(found: ModelDiff, names: Mapping[str, str] | None = None) -> dict[str, tuple[object, ...]]:
    """What is told of values and does not depend on which side is A, by A's or the other side's name."""
    return {
        (names or {}).get(each.name, each.name): (each.verdict, each.max_abs, each.mean_abs, each.nonfinite)
        for each in found.values or ()
    }
