"""The template that a model's own metadata names: `trtllm_config` in config.json or in the head of its card."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hfbench.engines.trtllm.flags import NAMED_ELSEWHERE
from hfbench.engines.trtllm.template import NAME
from hfbench.errors import UsageError
from hfbench.models.files import read_text
from hfbench.models.problem import ModelError, quoted
from hfbench.models.resolution.subject import Subject

KEY = "trtllm_config"
CARD = "README.md"
LARGEST_CARD = 2 * 2**20
LARGEST_FRONT = 2**18
"""Bytes of a model card, and characters of its front matter, that are read."""
MOST_SETTINGS = 100

_FRONT = re.compile(r"\A---[ \t]*\r?\n(.*?)^---[ \t]*$", re.DOTALL | re.MULTILINE)
FORBIDDEN = {"script", "examples", "model_cls_file", "model_cls_name", "model_config", "checkpoint_dir"}
"""What would run or read other files than the model's: a download never decides that."""


@dataclass(frozen=True, kw_only=True)
class Named:
    """What a model says of its plan. `source` is the file with the key; empty when it says nothing."""

    template: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    source: str = ""


def read_metadata(subject: Subject) -> Named:
    """The model's own wish, config.json before the card; UsageError where it is written in another form.

    A text names a template; a table may hold `template` and `build`, a table of flags.
    """
    told = (subject.config or {}).get(KEY)
    source = "config.json"
    if told is None:
        told, source = _of_card(subject), CARD
    if told is None:
        return Named()
    where = f"{source}: {KEY}"
    if isinstance(told, str):
        return Named(template=_name(told, where), source=where)
    if not isinstance(told, dict):
        raise UsageError("is neither the name of a template nor a table", where=where)
    if unknown := next((key for key in told if key not in ("template", "build")), None):
        raise UsageError(f"has an unknown key {quoted(str(unknown))}", where=where, remedy="known: template, build")
    template = told.get("template", "")
    return Named(template=_name(template, where) if template else "", settings=_settings(told, where), source=where)


def _name(told: object, where: str) -> str:
    if not isinstance(told, str) or not NAME.fullmatch(told):
        remedy = "a path is only taken from --template"
        raise UsageError(f"{quoted(str(told)[:100])} is no name of a template", where=where, remedy=remedy)
    return told


def _settings(told: Mapping[str, Any], where: str) -> dict[str, str]:
    build = told.get("build", {})
    if not isinstance(build, dict) or len(build) > MOST_SETTINGS:
        raise UsageError("build is no table of flags", where=where)
    settings: dict[str, str] = {}
    for key, value in build.items():
        name = str(key).removeprefix("--").replace("-", "_")
        if name in FORBIDDEN or name in NAMED_ELSEWHERE or name.endswith(("_dir", "_cache")):
            raise UsageError(f"a model may not set {quoted(name)}", where=where, remedy="give it with --set yourself")
        if not isinstance(value, (str, int, float)):
            raise UsageError(f"{quoted(name)} is no text, number or switch", where=where)
        settings[name] = str(value).lower() if isinstance(value, bool) else str(value)
    return settings


def _of_card(subject: Subject) -> object:
    """The key in the YAML front matter of the model card; None for none and for a card that cannot be read."""
    if CARD not in subject.by_name:
        return None
    try:
        text = read_text(subject.folder / CARD, LARGEST_CARD, subject.folder)
    except ModelError:
        return None
    match = _FRONT.match(text[:LARGEST_FRONT])
    if match is None or KEY not in match[1]:
        return None
    import yaml

    try:
        front = yaml.load(match[1], Loader=_plain_loader())
    except (yaml.YAMLError, RecursionError, ValueError):
        raise UsageError("the front matter is not YAML", where=CARD, remedy=f"mend it, or remove {KEY}") from None
    return front.get(KEY) if isinstance(front, dict) else None


def _plain_loader() -> type:
    import yaml

    class Plain(yaml.SafeLoader):
        """YAML without anchors: a few lines of them grow to gigabytes."""

        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                raise yaml.YAMLError("aliases are not read")
            return super().compose_node(parent, index)

    return Plain
