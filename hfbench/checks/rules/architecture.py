"""What kind of model the configuration names, and which runtimes know it."""

from __future__ import annotations

from collections.abc import Iterator

from hfbench.checks.base import Found, rule
from hfbench.checks.known import (
    base_model,
    every_type,
    known_architecture,
    known_tokenizer,
    known_type,
    last_vllm_with,
    of_type,
    titles,
    transformers,
    type_of_architecture,
    vllm,
    vllm_only_type,
)
from hfbench.checks.remote_code import CodeFile, code_files
from hfbench.checks.subject import Subject
from hfbench.models.problem import listed, quoted
from hfbench.text import nearest

MOST_ROLES = 4
"""Entries of auto_map named in one sentence."""


@rule("HB210", "no-model-type")
def no_model_type(subject: Subject) -> Iterator[Found]:
    """config.json has no model_type.

    Why: transformers and vLLM choose the configuration class by it and refuse the model.
    Remedy: add the model_type of the family.
    """
    if (
        not subject.configured
        or subject.raw.get("model_type") not in (None, "")
        or subject.raw.get("speculators_config")
    ):
        return
    if subject.custom:
        return  # the class of the repository is taken, if that is allowed
    named = [known for each in subject.config.architectures if (known := type_of_architecture(each))]
    remedy = f'add "model_type": "{named[0]}", which its architecture belongs to' if named else ""
    yield Found(message="there is no model_type", file="config.json", remedy=remedy)


@rule("HB211", "unknown-model-type")
def unknown_model_type(subject: Subject) -> Iterator[Found]:
    """No runtime knows the model_type, and the repository brings no code for it.

    Why: transformers and vLLM refuse the model; a newer release may know it.
    Remedy: upgrade the runtime, or correct the spelling.
    """
    model_type = subject.config.model_type
    if not model_type or known_type(model_type) or subject.custom:
        return
    if vllm_only_type(model_type):
        message = f"{vllm().title} knows the model_type {quoted(model_type)}, {transformers().title} does not"
        yield Found(message=message, file="config.json", severity="warning", remedy="load it with vLLM")
        return
    near = nearest(model_type, every_type())
    yield Found(
        message=f"neither {titles()} knows the model_type {quoted(model_type)}",
        file="config.json",
        evidence={"model_type": model_type, "transformers": transformers().version, "vllm": vllm().version},
        remedy=f"did you mean {near!r}?" if near else "",
    )


@rule("HB212", "no-architectures", severity="warning")
def no_architectures(subject: Subject) -> Iterator[Found]:
    """config.json names no architectures.

    Why: vLLM then takes the base model of the model_type, a pooling model without a head, and says nothing.
    Remedy: add the class, such as "LlamaForCausalLM".
    """
    given = subject.raw.get("architectures")
    if not subject.raw.get("model_type") or (given and given != [""]):
        return
    base = base_model(subject.config.model_type)
    message = "there are no architectures" + (f"; it would be loaded as {base}, without a head" if base else "")
    yield Found(message=message, file="config.json", evidence={"base_model": base} if base else {})


@rule("HB213", "unknown-architecture")
def unknown_architecture(subject: Subject) -> Iterator[Found]:
    """No runtime has the class that architectures names, and the repository brings no code for it.

    Why: vLLM refuses the model; transformers ignores the name and may build another class than was trained.
    Remedy: name the class that the weights belong to.
    """
    names = list(subject.config.architectures)
    if not names or any(map(known_architecture, names)) or subject.remote_code:
        return
    if not isinstance(subject.raw.get("architectures"), list):
        return
    last = next(filter(None, map(last_vllm_with, names)), None)
    message = f"neither {titles()} has {listed(names)}"
    yield Found(
        message=message + (f"; vLLM had it until {last}" if last else ""),
        file="config.json",
        evidence={"architectures": names[:5]},
        severity="warning" if last else None,
    )


