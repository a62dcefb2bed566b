"""Findings as SARIF 2.1.0, which code hosts and editors read."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import hfbench
from hfbench.checks.base import rules
from hfbench.checks.finding import Finding

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"

_LEVELS = {"error": "error", "warning": "warning", "info": "note"}


def sarif(model: str, findings: Iterable[Finding]) -> dict[str, Any]:
    """One run over one model; every rule that found something is described."""
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
                "results": [_result(model, each) for each in found],
            }
        ],
    }


def sarif_text(model: str, findings: Iterable[Finding]) -> str:
    """The same as JSON text on several lines, in ASCII."""
    return json.dumps(sarif(model, findings), indent=1, ensure_ascii=True)


def _result(model: str, finding: Finding) -> dict[str, Any]:
    text = f"{finding.message}. {finding.remedy}" if finding.remedy else finding.message
    return {
        "ruleId": finding.id,
        "level": _LEVELS[finding.severity],
        "message": {"text": text},
        "locations": [{"physicalLocation": {"artifactLocation": {"uri": _uri(model, finding.file)}}}],
        "properties": {"evidence": dict(finding.evidence)},
    }


def _uri(model: str, file: str) -> str:
    from urllib.parse import quote  # only this front end wants it

    return quote(file or model, safe="/.-_~ ").replace(" ", "%20")
