"""What an architecture holds, by which names it is found, and how many blocks share a multiprocessor."""

from __future__ import annotations

import pytest

from hfbench.actions.kernel_static import USUAL
from hfbench.errors import UsageError
from hfbench.gpu.kernels.architectures import architectures, find_architecture, occupancy


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("sm_90", "sm_90"),
        ("90", "sm_90"),
        ("9.0", "sm_90"),
        ("sm_90a", "sm_90"),
        ("SM120", "sm_120"),
        ("12.0", "sm_120"),
        ("10.3", "sm_103"),
        ("h100", "sm_90"),
        ("RTX 4090", "sm_89"),
    ],
)
def test_an_architecture_has_several_names(text: str, name: str) -> None:
    assert find_architecture(text).name == name


@pytest.mark.parametrize("text", ["", "sm_", "sm_91", "gfx942", "9.00", "h1000"])
def test_another_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError, match="is no architecture known here"):
        find_architecture(text)


def test_the_table_holds_what_is_asked_for_by_default() -> None:
    known = architectures()
    assert set(USUAL) <= set(known)
    assert {name: known[name].shared_block for name in ("sm_75", *USUAL)} == {
        "sm_75": 65536,
        "sm_80": 166912,
        "sm_86": 101376,
        "sm_89": 101376,
        "sm_90": 232448,
        "sm_100": 232448,
        "sm_120": 101376,
    }
    for each in known.values():
        assert each.shared_block + each.shared_reserved <= each.shared_multiprocessor
        assert each.cards


@pytest.mark.parametrize(
    ("arch", "registers", "shared", "warps", "blocks", "share", "limited_by"),
    [
        ("sm_80", 32, 0, 4, 16, 1.0, "warps"),
        ("sm_80", 33, 0, 4, 12, 0.75, "registers"),  # 40 registers a thread are given: 48 warps
        ("sm_80", 255, 0, 8, 1, 0.125, "registers"),
        ("sm_80", 16, 0, 1, 32, 0.5, "blocks"),
        ("sm_86", 16, 0, 2, 16, 2 / 3, "blocks"),
        ("sm_90", 32, 100_000, 8, 2, 0.25, "shared memory"),
        ("sm_90", 32, 232_448, 4, 1, 0.0625, "shared memory"),  # with its reserve exactly all of it
        ("sm_120", 32, 147_456, 8, 0, 0.0, "shared memory"),
    ],
)
def test_occupancy_is_the_least_of_four_limits(
    arch: str, registers: int, shared: int, warps: int, blocks: int, share: float, limited_by: str
) -> None:
    found = occupancy(find_architecture(arch), registers=registers, shared=shared, warps=warps)
    assert (found.blocks, found.limited_by) == (blocks, limited_by)
    assert found.share == pytest.approx(share)
