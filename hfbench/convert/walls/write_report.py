"""The report of a proof as files of the job: JSON for programs, Markdown for colleagues."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from hfbench.codec import encode
from hfbench.convert.walls.report import command_of, markdown
from hfbench.convert.walls.verify import Proof
from hfbench.jobs.fingerprint import fingerprint
from hfbench.jobs.run import Run


def write_reports(proof: Proof, fields: Mapping[str, Any], run: Run) -> tuple[str, ...]:
    """Write both and announce them; their paths. A run that no job holds writes none."""
    if run.directory is None:
        return ()
    command, environment = command_of(fields), encode(fingerprint())
    data = {
        "verdict": proof.verdict,
        "command": command,
        "environment": environment,
        "proof": encode(proof),
    }
    page, table = run.artifacts / "verify.md", run.artifacts / "verify.json"
    table.write_text(json.dumps(data, indent=1, ensure_ascii=False), encoding="utf-8")
    page.write_text(markdown(proof, command, flat(environment)), encoding="utf-8")
    run.artifact(page, "what was compared and what was found, to read")
    run.artifact(table, "the same as data")
    return str(page), str(table)


def flat(environment: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """The values of nested tables under names joined by blanks, without those that are empty."""
    found: dict[str, str] = {}
    for name, value in environment.items():
        if isinstance(value, Mapping):
            found |= flat(value, f"{prefix}{name} ")
        elif value not in (None, "", []):
            found[f"{prefix}{name}".replace("_", " ")] = (
                ", ".join(map(str, value)) if isinstance(value, list) else str(value)
            )
    return found
