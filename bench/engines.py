"""Engines of the demo model beside eager, in turns in one run: time per token, size, seconds to build, load and check.

Usage: python bench/engines.py [FOLDER]. Engines that lie in FOLDER already are measured, others are built there first.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from claims import Claim, Record, finish, run

import hfbench
from hfbench.engines.manifest import Manifest, read_manifest

AOTI = Claim(
    name="engines-aoti",
    sentence="a token of SmolLM2-135M by an aoti engine takes at most as long as eagerly, in turns in one run",
    bound=1.0,
)
COMPILE = Claim(
    name="engines-compile",
    sentence="a token of SmolLM2-135M by a compile engine takes at most as long as eagerly, in turns in one run",
    bound=1.0,
)
ONNX = Claim(
    name="engines-onnx",
    sentence="a token of SmolLM2-135M by an onnx engine takes at most as long as eagerly, in turns in one run",
    bound=1.0,
)
OPENVINO = Claim(
    name="engines-openvino",
    sentence="a token of SmolLM2-135M by an openvino engine takes at most as long as eagerly, in turns in one run",
    bound=1.0,
)
SIZE = Claim(
    name="engines-aoti-size",
    sentence="an aoti engine of two programs is at most 1.05 times as large as the weights it runs",
    bound=1.05,
    unit="B",
)
LOAD = Claim(
    name="engines-aoti-load",
    sentence="an aoti engine of SmolLM2-135M, its files hashed before, is ready within 1 s of its runtime's import",
    bound=1.0,
)
CHECK = Claim(
    name="engines-check",
    sentence="engine.check of an aoti engine, its files hashed before, costs at most 100 ms of CPU, without torch",
    bound=0.1,
    unit="s CPU",
)
CHECKING = """
import time; began = time.process_time()
import contextlib, io, sys
from hfbench.cli import main
with contextlib.redirect_stdout(io.StringIO()):
    code = main(["engine", "check", sys.argv[1]])
print(time.process_time() - began, code, "torch" in sys.modules)
"""
"""From the first line of a new process: what Python itself takes to start is not counted."""
CLAIMS = {"aoti": AOTI, "compile": COMPILE, "onnx": ONNX, "openvino": OPENVINO}
PROMPT, NEW_TOKENS, CONTEXT = 32, 17, 64
ROUNDS = 15


def main() -> None:
    """Build what is not there, measure, keep the records."""
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as scratch:  # /tmp is a disk in memory on many machines
        place = Path(sys.argv[1] if len(sys.argv) > 1 else scratch).absolute()
        subprocess.run([sys.executable, "-m", "hfbench", "demo"], check=True, capture_output=True)
        folders = {builder: built(builder, place / builder) for builder in CLAIMS}
        finish(*measured(folders))


def built(builder: str, folder: Path) -> Path:
    """The folder of an engine, built by the command unless it is there."""
    if not folder.exists():
        words = ["engine", "build", "demo", "--out", str(folder), "--builder", builder, "--device", "cpu"]
        shapes = ["--dtype", "fp32", "--max-prompt", str(PROMPT), "--context", str(CONTEXT)]
        subprocess.run([sys.executable, "-m", "hfbench", *words, *shapes], check=True, capture_output=True)
    return folder


def measured(folders: dict[str, Path]) -> list[Record]:
    """All engines beside the eager model, in this process."""
    import torch

    from hfbench.engines.running.open_engine import open_engine
    from hfbench.gpu.decoding import Decoder
    from hfbench.gpu.generate_model import load_model, pin_threads, stay_offline

    stay_offline()
    pin_threads(0)
    manifests = {builder: read_manifest(folder) for builder, folder in folders.items()}
    source = Path(manifests["aoti"].source.folder)
    loaded = load_model(source, gpu=None, dtype="fp32", attention="sdpa")
    torch.manual_seed(0)
    prompt = torch.randint(100, 40_000, (1, PROMPT))
    open_engine(folders["aoti"], gpu=None)  # the import of its runtime
    engines, seconds = {}, {}
    for builder, folder in folders.items():
        began = time.perf_counter()
        engines[builder] = open_engine(folder, gpu=None)
        seconds[builder] = time.perf_counter() - began
    eager = token_of(Decoder(loaded.model, loaded.device), prompt)
    records = [
        run(
            claim,
            token_of(engines[builder], prompt),
            eager,
            rounds=ROUNDS,
            warmup=2,
            versions=versions(manifests[builder]),
            notes=notes(manifests[builder], seconds[builder]),
        )
        for builder, claim in CLAIMS.items()
    ]
    aoti = manifests["aoti"]
    weights = sum(each.numel() * each.element_size() for each in loaded.model.parameters())
    told = {"versions": versions(aoti), "notes": notes(aoti, seconds["aoti"])}
    size, stored = float(sum(each.size for each in aoti.files)), float(weights)
    records.append(run(SIZE, lambda: size, lambda: stored, rounds=1, warmup=0, **told))
    records.append(run(CHECK, lambda: checking(folders["aoti"]), **told))
    records.append(run(LOAD, lambda: opening(lambda: open_engine(folders["aoti"], gpu=None)), rounds=5, **told))
    return records


def token_of(decoder: Any, prompt: Any) -> Callable[[], float]:
    """Seconds per token after the first of one generation."""
    return lambda: float(decoder.generate(prompt, NEW_TOKENS).tpot)


def opening(call: Callable[[], object]) -> float:
    """Seconds until an engine is ready."""
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def checking(folder: Path) -> float:
    """CPU seconds of a check in a process of its own, which must end well and without torch."""
    words = [sys.executable, "-c", CHECKING, str(folder)]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    seconds, code, torch = done.stdout.split()
    if (code, torch) != ("0", "False"):
        raise SystemExit(f"the check ended with {code}, torch imported: {torch}")
    return float(seconds)


def notes(manifest: Manifest, load_seconds: float) -> dict[str, str | int | float]:
    """What a build of the engine took, and how far it is from eager."""
    proof = manifest.proof
    cases = proof.cases if proof else ()
    return {
        "build_seconds": manifest.seconds,
        "bytes": sum(each.size for each in manifest.files),
        "load_seconds": round(load_seconds, 3),
        "largest_error_abs": max((case.max_abs for case in cases), default=-1.0),
        "largest_error_relative": max((case.relative for case in cases), default=-1.0),
        "verdict": proof.verdict if proof else "none",
        "prompt": PROMPT,
        "new_tokens": NEW_TOKENS,
        "options": json.dumps(manifest.options)[:400],
    }


def versions(manifest: Manifest) -> dict[str, str]:
    """What built the engine and runs it."""
    built_on = manifest.built_on
    names = ("torch", "transformers", "onnxruntime", "openvino")
    return {"hfbench": hfbench.__version__, **{name: getattr(built_on, name) for name in names}}


if __name__ == "__main__":
    main()
