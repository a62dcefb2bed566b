"""Numbers of NVML in words."""

from __future__ import annotations

import pytest

from hfbench.gpu.telemetry.decode import clock_words, compute_mode, cuda_version, throttling, xid_meaning


@pytest.mark.parametrize(
    ("mask", "words", "slowing"),
    [
        (0, (), ()),
        (0x1, ("idle",), ()),
        (0x4, ("power cap",), ("power cap",)),
        (0x8 | 0x40, ("hardware slowdown", "thermal (hardware)"), ("hardware slowdown", "thermal (hardware)")),
        (0x20 | 0x2, ("application clocks", "thermal (software)"), ("thermal (software)",)),
        (0x80, ("power brake",), ("power brake",)),
        (0x8000 | 0x1, ("idle", "reason 0x8000"), ("reason 0x8000",)),
    ],
)
def test_a_mask_is_its_reasons_and_some_of_them_slow_a_card(
    mask: int, words: tuple[str, ...], slowing: tuple[str, ...]
) -> None:
    assert clock_words(mask) == words
    assert throttling(words) == slowing


def test_unknown_numbers_keep_themselves() -> None:
    assert compute_mode(3) == "exclusive process"
    assert compute_mode(9) == "mode 9"
    assert cuda_version(12080) == "12.8"
    assert xid_meaning(79) == "the GPU fell off the bus"
    assert "Xid" in xid_meaning(100_000)
