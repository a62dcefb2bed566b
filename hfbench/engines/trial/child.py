"""Loads one engine and says so, in a process that may crash: plain standard library and the engine's runtime.

Its text is handed to the interpreter, for Python 3.9 and later: a container sees no file of hfbench.
"""

from __future__ import annotations

import glob
import json
import os
import resource
import sys
from typing import Any

ANSWER = "hfbench-trial:"
"""Begins the line with the answer; whatever else is printed is the runtime's."""


def main() -> int:
    """Do what the JSON in argv asks and print the answer."""
    asked = json.loads(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if asked["memory"]:
        resource.setrlimit(resource.RLIMIT_DATA, (asked["memory"], asked["memory"]))
    os.environ["AOTI_RUNTIME_CHECK_INPUTS"] = "1"
    try:
        told = LOADERS[asked["kind"]](asked)
    except BaseException as error:
        told = str(error).strip() or "no message"
        sys.stderr.write(f"{type(error).__name__}: {told}\n")
        first = told.splitlines()[0][:500]
        answer({"loaded": False, "error": f"{type(error).__name__}: {first}"})
        return 1
    answer({"loaded": True, "did": told})
    return 0


def answer(data: dict[str, Any]) -> None:
    """One line behind all that the runtime printed."""
    sys.stderr.flush()
    sys.stdout.write(f"\n{ANSWER}{json.dumps(data)}\n")
    sys.stdout.flush()


def whole(asked: dict[str, Any]) -> str:
    """An engine that hfbench built: open it, read the shortest prompt and take one step."""
    sys.path.append(asked["source"])
    from pathlib import Path

    from hfbench.engines.manifest import read_manifest
    from hfbench.engines.running.open_engine import open_engine
    from hfbench.gpu.devices import choose_device

    folder = Path(asked["path"])
    shapes = read_manifest(folder).shapes
    decoder = open_engine(folder, gpu=choose_device(asked["device"]).gpu)
    import torch

    prompt = torch.zeros(shapes.batch, shapes.min_prompt, dtype=torch.long, device=decoder.device)
    new = 2 if shapes.min_prompt < shapes.context else 1
    finite = decoder.generate(prompt, new).finite
    made = "1 token" if new == 1 else f"{new} tokens"
    told = "" if finite else "; its logits are not finite"
    return f"loaded it and made {made} from a prompt of {shapes.min_prompt}{told}"


def aoti(asked: dict[str, Any]) -> str:
    """Every program of an AOTInductor package."""
    import zipfile

    import torch
    from torch._inductor.package import load_package

    torch.set_num_threads(1)
    with zipfile.ZipFile(asked["path"]) as archive:
        parts = [name.split("/") for name in archive.namelist()]
    names = sorted({each[each.index("aotinductor") + 1] for each in parts if "aotinductor" in each[:-2]})
    for name in names or ["model"]:
        load_package(asked["path"], name)
    return f"loaded {', '.join(names or ['model'])} without calling it: its shapes are not known"


def onnx(asked: dict[str, Any]) -> str:
    """A session of ONNX Runtime."""
    import onnxruntime

    session = onnxruntime.InferenceSession(asked["path"], providers=["CPUExecutionProvider"])
    return f"loaded it; inputs: {len(session.get_inputs())}, outputs: {len(session.get_outputs())}"


def openvino(asked: dict[str, Any]) -> str:
    """A compiled model of OpenVINO."""
    import openvino

    compiled = openvino.Core().compile_model(asked["path"], "CPU")
    return f"compiled it; inputs: {len(compiled.inputs)}, outputs: {len(compiled.outputs)}"


def compile_cache(asked: dict[str, Any]) -> str:
    """The packed cache: torch must take it; whether anything in it is found only a run of the model tells."""
    import torch

    with open(asked["path"], "rb") as file:
        told = torch.compiler.load_cache_artifacts(file.read())
    if told is None:
        raise RuntimeError("torch does not take the cache")
    return f"read the cache; entries: {sum(len(each) for each in told.artifacts.values())}"


def plan(asked: dict[str, Any]) -> str:
    """Plans, deserialised one after the other with TensorRT's messages on stderr."""
    try:
        import tensorrt_llm.plugin  # noqa: F401 - registers the plug-ins that plans of TensorRT-LLM need
    except ImportError:
        pass
    import tensorrt

    runtime = tensorrt.Runtime(tensorrt.Logger(tensorrt.Logger.INFO))
    path = asked["path"]
    files = sorted(glob.glob(os.path.join(path, "rank*.engine"))) if os.path.isdir(path) else [path]
    for each in files:
        with open(each, "rb") as file:
            if runtime.deserialize_cuda_engine(file.read()) is None:
                raise RuntimeError(f"TensorRT did not deserialise {os.path.basename(each)}")
    return f"deserialised it; plans: {len(files)}"


LOADERS = {
    "whole": whole,
    "aoti": aoti,
    "onnx": onnx,
    "openvino": openvino,
    "compile": compile_cache,
    "trtllm": plan,
    "plan": plan,
}

if __name__ == "__main__":
    sys.exit(main())
