"""The resolution of a reference: every step from the reference to what each runtime would load."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hfbench.errors import HfbenchError
from hfbench.models.reference import Location
from hfbench.models.resolution.config_class import choose_config_class
from hfbench.models.resolution.config_format import choose_format
from hfbench.models.resolution.context import read_context
from hfbench.models.resolution.dtype import read_dtype
from hfbench.models.resolution.fields import validate_fields
from hfbench.models.resolution.location import locate
from hfbench.models.resolution.model_class import choose_model_class
from hfbench.models.resolution.quantization import read_quantization
from hfbench.models.resolution.rope import read_rope
from hfbench.models.resolution.subject import Subject, read_subject
from hfbench.models.resolution.tensors import compare_tensors
from hfbench.models.resolution.tokenizer_backend import choose_tokenizer
from hfbench.models.resolution.trace import Stage, Step, Trace
from hfbench.models.resolution.verdicts import Verdict, verdicts
from hfbench.models.resolution.weights import choose_weight_files, tell_head
from hfbench.models.runtimes import RUNTIMES, Names, Runtime, known


@dataclass(frozen=True, kw_only=True)
class Resolution:
    """Where a reference led and what each runtime makes of it. `location` is None when it led nowhere."""

    model: str
    location: Location | None
    steps: tuple[Step, ...]
    runtimes: Mapping[Runtime, Verdict]
    subject: Subject | None = None
    """What the steps looked at, for whoever asks more of the same folder; None where it could not be listed."""

    @property
    def loads_nowhere(self) -> bool:
        """True when no runtime would load the model."""
        return not any(verdict.loads for verdict in self.runtimes.values())


def trace_model(
    reference: str,
    *,
    cache_dir: Path | None = None,
    offline: bool = False,
    names: Mapping[Runtime, Names] | None = None,
) -> Resolution:
    """Resolve a reference step by step. Nothing is fetched, and nothing of the model is executed or asked about.

    Never raises for what a reference or a folder holds: faults are steps and reasons.
    """
    trace = Trace(names or {runtime: known(runtime) for runtime in RUNTIMES})
    found = locate(reference, trace, cache_dir=cache_dir, offline=offline)
    config_only = True
    subject: Subject | None = None
    if found.location is None:
        trace.block(Stage.CONFIGURATION, found.fault)
    else:
        try:
            subject = read_subject(found.location, offline=found.offline)
            trace_subject(subject, trace)
            config_only = subject.config_only
        except HfbenchError as error:
            trace.block(Stage.CONFIGURATION, str(error))
        except OSError as error:  # the folder went away, or may be listed and not entered
            where = error.filename or found.location.folder
            trace.block(Stage.CONFIGURATION, f"{where}: cannot be read ({error.strerror})")
    return Resolution(
        model=found.location.name if found.location else reference.strip(),
        location=found.location,
        steps=tuple(trace.steps),
        runtimes=verdicts(trace, config_only=config_only),
        subject=subject,
    )


def trace_subject(subject: Subject, trace: Trace) -> None:
    """All steps after the folder is found."""
    mistral = choose_format(subject, trace)
    choose_config_class(subject, trace, mistral=mistral)
    validate_fields(subject, trace, mistral=mistral)
    read_rope(subject, trace)
    choose_model_class(subject, trace, mistral=mistral)
    read_quantization(subject, trace)
    read_dtype(subject, trace)
    read_context(subject, trace)
    choose_tokenizer(subject, trace)
    choose_weight_files(subject, trace)
    compare_tensors(subject, trace)
    tell_head(subject, trace)