@rule("HB229", "architecture-of-another-type", severity="warning")
def architecture_of_another_type(subject: Subject) -> Iterator[Found]:
    """The class that architectures names belongs to another model_type.

    Why: transformers goes by the model_type, vLLM by the class, so the two build different models.
    Remedy: correct the one that is wrong.
    """
    model_type = subject.config.model_type
    for each in subject.config.architectures[:1]:
        other = type_of_architecture(each)
        if base_model(model_type) and other and not of_type(each, model_type) and not subject.remote_code:
            message = f"{quoted(each)} is a class of {other}, the model_type is {model_type}"
            yield Found(message=message, file="config.json", evidence={"type_of_class": other})


@rule("HB700", "remote-code", severity="warning")
def remote_code(subject: Subject) -> Iterator[Found]:
    """The model needs Python code of its own repository.

    Why: loading it with trust_remote_code runs those files with your rights; without it the model is refused.
    Remedy: read the files, then pin the revision and allow them.
    """
    for (files, needed, where), roles in _by_files(subject).items():
        others = sorted({each.repo for each in files if each.repo})
        source = f"; the code comes from {listed(others)}" if others else ""
        need, name = ("needs", "names") if len(roles) == 1 else ("need", "name")
        verb = f"{need} trust_remote_code, which would run" if needed else f"{name} code that is not needed:"
        if needed and vllm_only_type(subject.config.model_type):
            verb = f"{need} trust_remote_code in transformers (vLLM has a class of its own), which would run"
        yield Found(
            message=f"{_named(roles)} {verb} {listed(each.file for each in files)}{source}",
            file=where,
            evidence={"roles": roles, "files": [each.file for each in files], "repositories": others, "needed": needed},
            severity=None if needed else "info",
        )


@rule("HB701", "remote-code-missing")
def remote_code_missing(subject: Subject) -> Iterator[Found]:
    """auto_map names a Python file that the folder does not hold.

    Why: the class cannot be loaded even with trust_remote_code.
    Remedy: fetch the file from the model's page.
    """
    for (files, needed, _), roles in _by_files(subject).items():
        gone = [each.file for each in files if not each.repo and each.file not in subject.by_name]
        if gone:
            fatal = needed and "AutoConfig" in roles
            yield Found(
                message=f"auto_map wants {listed(gone)} for {_named(roles)}, and there is no such file",
                file=gone[0],
                evidence={"roles": roles, "files": gone},
                severity=None if fatal else "warning" if needed else "info",
            )


def _by_files(subject: Subject) -> dict[tuple[tuple[CodeFile, ...], bool, str], list[str]]:
    """The roles in auto_map by the files their classes come from, whether these are needed, and where it is told."""
    told: dict[tuple[tuple[CodeFile, ...], bool, str], list[str]] = {}
    in_config = _roles(subject)
    for role, classes in subject.remote_code.items():
        where = "config.json" if role in in_config else subject.told_in(role)
        told.setdefault((tuple(code_files(classes)), _needed(subject, role), where), []).append(role)
    return {key: sorted(roles, key=lambda role: role != "AutoConfig") for key, roles in told.items()}


def _named(roles: list[str]) -> str:
    *others, last = roles if len(roles) <= MOST_ROLES else [*roles[:MOST_ROLES], f"{len(roles) - MOST_ROLES:,} more"]
    return f"{', '.join(others)} and {last}" if others else last


def _roles(subject: Subject) -> set[str]:
    given = subject.raw.get("auto_map")
    return set(given) if isinstance(given, dict) else set()


def _needed(subject: Subject, role: str) -> bool:
    """The library's own class is taken where it has one."""
    if role == "AutoTokenizer":
        return not subject.has("tokenizer.json") or not _plain_tokenizer(subject)
    return not known_type(subject.config.model_type)


def _plain_tokenizer(subject: Subject) -> bool:
    name = subject.tokenizer.tokenizer_class
    return name is None or known_tokenizer(name)
