"""Opening a causal language model to run it: refused where it cannot be measured, before its weights are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hfbench.errors import HfbenchError, UsageError
from hfbench.gpu.devices import Gpu
from hfbench.gpu.generate_model import (
    Loaded,
    Words,
    context_length,
    import_libraries,
    load_model,
    load_tokenizer,
    pin_threads,
    read_config,
    refuse_broken,
    stay_offline,
)
from hfbench.models.problem import counted
from hfbench.models.reference import Location, resolve
from hfbench.text import clip

if TYPE_CHECKING:
    from hfbench.jobs.run import Run

NO_TEXT = ("ForMaskedLM", "ForPreTraining", "Classification", "ForQuestionAnswering", "ForMultipleChoice")
"""Ends of class names of models that read a text and write none; transformers makes a decoder of some all the same."""


@dataclass(frozen=True, kw_only=True)
class Opened:
    """A model whose configuration and tokenizer were read; `gpu` is None for the CPU, `threads` are torch's."""

    location: Location
    gpu: Gpu | None
    config: Any
    words: Words
    threads: int

    @property
    def cpu_threads(self) -> int:
        """Threads that compute: 0 where a GPU does."""
        return 0 if self.gpu else self.threads

    def refuse_overlong(self, tokens: int, what: str, *, remedy: str) -> None:
        """UsageError when so many tokens, `what` in words, are more than the context holds."""
        limit = context_length(self.config)
        if limit is not None and tokens > limit:
            raise UsageError(
                f"{what} exceed the context of {limit}", where=self.location.folder, remedy=f"lower {remedy}"
            )

    def load(self, run: Run, *, dtype: str, attention: str) -> Loaded:
        """Read the weights onto the device, as a phase of its own; HfbenchError when they do not fit the model."""
        run.progress("load", 0)
        loaded = load_model(self.location.folder, gpu=self.gpu, dtype=dtype, attention=attention)
        run.progress("load", 1, 1)
        run.log(f"loaded {self.location.given} as {loaded.dtype} on {loaded.device} in {loaded.seconds:.2f} s")
        if loaded.unused:
            run.log(unused_note(loaded.unused), level="warning")
        return loaded


def open_model(model: str, gpu: Gpu | None, run: Run, *, threads: int, with_text: bool) -> Opened:
    """Look at the files of a model, import torch and transformers, and read all of it but the weights.

    Nothing is fetched and no code of the model runs. HfbenchError for files that are broken or a model that writes no
    text; `with_text` when a broken tokenizer would be in the way.
    """
    location = resolve(model)
    refuse_broken(location, with_text=with_text)
    stay_offline()
    import_libraries(run)
    used = pin_threads(threads)
    run.progress("configure", 0)  # transformers imports what a model needs only now
    config = read_config(location.folder)
    _refuse_no_text(config, location)
    words = load_tokenizer(location.folder)
    run.progress("configure", 1, 1)
    return Opened(location=location, gpu=gpu, config=config, words=words, threads=used)


def unused_note(names: tuple[str, ...]) -> str:
    """That tensors of the files are no part of what was measured, in a sentence."""
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f"the model as configured has no place for {counted(len(names), 'tensor')} of its files: {names[0]}{more}"


def _refuse_no_text(config: Any, location: Location) -> None:
    names = [str(name) for name in getattr(config, "architectures", None) or ()]
    if names and all(name.endswith(NO_TEXT) for name in names) and not getattr(config, "is_decoder", False):
        raise HfbenchError(
            f"is a {clip(names[0], 60)}, which generates no text",
            where=location.folder,
            remedy="give a causal language model",
        )
