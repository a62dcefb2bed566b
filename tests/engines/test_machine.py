"""Facts of the machine, read without importing what they are about."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hfbench.engines.machine import distributions, features_in, level_of, read_machine
from hfbench.engines.versions import numbers, older, same
from hfbench.environments import Probed, Torch

X86 = """processor\t: 0
flags\t\t: fpu sse sse2 pni avx avx2 fma avx512f avx512_vnni amx_tile hypervisor constant_tsc

processor\t: 1
flags\t\t: fpu sse sse2 pni avx avx2 fma avx512f hypervisor
"""
ARM = "processor\t: 0\nFeatures\t: fp asimd evtstrm aes crc32 atomics sve bf16 i8mm cpuid\nCPU part\t: 0xd40\n"


def test_features_are_what_all_processors_have_and_compilers_use() -> None:
    assert features_in(X86) == ("avx", "avx2", "avx512f", "fma", "pni", "sse", "sse2")


def test_features_of_arm_are_read_too() -> None:
    assert features_in(ARM) == ("asimd", "atomics", "bf16", "crc32", "i8mm", "sve")


@pytest.mark.parametrize("text", ["", "nonsense", "flags", "flags :", "flags : \nflags : avx"])
def test_an_odd_cpuinfo_tells_no_features(text: str) -> None:
    assert features_in(text) == ()


@pytest.mark.parametrize(
    ("isa", "level"),
    [(("avx2",), "avx2"), (("avx2", "avx512f"), "avx512"), (("asimd", "sve"), "sve"), (("asimd",), "asimd"), ((), "")],
)
def test_the_level_is_the_widest_vectors(isa: tuple[str, ...], level: str) -> None:
    assert level_of(isa) == level


def test_versions_are_those_of_the_installed_packages() -> None:
    from importlib import metadata

    versions = read_machine(gpus=False).versions
    for name, told in (("torch", versions.torch), ("transformers", versions.transformers)):
        try:
            installed = metadata.version(name)
        except metadata.PackageNotFoundError:
            installed = ""
        assert told.partition("+")[0] == installed.partition("+")[0]


def test_the_first_folder_counts_and_names_are_spelled_one_way(tmp_path: Path) -> None:
    for folder, name in (("a", "NVIDIA_nccl.cu13-2.28.9.dist-info"), ("b", "nvidia_nccl_cu13-1.0.dist-info")):
        (tmp_path / folder / name).mkdir(parents=True)
    (tmp_path / "a" / "torch-2.13.0+cpu.dist-info").mkdir()
    (tmp_path / "a" / "old-1.0-py3.11.egg-info").mkdir()
    (tmp_path / "a" / "nonsense.dist-info").mkdir()
    folders = [str(tmp_path / "a"), str(tmp_path / "none"), str(tmp_path / "b")]
    assert distributions(folders) == {"nvidia-nccl-cu13": "2.28.9", "torch": "2.13.0+cpu", "old": "1.0"}


def test_an_environments_versions_stand_in_for_ours() -> None:
    told = Probed(
        python="3.10.12",
        executable=sys.executable,
        versions={"tensorrt": "10.14.1", "tensorrt-llm": "1.2.1", "nvidia-nccl-cu13": "2.28.9"},
        torch=Torch(version="2.9.1+cu130", cuda="13.0", cxx11_abi=True),
    )
    versions = read_machine(gpus=False, environment=told, name="trtllm").versions
    assert (versions.python, versions.tensorrt, versions.tensorrt_llm) == ("3.10.12", "10.14.1", "1.2.1")
    assert (versions.torch, versions.cuda, versions.abi, versions.nccl) == ("2.9.1+cu130", "13.0", "cxx11", "2.28.9")
    assert versions.onnxruntime == ""


def test_no_library_is_imported_to_know_its_version() -> None:
    code = "import sys; from hfbench.engines.machine import read_machine; read_machine(); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"torch", "transformers", "numpy", "onnxruntime", "openvino", "tensorrt"} & set(done.stdout.split())


def test_without_a_driver_the_reason_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    from hfbench.gpu import nvml
    from hfbench.gpu.reading import Unavailable

    monkeypatch.setattr(nvml, "open_nvml", lambda: Unavailable("the driver is asleep"))
    machine = read_machine()
    assert (machine.gpus, machine.gpus_known, machine.gpu_reason) == ((), True, "the driver is asleep")


def test_versions_compare_by_their_numbers() -> None:
    assert numbers("2.13.0+cu130") == (2, 13, 0)
    assert numbers("unknown") == ()
    assert same("10.14.1.48", "10.14.1", 3)
    assert not same("10.14.1", "10.14.2", 3)
    assert older("1.9", "1.10")
    assert not older("580.65.06", "580.65.06")


CARDS = """
import json
from dataclasses import asdict
from hfbench.engines.machine import read_machine
told = read_machine()
cards = [asdict(card) for card in told.gpus]
print(json.dumps([told.versions.driver, told.cuda_driver, cards, told.gpus_known, told.gpu_reason]))
"""


@pytest.fixture(scope="session")
def played_nvml(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library that plays NVML, built with this machine's compiler: its cards are made up."""
    if shutil.which("gcc") is None:
        pytest.skip("no gcc to build the NVML that plays a part")
    folder = tmp_path_factory.mktemp("nvml")
    source = Path(__file__).parents[1] / "fakenvml" / "fakenvml.c"
    words = ["gcc", "-std=gnu11", "-shared", "-fPIC", "-Wl,-soname,libnvidia-ml.so.1"]
    subprocess.run([*words, "-o", str(folder / "libnvidia-ml.so.1"), str(source)], check=True)
    return folder


def cards(folder: Path, rules: Path, **environment: str) -> list[Any]:
    """What is read with a driver that follows the rules of a file."""
    told = {key: value for key, value in os.environ.items() if key != "CUDA_VISIBLE_DEVICES"} | environment
    told |= {"LD_LIBRARY_PATH": str(folder), "FAKE_NVML_SCRIPT": str(rules)}
    done = subprocess.run([sys.executable, "-c", CARDS], env=told, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    answer: list[Any] = json.loads(done.stdout)
    return answer


def test_cards_are_read_as_cuda_numbers_them(played_nvml: Path, tmp_path: Path) -> None:
    rules = tmp_path / "rules"
    rules.write_text("")
    driver, cuda, found, known, _ = cards(played_nvml, rules)
    assert driver
    assert "." in cuda
    assert known
    assert len(found) == 2
    assert "." in found[0]["compute_capability"]
    assert found[0]["memory"] > 0
    _, _, second, _, _ = cards(played_nvml, rules, CUDA_VISIBLE_DEVICES="1")
    assert [each["name"] for each in second] == [found[1]["name"]]


def test_a_card_that_does_not_tell_its_capability_leaves_it_open(played_nvml: Path, tmp_path: Path) -> None:
    rules = tmp_path / "rules"
    rules.write_text("nvmlDeviceGetCudaComputeCapability * 3\n")
    *_, found, known, reason = cards(played_nvml, rules)
    assert (found, known, reason) == ([], False, "a card does not tell its compute capability")


def test_a_driver_that_hangs_is_not_waited_for(played_nvml: Path, tmp_path: Path) -> None:
    rules = tmp_path / "rules"
    rules.write_text("nvmlDeviceGetName * 0 -1\n")
    *_, known, reason = cards(played_nvml, rules)
    assert (known, reason) == (False, "the driver has not answered for 2 s")
