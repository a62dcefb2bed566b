"""Values of two models: equal, close or different, across dtypes, NaN included."""

from __future__ import annotations

import builtins
import json
import math
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hfbench.errors import MissingError
from hfbench.models.columns import TensorInfo
from hfbench.models.diff.compare import diff_models
from hfbench.models.diff.facts import ModelDiff, ValueDiff
from hfbench.models.diff.metrics import Metrics
from hfbench.models.diff.tolerance import tolerance
from hfbench.models.values.decode import eight_bit_values, numbers

pytest.importorskip("numpy")

TENSOR = TensorInfo("w", "F64", (1,), 0, 8, "model.safetensors")
NAN = float("nan")
INF = float("inf")


def weights(path: Path, dtype: str, raw: bytes, elements: int) -> Path:
    header = json.dumps({"w": {"dtype": dtype, "shape": [elements], "data_offsets": [0, len(raw)]}}).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header + raw)
    return path


def packed(dtype: str, values: list[Any]) -> bytes:
    if dtype == "BF16":
        return b"".join(struct.pack("<f", value)[2:] for value in values)
    codes = {"F64": "d", "F32": "f", "F16": "e", "I64": "q", "U64": "Q", "I32": "i", "I8": "b", "U8": "B", "BOOL": "?"}
    return struct.pack(f"<{len(values)}{codes[dtype]}", *values)


def compare(tmp_path: Path, a: tuple[str, list[Any]], b: tuple[str, list[Any]]) -> ValueDiff:
    paths = [
        weights(tmp_path / f"{side}.safetensors", dtype, packed(dtype, values), len(values))
        for side, (dtype, values) in (("a", a), ("b", b))
    ]
    [found] = diff_models(str(paths[0]), str(paths[1]), values=True).values or ()
    return found


def test_equal_bytes_are_equal_nan_included_and_their_cosine_is_one(tmp_path: Path) -> None:
    values = [NAN, INF, 0.1, 0.2, 0.3, -1e30]
    found = compare(tmp_path, ("F32", values), ("F32", values))
    assert (found.verdict, found.max_abs, found.mean_abs, found.relative_l2, found.cosine) == ("equal", 0, 0, 0, 1)
    assert (found.dtype, found.shape) == ("F32", (6,))


@pytest.mark.parametrize(
    ("a", "b"),
    [("BF16", "F32"), ("F16", "F32"), ("F32", "F64"), ("BF16", "F64"), ("I8", "F16"), ("BF16", "F16"), ("U8", "I64")],
)
def test_an_exact_upcast_is_equal_either_way(a: str, b: str, tmp_path: Path) -> None:
    values: list[Any] = [0, 1, 2, 96] if {a, b} & {"I8", "U8", "I64"} else [0.5, -0.0, -1.25, 96.0, NAN, INF, -INF]
    assert compare(tmp_path, (a, values), (b, values)).verdict == "equal"
    assert compare(tmp_path, (b, values), (a, values)).verdict == "equal"


def test_rounding_to_bfloat16_is_close_and_told_by_how_much(tmp_path: Path) -> None:
    found = compare(tmp_path, ("F32", [1.0, 1.00390625]), ("BF16", [1.0, 1.0]))
    assert found.verdict == "close"
    assert found.max_abs == 0.00390625
    assert found.mean_abs == 0.00390625 / 2
    assert compare(tmp_path, ("F32", [1.0, 1.008]), ("BF16", [1.0, 1.0])).verdict == "differ"


@pytest.mark.parametrize(
    ("a", "b", "rtol", "name"),
    [
        ("F32", "F32", 1e-5, "the usual"),
        ("BF16", "BF16", 1e-5, "the usual"),
        ("F64", "F32", 1e-5, "the usual"),
        ("BF16", "F32", 2**-8, "one rounding to BF16"),
        ("F16", "F64", 2**-11, "one rounding to F16"),
        ("BF16", "F16", 2**-8 + 2**-11, "one rounding to BF16 and one rounding to F16"),
        ("F8_E4M3", "BF16", 2**-4 + 2**-8, "one rounding to F8_E4M3 and one rounding to BF16"),
    ],
)
def test_the_tolerance_is_what_rounding_may_do_and_has_a_name(a: str, b: str, rtol: float, name: str) -> None:
    found, turned = tolerance(a, b), tolerance(b, a)
    assert (found.rtol, found.name) == (rtol, name)
    assert (found.rtol, found.atol, found.dtypes) == (turned.rtol, turned.atol, turned.dtypes)
    asked = tolerance(a, b, rtol=0.5)
    assert (asked.rtol, asked.atol, asked.name) == (0.5, 1e-8, "as asked for")


