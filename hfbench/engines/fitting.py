"""What a benchmark can ask of an engine: prompts and new tokens within its shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hfbench.engines.manifest import ShapeProfile

USUAL_NEW_TOKENS = 64
SHORT_PROMPT, SHORT_NEW_TOKENS = 16, 16
"""Of a first comparison: enough to tell modes apart, and rounds that a slow processor has time for."""
LEAST_NEW_TOKENS = 2
"""One token alone has no time per token."""


def fitting(shapes: ShapeProfile, prompt: int | None = None, new_tokens: int = USUAL_NEW_TOKENS) -> dict[str, int]:
    """`batch`, `prompt` and `new_tokens` that an engine answers to, as near to what was asked for as can be; without a
    prompt the longest that leaves room for new tokens."""
    longest = min(shapes.max_prompt, shapes.context + 1 - LEAST_NEW_TOKENS)
    length = max(shapes.min_prompt, min(longest, longest if prompt is None else prompt))
    new = max(LEAST_NEW_TOKENS, min(new_tokens, shapes.context + 1 - length))
    return {"batch": shapes.batch, "prompt": length, "new_tokens": new}


def fitting_options(shapes: ShapeProfile, prompt: int | None, new_tokens: int) -> str:
    """The same as options of a command; without the length of a prompt that is a text."""
    told = fitting(shapes, prompt, new_tokens)
    options = {"--prompt": told["prompt"] if prompt else 0, "--new-tokens": told["new_tokens"]}
    options["--batch"] = shapes.batch if shapes.batch > 1 else 0
    return " ".join(f"{flag} {value}" for flag, value in options.items() if value)
