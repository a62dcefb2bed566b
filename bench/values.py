"""`hfbench check MODEL --values` against one pass of a checksum over the same bytes, both as commands."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from claims import Claim, finish, run, wall

import hfbench

LAYERS = 32
HIDDEN = 4096
SPREAD = 0.02
"""Standard deviation of weights, as models are initialised and about as they stay."""

PEER = Path(__file__).parent / "peers" / "checksum.py"

SHA256 = Claim(
    name="values-sha256",
    sentence="check --values takes at most 1.3 times one SHA-256 pass over the weights",
    bound=1.3,
)
CRC32 = Claim(
    name="values-crc32",
    sentence="check --values takes at most 1.3 times one CRC-32 pass over the weights",
    bound=1.3,
)

Part = tuple[str, str, tuple[int, ...], bytes]


def parts(layer: int) -> Iterator[Part]:
    """Name, dtype, shape and bytes of a layer: mostly BF16, some F32, and a quantised part with its zeros."""
    drawn = np.random.default_rng(layer).standard_normal((2 * HIDDEN, HIDDEN), dtype="f4") * np.float32(SPREAD)
    prefix = f"model.layers.{layer}"
    yield f"{prefix}.input_layernorm.weight", "F32", (HIDDEN,), drawn[0].tobytes()
    yield f"{prefix}.self_attn.q_proj.weight", "F32", (HIDDEN // 4, HIDDEN), drawn[: HIDDEN // 4].tobytes()
    halves = (drawn.view("u4") >> 16).astype("u2")
    yield f"{prefix}.mlp.up_proj.weight", "BF16", halves.shape, halves.tobytes()
    # E4M3 codes of a scaled weight: magnitudes up to 448, a few values of a hundred are zero
    codes = np.minimum(np.abs(drawn[:HIDDEN]) * (0x7E / (4 * SPREAD)), 0x7E).astype("u1")
    codes |= (drawn[:HIDDEN] < 0).astype("u1") << 7
    yield f"{prefix}.mlp.down_proj.weight", "F8_E4M3", codes.shape, codes.tobytes()


def make(folder: Path) -> int:
    """Write the model, one file a layer; returns the bytes of its weights."""
    folder.mkdir()
    weight_map, total = {}, 0
    for layer in range(LAYERS):
        name = f"model-{layer + 1:05d}-of-{LAYERS:05d}.safetensors"
        header, data = {"__metadata__": {"format": "pt"}}, b""
        for tensor, dtype, shape, raw in parts(layer):
            header[tensor] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
            weight_map[tensor] = name
            data += raw
        text = json.dumps(header).encode()
        (folder / name).write_bytes(len(text).to_bytes(8, "little") + text + data)
        total += len(data)
    index = {"metadata": {"total_size": total}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return total


def main() -> None:
    """Make the model, read it once, measure, keep the records."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "model"
        total = make(folder)
        files = sorted(map(str, folder.glob("*.safetensors")))

        def check() -> None:
            words = [sys.executable, "-m", "hfbench", "check", str(folder), "--values", "--json"]
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            assert json.loads(done.stdout)["values"]["bytes"] == total, done.stderr

        def checksum(kind: str) -> None:
            subprocess.run([sys.executable, str(PEER), kind, *files], capture_output=True, check=True)

        records = [
            run(
                claim,
                subject=wall(check),
                peer=wall(lambda kind=kind: checksum(kind)),
                rounds=7,
                versions={"hfbench": hfbench.__version__, "numpy": np.__version__},
                notes={"bytes": total, "cache": "warm"},
            )
            for claim, kind in ((SHA256, "sha256"), (CRC32, "crc32"))
        ]
    finish(*records)


if __name__ == "__main__":
    main()