@settings(deadline=None)
@given(st.floats(width=32, allow_nan=False, allow_infinity=False), st.sampled_from(["BF16", "F16"]))
def test_a_number_is_close_to_what_rounding_makes_of_it(value: float, dtype: str) -> None:
    torch = pytest.importorskip("torch")
    kind = {"BF16": torch.bfloat16, "F16": torch.float16}[dtype]
    rounded = float(torch.tensor(value, dtype=torch.float32).to(kind))
    if math.isinf(rounded):
        return  # past the largest number nothing is close
    metrics = Metrics("F32", dtype, tolerance("F32", dtype), same_bits=False)
    metrics.add(*(numbers(packed("F64", [each]), "F64") for each in (value, rounded)))
    assert metrics.told(TENSOR).verdict in ("equal", "close")


def test_the_tolerances_used_are_told_and_those_asked_for_count(tmp_path: Path) -> None:
    a = weights(tmp_path / "a.safetensors", "F32", packed("F32", [1.0]), 1)
    b = weights(tmp_path / "b.safetensors", "F32", packed("F32", [1.2]), 1)
    [usual] = diff_models(str(a), str(b), values=True).tolerances
    assert (usual.dtypes, usual.rtol, usual.atol) == ("F32", 1e-5, 1e-8)
    wide = diff_models(str(a), str(b), values=True, rtol=0.5)
    assert [each.verdict for each in wide.values or ()] == ["close"]
    assert [each.name for each in wide.tolerances] == ["as asked for"]
    assert [each.verdict for each in diff_models(str(a), str(b), values=True, atol=0.3).values or ()] == ["close"]


def test_metrics_are_those_of_their_definitions(tmp_path: Path) -> None:
    found = compare(tmp_path, ("F64", [3.0, 4.0]), ("F64", [4.0, 3.0]))
    assert found.verdict == "differ"
    assert (found.max_abs, found.mean_abs) == (1.0, 1.0)
    assert found.relative_l2 == pytest.approx(math.sqrt(2) / 5)
    assert found.cosine == pytest.approx(24 / 25)


@pytest.mark.parametrize(("other", "verdict"), [(1.000009, "close"), (1.00002, "differ")])
def test_close_is_within_the_tolerance(other: float, verdict: str, tmp_path: Path) -> None:
    assert compare(tmp_path, ("F64", [1.0]), ("F64", [other])).verdict == verdict


def test_minus_zero_is_close_to_zero_but_not_the_same_bits(tmp_path: Path) -> None:
    found = compare(tmp_path, ("F32", [0.0, 1.0]), ("F32", [-0.0, 1.0]))
    assert (found.verdict, found.max_abs, found.cosine) == ("close", 0.0, 1.0)


@pytest.mark.parametrize("other", [1.0, INF, -INF])
def test_a_nan_against_anything_else_differs_and_no_metric_is_nan(other: float, tmp_path: Path) -> None:
    found = compare(tmp_path, ("F32", [NAN, 2.0]), ("F32", [other, 2.0]))
    assert (found.verdict, found.nonfinite, found.max_abs) == ("differ", 1, 0.0)
    alone = compare(tmp_path, ("F32", [NAN]), ("F32", [other]))
    assert (alone.verdict, alone.max_abs, alone.mean_abs, alone.relative_l2, alone.cosine) == (
        "differ",
        None,
        None,
        None,
        None,
    )


def test_zeros_and_overflow_leave_out_what_has_no_number(tmp_path: Path) -> None:
    zero = compare(tmp_path, ("F32", [0.0]), ("F32", [1.0]))
    assert (zero.verdict, zero.relative_l2, zero.cosine) == ("differ", None, None)
    huge = compare(tmp_path, ("F64", [1e308, 1.0]), ("F64", [-1e308, 1.0]))
    assert (huge.verdict, huge.max_abs, huge.cosine) == ("differ", None, None)


def test_whole_numbers_past_what_float64_holds_are_told_apart(tmp_path: Path) -> None:
    found = compare(tmp_path, ("I64", [2**60, -(2**60)]), ("I64", [2**60 + 1, -(2**60)]))
    assert found.max_abs == 1.0
    assert compare(tmp_path, ("U64", [2**63, 1]), ("I64", [-(2**63), 1])).verdict == "differ"
    assert compare(tmp_path, ("U64", [2**62 + 1]), ("I64", [2**62 + 1])).verdict == "equal"
    assert compare(tmp_path, ("I64", [2**53 + 1]), ("F64", [2.0**53])).verdict != "equal"
    assert compare(tmp_path, ("I64", [-5, 2**53]), ("F64", [-5.0, 2.0**53])).verdict == "equal"
    assert compare(tmp_path, ("I64", [1, 1]), ("F32", [NAN, INF])).nonfinite == 2


def test_empty_tensors_of_two_dtypes_are_equal(tmp_path: Path) -> None:
    assert compare(tmp_path, ("F32", []), ("BF16", [])).verdict == "equal"


