"""Quantised weights side by side: 8-bit floats times their scales, packed ones told as not measured."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hfbench.models.diff.compare import diff_models
from hfbench.models.diff.facts import ValueDiff

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")

DTYPES = {
    "F32": torch.float32,
    "BF16": torch.bfloat16,
    "F8_E4M3": torch.float8_e4m3fn,
    "I8": torch.int8,
    "U8": torch.uint8,
    "I32": torch.int32,
}
Tensors = Mapping[str, tuple[str, Any]]


def checkpoint(folder: Path, tensors: Tensors, config: dict[str, Any] | None = None) -> Path:
    """A model of torch's tensors, stored in the dtypes named."""
    folder.mkdir()
    header, data = {}, b""
    for name, (dtype, tensor) in tensors.items():
        raw = tensor.to(DTYPES[dtype]).contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        header[name] = {"dtype": dtype, "shape": list(tensor.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + data)
    (folder / "config.json").write_text(json.dumps(config or {}))
    return folder


def values(a: Path, b: Path) -> dict[str, ValueDiff]:
    return {each.name: each for each in diff_models(str(a), str(b), values=True).values or ()}


def quantised(weight: Any, rows: int, columns: int) -> tuple[Any, Any]:
    """8-bit weight and the scale of each block of rows x columns."""
    blocks = [-(-size // step) for size, step in zip(weight.shape, (rows, columns), strict=True)]
    scales = torch.zeros(blocks)
    stored = torch.zeros_like(weight)
    for i in range(blocks[0]):
        for j in range(blocks[1]):
            part = weight[i * rows : (i + 1) * rows, j * columns : (j + 1) * columns]
            scales[i, j] = part.abs().max() / 448
            stored[i * rows : (i + 1) * rows, j * columns : (j + 1) * columns] = part / scales[i, j]
    return stored, scales


@pytest.fixture
def weight() -> Any:
    torch.manual_seed(1)
    return torch.randn(200, 300) * torch.logspace(-3, 1, 300)


@pytest.mark.parametrize("end", ["_scale_inv", "_scale"])
@pytest.mark.parametrize(("rows", "columns"), [(128, 128), (200, 300), (1, 300), (100, 75), (1, 1)])
def test_scaled_weights_are_close_to_what_they_were_made_of(
    weight: Any, end: str, rows: int, columns: int, tmp_path: Path
) -> None:
    stored, scales = quantised(weight, rows, columns)
    a = checkpoint(tmp_path / "a", {"l.weight": ("BF16", weight)})
    b = checkpoint(tmp_path / "b", {"l.weight": ("F8_E4M3", stored), f"l.weight{end}": ("F32", scales)})
    for found in (values(a, b)["l.weight"], values(b, a)["l.weight"]):
        assert (found.verdict, found.note) == ("close", f"scaled by l.weight{end}")
        assert 0 < found.relative_l2 < 0.05
        assert found.cosine > 0.999


def test_without_their_scales_the_same_weights_differ(weight: Any, tmp_path: Path) -> None:
    stored, _ = quantised(weight, 128, 128)
    a = checkpoint(tmp_path / "a", {"l.weight": ("BF16", weight)})
    b = checkpoint(tmp_path / "b", {"l.weight": ("F8_E4M3", stored)})
    assert values(a, b)["l.weight"].verdict == "differ"


def test_a_weight_times_a_wrong_scale_differs(weight: Any, tmp_path: Path) -> None:
    stored, scales = quantised(weight, 128, 128)
    a = checkpoint(tmp_path / "a", {"l.weight": ("BF16", weight)})
    b = checkpoint(tmp_path / "b", {"l.weight": ("F8_E4M3", stored), "l.weight_scale_inv": ("F32", scales.flip(0))})
    assert values(a, b)["l.weight"].verdict == "differ"


def test_the_same_bytes_are_equal_only_with_the_same_scales(weight: Any, tmp_path: Path) -> None:
    stored, scales = quantised(weight, 128, 128)
    kept = {"l.weight": ("F8_E4M3", stored), "l.weight_scale": ("F32", scales)}
    a, b = checkpoint(tmp_path / "a", kept), checkpoint(tmp_path / "b", kept)
    c = checkpoint(tmp_path / "c", kept | {"l.weight_scale": ("F32", scales * 2)})
    assert {each.verdict for each in values(a, b).values()} == {"equal"}
    doubled = values(a, c)
    assert {name: each.verdict for name, each in doubled.items()} == {"l.weight": "differ", "l.weight_scale": "differ"}
    assert doubled["l.weight"].relative_l2 == pytest.approx(1.0)


def test_two_ways_to_scale_the_same_weight_are_close(weight: Any, tmp_path: Path) -> None:
    made = [quantised(weight, *blocks) for blocks in ((128, 128), (1, 300))]
    folders = [
        checkpoint(tmp_path / str(n), {"l.weight": ("F8_E4M3", stored), "l.weight_scale": ("F32", scales)})
        for n, (stored, scales) in enumerate(made)
    ]
    assert values(*folders)["l.weight"].verdict == "close"


def test_the_block_comes_from_the_configuration(weight: Any, tmp_path: Path) -> None:
    stored, scales = quantised(weight, 64, 90)
    quantization = {"quantization_config": {"weight_block_size": [64, 90]}}
    tensors: Tensors = {"l.weight": ("F8_E4M3", stored), "l.weight_scale_inv": ("F32", scales)}
    a = checkpoint(tmp_path / "a", {"l.weight": ("F32", weight)})
    assert values(a, checkpoint(tmp_path / "b", tensors, quantization))["l.weight"].verdict == "close"


def test_scales_of_stacked_experts_and_of_whole_numbers_are_laid_over_their_rows(tmp_path: Path) -> None:
    torch.manual_seed(2)
    experts = torch.randn(3, 40, 60)
    factors = experts.abs().amax(dim=2, keepdim=True) / 127
    a = checkpoint(tmp_path / "a", {"e.weight": ("F32", experts)})
    for name, scales in (("b", factors), ("c", factors[..., 0])):
        tensors: Tensors = {"e.weight": ("I8", (experts / factors).round()), "e.weight_scale": ("F32", scales)}
        found = values(a, checkpoint(tmp_path / name, tensors))["e.weight"]
        assert (found.verdict, found.note) == ("close", "scaled by e.weight_scale")


def test_scales_that_fit_nowhere_are_told_and_nothing_is_measured(weight: Any, tmp_path: Path) -> None:
    stored, _ = quantised(weight, 128, 128)
    a = checkpoint(tmp_path / "a", {"l.weight": ("BF16", weight)})
    for name, scale in (("b", torch.ones(7, 11)), ("c", torch.ones(2, 3, 4, 5))):
        b = checkpoint(tmp_path / name, {"l.weight": ("F8_E4M3", stored), "l.weight_scale": ("F32", scale)})
        found = values(a, b)["l.weight"]
        assert (found.verdict, found.max_abs) == ("unknown", None)
        assert "l.weight_scale fit in no known way" in found.note


@pytest.mark.parametrize(
    ("name", "dtype", "beside"),
    [
        ("l.qweight", "I32", {}),
        ("l.qzeros", "I32", {}),
        ("l.weight_packed", "I32", {}),
        ("l.weight", "U8", {"l.weight.absmax": ("F32", torch.ones(1))}),
        ("l.weight", "U8", {"l.weight_scale": ("F8_E4M3", torch.ones(1)), "l.weight_scale_2": ("F32", torch.ones(1))}),
        ("e.w_blocks", "U8", {"e.w_scales": ("U8", torch.ones(1))}),
    ],
)
def test_packed_values_are_told_as_not_measured(name: str, dtype: str, beside: Tensors, tmp_path: Path) -> None:
    a = checkpoint(tmp_path / "a", {name: (dtype, torch.ones(2, 4)), **beside})
    b = checkpoint(tmp_path / "b", {name: (dtype, torch.ones(2, 4) * 3), **beside})
    c = checkpoint(tmp_path / "c", {name: ("F32", torch.ones(2, 4)), **beside})
    assert values(a, a)[name].verdict == "equal"
    found = values(a, b)[name]
    assert (found.verdict, found.max_abs) == ("differ", None)
    assert found.note == f"packed {dtype} values are not measured"
    assert values(c, a)[name].verdict == "unknown"
