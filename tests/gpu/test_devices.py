"""Devices by name, as CUDA would number them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hfbench.errors import UsageError
from hfbench.gpu import devices
from hfbench.gpu.devices import Gpu, Inventory, choose_device, parse_device, visible_gpus

WithNvml = Callable[..., Any]
ASK = """
import json, sys
from hfbench.errors import HfbenchError
from hfbench.gpu.devices import choose_device, list_devices
told = []
for device in {devices!r}:
    try:
        told.append(choose_device(device, needs_gpu={needs_gpu}).lease)
    except HfbenchError as error:
        told.append([int(error.exit), str(error)])
print(json.dumps([told, list(list_devices().names), "torch" in sys.modules]))
"""


def ask(devices: list[str], *, needs_gpu: bool = False) -> str:
    return ASK.format(devices=devices, needs_gpu=needs_gpu)


FIRST, SECOND = "GPU-fab00000-aaaa-bbbb-cccc-000000000000", "GPU-fab00001-aaaa-bbbb-cccc-000000000000"


@pytest.mark.parametrize(("text", "index"), [("cpu", None), ("CPU ", None), ("cuda", 0), ("cuda:3", 3)])
def test_names_of_devices(text: str, index: int | None) -> None:
    assert parse_device(text) == index


@pytest.mark.parametrize("text", ["", "gpu", "cuda:", "cuda:-1", "cuda:x", "cuda:0,1", "0", "cuda:99999", "cpu:0\n"])
def test_anything_else_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError, match="is not a device"):
        parse_device(text)


def test_the_cpu_is_leased_by_its_name_without_asking_a_driver() -> None:
    assert choose_device("cpu").lease == "cpu"


def test_a_gpu_is_leased_by_its_uuid_and_torch_is_not_needed(with_nvml: WithNvml) -> None:
    told, names, torch = with_nvml(ask(["cpu", "cuda", "cuda:1", "auto"]))
    assert told == ["cpu", FIRST, SECOND, FIRST]
    assert names == ["cpu", "cuda:0", "cuda:1"]
    assert not torch


def test_visible_devices_renumber_and_keep_the_lease(with_nvml: WithNvml) -> None:
    told, names, _ = with_nvml(ask(["cuda:0", "cuda:1"]), CUDA_VISIBLE_DEVICES="1")
    assert told[0] == SECOND
    assert told[1][0] == 4
    assert (
        "there is no GPU 1: this machine shows 1; CUDA_VISIBLE_DEVICES is '1'. Use cpu, cuda:0".lower()
        in told[1][1].lower()
    )
    assert names == ["cpu", "cuda:0"]


def test_hidden_gpus_are_told_apart_from_none(with_nvml: WithNvml) -> None:
    told, names, _ = with_nvml(ask(["cuda:0", "auto"]), CUDA_VISIBLE_DEVICES="")
    assert "CUDA_VISIBLE_DEVICES hides all 2 GPUs" in told[0][1]
    assert told[1] == "cpu"
    assert names == ["cpu"]


def test_auto_is_no_cpu_for_what_needs_a_gpu(with_nvml: WithNvml) -> None:
    told, _, _ = with_nvml(ask(["auto", "cpu"], needs_gpu=True), CUDA_VISIBLE_DEVICES="")
    assert told[0][0] == 4
    assert "CUDA_VISIBLE_DEVICES hides all 2 GPUs" in told[0][1]
    assert told[1] == "cpu"


def test_a_worker_runs_on_what_it_holds_and_says_why_auto_is_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "_settled", {})
    monkeypatch.setattr(devices, "list_devices", lambda: Inventory(gpus=(), reason="no driver"))
    held = devices.settle_device("auto")
    assert (held.name, held.why) == ("cpu", "device auto took the CPU, as there is no GPU: no driver")
    card = Gpu(index=0, lease="GPU-a", name="a card")
    monkeypatch.setattr(devices, "list_devices", lambda: Inventory(gpus=(card,), reason=""))  # the driver came up
    assert choose_device("auto") is held
    assert choose_device("cuda").gpu == card


def test_without_a_driver_a_gpu_is_missing_with_the_reason(with_nvml: WithNvml, broken_nvml_folder: Path) -> None:
    told, names, _ = with_nvml(ask(["cuda:0"]), folder=broken_nvml_folder)
    assert told[0][0] == 4
    assert "libnvidia-ml.so.1" in told[0][1]
    assert names == ["cpu"]


@pytest.mark.parametrize(
    ("setting", "kept"),
    [
        (None, [0, 1, 2]),
        ("2,0", [2, 0]),
        ("0,9,1", [0]),  # CUDA ignores what follows the first entry that names nothing
        ("-1", []),
        ("", []),
        ("GPU-bb", [1]),
        ("GPU-", []),  # not unique
        ("nonsense", []),
    ],
)
def test_the_setting_is_read_as_cuda_reads_it(setting: str | None, kept: list[int]) -> None:
    gpus = [Gpu(index=number, lease=f"GPU-{letters}", name="") for number, letters in enumerate(("aa", "bb", "cc"))]
    assert [gpu.index for gpu in visible_gpus(gpus, setting)] == kept


def test_a_slice_of_a_gpu_is_leased_by_its_own_uuid() -> None:
    assert [gpu.lease for gpu in visible_gpus([], "MIG-1234")] == ["MIG-1234"]
