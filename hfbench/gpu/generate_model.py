"""Loading a causal language model for measuring: from a local folder, complete, and without its own code."""

from __future__ import annotations

import inspect
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hfbench.errors import HfbenchError, MissingError, UsageError
from hfbench.gpu.devices import Gpu
from hfbench.gpu.loading.ahead import read_weights
from hfbench.jobs.fingerprint import set_variable
from hfbench.models.facts import ModelSummary
from hfbench.models.problem import counted
from hfbench.models.reference import Location
from hfbench.models.remote_mark import refuse_headers_only
from hfbench.models.summary import summarise
from hfbench.text import clip

if TYPE_CHECKING:
    from hfbench.jobs.run import Run

DTYPES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}
"""Short names of the field and torch's."""
TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "tokenizer.model",
    "vocab.json",
    "spiece.model",
    "vocab.txt",
)
"""A tokenizer has at least one of these."""


@dataclass(frozen=True)
class Words:
    """The tokenizer of a folder, or None and the reason there is none."""

    tokenizer: Any
    reason: str = ""


@dataclass(frozen=True)
class Loaded:
    """A model on its device; `seconds` is what reading and moving it took, `unused` tensors it has no place for."""

    model: Any
    device: Any
    dtype: str
    seconds: float
    unused: tuple[str, ...] = ()


def refuse_broken(location: Location, *, with_text: bool) -> None:
    """HfbenchError with the first thing wrong with the files, before any library is loaded for them.

    A broken tokenizer is in the way of a text only: random tokens need none.
    """
    refuse_headers_only(location.folder, "running the model")
    summary = summarise(location)
    harmless = () if with_text else summary.tokenizer.problems
    faults = [each for each in summary.problems if each.severity == "error" and each not in harmless]
    if not faults:
        _refuse_oversized(summary, location.folder)
        return
    more = f" (and {counted(len(faults) - 1, 'more fault')})" if len(faults) > 1 else ""
    first, remedy = faults[0], f"hfbench inspect {location.given} tells all"
    where = location.folder / first.where if first.where else location.folder
    raise HfbenchError(f"{first.found}{more}", where=where, remedy=first.remedy or remedy)


def import_libraries(run: Run) -> None:
    """Load torch and transformers, which takes seconds, as a phase of its own."""
    run.progress("import", 0)
    run.log("importing torch and transformers")
    import torch  # noqa: F401
    import transformers  # noqa: F401

    run.progress("import", 1, 1)


def stay_offline() -> None:
    """Forbid network access to the Hub libraries; must come before they are imported."""
    set_variable("HF_HUB_OFFLINE", "1")
    set_variable("TRANSFORMERS_OFFLINE", "1")
    os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")  # so that cuda:N is the N of the driver and the leases


def read_config(folder: Path) -> Any:
    """The configuration as transformers understands it; HfbenchError for one it does not."""
    from transformers import AutoConfig

    with translated(folder, "transformers cannot read the configuration"):
        return AutoConfig.from_pretrained(folder, trust_remote_code=False, local_files_only=True).get_text_config()


def context_length(config: Any) -> int | None:
    """Positions the model was made for, or None when its configuration names no limit."""
    limit = getattr(config, "max_position_embeddings", None)
    return limit if isinstance(limit, int) and limit > 0 else None


def load_tokenizer(folder: Path) -> Words:
    """The tokenizer of a folder; a missing or broken one is no error, since random prompts need none."""
    if not any((folder / name).exists() for name in TOKENIZER_FILES):
        return Words(None, "the folder holds no tokenizer files")
    from transformers import AutoTokenizer

    try:
        return Words(AutoTokenizer.from_pretrained(folder, trust_remote_code=False, local_files_only=True))
    except HfbenchError:
        raise  # a cancel that arrived here
    except Exception as error:  # the Rust part of tokenizers raises Exception itself
        return Words(None, first_line(error))


def load_model(folder: Path, *, gpu: Gpu | None, dtype: str, attention: str) -> Loaded:
    """Read the weights onto the device; HfbenchError when a weight is missing or has another shape."""
    import torch
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging

    logging.disable_progress_bar()
    device = _torch_device(gpu)
    began = time.perf_counter()
    ahead = read_weights(folder)  # transformers maps the files meanwhile, and finds more and more of them in memory
    with translated(folder, "transformers cannot load the model"):
        try:
            model, told = AutoModelForCausalLM.from_pretrained(
                folder,
                dtype=getattr(torch, DTYPES[dtype]) if dtype in DTYPES else "auto",
                attn_implementation=attention,
                local_files_only=True,
                trust_remote_code=False,
                use_safetensors=True,
                ignore_mismatched_sizes=True,  # reported below, by name
                output_loading_info=True,
            )
        except ValueError as error:
            if "attention implementation" not in str(error):
                raise
            found = f"transformers has no attention {attention} for this model"
            raise HfbenchError(found, where=folder, remedy="use attention eager") from error
        _refuse_incomplete(folder, told, model)
        model = model.to(device).eval()
    if ahead:
        ahead.wait()
    return Loaded(
        model=model,
        device=device,
        dtype=_short_dtype(model),
        seconds=time.perf_counter() - began,
        unused=tuple(sorted(map(str, told.get("unexpected_keys", ())))),
    )


