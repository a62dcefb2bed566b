"""The GGUF header: literal bytes, one test for each way to be wrong, and no surprise for any bytes."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hfbench.convert.gguf_file import GgufError, GgufTensor, read_gguf
from hfbench.errors import HfbenchError


def text(content: str | bytes) -> bytes:
    raw = content.encode() if isinstance(content, str) else content
    return struct.pack("<Q", len(raw)) + raw


def header(*, version: int = 3, tensors: int = 0, pairs: int = 0) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", version, tensors, pairs)


def entry(name: str, shape: tuple[int, ...], kind: int, offset: int) -> bytes:
    return text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset)


WHOLE = (
    header(tensors=2, pairs=4)
    + (text("a") + struct.pack("<If", 6, 0.5))
    + (text("b") + struct.pack("<I", 8) + text("\u00fc"))
    + (text("c") + struct.pack("<IIQ3i", 9, 5, 3, -1, 0, 7))
    + (text("d") + struct.pack("<IIQ", 9, 8, 2) + text("x") + text(b"\xff"))
    + entry("w", (3, 2), 0, 0)
    + entry("v", (4,), 0, 32)
)
PADDED = WHOLE + b"\0" * (-len(WHOLE) % 32)


@pytest.fixture
def written(tmp_path: Path) -> Path:
    return tmp_path / "m.gguf"


def test_values_of_every_shape_are_read(written: Path) -> None:
    written.write_bytes(PADDED + b"\0" * 48)
    file = read_gguf(written)
    assert file.metadata == {"a": 0.5, "b": "\u00fc", "c": [-1, 0, 7], "d": ["x", "\udcff"]}
    assert file.size == len(PADDED) + 48


def test_shapes_are_outermost_first_and_offsets_count_from_the_start_of_the_file(written: Path) -> None:
    written.write_bytes(PADDED + b"\0" * 48)
    assert read_gguf(written).tensors == {
        "w": GgufTensor("w", (2, 3), 0, len(PADDED)),
        "v": GgufTensor("v", (4,), 0, len(PADDED) + 32),
    }


@pytest.mark.parametrize(
    ("raw", "message", "at"),
    [
        (b"", "the file is empty", 0),
        (b"GG", "claims 4 more bytes, 2 follow", 0),
        (b"ggml" + b"\0" * 40, "does not begin with GGUF", 0),
        (header(version=1), "version 1 is not 2 and 3", 4),
        (header(version=0x03000000), "version 50331648", 4),  # big-endian
        (header(pairs=2**40), "claims 1099511627776 metadata entries", 24),
        (header(tensors=2**63), "claims 9223372036854775808 tensors", 24),
        (header(pairs=1) + text("k") + struct.pack("<IQ", 8, 2**60), "more bytes, 0 follow", 45),
        (header(pairs=1) + text("k") + struct.pack("<II", 99, 0), "value type 99", 37),
        (header(pairs=1) + text("k") + struct.pack("<IIQ", 9, 4, 2**61), "array items", 49),
        (header(pairs=2) + (text("k") + struct.pack("<IB", 0, 1)) * 2, "the key 'k' stands twice", 38),
        (header(tensors=1) + entry("t", (1, 1, 1, 1, 1), 0, 0), "has 5 dimensions", 24),
        (header(tensors=1) + entry("t", (), 0, 0) + b"\0" * 9, "has 0 dimensions", 24),
        (header(tensors=1) + entry("t", (1,), 0, 7) + b"\0" * 99, "impossible offset", 24),
        (header(tensors=1) + entry("t", (1,), 0, 2**60) + b"\0" * 99, "impossible offset", 24),
        (header(tensors=2) + entry("t", (1,), 0, 0) * 2 + b"\0" * 99, "'t' stands twice", 57),
        (header(pairs=1) + text("general.alignment") + struct.pack("<II", 4, 24), "alignment 24", 57),
    ],
)
def test_a_contradiction_is_named_with_its_byte(written: Path, raw: bytes, message: str, at: int) -> None:
    written.write_bytes(raw)
    with pytest.raises(GgufError, match=message) as caught:
        read_gguf(written)
    assert caught.value.at == at
    assert str(written) in str(caught.value)


def test_nested_arrays_end_somewhere(written: Path) -> None:
    written.write_bytes(header(pairs=1) + text("k") + struct.pack("<I", 9) + struct.pack("<IQ", 9, 1) * 5000)
    with pytest.raises(GgufError, match="value type 9"):
        read_gguf(written)


def test_a_missing_file_is_one_sentence(written: Path) -> None:
    with pytest.raises(HfbenchError, match="cannot be read"):
        read_gguf(written)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(position=st.integers(0, len(PADDED) - 1), value=st.integers(0, 255), length=st.integers(0, len(PADDED)))
def test_any_damage_is_read_or_refused(written: Path, position: int, value: int, length: int) -> None:
    damaged = bytearray(PADDED)
    damaged[position] = value
    for raw in (bytes(damaged), bytes(damaged[:length])):
        written.write_bytes(raw)
        try:
            read_gguf(written)
        except HfbenchError as error:
            assert "\n" not in str(error)  # noqa: PT017
