"""The texts of a model's chat templates, and where each stands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hfbench.models.files import describe_file, read_bytes
from hfbench.models.problem import ModelError

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


def template_texts(
    folder: Path, tokenizer_config: Mapping[str, Any], json: Callable[[str], dict[str, Any]]
) -> tuple[Template, ...]:
    """Every template of a folder, those of tokenizer_config.json first; unreadable files are left to other rules."""
    found = [*_of(tokenizer_config.get("chat_template"), "tokenizer_config.json")]
    found += _of(json("chat_template.json").get("chat_template"), "chat_template.json")
    found += _of(json("processor_config.json").get("chat_template"), "processor_config.json")
    files = [("default", "chat_template.jinja")]
    if (folder / MORE).is_dir() and not (folder / MORE).is_symlink():
        files += [(path.stem, f"{MORE}/{path.name}") for path in sorted((folder / MORE).glob("*.jinja"))]
    for name, source in files[:MOST]:
        if describe_file(folder / source, folder).code == "missing":
            continue
        try:
            text = read_bytes(folder / source, LONGEST, folder).decode("utf-8", "replace")
        except ModelError:
            continue
        found.append(Template(name, source, text))
    return tuple(found[:MOST])


def _of(value: object, source: str) -> list[Template]:
    if isinstance(value, str):
        return [Template("default", source, value[:LONGEST])]
    if isinstance(value, dict):
        value = [{"name": name, "template": text} for name, text in value.items()]
    return [
        Template(str(entry.get("name")), source, entry["template"][:LONGEST])
        for entry in (value if isinstance(value, list) else [])
        if isinstance(entry, dict) and isinstance(entry.get("template"), str)
    ]
