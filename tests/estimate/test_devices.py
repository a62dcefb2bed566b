"""GPUs by name or by memory, and types of numbers by any spelling."""

from __future__ import annotations

import pytest

from hfbench.actions.fit import TYPES
from hfbench.actions.registry import find
from hfbench.errors import UsageError
from hfbench.estimate.devices import devices, find_device
from hfbench.estimate.runtimes import SIZES, dtype_named, runtimes
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


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("NVIDIA H100 80GB HBM3", "H100 SXM 80GB"),
        ("NVIDIA H100 PCIe", "H100 PCIe 80GB"),
        ("NVIDIA H100 NVL", "H100 NVL 94GB"),
        ("NVIDIA H200", "H200 SXM 141GB"),
        ("NVIDIA GH200 480GB", "GH200 96GB"),
        ("NVIDIA GH200 144G HBM3e", "GH200 144GB"),
        ("NVIDIA B200", "B200 180GB"),
        ("NVIDIA A100-SXM4-80GB", "A100 SXM 80GB"),
        ("NVIDIA A100-SXM4-40GB", "A100 40GB"),
        ("NVIDIA A100-PCIE-40GB", "A100 40GB"),
        ("NVIDIA A100 80GB PCIe", "A100 PCIe 80GB"),
        ("NVIDIA A10", "A10 24GB"),
        ("NVIDIA A10G", "A10G 24GB"),
        ("NVIDIA L4", "L4 24GB"),
        ("NVIDIA L40S", "L40S 48GB"),
        ("NVIDIA RTX A6000", "RTX A6000 48GB"),
        ("NVIDIA RTX 6000 Ada Generation", "RTX 6000 Ada 48GB"),
        ("NVIDIA GeForce RTX 4090", "RTX 4090 24GB"),
        ("Tesla T4", "T4 16GB"),
        ("Tesla V100-SXM2-16GB", "V100 16GB"),
    ],
)
def test_a_gpu_is_found_as_its_driver_lists_it(text: str, name: str) -> None:
    found = find_device(text)
    assert (found.name, found.note) == (name, "")


@pytest.mark.parametrize(
    ("text", "size"),
    [("24GB", 24 * 10**9), ("24 gib", 24 * GIB), ("80GB", 80 * 10**9), ("96GB", 96 * 10**9), ("1.5TiB", 1536 * GIB)],
)
def test_a_size_is_a_size_before_it_is_part_of_a_name(text: str, size: int) -> None:
    found = find_device(text)
    assert found.memory_bytes == size
    assert found.name.endswith(" GPU")
    assert ("a GPU named so has more" in found.note) == text.endswith("GB")


@pytest.mark.parametrize(("text", "taken"), [("H100", "H100 SXM 80GB"), ("a100 80gb", "A100 SXM 80GB")])
def test_of_several_gpus_the_one_that_was_taken_is_told(text: str, taken: str) -> None:
    found = find_device(text)
    assert found.name == taken
    assert f"is taken for {taken}; it also names " in found.note


@pytest.mark.parametrize("text", ["RTX", "A100", "V100", "GH200", "RTX 6000"])
def test_gpus_of_several_sizes_are_none(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        find_device(text)
    names = [device.name for device in devices() if set(text.split()) <= set(device.name.split())]
    assert "names GPUs of several sizes" in str(caught.value)
    assert all(name in str(caught.value) for name in names)


@pytest.mark.parametrize("text", ["8xH100", "8 x H100", "8*H100"])
def test_a_count_of_gpus_is_told_to_be_ranks(text: str) -> None:
    with pytest.raises(UsageError, match=r"a GPU is named alone.*H100.*tp=8"):
        find_device(text)


@pytest.mark.parametrize("text", ["1e99GiB", "1e999GiB", "17TiB", "0.5MiB", "1B"])
def test_an_absurd_size_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="no size of a GPU"):
        find_device(text)


def test_the_gpus_that_are_known_are_told_by_their_models() -> None:
    with pytest.raises(UsageError) as caught:
        find_device("nothing alike")
    known = str(caught.value).rpartition("nown: ")[2].partition(";")[0].split(", ")
    assert "RTX" not in known
    assert {"H100", "RTX 4090", "RTX A6000"} <= set(known)


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


@pytest.mark.parametrize("text", ["bfloat61", "int4"])
def test_an_unknown_type_is_refused_with_all_that_are_known(text: str) -> None:
    with pytest.raises(UsageError, match="float32, float16, bfloat16, fp8, int8, fp4"):
        dtype_named(text)


def test_the_types_that_help_lists_are_those_that_are_known() -> None:
    listed = find("fit").param("dtype").help
    assert all(name in listed for name in SIZES)
    assert TYPES in find("fit").param("kv_dtype").help


def test_every_runtime_that_can_be_asked_for_is_described() -> None:
    assert set(runtimes()) == set(find("fit").param("runtime").choices)
    assert [name for name, runtime in runtimes().items() if not runtime.latent] == ["transformers-5.14"]
