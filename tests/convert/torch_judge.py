"""torch in a process of its own: writes files for hfbench to read, and says what it finds in those hfbench wrote.

A request a line on stdin, an answer a line on stdout, both JSON. Importing torch takes seconds: one process serves all.
"""

from __future__ import annotations

import argparse
import enum
import hashlib
import json
import sys
import warnings
from pathlib import Path
from typing import Any

import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.metadata import TensorStorageMetadata

warnings.simplefilter("ignore")

DTYPES = {
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "F64": torch.float64,
    "I64": torch.int64,
    "U8": torch.uint8,
    "BOOL": torch.bool,
    "F8_E4M3": torch.float8_e4m3fn,
    "U16": torch.uint16,
}
NAMES = {dtype: name for name, dtype in DTYPES.items()}


class Backend(enum.Enum):
    """A class of somebody's own, as Megatron has them in its arguments."""

    FLASH = 1


def digest(tensor: torch.Tensor) -> list[Any]:
    raw = tensor.detach().contiguous().flatten().view(torch.uint8).numpy().tobytes() if tensor.numel() else b""
    return [NAMES[tensor.dtype], list(tensor.shape), hashlib.sha256(raw).hexdigest()]


def digests(tensors: dict[str, torch.Tensor]) -> dict[str, list[Any]]:
    return {name: digest(tensor) for name, tensor in tensors.items()}


def drawn(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    drawn.generator.manual_seed(sum(shape) + len(drawn.made))  # type: ignore[attr-defined]
    drawn.made.append(shape)  # type: ignore[attr-defined]
    return torch.randn(*shape, generator=drawn.generator).to(dtype)  # type: ignore[attr-defined]


drawn.generator, drawn.made = torch.Generator(), []  # type: ignore[attr-defined]


def make(folder: str) -> dict[str, dict[str, list[Any]]]:
    """Files of every kind that torch writes; what is in those that are to be read."""
    place = Path(folder)
    base, whole = drawn(8, 12), drawn(6, 10)
    kinds = {f"kind.{name}": drawn(5, 4).to(dtype) for name, dtype in DTYPES.items()}
    state = {
        **kinds,
        "scalar": torch.tensor(2.5),
        "empty": torch.zeros(0, 3),
        "parameter": torch.nn.Parameter(drawn(3, 3)),
        "embed_tokens.weight": base,
        "lm_head.weight": base,
        "rows": base[2:5],
        "transposed": base.t(),
        "columns": whole[:, 3:7],
    }
    torch.save(state, place / "state.bin")
    args = argparse.Namespace(num_layers=2, eps=1e-5, names=["a", "b"], none=None, big=2**40, backend=Backend.FLASH)
    rank = {
        "args": args,
        "checkpoint_version": 3.0,
        "iteration": 7,
        "model": {"w": drawn(4, 4), "x._extra_state": None},
    }
    (place / "megatron" / "iter_0000007" / "mp_rank_00").mkdir(parents=True)
    (place / "megatron" / "latest_checkpointed_iteration.txt").write_text("7")
    torch.save(rank, place / "megatron" / "iter_0000007" / "mp_rank_00" / "model_optim_rng.pt")
    torch.save({"model": {"steps": drawn(2, 3, 4).permute(2, 0, 1)}}, place / "strided.pt")
    torch.save(state, place / "old.bin", _use_new_zipfile_serialization=False)
    torch.jit.save(torch.jit.script(torch.nn.Linear(2, 2)), place / "script.pt")
    spread = {"stack": drawn(3, 4, 6, dtype=torch.bfloat16), "vector": drawn(9)}
    dcp.save(spread, checkpoint_id=place / "dist", no_dist=True)
    return {
        "state.bin": digests(state),
        "megatron": digests({"mp_rank_00:w": rank["model"]["w"]}),
        "dist": digests(spread),
    }


def load(path: str, mmap: bool) -> dict[str, Any]:
    """A file of torch, read by torch's safe reader."""
    with torch.serialization.safe_globals([argparse.Namespace]):
        found = torch.load(path, weights_only=True, mmap=mmap)
    tensors = found.get("model", found)
    others = {key: value for key, value in found.items() if key != "model" and not isinstance(value, torch.Tensor)}
    return {"tensors": digests(tensors), "others": repr(others)}


def load_dist(folder: str) -> dict[str, list[Any]]:
    """A torch_dist folder, read by torch.distributed.checkpoint."""
    metadata = dcp.FileSystemReader(folder).read_metadata()
    wanted = {
        name: torch.zeros(entry.size, dtype=entry.properties.dtype)
        for name, entry in metadata.state_dict_metadata.items()
        if isinstance(entry, TensorStorageMetadata)
    }
    dcp.load(wanted, checkpoint_id=folder, no_dist=True)
    return digests(wanted)


def cast(path: str, source: str, target: str, out: str) -> None:
    """The bits of a file as one dtype, written as another."""
    values = torch.frombuffer(bytearray(Path(path).read_bytes()), dtype=DTYPES[source]).to(DTYPES[target])
    Path(out).write_bytes(values.view(torch.uint8).numpy().tobytes())


def main() -> None:
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = globals()[request["call"]](*request["with"])
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
