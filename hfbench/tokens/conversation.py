"""Messages and tools for a chat template: samples, and those a user gives in a file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hfbench.errors import UsageError

Message = Mapping[str, Any]

MOST_BYTES = 16 * 2**20
"""Bytes of a file with messages or tools."""

ROLES = ("system", "user", "assistant", "tool")
"""What templates commonly know; any other word is handed to the template too."""

SAMPLE_MESSAGES: tuple[dict[str, Any], ...] = (
    {"role": "user", "content": "What is the time in Oslo?"},
    {"role": "assistant", "content": "It is noon."},
    {"role": "user", "content": "And in Lima?"},
)
"""Without a system message, which some templates refuse."""

SAMPLE_TOOLS: tuple[dict[str, Any], ...] = (
    {
        "type": "function",
        "function": {
            "name": "clock",
            "description": "Tells the time.",
            "parameters": {"type": "object", "properties": {"zone": {"type": "string", "description": "Time zone"}}},
        },
    },
)


def read_messages(path: Path) -> list[Message]:
    """The messages of a JSON file: a list of objects with a role, or an object whose `messages` is one."""
    found = read_json(path)
    return checked_messages(found.get("messages") if isinstance(found, dict) else found, path)


def read_tools(path: Path) -> list[Message]:
    """The tools of a JSON file: a list of objects, or an object whose `tools` is one."""
    found = read_json(path)
    tools = found.get("tools") if isinstance(found, dict) else found
    if not isinstance(tools, list) or not tools or not all(isinstance(each, dict) for each in tools):
        raise UsageError("this is no list of tools", where=path, remedy='write [{"type": "function", ...}]')
    return tools


def checked_messages(found: object, where: object) -> list[Message]:
    """The messages, when that is what they are; UsageError names the first that is none."""
    example = 'write [{"role": "user", "content": "..."}]'
    if not isinstance(found, list) or not found:
        raise UsageError("this is no list of messages", where=where, remedy=example)
    for number, each in enumerate(found, 1):
        if not isinstance(each, dict) or not isinstance(each.get("role"), str):
            raise UsageError(f"message {number} is no object with a role", where=where, remedy=example)
    return found


def of_texts(system: str | None, user: str | None) -> list[Message]:
    """The messages that two texts make; the sample when there is neither."""
    given = [("system", system), ("user", user)]
    messages: list[Message] = [{"role": role, "content": text} for role, text in given if text is not None]
    return messages or list(SAMPLE_MESSAGES)


def read_json(path: Path) -> Any:
    """The JSON a user's file holds; UsageError says what is in the way."""
    text = read_text(path, MOST_BYTES)
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        found = f"line {error.lineno}, column {error.colno}: {error.msg[0].lower()}{error.msg[1:]}"
        raise UsageError(f"this is no JSON: {found}", where=path) from None
    except RecursionError:
        raise UsageError("lists or objects are nested too deeply", where=path) from None


def read_text(path: Path, limit: int) -> str:
    """The UTF-8 text of a user's file of at most `limit` bytes; UsageError says what is in the way."""
    try:
        with path.open("rb") as file:
            raw = file.read(limit + 1)
    except OSError as error:
        raise UsageError(f"cannot be read ({error.strerror})", where=path) from None
    if len(raw) > limit:
        raise UsageError(f"has more than {limit:,} bytes", where=path, remedy="give a part of it")
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        found = f"byte 0x{raw[error.start]:02x} at {error.start:,} is not UTF-8"
        raise UsageError(found, where=path, remedy="save the text as UTF-8") from None


def roles_of(messages: Sequence[Message]) -> tuple[str, ...]:
    """The roles in order."""
    return tuple(str(each.get("role")) for each in messages)
