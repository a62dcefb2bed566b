"""The fields of an action's form that a model in view fills in."""

from __future__ import annotations

import re

from hfbench.actions.base import Spec
from hfbench.errors import UsageError
from hfbench.models.reference import DEFAULT_REVISION, HubReference, hub_reference

PUSH = "push"
_COMMIT = re.compile(r"[0-9a-f]{7,40}")


def values_for(spec: Spec, model: str, folder: str) -> dict[str, object]:
    """What `model`, a reference, and `folder`, where its files are, fill in; either is empty where nobody knows."""
    if spec.name == PUSH:
        return push_values(model, folder)
    wanted = next((param.name for param in spec.params if "model" in (param.name, param.kind)), "")
    return {wanted: model} if model and wanted else {}


def push_values(model: str, folder: str) -> dict[str, object]:
    """The model's folder, and where it goes: the hub it came from, nothing for one that is only here."""
    target = "" if model == folder else _target(model)
    return {name: text for name, text in (("folder", folder or ("" if target else model)), ("model", target)) if text}


def _target(model: str) -> str:
    """`[ENDPOINT:]org/name[@branch]` of a reference to a hub, empty for any other; nobody pushes to a commit."""
    try:
        named = hub_reference(model)
    except UsageError:
        return ""
    if named is None or "/" not in named.repo:
        return ""
    branch = DEFAULT_REVISION if _COMMIT.fullmatch(named.revision) else named.revision
    return str(HubReference(named.endpoint, named.repo, branch))