def pin_threads(asked: int) -> int:
    """Set torch's threads for the whole run: as asked, or one for each CPU this process may use."""
    import torch

    torch.set_num_threads(asked or len(os.sched_getaffinity(0)))
    return int(torch.get_num_threads())


def accepts(model: Any, name: str) -> bool:
    """Whether the model's forward takes an argument of that name."""
    return name in inspect.signature(model.forward).parameters


@contextmanager
def translated(where: object, found: str, remedy: str = "") -> Iterator[None]:
    """Turn whatever transformers or torch raises for a model it cannot use into one sentence."""
    try:
        yield
    except HfbenchError:
        raise  # our own, or a cancel that arrived here
    except Exception as error:
        kind = MissingError if isinstance(error, ImportError) else HfbenchError  # a format that needs another package
        raise kind(f"{found}: {first_line(error)}", where=where, remedy=remedy) from error


def first_line(error: BaseException) -> str:
    """The kind of a foreign error and the first line of what it says, or two when the first only announces."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = lines[:2] if lines and lines[0].endswith(":") else lines[:1]
    return clip(" ".join([f"{type(error).__name__}:", *told]).rstrip(":"), 240)


def _refuse_oversized(summary: ModelSummary, folder: Path) -> None:
    """transformers allocates what the configuration says before it compares that with the files.

    A weight takes at least one bit, and a layer has at least one tensor. Files of another format tell no sizes.
    """
    if not summary.tensors:
        return
    rows = {"vocab_size": summary.vocab, "intermediate_size": summary.config.get("intermediate_size")}
    bits = 8 * summary.weight_bytes
    big = [name for name, each in rows.items() if type(each) is int and each * (summary.hidden or 1) > bits]
    if (summary.layers or 0) > summary.tensors:
        big.append("num_hidden_layers")
    if big:
        stored = f"{counted(summary.tensors, 'tensor')} of {summary.weight_bytes:,} bytes"
        found = f"{' and '.join(big)} cannot be right: the weights are {stored} in all"
        raise HfbenchError(found, where=folder / "config.json", remedy="fetch the model again")


def _refuse_incomplete(folder: Path, told: dict[str, Any], model: Any) -> None:
    """transformers fills what is missing with random numbers and goes on; a benchmark of those means nothing."""
    missing, own = told.get("missing_keys", ()), getattr(model.config, "architectures", None) or ()
    if missing and own and type(model).__name__ not in own:
        found = f"its weights are those of {own[0]}, and as {type(model).__name__} it lacks {_some(missing)}"
        raise HfbenchError(found, where=folder, remedy="give a checkpoint of a model that generates text")
    for what, names in (
        ("missing weights", missing),
        ("weights of another shape than the configuration says", told.get("mismatched_keys", ())),
    ):
        if names:
            raise HfbenchError(f"{what}: {_some(names)}", where=folder, remedy="fetch the checkpoint again")


def _torch_device(gpu: Gpu | None) -> Any:
    import torch

    if gpu is None:
        return torch.device("cpu")
    if not torch.cuda.is_available():
        built = f"torch {torch.__version__} cannot use CUDA here"
        raise MissingError(built, where=f"cuda:{gpu.index}", remedy="install a CUDA build of torch or use cpu")
    if gpu.index >= torch.cuda.device_count():
        raise UsageError(f"torch sees {torch.cuda.device_count()} GPUs only", where=f"cuda:{gpu.index}")
    return torch.device("cuda", gpu.index)


def _short_dtype(model: Any) -> str:
    name = str(next(model.parameters()).dtype).removeprefix("torch.")
    return {long: short for short, long in DTYPES.items()}.get(name, name)


def _some(names: Iterable[Any]) -> str:
    told = sorted(str(name[0]) if isinstance(name, tuple) else str(name) for name in names)
    return ", ".join(told[:3]) + (f" and {len(told) - 3} more" if len(told) > 3 else "")