def test_packed_values_are_compared_by_bytes_alone(tmp_path: Path) -> None:
    a = weights(tmp_path / "a.safetensors", "F4", b"\x12", 2)
    b = weights(tmp_path / "b.safetensors", "F4", b"\x13", 2)
    c = weights(tmp_path / "c.safetensors", "U8", b"\x01\x02", 2)
    verdicts = [
        [each.verdict for each in diff_models(str(x), str(y), values=True).values or ()]
        for x, y in ((a, a), (a, b), (a, c))
    ]
    assert verdicts == [["equal"], ["differ"], ["unknown"]]


def test_eight_bit_floats_have_their_known_values() -> None:
    e4m3, e5m2, fnuz = (eight_bit_values(name) for name in ("F8_E4M3", "F8_E5M2", "F8_E4M3FNUZ"))
    assert (e4m3[0x7E], e4m3[0x01], e4m3[0x38], e4m3[0xB8]) == (448.0, 2.0**-9, 1.0, -1.0)
    assert (e5m2[0x7B], e5m2[0x7C], e5m2[0xFC], e5m2[0x01]) == (57344.0, INF, -INF, 2.0**-16)
    assert (fnuz[0x7F], fnuz[0x01]) == (240.0, 2.0**-10)
    assert eight_bit_values("F8_E8M0")[127] == 1.0
    for table, nans in ((e4m3, [0x7F, 0xFF]), (fnuz, [0x80]), (e5m2, [0x7D, 0x7E, 0x7F, 0xFD, 0xFE, 0xFF])):
        assert [code for code, value in enumerate(table) if math.isnan(value)] == nans


def test_eight_bit_floats_agree_with_torch() -> None:
    torch = pytest.importorskip("torch")
    every = torch.arange(256, dtype=torch.uint8)
    for name, kind in (
        ("F8_E4M3", torch.float8_e4m3fn),
        ("F8_E5M2", torch.float8_e5m2),
        ("F8_E4M3FNUZ", torch.float8_e4m3fnuz),
        ("F8_E5M2FNUZ", torch.float8_e5m2fnuz),
    ):
        judged = every.view(kind).double()
        assert torch.equal(judged.nan_to_num(7.7), torch.tensor(eight_bit_values(name)).double().nan_to_num(7.7))


def test_a_tensor_longer_than_a_stretch_is_read_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from hfbench.models.diff import values

    monkeypatch.setattr(values, "STRETCH", 8)
    monkeypatch.setattr(values, "ELEMENTS", 3)
    a = [float(number) for number in range(10)]
    found = compare(tmp_path, ("F32", a), ("F32", [*a[:-1], 10.0]))
    assert (found.verdict, found.max_abs, found.mean_abs) == ("differ", 1.0, 0.1)
    assert compare(tmp_path, ("F32", a), ("F32", a)).verdict == "equal"
    assert compare(tmp_path, ("F32", a), ("BF16", a)).verdict == "equal"


@settings(deadline=None)
@given(st.lists(st.tuples(st.floats(), st.floats()), min_size=1), st.booleans())
def test_no_metric_is_ever_nan_or_infinite(pairs: list[tuple[float, float]], same_dtype: bool) -> None:
    other = "F64" if same_dtype else "F32"
    metrics = Metrics("F64", other, tolerance("F64", other), same_bits=same_dtype)
    metrics.add(*(numbers(packed("F64", list(side)), "F64") for side in zip(*pairs, strict=True)))
    found = metrics.told(TENSOR)
    for value in (found.max_abs, found.mean_abs, found.relative_l2, found.cosine):
        assert value is None or math.isfinite(value)
    assert found.cosine is None or -1 <= found.cosine <= 1


def test_equal_values_need_no_numpy_and_others_name_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without_numpy(name: str, *rest: Any) -> Any:
        if name == "numpy":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without_numpy)
    assert compare(tmp_path, ("F32", [1.0]), ("F32", [1.0])).verdict == "equal"
    with pytest.raises(MissingError, match=r"hfbench\[torch\]"):
        compare(tmp_path, ("F32", [1.0]), ("F32", [2.0]))


def test_a_file_that_shrinks_while_it_is_read_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from hfbench.models.diff import compare as module

    a = weights(tmp_path / "a.safetensors", "U8", b"1234", 4)
    b = weights(tmp_path / "b.safetensors", "U8", b"1234", 4)
    pair = module.pair_tensors

    def shrink(*columns: Any) -> Any:
        b.write_bytes(b.read_bytes()[:-2])
        return pair(*columns)

    monkeypatch.setattr(module, "pair_tensors", shrink)
    found: ModelDiff = diff_models(str(a), str(b), values=True)
    assert found.values == ()
    assert [each.code for each in found.problems] == ["st_truncated"]
