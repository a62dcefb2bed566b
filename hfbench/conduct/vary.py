"""Fields of an action that vary, as a script's matrix: `batch=1,2,4`, `batch=1..64*2` or `prompt=128..512+128`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from hfbench.actions.base import Spec
from hfbench.actions.params import Param, Problem
from hfbench.errors import UsageError
from hfbench.scripts.expand import MAX_CELLS
from hfbench.scripts.format import arguments_of, script_text
from hfbench.scripts.templates import escape
from hfbench.scripts.tree import Plain, Value
from hfbench.sweeps.vary import values_of as listed
from hfbench.text import did_you_mean, shell_line

FORMS = "write FIELD=V,V or FIELD=FIRST..LAST+STEP or FIELD=FIRST..LAST*FACTOR"


def read_vary(spec: Spec, words: Sequence[str]) -> dict[str, tuple[Plain, ...]]:
    """The values of every field that varies; UsageError names what is wrong with one."""
    params = {param.name: param for param in spec.params}
    found: dict[str, tuple[Plain, ...]] = {}
    for word in words:
        name, equals, text = word.partition("=")
        name = name.strip().lstrip("-").replace("-", "_")
        if not equals:
            raise UsageError(f"{word!r} gives no values", where="--vary", remedy=FORMS)
        if name not in params:
            hint = did_you_mean(name, params) or f"fields: {', '.join(params)}"
            raise UsageError(f"{spec.name} has no field {name!r}", where="--vary", remedy=hint)
        if name in found:
            raise UsageError(f"{name} was given twice", where="--vary", remedy="give all its values at once")
        found[name] = values_of(params[name], text)
    if (count := math.prod(map(len, found.values()))) > MAX_CELLS:
        remedy = "leave values out, or make several sweeps of it"
        raise UsageError(f"that makes {count:,} cells; a sweep may have {MAX_CELLS:,}", where="--vary", remedy=remedy)
    return found


def values_of(param: Param, text: str) -> tuple[Plain, ...]:
    """The values of a list `1,2,4` or a range `1..64*2`, `128..512+128`, each checked; UsageError for anything else.

    Forms read them in the same way: `sweeps/vary.py` does it for both.
    """
    try:
        return tuple(_plain(param, value) for value in listed(param, text))
    except Problem as problem:
        raise UsageError(str(problem), where="--vary", remedy=FORMS) from None
    except UsageError as error:
        raise UsageError(f"{param.name} {error.found}", where="--vary", remedy=FORMS) from None


def sweep_script(
    spec: Spec,
    name: str,
    fixed: Mapping[str, Any],
    varied: Mapping[str, Sequence[Plain]],
    *,
    timeout: str = "",
    runs_in: str = "",
    on: Sequence[str] = (),
) -> str:
    """The script of one action whose fields vary; InvalidParams when fixed ones, or the first of each, are wrong.

    A script names one place for a step: of several, over which only a sweep deals out its cells, a comment tells.
    """
    arguments, matrix = swept_step(spec, fixed, varied, timeout=timeout, runs_in=runs_in, on=on)
    text = script_text(name, {}, [(spec.name, arguments)], matrix=matrix, on_fail="continue")
    if len(on) < 2:
        return text
    words = ["hfbench", "sweep", "run", "FILE", *(word for each in on for word in ("--on", each))]
    return f"# over several places: {shell_line(words)}\n{text}"


def swept_step(
    spec: Spec,
    fixed: Mapping[str, Any],
    varied: Mapping[str, Sequence[Plain]],
    *,
    timeout: str = "",
    runs_in: str = "",
    on: Sequence[str] = (),
) -> tuple[dict[str, Value], dict[str, list[Plain]]]:
    """The step of such a script, by the arguments of its action, and the matrix; InvalidParams as above."""
    if secret := [param.name for param in spec.params if param.secret and fixed.get(param.name)]:
        remedy = "give it by the environment or the configuration"
        raise UsageError(
            f"{secret[0]} is secret, and secrets are not written into scripts", where=spec.name, remedy=remedy
        )
    request = spec.build({**fixed, **{field: values[0] for field, values in varied.items()}})
    arguments: dict[str, Value] = {
        field: value for field, value in arguments_of(spec, request).items() if field not in varied
    }
    arguments |= {field: f"{{{{ {field} }}}}" for field in varied}
    if timeout:
        arguments["timeout"] = timeout
    if runs_in:
        arguments["in"] = escape(runs_in)
    if len(on) == 1 and on[0] != "local":
        arguments["on"] = escape(on[0])
    return arguments, {field: [escape(v) if isinstance(v, str) else v for v in all] for field, all in varied.items()}


def _plain(param: Param, value: Any) -> Plain:
    """One value as a script writes it."""
    plain = param.plain(value)
    single: Plain = plain[0] if isinstance(plain, list) and len(plain) == 1 else plain
    return single
