"""Long lists in pages: the next one is a link on the hub's public address."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from hfbench.registry.errors import BadRequest

if TYPE_CHECKING:
    from hfbench.registry.call import Call

LARGEST = 2**63


def next_link(call: Call, cursor: str) -> dict[str, str]:
    """The header that leads to what comes after the cursor."""
    query = [(name, value) for name, value in call.request.query_params.multi_items() if name != "cursor"]
    path = (call.request.scope.get("raw_path") or b"").decode("latin-1").partition("?")[0]
    return {"Link": f'<{call.url(path)}?{urlencode([*query, ("cursor", cursor)])}>; rel="next"'}


def number_in(query: Mapping[str, str], name: str, usual: int, most: int) -> int:
    """A number of the query from 1 to `most`; the usual one where none is given."""
    text = query.get(name, "")
    if not text:
        return usual
    if not text.isascii() or not text.isdecimal() or len(text) > 9 or not int(text):
        raise BadRequest(f"{name} is no number of results.")
    return min(int(text), most)


def to_cursor(values: list[int | float]) -> str:
    """The place in a sorted list as one word."""
    return base64.urlsafe_b64encode(json.dumps(values).encode()).decode().rstrip("=")


def from_cursor(text: str, length: int) -> list[int | float]:
    """The numbers a cursor stands for; BadRequest when it is none of ours."""
    try:
        values = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except (ValueError, RecursionError) as error:
        raise BadRequest("The cursor is not one of this hub.") from error
    if not isinstance(values, list) or [_is_number(value) for value in values] != [True] * length:
        raise BadRequest("The cursor is not one of this hub.")
    return list(values)


def _is_number(value: object) -> bool:
    """Whether a database compares with it: finite, and no larger than a column holds."""
    return type(value) in (int, float) and -LARGEST < value < LARGEST  # type: ignore[operator]
