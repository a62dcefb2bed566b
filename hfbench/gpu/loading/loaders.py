"""Loaders that can be measured, as declarations: what each reads, what it needs, and whether it can be trusted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Literal

Format = Literal["any", "safetensors", "pickle"]
PLAIN = "plain"
"""The loader that only reads: what the others are compared with."""


@dataclass(frozen=True, kw_only=True)
class Loader:
    """One way from files to tensors. `safe` when no byte of a file is ever taken for code, else `why` says what is."""

    id: str
    summary: str
    format: Format
    needs: tuple[str, ...] = ()
    """Packages it imports."""
    cuda: bool = False
    """It can only fill a GPU."""
    safe: bool = True
    why: str = ""

    @property
    def missing(self) -> tuple[str, ...]:
        """Packages that this interpreter lacks; looks them up without importing them."""
        return tuple(name for name in self.needs if find_spec(name) is None)

    def refusal(self, formats: Sequence[Format], device: str) -> str:
        """Why it cannot run here, in a clause; empty when it can."""
        if self.format != "any" and self.format not in formats:
            return "no .safetensors file here" if self.format == "safetensors" else "no .bin, .pt or .pth file here"
        if self.missing:
            return f"{' and '.join(self.missing)} {'are' if len(self.missing) > 1 else 'is'} not installed"
        return "it fills GPUs only" if self.cuda and device == "cpu" else ""


UNPICKLED = "a pickle: weights_only refuses classes it does not know, yet its reader has been tricked before"


def _safetensors(id: str, summary: str, *packages: str, cuda: bool = False) -> Loader:
    return Loader(id=id, summary=summary, format="safetensors", needs=("torch", *packages), cuda=cuda)


def _pickle(id: str, summary: str) -> Loader:
    return Loader(id=id, summary=summary, format="pickle", needs=("torch",), safe=False, why=UNPICKLED)


LOADERS: tuple[Loader, ...] = (
    Loader(id=PLAIN, summary="the bytes read into one buffer, nothing made of them", format="any"),
    _safetensors("safetensors-mmap", "safetensors.torch.load_file, which maps the file", "safetensors"),
    _safetensors("safetensors-pread", "safetensors.torch.load_file with backend='pread'", "safetensors"),
    _safetensors("safetensors-read", "the whole file read, then safetensors.torch.load of the bytes", "safetensors"),
    _safetensors(
        "safetensors-prefetch", "a thread reads the files in order, each is mapped once it is read", "safetensors"
    ),
    _safetensors("fastsafetensors", "fastsafetensors, without GPUDirect storage", "fastsafetensors"),
    _safetensors(
        "runai-streamer",
        "runai-model-streamer: several threads read into a ring of buffers",
        "runai_model_streamer",
        "humanize",
    ),
    _safetensors(
        "instanttensor", "instanttensor: direct reads, pipelined with copies to the GPU", "instanttensor", cuda=True
    ),
    _pickle("torch-load", "torch.load with weights_only"),
    _pickle("torch-load-mmap", "torch.load with weights_only and mmap"),
)
"""In the order in which the simpler of two equally fast ones is preferred."""


def find_loaders(names: Sequence[str]) -> tuple[Loader, ...]:
    """The loaders of these names, and all when none is given; the plain one always comes along. KeyError otherwise."""
    known = {each.id: each for each in LOADERS}
    wanted = {PLAIN, *(known[name].id for name in names)} if names else set(known)
    return tuple(each for each in LOADERS if each.id in wanted)
