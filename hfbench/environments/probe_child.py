"""Tells the versions of the Python that runs it, as lines of JSON: plain standard library, for Python 3.9 and later.

Its text is handed to the interpreter, which may be in a container that sees no file of hfbench. Nothing but torch is
imported, and that last: what was said before stands when importing it hangs or ends the process.
"""

from __future__ import annotations

import importlib.machinery
import json
import os
import platform
import re
import sys

MARK = "hfbench-probe:"
"""Begins each line of the answer; whatever else is printed is not ours."""
DISTRIBUTIONS = (
    "torch",
    "torchao",
    "triton",
    "transformers",
    "tokenizers",
    "safetensors",
    "numpy",
    "tensorrt",
    "tensorrt-llm",
    "vllm",
    "sglang",
    "megatron-core",
    "transformer-engine",
    "flash-attn",
    "flashinfer-python",
    "onnx",
    "onnxscript",
    "onnxruntime",
    "onnxruntime-gpu",
    "openvino",
    "llama-cpp-python",
    "gguf",
    "bitsandbytes",
    "nvidia-nccl-cu12",
    "nvidia-nccl-cu13",
    "nvidia-cudnn-cu12",
    "nvidia-cudnn-cu13",
    "nvidia-ml-py",
    "pynvml",
    "model-signing",
)
SUFFIXES = tuple(importlib.machinery.all_suffixes())


def tell(part: str, data: object) -> None:
    """One line of the answer."""
    sys.stdout.write(f"\n{MARK}{json.dumps({part: data}, default=str)}\n")
    sys.stdout.flush()


def folders() -> list[str]:
    """Folders that packages are imported from: all of sys.path but those of the standard library."""
    standard = os.path.dirname(os.path.realpath(os.__file__))
    own = (standard, os.path.join(standard, "lib-dynload"))
    found = []
    for path in sys.path:
        if os.path.isdir(path) and path not in found and os.path.realpath(path) not in own:
            found.append(path)
    return found


def modules(places: list[str]) -> list[str]:
    """Top-level names that those folders offer, and what import hooks of editable installs offer beside them."""
    found = set()
    for place in places:
        for name in os.listdir(place):
            stem = next((name[: -len(end)] for end in SUFFIXES if name.endswith(end)), name)
            if stem.isidentifier() and (stem != name or is_package(os.path.join(place, name))):
                found.add(stem)
    for name in sys.modules.copy():  # a hook of an editable install is a module itself: it knows its names
        hook = sys.modules[name]
        if name.startswith("__editable___"):
            found.update(str(each).partition(".")[0] for each in getattr(hook, "MAPPING", ()))
    return sorted(found)


def is_package(folder: str) -> bool:
    """A folder with modules, or with folders of them: `nvidia` and `google` hold nothing else."""
    if os.path.isfile(os.path.join(folder, "__init__.py")):
        return True
    return os.path.isdir(folder) and not folder.endswith(".dist-info") and os.path.basename(folder) != "__pycache__"


def versions() -> dict[str, str]:
    """Installed versions by distribution, read from their metadata."""
    from importlib import metadata

    found = {}
    for name in DISTRIBUTIONS:
        try:
            found[name] = metadata.version(name)
        except Exception:  # not installed, or damaged: either way there is no version
            continue
    return found


def torch_text(places: list[str]) -> dict[str, str] | None:
    """What torch/version.py says, read as text; None without torch."""
    for place in places:
        path = os.path.join(place, "torch", "version.py")
        if os.path.isfile(path):
            with open(path, encoding="utf-8", errors="replace") as file:
                told = dict(re.findall(r"^(\w+)(?:: [^=]+)? = ['\"]([^'\"]*)['\"]", file.read(), re.MULTILINE))
            return {"version": told.get("__version__", ""), "cuda": told.get("cuda", ""), "hip": told.get("hip", "")}
    return None


def torch_built() -> dict[str, object]:
    """What only torch itself knows; the flags are asked for in a way that needs no GPU."""
    import torch

    told: dict[str, object] = {
        "version": str(torch.__version__),
        "cuda": torch.version.cuda or "",
        "hip": torch.version.hip or "",
    }
    told["cxx11_abi"] = bool(torch.compiled_with_cxx11_abi())
    flags = getattr(torch._C, "_cuda_getArchFlags", None)
    told["arch_list"] = ((flags() if flags else None) or "").split()
    nccl = getattr(torch._C, "_nccl_version", None)
    number = nccl() if nccl else None
    if isinstance(number, tuple):
        told["nccl"] = ".".join(str(each) for each in number)
    elif number:
        told["nccl"] = f"{number // 10000}.{number // 100 % 100}.{number % 100}"
    cudnn = getattr(torch._C, "_cudnn", None)
    if cudnn:
        number = cudnn.getCompileVersion()
        told["cudnn"] = ".".join(str(each) for each in number)
    return told


def main() -> None:
    """Say what is cheap, then what takes an import of torch."""
    sys.path[:] = [path for path in sys.path if path]  # the current folder is not part of the environment
    places = folders()
    text = torch_text(places)
    base = {
        "python": platform.python_version(),
        "implementation": sys.implementation.name,
        "executable": sys.executable or "",
        "machine": platform.machine(),
        "glibc": platform.libc_ver()[1],
        "versions": versions(),
        "modules": modules(places),
        "folders": places,
        "torch": text,
    }
    tell("base", base)
    if text is not None:
        try:
            tell("torch", torch_built())
        except BaseException as error:  # a library that calls exit() is a fault of the environment too
            tell("trouble", f"{type(error).__name__}: {' '.join(str(error).split())[:500]}")
    tell("end", True)
    os._exit(0)  # threads of libraries are not waited for


if __name__ == "__main__":
    main()
