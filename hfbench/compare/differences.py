"""In what two measurements are not alike, before a figure is compared: model, settings, hardware, software, machine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from hfbench.compare.jobs import led_to
from hfbench.compare.metrics import number
from hfbench.compare.result import Difference
from hfbench.compare.subject import Measured
from hfbench.models.identity import names_a_commit
from hfbench.models.reference import DEMO
from hfbench.text import printable
from hfbench.units import show_bytes

ENDING = {"ci", "budget", "max_iterations", "warmup", "seed"}
"""Settings that say when a measurement ends, and not what is measured."""
RESOLVED = ("device", "device_name", "dtype", "threads")
"""What a result tells of settings that were left to `auto`."""
OF_A_RUN = {"SLURM_JOB_ID"}
"""Variables that differ between any two runs."""
LONGEST = 120


def differences(a: Measured, b: Measured) -> tuple[Difference, ...]:
    """Everything in which the two differ, the weightiest first."""
    found = [*_settings(a, b), *_hardware(a.environment, b.environment), *_software(a.environment, b.environment)]
    if a.on != b.on:
        found.append(_difference("machine", "executor", a.on or "local", b.on or "local"))
    return tuple(sorted(found, key=lambda each: ORDER.index(each.about)))


def environment_differences(a: Mapping[str, Any], b: Mapping[str, Any]) -> tuple[Difference, ...]:
    """The same for two environments alone."""
    found = [*_hardware(a, b), *_software(a, b)]
    return tuple(sorted(found, key=lambda each: ORDER.index(each.about)))


def common(found: Iterable[tuple[Difference, ...]]) -> tuple[Difference, ...]:
    """Each difference of several pairs once, in the order they came."""
    return tuple(dict.fromkeys(each for several in found for each in several))


def same_model(a: Measured, b: Measured) -> bool:
    """Whether two runs were of one model, however each was asked for it.

    What references led to decides where it can be compared: a commit anywhere, a folder on one host.
    """
    one, other = _led_to(a), _led_to(b)
    if one and one == other:
        return True
    asked = a.params.get("model")
    if asked != b.params.get("model"):
        return False
    commits = names_a_commit(one) and names_a_commit(other)
    one_host = asked != DEMO and a.environment.get("host") == b.environment.get("host")
    return not (one and other and (commits or one_host))


def _led_to(measured: Measured) -> str:
    """What the model of a run led to; runs that an older hfbench kept tell it in their results alone."""
    return measured.led_to or led_to({}, measured.result)


def _models(a: Measured, b: Measured) -> tuple[object, object]:
    """What to call two models that differ: as they were asked for, unless that is the same."""
    one, other = a.params.get("model"), b.params.get("model")
    return (_led_to(a), _led_to(b)) if one == other else (one, other)


ORDER = ("model", "setting", "hardware", "software", "machine")


def _settings(a: Measured, b: Measured) -> Iterator[Difference]:
    axes = {*a.values, *b.values}
    given = {*a.params, *b.params} - axes
    if "model" not in axes and not same_model(a, b):
        yield _difference("model", "model", *_models(a, b))
    given -= {"model"}
    for name in sorted(given, key=lambda each: (each != "kernel", each in ENDING, each)):
        one, other = a.params.get(name), b.params.get(name)
        if one != other:
            yield _difference("model" if name == "kernel" else "setting", name, one, other)
    for name in RESOLVED:
        one, other = ((each.result or {}).get(name) for each in (a, b))
        if one != other and None not in (one, other) and name not in axes and a.params.get(name) == b.params.get(name):
            yield _difference("setting", f"{name} as it was", one, other)


def _hardware(a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[Difference]:
    if not a or not b:
        if a or b:
            yield _difference("machine", "environment", "known" if a else "not kept", "known" if b else "not kept")
        return
    for name in ("host", "machine", "cpu", "cores", "memory_bytes"):
        about = "machine" if name == "host" else "hardware"
        yield from _one(about, name.removesuffix("_bytes"), *(_told(name, each.get(name)) for each in (a, b)))
    yield from _one("hardware", "GPUs", *(_cards(each) for each in (a, b)))


def _software(a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[Difference]:
    if not a or not b:
        return
    yield from _one("software", "driver", *(str(_object(each, "gpus").get("driver") or "") for each in (a, b)))
    for name in ("system", "kernel", "python"):
        yield from _one("software", name, str(a.get(name, "")), str(b.get(name, "")))
    for part in ("versions", "variables"):
        one, other = _object(a, part), _object(b, part)
        for name in sorted({*one, *other} - OF_A_RUN):
            yield from _one("software", name, str(one.get(name, "")), str(other.get(name, "")))
    yield from _one("software", "hfbench's commit", *(_commit(each) for each in (a, b)))


def _one(about: str, name: str, a: str, b: str) -> Iterator[Difference]:
    if a != b:
        yield _difference(about, name, a, b)


def _difference(about: str, name: str, a: object, b: object) -> Difference:
    return Difference(about=about, name=name, a=_text(a), b=_text(b))


def _text(value: object) -> str:
    shown = "" if value is None else printable(str(value))
    return shown if len(shown) <= LONGEST else shown[: LONGEST - 3] + "..."


def _told(name: str, value: object) -> str:
    size = number(value) if name == "memory_bytes" else None
    return str(value or "") if size is None else show_bytes(size)


def _object(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    told = data.get(name)
    return told if isinstance(told, Mapping) else {}


def _cards(environment: Mapping[str, Any]) -> str:
    cards = _object(environment, "gpus").get("devices")
    names = (
        [str(each.get("name", "?")) for each in cards if isinstance(each, Mapping)] if isinstance(cards, list) else []
    )
    return ", ".join(
        f"{names.count(each)} x {each}" if names.count(each) > 1 else each for each in dict.fromkeys(names)
    )


def _commit(environment: Mapping[str, Any]) -> str:
    git = _object(environment, "git")
    return f"{str(git.get('commit', ''))[:12]}{' with changes' if git.get('dirty') else ''}" if git else ""
