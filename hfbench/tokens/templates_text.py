"""The texts of a model's chat templates, and where each stands."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hfbench.errors import UsageError
from hfbench.models.files import describe_file, read_bytes
from hfbench.models.json_text import JsonError, read_object
from hfbench.models.problem import ModelError, listed, quoted
from hfbench.text import did_you_mean

LONGEST = 2**20
"""Bytes of one template; the longest seen in the wild has 20 kB."""

MOST = 32
"""Templates looked at."""

MORE = "additional_chat_templates"
"""The folder in which transformers 5 keeps named templates."""


@dataclass(frozen=True, slots=True)
class Template:
    """One chat template."""

    name: str
    source: str
    text: str
    too_long: bool = False
    """True where it is longer than anything that is tried; `text` is then empty."""


def template_texts(
    folder: Path, tokenizer_config: Mapping[str, Any], json: Callable[[str], dict[str, Any]]
) -> tuple[Template, ...]:
    """Every template of a folder, those of tokenizer_config.json first; unreadable files are left to other rules."""
    found = [*_of(tokenizer_config.get("chat_template"), "tokenizer_config.json")]
    found += _of(json("chat_template.json").get("chat_template"), "chat_template.json")
    found += _of(json("processor_config.json").get("chat_template"), "processor_config.json")
    files = [("default", "chat_template.jinja")]
    if os.path.isdir(folder / MORE) and not os.path.islink(folder / MORE):
        files += [(path.stem, f"{MORE}/{path.name}") for path in sorted((folder / MORE).glob("*.jinja"))]
    for name, source in files[:MOST]:
        if describe_file(folder / source, folder).code == "missing":
            continue
        try:
            text = read_bytes(folder / source, LONGEST, folder).decode("utf-8", "replace")
        except ModelError as error:
            if error.code == "too_large":
                found.append(Template(name, source, "", too_long=True))
            continue
        found.append(Template(name, source, text))
    return tuple(found[:MOST])


def templates_of(folder: Path) -> tuple[Template, ...]:
    """Every template of a folder, the one that counts first where several have one name.

    As in transformers 5, files of their own come before what tokenizer_config.json holds.
    """

    def json(name: str) -> dict[str, Any]:
        try:
            return read_object(folder / name, folder).value
        except JsonError:
            return {}

    found = template_texts(folder, json("tokenizer_config.json"), json)
    return tuple(sorted(found, key=lambda each: not each.source.endswith(".jinja")))


def chosen(templates: Sequence[Template], name: str | None, *, tools: bool, where: object = "") -> Template:
    """The template of that name; without a name as transformers chooses: `tool_use` for tools, else `default`.

    UsageError names what there is when there is no such template, ModelError says that there is none at all.
    """
    by_name = {each.name: each for each in reversed(templates)}
    if not by_name:
        remedy = "a base model needs none; an instruct model has one"
        raise ModelError("no_chat_template", "there is no chat template", where=where, remedy=remedy)
    wished = [name] if name is not None else ["tool_use", "default"] if tools else ["default"]
    for each in wished:
        if each in by_name:
            return by_name[each]
    known = f"there are {listed(by_name)}"
    if name is None:
        raise UsageError("no template is named default", where=where, remedy=f"name one: {known}")
    near = did_you_mean(name, by_name) or known
    raise UsageError(f"there is no template {quoted(name)}", where=where, remedy=near)


def _of(value: object, source: str) -> list[Template]:
    if isinstance(value, str):
        return [_made("default", source, value)]
    if isinstance(value, dict):
        value = [{"name": name, "template": text} for name, text in value.items()]
    return [
        _made(str(entry.get("name")), source, entry["template"])
        for entry in (value if isinstance(value, list) else [])
        if isinstance(entry, dict) and isinstance(entry.get("template"), str)
    ]


def _made(name: str, source: str, text: str) -> Template:
    return Template(name, source, "" if len(text) > LONGEST else text, too_long=len(text) > LONGEST)
