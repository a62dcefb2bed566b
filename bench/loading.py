"""Loaders of bench.load on a checkpoint made here: plain reading beside `dd`, mapping, and hfbench's own loading."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path

from claims import Claim, finish, run

import hfbench
from hfbench.gpu.loading.files import find_files
from hfbench.gpu.loading.page_cache import COLD, drop, warm
from hfbench.gpu.loading.processes import LoaderProcess
from hfbench.gpu.reading import Unavailable

PLAIN = Claim(
    name="loading-plain",
    sentence="reading a checkpoint plainly from a warm cache takes at most 1.2 times as long as `dd bs=1M`",
    bound=1.2,
)
MAPPED = Claim(
    name="loading-mapped-cold",
    sentence="mapping a checkpoint from a cold cache takes at most 1.5 times as long as reading it plainly",
    bound=1.5,
)
OWN = Claim(
    name="loading-own-cold",
    sentence="bench.generate loads a model from a cold cache within 2 times of the plainest safetensors loader",
    bound=2.0,
)
ROUNDS = 7
MAKE = """
import sys, torch, transformers
config = transformers.LlamaConfig(vocab_size=32000, hidden_size=1024, intermediate_size=2816, num_hidden_layers=12,
                                  num_attention_heads=16, num_key_value_heads=8)
transformers.LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(sys.argv[1], max_shard_size="200MB")
"""
LOAD = """
import sys, time
from pathlib import Path
from transformers import LlamaForCausalLM  # importing a model's class takes longer than loading the model
from hfbench.gpu.generate_model import load_model
from hfbench.gpu.loading.tensors import arrive
began = time.perf_counter()
loaded = load_model(Path(sys.argv[1]), gpu=None, dtype="auto", attention="sdpa")
arrive(dict(loaded.model.named_parameters()), "cpu")
print(time.perf_counter() - began)
"""


def main() -> None:
    """Make the checkpoint, measure, keep the records."""
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:  # /tmp is a disk in memory on many machines
        model = Path(folder) / "model"
        subprocess.run([sys.executable, "-c", MAKE, str(model)], check=True, capture_output=True)
        files = find_files(model).safetensors
        versions = {
            "hfbench": hfbench.__version__,
            **{name: metadata.version(name) for name in ("torch", "safetensors")},
        }
        notes: dict[str, str | int | float] = {"bytes": sum(each.stat().st_size for each in files), "files": len(files)}
        left = drop(files)
        if isinstance(left, Unavailable) or left > COLD:
            sys.exit(f"the page cache here cannot be made cold: {left}")
        with LoaderProcess("plain", limit=600) as plain, LoaderProcess("safetensors-mmap", limit=600) as mapped:
            plain.ready()
            mapped.ready()
            warm(files)
            records = [
                run(
                    PLAIN, loading(plain, files, warm), lambda: dd(files), rounds=ROUNDS, versions=versions, notes=notes
                ),
                run(
                    MAPPED,
                    loading(mapped, files, drop),
                    loading(plain, files, drop),
                    rounds=ROUNDS,
                    versions=versions,
                    notes=notes,
                ),
                run(
                    OWN,
                    lambda: own(model, files),
                    loading(mapped, files, drop),
                    rounds=ROUNDS,
                    versions={**versions, "transformers": metadata.version("transformers")},
                    notes=notes,
                ),
            ]
    finish(*records)


def loading(
    process: LoaderProcess, files: Sequence[Path], prepare: Callable[[Sequence[Path]], object]
) -> Callable[[], float]:
    """One load by a loader's process, from a state of the cache."""

    def once() -> float:
        prepare(files)
        return float(process.load(files, "cpu")["seconds"])

    return once


def dd(files: Sequence[Path]) -> float:
    """The same bytes by `dd`, with blocks of the same size."""
    began = time.perf_counter()
    for file in files:
        subprocess.run(["dd", f"if={file}", "of=/dev/null", "bs=1M"], check=True, capture_output=True)
    return time.perf_counter() - began


def own(model: Path, files: Sequence[Path]) -> float:
    """What bench.generate does before it measures, in a fresh process, without the imports."""
    drop(files)
    done = subprocess.run([sys.executable, "-c", LOAD, str(model)], check=True, capture_output=True, text=True)
    return float(done.stdout.split()[-1])


if __name__ == "__main__":
    main()
