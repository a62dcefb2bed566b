"""The streaming writer against the format's own reader."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import pytest

from hfbench.convert.safetensors_writer import Entry, SafetensorsWriter, written

ENTRIES = [Entry("a", "BF16", (2, 3)), Entry("b", "F32", ()), Entry("c", "F32", (0, 4))]


def test_the_formats_own_reader_finds_what_was_written(tmp_path: Path) -> None:
    safetensors = pytest.importorskip("safetensors")
    path = tmp_path / "m.safetensors"
    with path.open("wb") as file:
        writer = SafetensorsWriter(file, ENTRIES)
        writer.write("a", [b"\0\x3f" * 4, b"\x80\x3f" * 2])
        writer.write("b", [b"\0\0\x80\x3f"])
        writer.write("c", [])
        writer.finish()
    found = dict(safetensors.deserialize(path.read_bytes()))
    assert found["a"]["shape"] == [2, 3]
    assert bytes(found["b"]["data"]) == b"\0\0\x80\x3f"
    assert found["c"]["shape"] == [0, 4]
    assert written(path) == (3, 16)


def test_data_begins_at_a_multiple_of_eight() -> None:
    file = BytesIO()
    SafetensorsWriter(file, ENTRIES)
    assert len(file.getvalue()) % 8 == 0


def test_another_order_or_length_than_announced_is_refused() -> None:
    with pytest.raises(ValueError, match="'b' was written, 'a' was announced"):
        SafetensorsWriter(BytesIO(), ENTRIES).write("b", [b"\0" * 4])
    with pytest.raises(ValueError, match="11 bytes written, 12 announced"):
        SafetensorsWriter(BytesIO(), ENTRIES).write("a", [b"\0" * 11])
    with pytest.raises(ValueError, match="3 announced tensors"):
        SafetensorsWriter(BytesIO(), ENTRIES).finish()
