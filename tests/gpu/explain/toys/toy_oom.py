"""toy.oom: says that device memory ran out, as torch says it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hfbench.actions.base import action
from hfbench.actions.params import param
from hfbench.errors import HfbenchError
from hfbench.jobs.run import Run

SENTENCE = (
    "CUDA out of memory. Tried to allocate 20.00 GiB. GPU 1 has a total capacity of 80.00 GiB of which 4.00 GiB is "
    "free. Including non-PyTorch memory, this process has 46.00 GiB memory in use. Of the allocated memory 45.40 GiB "
    "is allocated by PyTorch, and 100.00 MiB is reserved by PyTorch but unallocated."
)


@dataclass(frozen=True)
class Nothing:
    """It never comes so far."""


@action("toy.oom", result=Nothing, lease="device", needs=("torch",))
@dataclass(frozen=True, kw_only=True)
class Oom:
    """Run out of memory."""

    device: str = param("Device to name", default="cuda:1", kind="device")
    how: Literal["bare", "wrapped", "other"] = param("As what it is raised", default="bare")

    def perform(self, run: Run) -> Nothing:
        import torch

        if self.how == "other":
            raise RuntimeError("something else is wrong")
        try:
            raise torch.OutOfMemoryError(SENTENCE)
        except torch.OutOfMemoryError as error:
            if self.how == "bare":
                raise
            raise HfbenchError("the model failed while generating", remedy="lower batch") from error
