"""The other Pythons of the configuration: whether they answer, and what they can run."""

from __future__ import annotations

from hfbench.doctor.check import Outcome, check, error, ok, saw, some, unknown, warning
from hfbench.doctor.pythons import Interpreter
from hfbench.doctor.system import System

LIMIT = 90.0
"""Seconds: one that hangs is given its own limit, all are asked at once."""


@check("environments.answer", "environments answer", limit=LIMIT)
def answer(system: System) -> Outcome:
    """A Python that hangs or cannot import its torch is found here and not in a job."""
    others = system.pythons[1:]
    silent = [each for each in others if not each.told.answered]
    partly = [each for each in others if each.told.answered and each.told.trouble]
    seen = [saw(_words(each), f"[environments.{each.name}] {' '.join(each.command)}") for each in others]
    if silent:
        return error(
            f"{some(each.name for each in silent)}: {silent[0].told.trouble or 'no answer'}",
            *seen,
            remedy="mend its path in the configuration, or its installation: hfbench config path tells where it is",
        )
    if partly:
        remedy = "run `python -c 'import torch'` there and mend what it says"
        return warning(f"{some(each.name for each in partly)}: {partly[0].told.trouble}", *seen, remedy=remedy)
    return ok(f"all {len(others)} answer" if others else "none is declared", *seen)


@check("environments.here", "this Python", limit=LIMIT)
def here(system: System) -> Outcome:
    """What actions run in unless they are told otherwise."""
    python = system.pythons[0]
    seen = saw(_words(python), " ".join(python.command))
    if not python.told.answered:
        return unknown(python.told.trouble or "no answer", seen)
    if python.told.trouble:
        return error(python.told.trouble, seen, remedy="install it again: pip install --force-reinstall torch")
    return ok(_words(python), seen)


@check("environments.old", "versions of Python", limit=LIMIT)
def old(system: System) -> Outcome:
    """hfbench's worker is written for Python 3.11 and later."""
    ancient = [each for each in system.pythons if each.told.old]
    seen = [saw(f"Python {each.told.python}", each.name) for each in system.pythons if each.told.answered]
    if ancient:
        return warning(
            f"{some(f'{each.name} has {each.told.python}' for each in ancient)}",
            *seen,
            remedy="actions need 3.11 or later: make the environment with a newer Python",
        )
    return ok("new enough", *seen)


def _words(python: Interpreter) -> str:
    """`Python 3.11.9, torch 2.9.0, vllm 0.11`."""
    if not python.told.answered:
        return python.told.trouble or "no answer"
    known = (
        "torch",
        "transformers",
        "tensorrt-llm",
        "tensorrt",
        "vllm",
        "sglang",
        "triton",
        "megatron-core",
        "onnxruntime",
        "openvino",
    )
    told = [f"{name} {python.told.versions[name]}" for name in known if name in python.told.versions]
    return ", ".join([f"Python {python.told.python}", *told])
