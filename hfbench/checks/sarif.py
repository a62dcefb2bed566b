"""Findings as SARIF 2.1.0, which code hosts and editors read."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Any

import hfbench
from hfbench.checks.base import rules
from hfbench.checks.finding import Finding
from hfbench.errors import begun

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"

BASE = "MODEL"
"""The name under which every place refers to the model's folder."""

_LEVELS = {"error": "error", "warning": "warning", "info": "note"}


def sarif(folder: str, findings: Iterable[Finding]) -> dict[str, Any]:
    """One run over the model in a folder; every rule that found something is described.

    Files are named relative to the folder, which is the base `MODEL`.
    """
    found = list(findings)
    known = rules()
    used = list(dict.fromkeys(each.id for each in found))
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "hfbench",
                        "version": hfbench.__version__,
                        "rules": [
                            {
                                "id": rule.id,
                                "name": rule.name,
                                "shortDescription": {"text": rule.summary},
                                "fullDescription": {"text": rule.why},
                                "help": {"text": rule.remedy},
                                "defaultConfiguration": {"level": _LEVELS[rule.severity]},
                            }
                            for rule in (known[id] for id in used if id in known)
                        ],
                    }
                },
                "originalUriBaseIds": {BASE: {"uri": _base(folder)}},
                "results": [_result(each) for each in found],
            }
        ],
    }


def sarif_text(folder: str, findings: Iterable[Finding]) -> str:
    """The same as JSON text on several lines, in ASCII."""
    return json.dumps(sarif(folder, findings), indent=1, ensure_ascii=True)


def _result(finding: Finding) -> dict[str, Any]:
    sentences = (finding.message, finding.remedy)
    text = " ".join(f"{begun(each.rstrip('.'))}." for each in sentences if each)
    place = {"uri": _uri(finding.file or "."), "uriBaseId": BASE}
    return {
        "ruleId": finding.id,
        "level": _LEVELS[finding.severity],
        "message": {"text": text},
        "locations": [{"physicalLocation": {"artifactLocation": place}}],
        "properties": {"evidence": dict(finding.evidence)},
    }


def _base(folder: str) -> str:
    """The folder as an absolute URI; it ends with a slash, as a base has to."""
    return f"file://{_uri(os.path.abspath(folder)).rstrip('/')}/"


def _uri(path: str) -> str:
    from urllib.parse import quote  # only this front end wants it

    return quote(path, safe="/.-_~")
