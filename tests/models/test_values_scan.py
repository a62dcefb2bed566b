"""The values of every tensor: against torch for each dtype, over odd sizes, damaged files and bounded memory."""

from __future__ import annotations

import builtins
import json
import math
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hfbench.errors import MissingError
from hfbench.models.checkpoint import Checkpoint, Gathering, open_checkpoint, read_weights
from hfbench.models.dtypes import BITS
from hfbench.models.files import describe_file
from hfbench.models.values import crew, listing, scan
from hfbench.models.values.facts import TensorValues, ValueScan
from hfbench.models.values.scan import scan_values
from hfbench.models.weights import WeightSet

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")

FLOATS = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "F8_E4M3": torch.float8_e4m3fn,
    "F8_E5M2": torch.float8_e5m2,
    "F8_E4M3FNUZ": torch.float8_e4m3fnuz,
    "F8_E5M2FNUZ": torch.float8_e5m2fnuz,
    "F8_E8M0": torch.float8_e8m0fnu,
}
WHOLE = {
    "BOOL": "u1",
    "U8": "u1",
    "I8": "i1",
    "U16": "u2",
    "I16": "i2",
    "U32": "u4",
    "I32": "i4",
    "U64": "u8",
    "I64": "i8",
}
FORECAST = {"F64", "F32", "BF16"}
PACKED = {"F4", "F6_E2M3", "F6_E3M2"}

