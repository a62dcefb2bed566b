"""Conversions of a synthetic bf16 Llama beside `cp -r` of the same bytes on the same disk, and the memory they take."""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import numpy as np
from claims import Claim, Record, finish, run, wall

import hfbench

SPREAD = 0.02
"""Standard deviation of weights, as models are initialised and about as they stay."""

PEER = Path(__file__).parent / "peers" / "perform_once.py"
SLOWEST = 1.25
"""Times what `cp -r` takes: 0.8 of its throughput."""

MOST_MEMORY = 300 << 20

RESHARD = Claim(
    name="convert-reshard",
    sentence=f"convert.safetensors takes at most {SLOWEST} times `cp -r` of the same bytes, all on disk",
    bound=SLOWEST,
)
RESHARD_MEMORY = Claim(
    name="convert-reshard-memory",
    sentence="convert.safetensors holds at most 300 MiB, whatever the model's size",
    bound=MOST_MEMORY,
    unit="B",
)
TORCH = Claim(
    name="convert-torch",
    sentence=f"convert.megatron to legacy files takes at most {SLOWEST} times `cp -r` of the same bytes, all on disk",
    bound=SLOWEST,
)
TORCH_MEMORY = Claim(
    name="convert-torch-memory",
    sentence="convert.megatron to legacy files holds at most 300 MiB, whatever the model's size",
    bound=MOST_MEMORY,
    unit="B",
)
BACK = Claim(
    name="convert-back",
    sentence=f"convert.hf takes at most {SLOWEST} times `cp -r` of the same bytes, all on disk",
    bound=SLOWEST,
)
BACK_MEMORY = Claim(
    name="convert-back-memory",
    sentence="convert.hf holds at most 300 MiB, whatever the model's size",
    bound=MOST_MEMORY,
    unit="B",
)
DIST = Claim(
    name="convert-dist",
    sentence=f"convert.megatron to torch_dist takes at most {SLOWEST} times `cp -r` of the same bytes, all on disk",
    bound=SLOWEST,
)
DIST_MEMORY = Claim(
    name="convert-dist-memory",
    sentence="convert.megatron to torch_dist holds at most 300 MiB, whatever the model's size",
    bound=MOST_MEMORY,
    unit="B",
)

Shapes = dict[str, tuple[int, ...]]


@dataclass(frozen=True, kw_only=True)
class Llama:
    """A synthetic bf16 Llama with its own head, in shards with an index."""

    hidden: int = 4096
    inner: int = 11008
    heads: int = 32
    kv_heads: int = 8
    vocabulary: int = 32000
    layers: int = 4
    shard_bytes: int = 2 << 30

    def of_size(self, gigabytes: float) -> Llama:
        """The same with as many layers as come closest, a multiple of four."""
        ends = 4 * self.vocabulary * self.hidden
        layer = sum(map(size_of, replace(self, layers=1).shapes().values())) - ends
        return replace(self, layers=max(4, round((gigabytes * 1e9 - ends) / layer) // 4 * 4))

    def shapes(self) -> Shapes:
        """Names and shapes of its tensors."""
        found: Shapes = {"model.embed_tokens.weight": (self.vocabulary, self.hidden)}
        narrow = self.hidden // self.heads * self.kv_heads
        for layer in range(self.layers):
            prefix = f"model.layers.{layer}"
            found |= {
                f"{prefix}.input_layernorm.weight": (self.hidden,),
                f"{prefix}.self_attn.q_proj.weight": (self.hidden, self.hidden),
                f"{prefix}.self_attn.k_proj.weight": (narrow, self.hidden),
                f"{prefix}.self_attn.v_proj.weight": (narrow, self.hidden),
                f"{prefix}.self_attn.o_proj.weight": (self.hidden, self.hidden),
                f"{prefix}.post_attention_layernorm.weight": (self.hidden,),
                f"{prefix}.mlp.gate_proj.weight": (self.inner, self.hidden),
                f"{prefix}.mlp.up_proj.weight": (self.inner, self.hidden),
                f"{prefix}.mlp.down_proj.weight": (self.hidden, self.inner),
            }
        head = (self.vocabulary, self.hidden)
        return found | {"model.norm.weight": (self.hidden,), "lm_head.weight": head}

    def config(self) -> dict[str, object]:
        """Its config.json."""
        return {
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "hidden_size": self.hidden,
            "intermediate_size": self.inner,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads,
            "num_key_value_heads": self.kv_heads,
            "vocab_size": self.vocabulary,
            "max_position_embeddings": 4096,
            "rms_norm_eps": 1e-5,
            "rope_theta": 500000.0,
            "hidden_act": "silu",
            "tie_word_embeddings": False,
            "dtype": "bfloat16",
        }

    def make(self, folder: Path) -> int:
        """Write it; returns the bytes of its weights."""
        folder.mkdir()
        drawn = np.random.default_rng(0).standard_normal(1 << 24, dtype="f4") * np.float32(SPREAD)
        bits = ((drawn.view("u4") >> 16).astype("u2")).tobytes()
        shards: list[Shapes] = []
        room = 0
        for name, shape in self.shapes().items():
            if size_of(shape) > room:
                shards.append({})
                room = self.shard_bytes
            shards[-1][name] = shape
            room -= size_of(shape)
        weight_map, total = {}, 0
        for number, held in enumerate(shards, 1):
            file = f"model-{number:05d}-of-{len(shards):05d}.safetensors"
            header: dict[str, object] = {"__metadata__": {"format": "pt"}}
            at = 0
            for name, shape in held.items():
                header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + size_of(shape)]}
                weight_map[name] = file
                at += size_of(shape)
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
        (folder / "config.json").write_text(json.dumps(self.config(), indent=2))
        return total


