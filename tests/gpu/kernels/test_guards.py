"""Guard bands and comparison: what was written beside a tensor, and how far an output is from its reference."""

from __future__ import annotations

import math

import pytest

torch = pytest.importorskip("torch")

from hfbench.gpu.kernels.compare import compare  # noqa: E402
from hfbench.gpu.kernels.declaration import Tolerance  # noqa: E402
from hfbench.gpu.kernels.guards import BAND, Guarded  # noqa: E402


def beyond(tensor: torch.Tensor, places: list[int]) -> None:
    """Write where the tensor's memory says so, counted in its elements from its first one."""
    flat = torch.empty(0, dtype=tensor.dtype)
    flat.set_(tensor.untyped_storage(), 0, (tensor.untyped_storage().nbytes() // tensor.element_size(),), (1,))
    for place in places:
        flat[tensor.storage_offset() + place] = 7


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.int32, torch.int8])
def test_a_copy_has_the_values_and_the_strides(dtype: torch.dtype) -> None:
    tensor = torch.arange(60).reshape(5, 12).to(dtype)[1:, 2:9:2]
    guarded = Guarded({"t": tensor}, ("t",))
    copy = guarded.tensors["t"]
    assert torch.equal(copy, tensor)
    assert (copy.stride(), copy.dtype) == (tensor.stride(), dtype)
    copy += 1
    assert guarded.trespasses() == []
    assert not torch.equal(copy, tensor), "the original is left alone"


@pytest.mark.parametrize(
    ("places", "told"),
    [
        ([12], "stores past the end of y: 1 element, the farthest 1 beyond"),
        ([12, 13, 112], "stores past the end of y: 3 elements, the farthest 101 beyond"),
        ([-1], "stores before the start of y: 1 element, the farthest 1 beyond"),
        ([-BAND // 4], f"stores before the start of y: 1 element, the farthest {BAND // 4:,} beyond"),
        ([4, 5], "stores between the rows of y: 2 elements"),
    ],
)
def test_a_store_beside_a_tensor_is_told_with_its_side(places: list[int], told: str) -> None:
    guarded = Guarded({"y": torch.zeros(2, 8)[:, :4]}, ("y",))
    beyond(guarded.tensors["y"], places)
    assert [str(each) for each in guarded.trespasses()] == [told]


def test_an_argument_that_is_no_output_may_not_change() -> None:
    guarded = Guarded({"x": torch.zeros(8), "y": torch.zeros(8)}, ("y",))
    guarded.tensors["x"][3] = 1
    guarded.tensors["y"][3] = 1
    assert [str(each) for each in guarded.trespasses()] == ["stores into x, which is no output: 1 element"]


def test_tensors_that_share_memory_still_do() -> None:
    both = torch.zeros(4, 6)
    guarded = Guarded({"left": both[:, :3], "right": both[:, 3:], "again": both[:, 3:]}, ("right",))
    guarded.tensors["right"].fill_(5)
    assert guarded.trespasses() == []
    assert torch.equal(guarded.tensors["again"], guarded.tensors["right"])
    guarded.tensors["left"][0, 0] = 1
    assert [each.argument for each in guarded.trespasses()] == ["left"]


def test_what_one_band_holds_is_found_in_no_other() -> None:
    guarded = Guarded({name: torch.zeros(4) for name in "abc"}, ("c",))
    firsts = []
    for tensor in guarded.tensors.values():
        flat = torch.empty(0, dtype=torch.int32)
        flat.set_(tensor.untyped_storage(), 0, (1,), (1,))
        firsts.append(int(flat[0]))
    assert len(set(firsts)) == 3
    assert torch.tensor(firsts[:2], dtype=torch.int32).view(torch.float32).isnan().all()


def test_empty_tensors_have_bands_too() -> None:
    guarded = Guarded({"y": torch.zeros(0)}, ("y",))
    beyond(guarded.tensors["y"], [0])
    assert [each.side for each in guarded.trespasses()] == ["after"]


def test_a_difference_is_told_with_its_element() -> None:
    reference = torch.tensor([[1.0, 2.0], [100.0, 0.0]])
    found = compare("y", torch.tensor([[1.0, 2.5], [101.0, 0.0]]), reference, Tolerance(0.02, 0.1))
    assert (found.max_abs, found.where, found.wrong, found.elements) == (1.0, (0, 1), 1, 4)
    assert found.max_rel == 0.25
    assert found.worst == pytest.approx(0.5 / 0.14)
    assert str(found) == "y[0, 1] is 2.5, the reference 2; 1 of 4 elements differ by more than is allowed"


@pytest.mark.parametrize(
    ("out", "ref", "worst"),
    [
        (math.inf, math.inf, 0.0),
        (-math.inf, -math.inf, 0.0),
        (math.nan, math.nan, 0.0),
        (math.inf, -math.inf, math.inf),
        (math.inf, 1.0, math.inf),
        (1.0, math.inf, math.inf),
        (math.nan, 1.0, math.inf),
        (1.0, math.nan, math.inf),
        (0.0, 0.0, 0.0),
        (1e-30, 0.0, math.inf),
    ],
)
def test_what_is_not_finite_equals_only_itself(out: float, ref: float, worst: float) -> None:
    found = compare("y", torch.tensor([out]).double(), torch.tensor([ref]).double(), Tolerance(0.1))
    assert found.worst == worst
    assert found.wrong == (worst > 1)


def test_no_element_is_no_difference_and_another_shape_is_refused() -> None:
    assert compare("y", torch.zeros(0), torch.zeros(0), Tolerance(0)).worst == 0
    with pytest.raises(ValueError, match=r"y has the shape \(2,\), the reference \(3,\)"):
        compare("y", torch.zeros(2), torch.zeros(3), Tolerance(0))
