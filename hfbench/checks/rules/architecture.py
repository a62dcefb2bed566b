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
    titles,
    transformers,
    type_of_architecture,
    vllm,
    vllm_only_type,
)
from hfbench.checks.remote_code import code_files
from hfbench.checks.subject import Subject
from hfbench.models.problem import listed, quoted
from hfbench.text import nearest


@rule("HB210", "no-model-type")
def no_model_type(subject: Subject) -> Iterator[Found]:
    """config.json has no model_type.

    Why: transformers and vLLM choose the configuration class by it and refuse the model.
    Remedy: add the model_type of the family.
    """
    if not subject.configured or subject.raw.get("model_type") is not None or subject.raw.get("speculators_config"):
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
    names = [each for each in subject.config.architectures if each]
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
    base = base_model(subject.config.model_type)
    for each in subject.config.architectures[:1]:
        other = type_of_architecture(each)
        if base and other and base_model(other) != base and not subject.remote_code:
            message = f"{quoted(each)} is a class of {other}, the model_type is {subject.config.model_type}"
            yield Found(message=message, file="config.json", evidence={"type_of_class": other})


@rule("HB700", "remote-code", severity="warning")
def remote_code(subject: Subject) -> Iterator[Found]:
    """The model needs Python code of its own repository.

    Why: loading it with trust_remote_code runs those files with your rights; without it the model is refused.
    Remedy: read the files, then pin the revision and allow them.
    """
    for role, classes in subject.remote_code.items():
        files = code_files(classes)
        needed = _needed(subject, role)
        where = "tokenizer_config.json" if role == "AutoTokenizer" and role not in _roles(subject) else "config.json"
        others = sorted({each.repo for each in files if each.repo})
        source = f"; the code comes from {listed(others)}" if others else ""
        verb = "needs trust_remote_code, which would run" if needed else "names code that is not needed:"
        if needed and vllm_only_type(subject.config.model_type):
            verb = "needs trust_remote_code in transformers (vLLM has a class of its own), which would run"
        yield Found(
            message=f"{role} {verb} {listed(each.file for each in files)}{source}",
            file=where,
            evidence={"role": role, "files": [each.file for each in files], "repositories": others, "needed": needed},
            severity=None if needed else "info",
        )


@rule("HB701", "remote-code-missing")
def remote_code_missing(subject: Subject) -> Iterator[Found]:
    """auto_map names a Python file that the folder does not hold.

    Why: the class cannot be loaded even with trust_remote_code.
    Remedy: fetch the file from the model's page.
    """
    for role, classes in subject.remote_code.items():
        gone = [each.file for each in code_files(classes) if not each.repo and not subject.has(each.file)]
        if gone:
            needed = role == "AutoConfig" and _needed(subject, role)
            yield Found(
                message=f"auto_map wants {listed(gone)} for {role}, which is not there",
                file=gone[0],
                evidence={"role": role, "files": gone},
                severity=None if needed else "warning" if _needed(subject, role) else "info",
            )


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
