"""GPUs by name or by memory, and types of numbers by any spelling."""

from __future__ import annotations

import pytest

from hfbench.actions.registry import find
from hfbench.errors import UsageError
from hfbench.estimate.devices import devices, find_device
from hfbench.estimate.runtimes import dtype_named, runtimes
from hfbench.units import GIB, MIB


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("H100", "H100 SXM 80GB"),
        ("nvidia h200", "H200 SXM 141GB"),
        ("H100 PCIe", "H100 PCIe 80GB"),
        ("a100 40gb", "A100 40GB"),
        ("NVIDIA GeForce RTX 4090", "RTX 4090 24GB"),
        ("L40S", "L40S 48GB"),
        ("mi300x", "MI300X 192GB"),
    ],
)
def test_a_gpu_is_found_by_the_words_of_its_name(text: str, name: str) -> None:
    assert find_device(text).name == name


def test_a_size_stands_for_a_gpu() -> None:
    assert find_device("24 GiB").memory_bytes == 24 * GIB


@pytest.mark.parametrize("text", ["", " ", "H999", "24", "24 ms", "0GiB", "-1 GiB", "\x1b[2J", "x" * 9999])
def test_what_is_no_gpu_is_refused_and_says_what_is_known(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        find_device(text)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 700


def test_every_gpu_has_a_source_and_a_day_and_a_name_of_its_own() -> None:
    names = [device.name for device in devices()]
    assert len(names) == len(set(names)) > 20
    assert all(device.source and len(device.read) == 10 for device in devices())
    assert all(8 * GIB < device.memory_bytes < 400 * GIB and device.memory_bytes % MIB == 0 for device in devices())


def test_a_memory_that_no_driver_told_says_so() -> None:
    nominal = {device.name for device in devices() if device.nominal}
    assert nominal == {"MI325X 256GB", "MI355X 288GB"}
    for device in devices():  # a driver keeps a part for itself: a whole number of GiB is a name, not a reading
        told = float(device.name.split()[-1].removesuffix("GB"))
        assert device.memory_bytes <= told * GIB
        assert not device.nominal or device.memory_bytes == told * GIB


def test_every_gpu_is_found_by_its_whole_name() -> None:
    assert [find_device(device.name) for device in devices()] == list(devices())


@pytest.mark.parametrize(
    ("text", "name"), [("bf16", "bfloat16"), ("torch.float16", "float16"), ("FP8_E4M3", "fp8"), ("float32", "float32")]
)
def test_types_are_known_by_their_short_names(text: str, name: str) -> None:
    assert dtype_named(text) == name


def test_an_unknown_type_is_refused_with_a_near_one() -> None:
    with pytest.raises(UsageError, match="bfloat16"):
        dtype_named("bfloat61")


def test_every_runtime_that_can_be_asked_for_is_described() -> None:
    assert set(runtimes()) == set(find("fit").param("runtime").choices)
    assert [name for name, runtime in runtimes().items() if not runtime.latent] == ["transformers-5.14"]
