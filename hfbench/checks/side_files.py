"""JSON files that no reader of the models room opens, but that runtimes do."""

from __future__ import annotations

from collections.abc import Container
from pathlib import Path

from hfbench.models.json_text import JsonError, parse_object, parse_small, read_object
from hfbench.models.problem import Problem, Severity

SIDE_FILES = {
    "added_tokens.json": "tokenizer_json",
    **dict.fromkeys(
        (
            "adapter_config.json",
            "chat_template.json",
            "generation_config.json",
            "preprocessor_config.json",
            "processor_config.json",
            "tekken.json",
            "video_preprocessor_config.json",
            "vocab.json",
        ),
        "side_json",
    ),
}
"""Files that only some runtimes read, and the code of the problem when one is no JSON object."""

LONG = ("tekken.json", "vocab.json")
"""Those that hold a vocabulary."""


def side_problems(folder: Path, present: Container[str]) -> list[Problem]:
    """Why those that are there are no JSON objects: a warning, or an error where the tokenizer fails on it."""
    found = []
    for name, kind in SIDE_FILES.items():
        if name in present:
            try:
                read_object(folder / name, folder, parse=parse_object if name in LONG else parse_small)
            except JsonError as error:
                code = error.code if error.fault in ("lfs_pointer", "file") else kind
                severity: Severity = "warning" if code == "side_json" else "error"
                found.append(error.problem(where=name, severity=severity, code=code))
    return found
