"""Conversions of a synthetic bf16 Llama beside `cp -r` of the same bytes on the same disk, and the memory they take."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from claims import Claim, finish, run, wall

import hfbench

HIDDEN, INNER, HEADS, KV_HEADS, VOCABULARY = 4096, 11008, 32, 8, 32000
SHARD_BYTES = 2 << 30
SPREAD = 0.02
"""Standard deviation of weights, as models are initialised and about as they stay."""

PEER = Path(__file__).parent / "peers" / "perform_once.py"
SLOWEST = 1.25
"""Times what `cp -r` takes: 0.8 of its throughput."""

MOST_MEMORY = 300 << 20

Shapes = dict[str, tuple[int, ...]]


def shapes(layers: int) -> Shapes:
    """Names and shapes of a Llama with its own head."""
    found: Shapes = {"model.embed_tokens.weight": (VOCABULARY, HIDDEN)}
    narrow = HIDDEN // HEADS * KV_HEADS
    for layer in range(layers):
        prefix = f"model.layers.{layer}"
        found |= {
            f"{prefix}.input_layernorm.weight": (HIDDEN,),
            f"{prefix}.self_attn.q_proj.weight": (HIDDEN, HIDDEN),
            f"{prefix}.self_attn.k_proj.weight": (narrow, HIDDEN),
            f"{prefix}.self_attn.v_proj.weight": (narrow, HIDDEN),
            f"{prefix}.self_attn.o_proj.weight": (HIDDEN, HIDDEN),
            f"{prefix}.post_attention_layernorm.weight": (HIDDEN,),
            f"{prefix}.mlp.gate_proj.weight": (INNER, HIDDEN),
            f"{prefix}.mlp.up_proj.weight": (INNER, HIDDEN),
            f"{prefix}.mlp.down_proj.weight": (HIDDEN, INNER),
        }
    return found | {"model.norm.weight": (HIDDEN,), "lm_head.weight": (VOCABULARY, HIDDEN)}


def make(folder: Path, gigabytes: float) -> int:
    """Write the model in shards of 2 GiB with an index; returns the bytes of its weights."""
    layer = sum(2 * int(np.prod(shape)) for shape in shapes(1).values()) - 4 * VOCABULARY * HIDDEN
    layers = max(4, round((gigabytes * 1e9 - 4 * VOCABULARY * HIDDEN) / layer) // 4 * 4)
    folder.mkdir()
    drawn = np.random.default_rng(0).standard_normal(1 << 24, dtype="f4") * np.float32(SPREAD)
    bits = ((drawn.view("u4") >> 16).astype("u2")).tobytes()
    shards: list[Shapes] = []
    room = 0
    for name, shape in shapes(layers).items():
        size = 2 * int(np.prod(shape))
        if size > room:
            shards.append({})
            room = SHARD_BYTES
        shards[-1][name] = shape
        room -= size
    weight_map, total = {}, 0
    for number, held in enumerate(shards, 1):
        file = f"model-{number:05d}-of-{len(shards):05d}.safetensors"
        header, at = {"__metadata__": {"format": "pt"}}, 0
        for name, shape in held.items():
            size = 2 * int(np.prod(shape))
            header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + size]}
            weight_map[name] = file
            at += size
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        with (folder / file).open("wb") as out:
            out.write(len(text).to_bytes(8, "little") + text)
            for left in range(at, 0, -len(bits)):
                out.write(bits[: min(left, len(bits))])
        total += at
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"metadata": {"total_size": total}, "weight_map": weight_map})
    )
    (folder / "config.json").write_text(json.dumps(config(layers), indent=2))
    return total


def config(layers: int) -> dict[str, object]:
    """config.json of that model."""
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": HIDDEN,
        "intermediate_size": INNER,
        "num_hidden_layers": layers,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "vocab_size": VOCABULARY,
        "max_position_embeddings": 4096,
        "rms_norm_eps": 1e-5,
        "rope_theta": 500000.0,
        "hidden_act": "silu",
        "tie_word_embeddings": False,
        "dtype": "bfloat16",
    }


class Conversion:
    """One conversion, measured beside a copy of the same bytes; both begin with nothing left to be written."""

    def __init__(self, name: str, action: str, source: Path, out: Path, fields: Mapping[str, object]) -> None:
        self.name, self.action, self.source, self.out = name, action, source, out
        self.fields = {**fields, "out": str(out)}
        self.copied = out.with_name("copied")
        self.costs: list[dict[str, float]] = []

    def convert(self) -> None:
        words = [sys.executable, str(PEER), self.action, json.dumps(self.fields)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        self.costs.append(json.loads(done.stdout.splitlines()[-1]))

    def copy(self) -> None:
        subprocess.run(["cp", "-r", str(self.source), str(self.copied)], check=True)

    def cleared(self, folder: Path, call: Callable[[], None]) -> Callable[[], float]:
        """A measure of a call that finds its folder gone and the disk idle."""

        def measure() -> float:
            shutil.rmtree(folder, ignore_errors=True)
            os.sync()
            return wall(call)()

        return measure

    def run(self, total: int, rounds: int) -> list[object]:
        """Both claims of the conversion."""
        versions = {"hfbench": hfbench.__version__, "numpy": np.__version__}
        speed = Claim(
            name=f"convert-{self.name}",
            sentence=f"{self.action} ({self.name}) takes at most {SLOWEST} times `cp -r` of the same bytes",
            bound=SLOWEST,
        )
        notes: dict[str, str | int | float] = {"bytes": total, "cache": "warm, as far as memory holds it"}
        subject, peer = self.cleared(self.out, self.convert), self.cleared(self.copied, self.copy)
        found = [run(speed, subject=subject, peer=peer, rounds=rounds, versions=versions, notes=notes)]
        cpu = sorted(cost["cpu"] for cost in self.costs)[len(self.costs) // 2]
        peaks = iter([cost["peak"] for cost in self.costs])
        memory = Claim(
            name=f"convert-{self.name}-memory",
            sentence=f"{self.action} ({self.name}) holds at most 300 MiB, whatever the model's size",
            bound=MOST_MEMORY,
            unit="B",
        )
        notes["cpu_s_per_gib"] = round(cpu / (total / 2**30), 3)
        found.append(
            run(memory, subject=lambda: next(peaks), rounds=len(self.costs), warmup=0, versions=versions, notes=notes)
        )
        shutil.rmtree(self.copied, ignore_errors=True)
        return found


def main() -> None:
    """Make the model, convert it in each way, keep the records."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=8.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="where to work, on the disk to measure")
    parser.add_argument("--only", default="", help="names of conversions, with commas")
    told = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=told.folder) as scratch:
        place = Path(scratch)
        free = shutil.disk_usage(place).free
        size = min(told.gigabytes, free / 5e9)  # the model, what becomes of it, the way back, and a copy
        if size < told.gigabytes:
            print(f"only {size:.1f} GB of model: {free / 1e9:.0f} GB are free")
        source = place / "model"
        total = make(source, size)
        megatron, dist = place / "megatron", place / "dist"
        ways = [
            Conversion("reshard", "convert.safetensors", source, place / "resharded", {"source": str(source)}),
            Conversion("torch", "convert.megatron", source, megatron, {"model": str(source), "tp": 2, "pp": 2}),
            Conversion("back", "convert.hf", megatron, place / "back", {"checkpoint": str(megatron)}),
            Conversion("dist", "convert.megatron", source, dist, {"model": str(source), "format": "torch_dist"}),
        ]
        chosen = [way for way in ways if not told.only or way.name in told.only.split(",")]
        records = [record for way in chosen for record in way.run(total, told.rounds)]
    finish(*records)  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
