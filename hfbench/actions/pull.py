"""pull: bring a model of a hub into the cache or a folder."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

from hfbench.actions.base import action
from hfbench.actions.params import param
from hfbench.errors import UsageError
from hfbench.hub.plan import RUNTIMES
from hfbench.hub.pulling.facts import Pulled
from hfbench.line_width import cut, paragraph, room
from hfbench.models.problem import counted
from hfbench.text import clip_middle, printable
from hfbench.units import show_bytes, show_seconds

if TYPE_CHECKING:
    from hfbench.jobs.run import Run

LABEL = 10
NAME = 56
SHOWN = 40
UNREAD = "names and sizes were compared, contents were not read again: pull --verify does"
_SIGNS = {"here": "was here", "fetched": "fetched", "wanted": "to fetch"}


@dataclass(frozen=True, kw_only=True)
class PullResult(Pulled):
    """The model as it lies here, and what was fetched for it."""

    @property
    def headline(self) -> str:
        """`14.2 GiB fetched in 3 m 10 s, 76 MiB/s`, or what a dry run would fetch."""
        if self.dry_run:
            return f"{show_bytes(self.wanted_bytes)} to fetch, {show_bytes(self.bytes)} in all; nothing was fetched"
        if not self.fetched_bytes and not self.copied_bytes:
            return f"{show_bytes(self.bytes)}, all of it was here"
        rate = f", {show_bytes(self.fetched_bytes / self.seconds)}/s" if self.seconds > 0 else ""
        kept = f"; {show_bytes(self.resumed_bytes)} were there from an earlier run" if self.resumed_bytes else ""
        kept += f"; {show_bytes(self.copied_bytes)} were copied from another model" if self.copied_bytes else ""
        return f"{show_bytes(self.fetched_bytes)} fetched in {show_seconds(self.seconds)}{rate}{kept}"

    def lines(self) -> list[str]:
        """Where it lies, the files, and what was left out with the reason."""
        what = ", ".join(filter(None, [self.runtime and f"for {self.runtime}", self.quant]))
        size = f"{counted(len(self.files), 'file')}, {show_bytes(self.bytes)}"
        head = [
            _labelled("model", f"{self.repo} of {self.endpoint} ({self.url})"),
            _labelled("revision", f"{self.revision}, commit {self.commit}"),
            _labelled("files", ", ".join(filter(None, [size, what]))),
            _labelled("folder", self.folder),
        ]
        left = [_labelled("left out", _skipped(each.why, each.files, each.bytes)) for each in self.skipped]
        notes = [line for note in self.notes for line in paragraph(f"! {printable(note)}", later="  ")]
        unread = [] if self.dry_run or self.fetched_bytes or self.copied_bytes else ["", UNREAD]
        return [*head, *left, "", *self._files(), *(["", *notes] if notes else []), *unread, "", self.headline]

    def _files(self) -> Iterator[str]:
        shown = self.files[:SHOWN]
        width = min(max((len(printable(each.path)) for each in shown), default=0), room(NAME))
        for each in shown:
            name = clip_middle(printable(each.path), width, ellipsis="...")
            yield f"{name:<{width}}  {show_bytes(each.bytes):>9}  {_SIGNS[each.state]}"
        if len(self.files) > SHOWN:
            yield f"and {len(self.files) - SHOWN} more (--json lists all)"


@action("pull", result=PullResult, needs=("huggingface_hub",), extra="hub")
@dataclass(frozen=True, kw_only=True)
class Pull:
    """Fetch a model from a hub into the Hugging Face cache, resumed after a kill and verified by its hashes.

    Only the files that the runtime loads are taken; without a runtime, the one set of weights that most of them load.
    """

    model: str = param("org/name, org/name@revision or ENDPOINT:org/name", positional=True)
    endpoint: str = param("Name of an endpoint of the configuration, or its address", default="")
    revision: str = param("Branch, tag or commit; default main", default="")
    runtime: str = param("What is to load it", default="auto", choices=RUNTIMES)
    quant: str = param("Quantisation, where there are several: Q8_0 of GGUF files, int8 of ONNX", default="")
    include: tuple[str, ...] = param("Files to take in place of the choice by runtime, with * and ?", default=())
    exclude: tuple[str, ...] = param("Files to leave out, with * and ?", default=())
    to: Path | None = param("Plain folder to fetch into, in place of the cache", default=None, kind="path")
    replace: bool = param("With --to: replace files of other contents that no download made", default=False)
    cache_dir: Path | None = param("Hugging Face cache to fetch into", default=None, kind="path")
    connections: int = param("Requests at a time", default=8, ge=1, le=64)
    patience: float = param("Seconds without a byte after which it gives up", default=60.0, kind="duration", unit="s")
    verify: bool = param("Read what is in the cache already, and fetch again what is damaged", default=False)
    dry_run: bool = param("Say what would be fetched, and fetch nothing", default=False)

    def __post_init__(self) -> None:
        from hfbench.hub.endpoints import refuse_passwords

        refuse_passwords(self.model, self.endpoint)
        if self.verify and self.to is not None:
            remedy = "leave --verify out: a file of a folder that changed since is read anyway"
            raise UsageError("--verify is for the cache, and --to was given", where="pull", remedy=remedy)

    def perform(self, run: Run) -> PullResult:
        """Choose, size, fetch, verify; huggingface_hub enters here."""
        from hfbench.hub.pull import pull
        from hfbench.hub.pulling.content import Wish

        wish = Wish(
            runtime=self.runtime,
            quant=self.quant,
            include=self.include,
            exclude=self.exclude,
            connections=self.connections,
            patience=self.patience,
            verify=self.verify,
        )
        found = pull(
            self.model,
            run,
            endpoint=self.endpoint,
            revision=self.revision,
            wish=wish,
            cache=self.cache_dir,
            to=self.to,
            replace=self.replace,
            dry_run=self.dry_run,
        )
        return PullResult(**{field.name: getattr(found, field.name) for field in fields(found)})


def _labelled(label: str, text: str) -> str:
    return f"{label:<{LABEL}}{cut(printable(text), LABEL)}"


def _skipped(why: str, files: int, size: int) -> str:
    return f"{counted(files, 'file')}, {show_bytes(size)}: {why}"