FEW = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of 16 bytes and stretches of three: whatever is longer is put together from parts."""
    monkeypatch.setattr(crew, "BLOCK", 16)
    monkeypatch.setattr(scan, "STRETCH", 48)


def file_of(path: Path, *tensors: tuple[str, str, list[int], bytes]) -> Path:
    header: dict[str, Any] = {}
    data = b""
    for name, dtype, shape, raw in tensors:
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path


def opened(*paths: Path) -> Checkpoint:
    """A checkpoint of these files."""
    folder = paths[0].parent
    weights = WeightSet("safetensors", tuple(describe_file(path, folder) for path in paths), None, ())
    gathering = Gathering(folder, weights)
    for read in read_weights(folder, weights):
        gathering.add(read)
    return gathering.checkpoint()


def measured(tmp_path: Path, dtype: str, raw: bytes, shape: list[int] | None = None) -> TensorValues:
    shape = [len(raw) * 8 // BITS[dtype]] if shape is None else shape
    [found] = scan_values(opened(file_of(tmp_path / "w.safetensors", ("w", dtype, shape, raw)))).tensors
    return found


def told(values: list[float], bits: list[Any]) -> dict[str, Any]:
    """The figures by their definitions, one Python float at a time."""
    finite = [abs(value) for value in values if math.isfinite(value)]
    return {
        "nan": sum(map(math.isnan, values)),
        "inf": sum(map(math.isinf, values)),
        "zeros": finite.count(0.0),
        "zero_fraction": finite.count(0.0) / len(values) if values else None,
        "absmax": max(finite, default=None),
        "absmin": min((value for value in finite if value), default=None),
        "constant": len(set(bits)) == 1 if len(bits) > 1 else None,
    }


def figures(found: TensorValues, *more: str) -> dict[str, Any]:
    names = ("nan", "inf", "zeros", "zero_fraction", "absmax", "absmin", "constant", *more)
    return {name: getattr(found, name) for name in names}


def codes(dtype: str) -> st.SearchStrategy[int]:
    """The bits of one element: any, and often those at the edges of the format and of float16."""
    size = BITS[dtype]
    edges = [0, 1, 2 ** (size - 1), 2 ** (size - 1) - 1, 2**size - 1]
    if dtype in FLOATS:
        kind = FLOATS[dtype]
        ends = [0.0, math.inf, -math.inf, math.nan, 65504.0, 65519.0, 65520.0, 65536.0, 2.0**-24, 2.0**-25, -(2.0**-26)]
        plain = torch.tensor(ends, dtype=torch.float32).to(kind).view(torch.uint8).numpy().tobytes()
        near = np.frombuffer(plain, f"<u{size // 8}").tolist()
        edges += near + [max(0, each - 1) for each in near] + [min(2**size - 1, each + 1) for each in near]
    return st.one_of(st.sampled_from(edges), st.integers(0, 2**size - 1))


def raw_of(dtype: str, elements: list[int]) -> bytes:
    return b"".join(each.to_bytes(BITS[dtype] // 8, "little") for each in elements)


@pytest.mark.parametrize("dtype", FLOATS)
@given(data=st.data())
@FEW
def test_every_float_has_the_figures_that_torch_gives(dtype: str, data: st.DataObject, tmp_path: Path) -> None:
    bits = data.draw(st.one_of(st.lists(codes(dtype), max_size=60), st.lists(st.just(3), max_size=40)))
    raw = raw_of(dtype, bits)
    tensor = torch.frombuffer(bytearray(raw), dtype=FLOATS[dtype]) if raw else torch.zeros(0, dtype=FLOATS[dtype])
    found = measured(tmp_path, dtype, raw)
    assert figures(found) == told(tensor.double().tolist(), bits)
    if dtype not in FORECAST:
        assert (found.float16_inf, found.float16_zero) == (None, None)
        return
    with np.errstate(over="ignore", under="ignore"):
        narrow = tensor.double().numpy().astype("f2")
    wide = tensor.double().numpy()
    assert found.float16_inf == int((np.isinf(narrow) & np.isfinite(wide)).sum())
    assert found.float16_zero == int(((narrow == 0) & (wide != 0)).sum())


@pytest.mark.parametrize("dtype", WHOLE)
@given(data=st.data())
@FEW
def test_whole_numbers_have_the_figures_of_their_definitions(dtype: str, data: st.DataObject, tmp_path: Path) -> None:
    bits = data.draw(st.lists(st.integers(0, 1) if dtype == "BOOL" else codes(dtype), max_size=60))
    raw = raw_of(dtype, bits)
    values = [float(each) for each in np.frombuffer(raw, f"<{WHOLE[dtype]}").tolist()]
    found = measured(tmp_path, dtype, raw)
    assert figures(found) == {**told(values, bits), "absmin": None}
    assert (found.float16_inf, found.float16_zero) == (None, None)


@given(parts=st.lists(st.floats(width=32), max_size=40).filter(lambda parts: len(parts) % 2 == 0))
@FEW
def test_of_complex_numbers_the_parts_are_counted(parts: list[float], tmp_path: Path) -> None:
    raw = np.array(parts, "<f4").tobytes()
    found = measured(tmp_path, "C64", raw)
    assert figures(found) == told(parts, np.frombuffer(raw, "<u4").tolist())
    assert found.elements == len(parts) // 2


def test_every_dtype_of_the_format_is_measured_or_said_to_be_packed(tmp_path: Path) -> None:
    assert {*FLOATS, *WHOLE, "C64"} | PACKED == set(BITS)
    for dtype in PACKED:
        found = measured(tmp_path, dtype, bytes(3), [24 // BITS[dtype]])
        assert (found.note, found.nan, found.zeros, found.telling) == (f"{dtype} values are packed", None, None, True)


def test_a_scalar_is_measured_and_an_empty_tensor_has_no_figures(tmp_path: Path) -> None:
    scalar = measured(tmp_path, "F32", np.array(-3.5, "<f4").tobytes(), [])
    assert (scalar.shape, scalar.elements, scalar.absmax, scalar.absmin, scalar.constant) == ((), 1, 3.5, 3.5, None)
    empty = measured(tmp_path, "BF16", b"", [4, 0])
    assert (empty.elements, empty.nan, empty.zeros, empty.zero_fraction, empty.absmax) == (0, 0, 0, None, None)


@pytest.mark.parametrize("dtype", ["F64", "BF16", "F8_E4M3", "F8_E8M0", "I8"])
@pytest.mark.parametrize("size", [8, 16, 24, 40, 48, 56, 96, 104])
def test_one_odd_value_is_found_wherever_blocks_and_stretches_end(dtype: str, size: int, tmp_path: Path) -> None:
    width = BITS[dtype] // 8
    for place in range(0, size, width):
        raw = bytearray(b"\x01" * size)
        raw[place : place + width] = b"\xff" * width
        found = measured(tmp_path, dtype, bytes(raw))
        assert bool(found.nan) is (dtype != "I8"), place
        assert found.constant is (None if size == width else False)


@pytest.mark.parametrize("threads", [1, 3])
def test_tensors_come_in_the_order_of_the_files_whoever_counted_them(threads: int, tmp_path: Path) -> None:
    raw = np.arange(1, 41, dtype="<f4")
    shuffled = [("b", "F32", [10], raw[:10].tobytes()), ("a", "F32", [30], raw[10:].tobytes())]
    first = file_of(tmp_path / "1.safetensors", *shuffled)
    second = file_of(tmp_path / "2.safetensors", ("c", "I8", [3], b"\x80\x01\x02"), ("d", "BF16", [1], b"\x80\x3f"))
    reports: list[tuple[int, int]] = []
    found = scan_values(opened(first, second), lambda *report: reports.append(report), threads=threads)
    assert [(each.file, each.name, each.absmax) for each in found.tensors] == [
        ("1.safetensors", "b", 10.0),
        ("1.safetensors", "a", 40.0),
        ("2.safetensors", "c", 128.0),
        ("2.safetensors", "d", 1.0),
    ]
    assert (found.measured, found.unmeasured, found.left_out, found.bytes) == (4, 0, 0, 165)
    assert (reports[0], reports[-1]) == ((0, 165), (165, 165))
    assert reports == sorted(reports)


def test_totals_count_tensors(tmp_path: Path) -> None:
    nan, inf, big = b"\xc0\x7f", b"\x80\x7f", b"\x80\x47"
    tensors = [("x", nan + inf), ("y", nan + nan), ("z", big + big), ("o", b"\x80\x3f" * 2)]
    found = scan_values(opened(file_of(tmp_path / "w.safetensors", *((n, "BF16", [2], raw) for n, raw in tensors))))
    assert (found.nan, found.inf, found.float16_inf) == (2, 1, 1)


def test_a_file_that_was_cut_or_removed_owes_its_tensors_and_the_rest_is_measured(tmp_path: Path) -> None:
    cut = file_of(tmp_path / "cut.safetensors", ("a", "U8", [16], bytes(16)), ("b", "U8", [64], bytes(64)))
    gone = file_of(tmp_path / "gone.safetensors", ("c", "U8", [4], bytes(4)))
    whole = file_of(tmp_path / "whole.safetensors", ("d", "U8", [100], bytes(100)))
    checkpoint = opened(cut, gone, whole)
    os.truncate(cut, cut.stat().st_size - 1)
    gone.unlink()
    found = scan_values(checkpoint)
    assert [(each.name, each.note, each.zeros) for each in found.tensors] == [
        ("a", "", 16),
        ("b", "ends before its last tensor", None),
        ("c", "not there", None),
        ("d", "", 100),
    ]
    assert (found.measured, found.unmeasured) == (2, 2)


def test_a_file_that_became_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    path = file_of(tmp_path / "w.safetensors", ("a", "U8", [4], bytes(4)))
    checkpoint = opened(path)
    path.unlink()
    os.mkfifo(path)
    [found] = scan_values(checkpoint).tensors
    assert found.note == "a FIFO, not a plain file"


def test_of_too_many_tensors_those_are_listed_that_tell_something(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "LISTED", 5 * (listing.ENTRY + 3))
    names = [f"t{number:02d}" for number in range(20)]
    odd = {"t07": b"\xc0\x7f", "t15": b"\x80\x47"}
    tensors = [(name, "BF16", [1], odd.get(name, b"\x80\x3f")) for name in names]
    found = scan_values(opened(file_of(tmp_path / "w.safetensors", *tensors)))
    assert [each.name for each in found.tensors] == ["t00", "t01", "t02", "t07", "t15"]
    assert (found.measured, found.left_out, found.nan, found.float16_inf) == (20, 15, 1, 1)


def test_leaving_early_stops_the_threads(tmp_path: Path) -> None:
    path = file_of(tmp_path / "w.safetensors", ("a", "U8", [100_000], bytes(100_000)))

    def interrupted(done: int, total: int) -> None:
        if done:
            raise KeyboardInterrupt

    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        scan_values(opened(path), interrupted, threads=2)
    assert threading.active_count() == before


def test_what_goes_wrong_in_a_thread_is_raised_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise MemoryError("no room")

    monkeypatch.setattr(crew.Measure, "tally", broken)
    with pytest.raises(MemoryError, match="no room"):
        scan_values(opened(file_of(tmp_path / "w.safetensors", ("a", "U8", [1], b"1"))))


def test_without_numpy_the_extra_is_named_before_anything_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = opened(file_of(tmp_path / "w.safetensors", ("a", "U8", [1], b"1")))
    real = builtins.__import__

    def without_numpy(name: str, *rest: Any) -> Any:
        if name == "numpy":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without_numpy)
    with pytest.raises(MissingError, match=r"hfbench\[torch\]"):
        scan_values(checkpoint)


def test_a_scan_is_plain_data(tmp_path: Path) -> None:
    from hfbench.codec import decode, encode

    path = file_of(tmp_path / "model.safetensors", ("a", "BF16", [2], b"\xc0\x7f\x80\x7f"), ("b", "F4", [2], b"\x11"))
    found = scan_values(open_checkpoint(path.parent))
    text = json.dumps(encode(found), allow_nan=False)
    assert decode(ValueScan, json.loads(text)) == found
