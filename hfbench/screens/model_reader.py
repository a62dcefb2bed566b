"""Reads one model for its screen: resolve, list, configuration, then the headers as a child process sends them."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import cast

from hfbench.errors import HfbenchError
from hfbench.models.config import ModelConfig, read_config
from hfbench.models.files import list_files, read_text
from hfbench.models.problem import ModelError
from hfbench.models.reference import resolve
from hfbench.models.stream import Begun, Done, Failed, Frame, Rows, Trouble, follow
from hfbench.screens.model_view import ModelView, Tally

EVERY = 0.25
"""Seconds between two pictures while tensors arrive: each may lay the screen out anew."""

MOST_TEXT = 256 * 1024
MOST_LINES = 2_000

Show = Callable[[ModelView], None]


def read_model(view: ModelView, cache_dir: Path | None, show: Show, stopped: Callable[[], bool]) -> None:
    """Show ever fuller pictures of a model, beginning with the empty `view` of it, into whose columns tensors go.

    The last one has `reading` False. Nothing is raised for what is wrong.
    """
    try:
        location = resolve(view.reference, cache_dir=cache_dir)
        view = replace(view, location=location)
        show(view)
        view = replace(view, files=tuple(list_files(location.folder)))
        config = read_config(location.folder)
        view = replace(view, config=config, config_text=_text_of(location.folder, config))
        show(view)
    except HfbenchError as error:
        show(replace(view, error=error, reading=False))
        return
    if not stopped():
        _follow(view, show, stopped)


def _follow(view: ModelView, show: Show, stopped: Callable[[], bool]) -> None:
    assert view.location
    tally, shown_at = Tally(), monotonic()
    with closing(cast("Generator[Frame, None, None]", follow(view.location))) as frames:  # an early end kills the child
        for frame in frames:
            if stopped():
                return
            view = _taken(view, frame, tally)
            if not isinstance(frame, (Rows, Trouble)) or monotonic() - shown_at >= EVERY:
                shown_at = monotonic()
                show(replace(view, shares=tally.shares()))


def _taken(view: ModelView, frame: Frame, tally: Tally) -> ModelView:
    if isinstance(frame, Rows):
        frame.add_to(view.columns)
        tally.take(frame)
        return replace(view, shard=frame.number)
    if isinstance(frame, Begun):
        return replace(view, format=frame.format, shards=frame.shards)
    if isinstance(frame, Trouble):
        return replace(view, troubles=(*view.troubles, frame.problem))
    if isinstance(frame, Failed):
        return replace(view, error=frame.error, reading=False)
    assert isinstance(frame, Done)
    return replace(view, summary=frame.summary(), reading=False)


def _text_of(folder: Path, config: ModelConfig) -> tuple[str, ...]:
    """The lines of a configuration file that could not be taken as an object, for whoever wants to mend it."""
    if config.source is None or config.raw:
        return ()
    try:
        return tuple(read_text(folder / config.source, MOST_TEXT, folder).splitlines()[:MOST_LINES])
    except ModelError:
        return ()  # why it cannot be read is one of the configuration's problems
