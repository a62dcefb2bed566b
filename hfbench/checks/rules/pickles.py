"""Pickles: what the weights and other files of torch would run if they were loaded."""

from __future__ import annotations

from collections.abc import Iterator

from hfbench.checks.base import Found, rule
from hfbench.checks.pickle_scan import PickleScan, dangerous, unusual
from hfbench.checks.subject import Subject
from hfbench.models.files import NOT_WEIGHTS, ModelFile
from hfbench.models.problem import Severity, listed

_TORCH_NAMES = ("pytorch_model", "consolidated", "adapter_model", "diffusion_pytorch_model")
"""Names that promise a file of torch; other formats use the suffix .bin too."""


@rule("HB710", "pickle-runs-code", on="weights")
def pickle_runs_code(subject: Subject) -> Iterator[Found]:
    """A pickle imports functions that run commands, code or files.

    Why: whoever loads it without weights_only runs what its author wrote, with all rights of the user.
    Remedy: do not load it; report it to whoever gave it to you.
    """
    for file, scan in subject.pickles:
        if names := dangerous(scan.globals):
            message = f"would call {listed(names)} when it is loaded"
            yield Found(message=message, file=file.name, evidence={"globals": names[:20], "members": scan.members[:5]})


@rule("HB711", "pickle-unusual", severity="warning", on="weights")
def pickle_unusual(subject: Subject) -> Iterator[Found]:
    """A pickle imports more than is needed to rebuild tensors.

    Why: torch's safe loader refuses it, and the unsafe one imports whatever package has those names.
    Remedy: convert the file to safetensors with the program that wrote it.
    """
    for file, scan in subject.pickles:
        names = unusual(scan.globals)
        if names and not dangerous(scan.globals):
            severity = "info" if _beside(file) else None
            evidence = {"globals": names[:20]}
            yield Found(
                message=f"imports {listed(names)}",
                file=file.name,
                evidence=evidence,
                severity="info" if severity else None,
            )


@rule("HB712", "pickle-damaged", on="weights")
def pickle_damaged(subject: Subject) -> Iterator[Found]:
    """A file of torch cannot be read to its end.

    Why: a pickle runs as far as it goes before it fails, so a damaged one is no harmless one.
    Remedy: fetch the file again.
    """
    for file, scan in subject.pickles:
        if scan.broken:
            mild = _beside(file) or (scan.kind == "unknown" and not file.name.startswith(_TORCH_NAMES))
            severity: Severity | None = "info" if mild else "warning" if scan.kind == "long" else None
            yield Found(message=scan.broken, file=file.name, severity=severity)


@rule("HB713", "pickle-weights", severity="info", on="weights")
def pickle_weights(subject: Subject) -> Iterator[Found]:
    """The weights are a pickle that only rebuilds tensors.

    Why: nothing was found in it, but safetensors would make the question needless and loads faster.
    Remedy: convert the weights to safetensors.
    """
    clean = [file.name for file, scan in subject.pickles if _clean(scan) and not _beside(file)]
    if clean:
        yield Found(
            message=f"{listed(clean)} only rebuild tensors", file=clean[0], remedy="", evidence={"files": clean[:20]}
        )


@rule("HB714", "torchscript", severity="warning", on="weights")
def torchscript(subject: Subject) -> Iterator[Found]:
    """An archive holds TorchScript, a program and not weights.

    Why: torch.jit.load runs it, and neither transformers nor vLLM can load it as weights.
    Remedy: fetch the weights instead.
    """
    for file, scan in subject.pickles:
        if scan.torchscript:
            yield Found(message="holds TorchScript code", file=file.name)


def _clean(scan: PickleScan) -> bool:
    return scan.kind != "array" and not scan.broken and not dangerous(scan.globals) and not unusual(scan.globals)


def _beside(file: ModelFile) -> bool:
    base = file.name.rpartition("/")[2]
    return base in NOT_WEIGHTS or base.startswith(("rng_state", "optimizer", "scheduler", "scaler", "training_args"))
