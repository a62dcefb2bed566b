"""What a rule found, as a plain record; light to import, for declarations of actions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from hfbench.models.problem import Severity

Verdict = Literal["ok", "warn", "refuse"]

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")
"""From the severest to the mildest."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing found by one rule. Text is safe to paint; `evidence` is plain data."""

    id: str
    name: str
    severity: Severity
    file: str
    message: str
    evidence: Mapping[str, Any] = field(default_factory=dict)
    remedy: str = ""


def verdict_of(severities: set[Severity]) -> Verdict:
    """`refuse` when there is an error, `warn` when there is a warning, else `ok`."""
    return "refuse" if "error" in severities else "warn" if "warning" in severities else "ok"