def size_of(shape: tuple[int, ...]) -> int:
    """Bytes of a bf16 tensor."""
    return 2 * math.prod(shape)


class Conversion:
    """One conversion, measured beside a copy of the same bytes; both begin and end with nothing left to be written.

    When the command came back before that is noted too: until then `cp` may have written to memory alone.
    """

    def __init__(
        self, claims: tuple[Claim, Claim], action: str, source: Path, out: Path, fields: Mapping[str, object]
    ) -> None:
        self.speed, self.memory = claims
        self.action, self.source, self.out = action, source, out
        self.fields = {**fields, "out": str(out)}
        self.copied = out.with_name("copied")
        self.costs: list[dict[str, float]] = []
        self.returned: dict[Path, list[float]] = {self.out: [], self.copied: []}

    def convert(self) -> None:
        words = [sys.executable, str(PEER), self.action, json.dumps(self.fields)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        self.costs.append(json.loads(done.stdout.splitlines()[-1]))

    def copy(self) -> None:
        subprocess.run(["cp", "-r", str(self.source), str(self.copied)], check=True)

    def cleared(self, folder: Path, call: Callable[[], None]) -> Callable[[], float]:
        """A measure of a call that finds its folder gone and the disk idle, until the disk is idle again."""

        def written() -> None:
            self.returned[folder].append(wall(call)())
            os.sync()

        def measure() -> float:
            shutil.rmtree(folder, ignore_errors=True)
            os.sync()
            return wall(written)()

        return measure

    @property
    def name(self) -> str:
        """What `--only` calls it."""
        return self.speed.name.removeprefix("convert-")

    def run(self, total: int, rounds: int) -> list[Record]:
        """Both claims of the conversion."""
        versions = {"hfbench": hfbench.__version__, "numpy": np.__version__}
        notes: dict[str, str | int | float] = {"bytes": total, "cache": "warm, as far as memory holds it"}
        subject, peer = self.cleared(self.out, self.convert), self.cleared(self.copied, self.copy)
        found = [run(self.speed, subject=subject, peer=peer, rounds=rounds, versions=versions, notes=notes)]
        back, copied = (median(self.returned[each]) for each in (self.out, self.copied))
        print(f"  came back after {back:.3g} s, cp after {copied:.3g} s")
        cpu = sorted(cost["cpu"] for cost in self.costs)[len(self.costs) // 2]
        peaks = iter([cost["peak"] for cost in self.costs])
        notes["cpu_s_per_gib"] = round(cpu / (total / 2**30), 3)
        found.append(
            run(
                self.memory,
                subject=lambda: next(peaks),
                rounds=len(self.costs),
                warmup=0,
                versions=versions,
                notes=notes,
            )
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
        total = Llama().of_size(size).make(source)
        megatron, dist = place / "megatron", place / "dist"
        to_torch = {"model": str(source), "tp": 2, "pp": 2}
        to_dist = {"model": str(source), "format": "torch_dist"}
        ways = [
            Conversion(
                (RESHARD, RESHARD_MEMORY), "convert.safetensors", source, place / "reshard", {"source": str(source)}
            ),
            Conversion((TORCH, TORCH_MEMORY), "convert.megatron", source, megatron, to_torch),
            Conversion((BACK, BACK_MEMORY), "convert.hf", megatron, place / "back", {"checkpoint": str(megatron)}),
            Conversion((DIST, DIST_MEMORY), "convert.megatron", source, dist, to_dist),
        ]
        chosen = [way for way in ways if not told.only or way.name in told.only.split(",")]
        records = [record for way in chosen for record in way.run(total, told.rounds)]
    finish(*records)


if __name__ == "__main__":
    main()
