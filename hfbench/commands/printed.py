"""A result on stdout: one JSON object, or lines for people."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from hfbench.actions.base import Spec
from hfbench.actions.render import result_lines
from hfbench.actions.results import exit_of


def print_result(spec: Spec, data: Mapping[str, Any], as_json: bool) -> int:
    """Print a result; its exit code."""
    print(json.dumps(data, ensure_ascii=True) if as_json else "\n".join(result_lines(spec, data)))
    return exit_of(data)
