"""How a file is sent and named: within a commit, as git would hold it, or before it, as git-lfs would."""

from __future__ import annotations

from hfbench.units import MIB

LARGEST_TEXT = MIB
"""Bytes up to which text is sent within the commit."""
ALWAYS_LFS = (".safetensors", ".bin", ".pt", ".pth", ".gguf", ".onnx", ".npz", ".npy", ".h5", ".msgpack", ".parquet")


def mode_of(path: str, size: int, sample: bytes) -> str:
    """`lfs` or `regular`, by the name of a file, its size and its first bytes."""
    if size == 0:
        return "regular"
    if size > LARGEST_TEXT or path.lower().endswith(ALWAYS_LFS):
        return "lfs"
    return "regular" if _is_text(sample) else "lfs"


def _is_text(sample: bytes) -> bool:
    """UTF-8 without NUL; the sample may end within a character."""
    if b"\0" in sample:
        return False
    try:
        sample.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start >= len(sample) - 3 and error.reason == "unexpected end of data"
    return True
