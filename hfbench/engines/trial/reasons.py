"""Why runtimes refuse engines: patterns of their messages, what each means, and what to do."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from hfbench.engines.trial.told import Named
from hfbench.text import clip, printable

SHOWN = 160
"""Characters of a captured value in a sentence."""

# What people reported the internal version tags of plans together with; NVIDIA publishes no such table.
TAGS: Mapping[int, str] = {
    213: "8.4",
    232: "8.5",
    236: "8.6",
    237: "10.1",
    239: "10.9 and 10.10",
    240: "10.11",
    244: "11.3",
}


@dataclass(frozen=True, kw_only=True)
class Reason:
    """One kind of message. `found` and `remedy` are filled with what the pattern captures."""

    id: str
    pattern: re.Pattern[str]
    found: str
    remedy: str
    fatal: bool = True

    def named(self, log: str) -> Named | None:
        """The reason as a log tells it; None where it does not."""
        match = self.pattern.search(log)
        if match is None:
            return None
        told = {name: clip(printable(value or "?"), SHOWN) for name, value in match.groupdict().items()}
        told |= {f"{name}_product": _product(told[name]) for name in ("built_tag", "here_tag") if name in told}
        return Named(id=self.id, found=self.found.format(**told), remedy=self.remedy.format(**told), fatal=self.fatal)


def named_reasons(log: str) -> tuple[Named, ...]:
    """Every reason a log tells, the decisive ones first, none twice."""
    found = [named for reason in REASONS if (named := reason.named(log)) is not None]
    return tuple(sorted(found, key=lambda each: not each.fatal))


def _product(tag: str) -> str:
    """` (TensorRT 10.11)` for a tag that is known, as part of a sentence."""
    product = TAGS.get(int(tag)) if tag.isdecimal() and len(tag) < 9 else None
    return f" (reported of TensorRT {product})" if product else ""


def _reason(id: str, pattern: str, found: str, remedy: str, *, fatal: bool = True) -> Reason:
    """Patterns repeat a bounded number of times: a line of a megabyte must not take hours."""
    return Reason(id=id, pattern=re.compile(pattern), found=found, remedy=remedy, fatal=fatal)


REASONS: tuple[Reason, ...] = (
    _reason(
        "tensorrt-version-tag",
        r"Version tag does not match\.?\s*Note:\s*Current Version:\s*(?P<here_tag>\d+),\s*"
        r"Serialized Engine\s+Version:\s*(?P<built_tag>\d+)",
        "another TensorRT built the plan: its version tag is {built_tag}{built_tag_product}, the one here is "
        "{here_tag}{here_tag_product}; tags are internal numbers, not versions",
        "load it with the TensorRT that built it, or build it again with the one here",
    ),
    _reason(
        "tensorrt-compute-capability",
        r"generated on an incompatible device,\s*expecting compute (?P<here>[\d.]*\d)[ ,.]+"
        r"got compute (?P<built>[\d.]*\d)",
        "the plan was built for compute capability {built}, this GPU has {here}, which TensorRT calls the expected one",
        "build it on this GPU, or with a hardware compatibility level",
    ),
    _reason(
        "tensorrt-no-plan",
        r"(?:[Mm]agicTagRead|[Mm]agic tag does not match)",
        "TensorRT does not take the file for a plan: it is damaged, or something else",
        "copy the plan here again and compare its SHA-256",
    ),
    _reason(
        "tensorrt-plugin",
        r"(?:could not find plugin|[Pp]lugin not found|getPluginCreator could not find plugin):?\s*"
        r"(?P<name>[\w:]{1,200})?",
        "the plan needs the plug-in {name}, which is not loaded",
        "load TensorRT-LLM's plug-ins before the plan, in the version that built it",
    ),
    _reason(
        "shape",
        r"(?P<input>input_handles\[\d+\]): unmatched dim value at (?P<place>\d+), expected: (?P<built>-?\d+), "
        r"but got: (?P<given>-?\d+)",
        "dimension {place} of {input} is {given}, the engine was built for {built}",
        "give the shape the engine was built for, or build one for this shape",
    ),
    _reason(
        "input",
        r"(?P<input>input_handles\[\d+\]): unmatched (?P<what>dtype|stride value|device type)[^,\n]{0,200}, "
        r"expected: (?P<built>[^,\n]{1,200}), but got: (?P<given>[^\n]{1,200})",
        "the {what} of {input} is {given}, the engine was built for {built}",
        "give inputs as the engine was built for",
    ),
    _reason(
        "cpu-isa",
        r"Device information mismatch for AOTI_CPU_ISA: (?P<here>[^\n]{1,200}?) vs "
        r"(?P<built>[^\n]{1,200}?)\. This could",
        "it was built for the instruction set {built}, this processor has {here}",
        "build it on this machine unless this processor has all of the builder's features",
        fatal=False,
    ),
    _reason(
        "device-information",
        r"Device information mismatch for AOTI_(?P<what>(?!CPU_ISA)\w{1,200}): (?P<here>[^\n]{0,200}?) vs "
        r"(?P<built>[^\n]{0,200}?)\. This could",
        "its {what} is {built}, here it is {here}",
        "build it on this machine",
        fatal=False,
    ),
    _reason(
        "undefined-symbol",
        r"undefined symbol: (?P<symbol>\S{1,1000})",
        "its code calls {symbol}, which the libraries here lack: they are older than the builder's, or built otherwise",
        "install the torch that built it, or build it again",
    ),
    _reason(
        "library-version",
        r"version [`'](?P<version>(?:GLIBC|GLIBCXX|CXXABI|GCC)_[\w.]{1,200})'? not found",
        "its code needs {version}, which the libraries of this system lack",
        "build it on this system, or on an older one",
    ),
    _reason(
        "library-missing",
        r"(?P<library>lib[\w.+-]{1,200}\.so[\w.]{0,200}): cannot open shared object file",
        "the library {library} is not found here",
        "install what it comes with, or name its folder in LD_LIBRARY_PATH",
    ),
    _reason(
        "driver-too-old",
        r"CUDA driver version is insufficient for CUDA runtime version|NVIDIA driver on your system is too old",
        "the driver is older than the CUDA runtime needs",
        "install a newer driver, or use a build for an older CUDA",
    ),
    _reason(
        "no-kernel-image",
        r"no kernel image is available for execution|device kernel image is invalid|CUDA_ERROR_NO_BINARY_FOR_GPU",
        "its kernels were compiled for another compute capability than this GPU's",
        "build it on this GPU",
    ),
    _reason(
        "no-gpu",
        r"no CUDA-capable device is detected|Found no NVIDIA driver|No CUDA GPUs are available",
        "the runtime finds no GPU",
        "look at hfbench gpus and CUDA_VISIBLE_DEVICES",
    ),
    _reason(
        "out-of-memory",
        r"CUDA out of memory|OutOfMemoryError|std::bad_alloc|can't allocate memory|Cannot allocate memory|MemoryError"
        r"|Out of memory|outOfMemory",
        "there was not enough memory",
        "free memory, or use a smaller context or batch",
    ),
    _reason(
        "onnx-ir",
        r"Unsupported model IR version: (?P<built>\d+), max supported IR version: (?P<here>\d+)",
        "the model is of ONNX IR version {built}, this ONNX Runtime reads up to {here}",
        "install a newer onnxruntime, or build it again",
    ),
    _reason(
        "onnx-opset",
        r"Opset (?P<built>\d+) is under development.{0,400}?till opset (?P<here>\d+)",
        "the model uses opset {built}, this ONNX Runtime knows up to {here}",
        "install a newer onnxruntime, or build it again",
    ),
    _reason(
        "onnx-damaged",
        r"InvalidProtobuf|INVALID_PROTOBUF|Protobuf parsing failed",
        "the file is no ONNX model, or is damaged",
        "copy it here again, or build it again",
    ),
    _reason(
        "onnx-weights",
        r"External data path|[Ff]ailed to load external data|GetFileLength for (?P<file>\S{1,1000}) failed",
        "the file with the model's weights is missing or cut off",
        "copy the whole engine here again",
    ),
    _reason(
        "openvino-opset",
        r"Cannot create (?P<layer>\S{1,200}) layer .{0,400}? from unsupported opset: (?P<opset>\S{1,200})",
        "the layer {layer} is of {opset}, which this OpenVINO does not know",
        "install a newer openvino, or build it again",
    ),
    _reason(
        "package-damaged",
        r"PytorchStreamReader failed|failed finding central directory|invalid ELF header|file too short"
        r"|[Bb]ad magic number",
        "the package is cut off or damaged",
        "copy it here again and compare its SHA-256",
    ),
    _reason(
        "cache-damaged",
        r"Bytes object is corrupted, checksum does not match",
        "the checksum of the cache does not fit",
        "build it again",
    ),
    _reason(
        "module-missing",
        r"No module named '(?P<module>[\w.]{1,200})'",
        "the Python it was tried with lacks {module}",
        "install it there, or name an --environment that has it",
    ),
)
"""Every reason, those that explain others first."""

SIGNALS: Mapping[str, tuple[str, str]] = {
    "SIGILL": (
        "the code used an instruction this processor lacks",
        "build it on this machine, or on one with the least of your processors",
    ),
    "SIGSEGV": (
        "the runtime read memory that was not there, as damaged code and wrong shapes make it do",
        "compare the SHA-256 of its files, then build it again",
    ),
    "SIGBUS": (
        "a file was shorter than its headers say, or the disk failed",
        "copy the engine here again and compare its SHA-256",
    ),
    "SIGABRT": (
        "the runtime gave up: an assertion failed or memory was damaged",
        "read the last lines of its log, then build it again",
    ),
    "SIGKILL": ("somebody ended it, most likely the kernel for want of memory", "free memory and try again"),
    "SIGFPE": ("the code divided by zero", "compare the SHA-256 of its files, then build it again"),
}
"""What a death by a signal means in a loader."""
