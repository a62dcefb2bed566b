"""Messages of runtimes become named reasons that say which side is which."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hfbench.engines.trial.reasons import REASONS, named_reasons
from hfbench.text import printable

MESSAGES = {
    "tensorrt-version-tag": (
        "[TRT] [E] IRuntime::deserializeCudaEngine: Error Code 1: Serialization (Serialization assertion stdVersionRead"
        " == kSERIALIZATION_VERSION failed.Version tag does not match. Note: Current Version: 240, Serialized Engine"
        " Version: 239)",
        "version tag is 239 (reported of TensorRT 10.9 and 10.10), the one here is 240 (reported of TensorRT 10.11)",
    ),
    "tensorrt-compute-capability": (
        "[TRT] [E] 6: The engine plan file is generated on an incompatible device, expecting compute 8.6 got compute"
        " 8.0, please rebuild.",
        "built for compute capability 8.0, this GPU has 8.6",
    ),
    "tensorrt-no-plan": (
        "Serialization (Serialization assertion magicTagRead == kMAGIC_TAG failed.Magic tag does not match)",
        "does not take the file for a plan",
    ),
    "tensorrt-plugin": (
        "IPluginRegistry::getCreator: Error Code 4: Cannot find plugin: x\n"
        "getPluginCreator could not find plugin: GPTAttention version: 1",
        "the plug-in GPTAttention",
    ),
    "shape": (
        "RuntimeError: input_handles[0]: unmatched dim value at 1, expected: 64, but got: 32",
        "dimension 1 of input_handles[0] is 32, the engine was built for 64",
    ),
    "input": (
        "input_handles[2]: unmatched dtype, expected: 6(at::kFloat), but got: 15",
        "the dtype of input_handles[2] is 15, the engine was built for 6(at::kFloat)",
    ),
    "cpu-isa": (
        "W1130 Device information mismatch for AOTI_CPU_ISA: AVX2 vs AVX512. This could cause some issues when loading",
        "built for the instruction set AVX512, this processor has AVX2",
    ),
    "device-information": (
        "Device information mismatch for AOTI_COMPUTE_CAPABILITY: 90 vs 86. This could cause some issues",
        "its COMPUTE_CAPABILITY is 86, here it is 90",
    ),
    "undefined-symbol": (
        "OSError: /tmp/x/model.so: undefined symbol: aoti_torch_cpu_new_op",
        "calls aoti_torch_cpu_new_op",
    ),
    "library-version": (
        "ImportError: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.38' not found (required by /tmp/x.so)",
        "needs GLIBC_2.38",
    ),
    "library-missing": (
        "OSError: libcudart.so.13: cannot open shared object file: No such file or directory",
        "libcudart.so.13 is not found",
    ),
    "driver-too-old": ("CUDA driver version is insufficient for CUDA runtime version", "older than the CUDA runtime"),
    "no-kernel-image": ("CUDA error: no kernel image is available for execution on the device", "another compute"),
    "no-gpu": ("RuntimeError: no CUDA-capable device is detected", "finds no GPU"),
    "out-of-memory": ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB", "not enough memory"),
    "onnx-ir": ("Unsupported model IR version: 13, max supported IR version: 10", "IR version 13, this ONNX Runtime"),
    "onnx-opset": (
        "Opset 27 is under development and support for this is limited. Current official support for domain ai.onnx is"
        " till opset 23.",
        "opset 27, this ONNX Runtime knows up to 23",
    ),
    "onnx-damaged": ("[ONNXRuntimeError] : 7 : INVALID_PROTOBUF : Load model failed", "or is damaged"),
    "onnx-weights": ("GetFileLength for /x/model.onnx.data failed", "missing or cut off"),
    "openvino-opset": ("Cannot create MagicOp layer Add_1 id:4 from unsupported opset: opset99", "of opset99"),
    "package-damaged": ("PytorchStreamReader failed reading zip archive", "cut off or damaged"),
    "cache-damaged": ("Bytes object is corrupted, checksum does not match. Expected", "checksum of the cache"),
    "module-missing": ("ModuleNotFoundError: No module named 'tensorrt'", "lacks tensorrt"),
}


@pytest.mark.parametrize("id", [reason.id for reason in REASONS])
def test_each_reason_is_told_by_its_message(id: str) -> None:
    message, words = MESSAGES[id]
    named = {each.id: each for each in named_reasons(f"before\n{message}\nafter")}
    assert words in named[id].found
    assert named[id].remedy


def test_older_words_for_the_version_tag_are_known_and_unknown_tags_stay_numbers() -> None:
    message = (
        "Error Code 1: Serialization (Serialization assertion stdVersionRead == serializationVersion failed."
        "Version tag does not match. Note: Current Version: 226, Serialized Engine Version: 228)"
    )
    [named] = named_reasons(message)
    assert "its version tag is 228, the one here is 226; tags are internal numbers" in named.found


def test_warnings_come_behind_what_is_decisive() -> None:
    text = f"{MESSAGES['cpu-isa'][0]}\n{MESSAGES['undefined-symbol'][0]}"
    assert [(each.id, each.fatal) for each in named_reasons(text)] == [("undefined-symbol", True), ("cpu-isa", False)]


@given(st.text(max_size=200), st.sampled_from([message for message, _ in MESSAGES.values()]))
def test_any_log_is_named_safely(noise: str, message: str) -> None:
    for named in named_reasons(noise + message + noise):
        assert printable(named.found) == named.found
        assert len(named.found) < 1000


@pytest.mark.parametrize(
    "piece",
    [
        "lib",
        "Cannot create x layer ",
        "Opset 9 is under development",
        "input_handles[1]: unmatched dtype",
        "Device information mismatch for AOTI_CPU_ISA: x vs ",
        "Device information mismatch for AOTI_X: x vs ",
        "version `GLIBC_",
        "Version tag does not match. Note: Current Version: 1, ",
    ],
)
def test_a_line_of_a_megabyte_is_read_in_seconds(piece: str) -> None:
    began = time.process_time()
    named_reasons(piece * (2**20 // len(piece)))
    assert time.process_time() - began < 10


def test_an_ordinary_log_has_no_reason() -> None:
    assert named_reasons("Loaded engine size: 161 MiB\n[TRT] [I] all is well\n") == ()
