"""What each runtime makes of the model, a line each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from hfbench.models.problem import counted
from hfbench.models.runtimes import RUNTIMES, TITLES, Runtime
from hfbench.text import printable
from hfbench.widgets.cells import Span, clip, width_of
from hfbench.widgets.glyphs import Glyphs, State
from hfbench.widgets.line_table import MARK

if TYPE_CHECKING:
    from hfbench.screens.model_view import ModelView

VERDICT = "verdict "
"""Begins the key of a verdict's line; the runtime follows."""

STATES: Mapping[str, State] = {"ok": "ok", "warning": "warn", "error": "error", "note": "unknown", "skipped": "muted"}
"""How the state of a step or of a verdict is painted."""

SIGN_CELLS = 3
GAP = 2


def verdict_lines(view: ModelView, width: int, glyphs: Glyphs) -> Iterator[tuple[str, list[Span]]]:
    """A title and a line a runtime; a reference that leads nowhere is told once for all of them."""
    resolution = view.judgement.resolution
    if resolution is None:
        if view.judgement.under_way and view.error is None:
            yield "", [("Runtimes", "title"), (f" {glyphs.dot} resolving", "muted")]
        return
    if resolution.folder is None:
        return  # the notice on top says why there is nothing to load
    alone = any(each["judged"] == "configuration" and each["loads"] for each in resolution.runtimes.values())
    note = f" {glyphs.dot} on the configuration alone: there are no weights" if alone else ""
    yield "", [("Runtimes", "title"), (note, "muted")]
    titles = {runtime: title_of(runtime, resolution.runtimes[runtime]) for runtime in RUNTIMES}
    column = max(map(width_of, titles.values()))
    for runtime in RUNTIMES:
        verdict = resolution.runtimes[runtime]
        state = verdict_state(verdict)
        head = f"{titles[runtime]:<{column}}{' ' * GAP}"
        room = max(8, width - MARK - SIGN_CELLS - width_of(head))
        text = clip(printable(in_short(runtime, verdict)), room, ellipsis=glyphs.ellipsis)
        sign = glyphs.sign(state).ljust(SIGN_CELLS)
        yield (
            f"{VERDICT}{runtime}",
            [(" " * MARK, ""), (sign, state), (head, ""), (text, "muted" if state == "ok" else "")],
        )


def verdict_state(verdict: Mapping[str, Any]) -> State:
    """How a verdict is painted."""
    from hfbench.actions.resolve import state_of

    return STATES[state_of(verdict)]


def title_of(runtime: Runtime, verdict: Mapping[str, Any]) -> str:
    """`vLLM 0.33.0`."""
    from hfbench.actions.resolve import short_version

    return f"{TITLES[runtime]} {short_version(verdict['version'])}"


def in_short(runtime: Runtime, verdict: Mapping[str, Any]) -> str:
    """`LlamaForCausalLM`, or `MistralForCausalLM, from 1 of 3 files`, or why not."""
    from hfbench.actions.resolve import spoken

    if not verdict["loads"]:
        return spoken(runtime, verdict)
    told = verdict["model_class"] or verdict["class"] or "loads"
    if warning := verdict.get("warning"):
        return f"{told}, but {warning}"
    read, others = len(verdict["files"]), len(verdict["ignored"])
    return f"{told}, from {read:,} of {counted(read + others, 'file')}" if others else str(told)
