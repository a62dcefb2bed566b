"""Writes scripts: the one place that decides how values, steps and whole files are spelled."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from hfbench.actions.base import Spec
from hfbench.scripts.parse import VERSION
from hfbench.scripts.scalars import OutOfRange, plain_value
from hfbench.scripts.templates import escape, plain_text
from hfbench.scripts.tree import Plain, Value
from hfbench.text import printable

WIDTH = 100
"""Characters of a step on one line; a longer one takes a line for each argument."""

_PLAIN = re.compile(r"[A-Za-z0-9_/.~][A-Za-z0-9_/.~+@-]*(?: [A-Za-z0-9_/.~+@-]+)*")
_NON_CHARACTERS = "\ufffe\uffff"


def arguments_of(spec: Spec, request: object) -> dict[str, Value]:
    """The arguments that make the request again: no defaults and no secrets, texts escaped for `{{`."""
    values = spec.values(request)
    return {
        param.name: _escaped(values[param.name])
        for param in spec.params
        if not param.secret and (param.required or values[param.name] != param.plain(param.default))
    }


def step_text(action: str, arguments: Mapping[str, Value]) -> str:
    """One step as an item of `steps`, without indentation and without a line end."""
    pairs = [f"{name}: {value_text(value)}" for name, value in arguments.items()]
    line = f"- {action}: {{{', '.join(pairs)}}}"
    return line if len(line) <= WIDTH else "\n".join([f"- {action}:", *(f"    {pair}" for pair in pairs)])


def script_text(
    name: str,
    variables: Mapping[str, Value],
    steps: Sequence[tuple[str, Mapping[str, Value]]],
    *,
    matrix: Mapping[str, Sequence[Plain]] | None = None,
    on_fail: str = "",
) -> str:
    """A whole script; equal arguments give equal bytes. `on_fail` is for every step; empty leaves it as it is usual."""
    lines = [f"hfbench: {VERSION}", f"name: {value_text(name)}"]
    if variables:
        lines += ["vars:", *(f"  {key}: {value_text(value)}" for key, value in variables.items())]
    if matrix:
        lines += ["matrix:", *(f"  {axis}: {value_text(list(values))}" for axis, values in matrix.items())]
    lines.append("steps:" if steps else "steps: []")
    for action, arguments in steps:
        lines += [f"  {line}" for line in step_text(action, arguments).split("\n")]
        lines += [f"    on_fail: {on_fail}"] if on_fail else []
    return "\n".join(lines) + "\n"


def value_text(value: Value) -> str:
    """A value as YAML that reads back the same: plain where that is safe, in double quotes otherwise."""
    if isinstance(value, list):
        return f"[{', '.join(map(_scalar_text, value))}]"
    return _scalar_text(value)


def _scalar_text(value: Plain) -> str:
    if value is None:
        return "null"
    return _string_text(value) if isinstance(value, str) else plain_text(value)


def _string_text(text: str) -> str:
    try:
        if _PLAIN.fullmatch(text) and isinstance(plain_value(text), str):
            return text
    except OutOfRange:
        pass  # digits only: quotes make it text
    return f'"{"".join(map(_character, text))}"'


def _character(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    if printable(character) == character and character not in _NON_CHARACTERS:
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _escaped(value: Any) -> Value:
    if isinstance(value, list):
        return [escape(item) if isinstance(item, str) else item for item in value]
    plain: Plain = escape(value) if isinstance(value, str) else value
    return plain
