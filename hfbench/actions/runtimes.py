"""runtimes: which runtimes carry a model out on a card, and what starts each of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hfbench.actions.base import action
from hfbench.actions.params import param
from hfbench.engines.runtimes.row import Row
from hfbench.line_width import cut, paragraph
from hfbench.models.problem import counted
from hfbench.text import shell_line

if TYPE_CHECKING:
    from hfbench.engines.runtimes.cards import Cards
    from hfbench.jobs.run import Run

SIGNS = {"ok": "ok", "warning": "!", "error": "x", "unknown": "~"}
LABEL = 21
MOST_LINES = 4


@dataclass(frozen=True, kw_only=True)
class RuntimesResult:
    """A row a runtime; `failed` when none carries the model out. `capability` is empty where it is not known."""

    model: str
    folder: str
    architectures: tuple[str, ...]
    quantisation: str
    """Title of the scheme, or the method where the table does not list it; empty for none."""
    gpu: str
    capability: str
    present: int | None
    """GPUs of this machine, None where one was named."""
    note: str
    rows: tuple[Row, ...]
    failed: bool

    @property
    def headline(self) -> str:
        """How many carry it out."""
        able = sum(row.state in ("ok", "warning") for row in self.rows)
        return f"{able} of {counted(len(self.rows), 'runtime')} carry it out"

    def lines(self) -> list[str]:
        """The card, then a paragraph a runtime, as wide as the terminal."""
        return [cut(self.model), *_head(self), "", *(line for row in self.rows for line in _told(row))]


@action("runtimes", result=RuntimesResult, inline=True)
@dataclass(frozen=True, kw_only=True)
class Runtimes:
    """Tell which runtimes carry a model out on a card, in which number formats, and what starts them."""

    model: str = param("Folder, or repository in the Hugging Face cache", kind="model", positional=True)
    gpu: str | None = param("GPU by name; default those of this machine", default=None)
    capability: str | None = param("Compute capability, such as 8.9, in place of the card's", default=None)
    cache_dir: Path | None = param("Hugging Face cache to look in", default=None, kind="path")

    def perform(self, run: Run) -> RuntimesResult:
        """Resolve the model, then judge every runtime. NotFound when there is no model."""
        from hfbench.engines.runtimes.matrix import rows
        from hfbench.engines.runtimes.subject import read_served

        cards = cards_of(self.gpu, self.capability)
        model = read_served(self.model, cache_dir=self.cache_dir)
        told = tuple(rows(model, cards))
        quantization = model.quantization
        packed = model.scheme.title if model.scheme else (quantization.method or "") if quantization else ""
        return RuntimesResult(
            model=model.resolution.model,
            folder=str(model.folder),
            architectures=model.architectures,
            quantisation=packed,
            gpu=cards.name,
            capability=cards.capability,
            present=cards.present,
            note=cards.why,
            rows=told,
            failed=not any(row.state in ("ok", "warning") for row in told),
        )


def cards_of(gpu: str | None, capability: str | None) -> Cards:
    """The cards a request means: one named, else those of this machine; a capability that is given wins."""
    from dataclasses import replace

    from hfbench.engines.runtimes.cards import cards_here, cards_named, given_capability

    cards = cards_named(gpu) if gpu else cards_here()
    return replace(cards, capability=given_capability(capability)) if capability else cards


def name_of(folder: str) -> str:
    """The last name of a model's folder; of one in a Hugging Face cache that of the repository, not the commit."""
    parts = folder.rstrip("/").split("/")
    repo = parts[-3] if parts[-2:-1] == ["snapshots"] else ""
    return repo.rpartition("--")[2] or parts[-1]


def launch_told(row: Row) -> str:
    """The command that starts a runtime here, or tells how; empty when there is none."""
    if not row.launch:
        return ""
    values = dict(row.values)
    if row.action == "engine.build":
        values["out"] = f"engines/{name_of(values['model'])}-{values['builder']}"
    options = [word for name, value in values.items() if name != "model" for word in (f"--{name}", value)]
    return shell_line(["hfbench", *row.action.split("."), row.values["model"], *options])


def _head(result: RuntimesResult) -> Iterator[str]:
    cards = result.gpu if result.present is None else f"{counted(result.present, 'GPU')} here"
    if result.present:
        cards = f"{result.present} x {result.gpu} here"
    known = f", compute capability {result.capability}" if result.capability else ""
    note = f" ({result.note})" if result.note else ""
    yield from paragraph(f"on {cards}{known}{note}", 0)
    if result.quantisation:
        yield f"weights packed as {result.quantisation}"


def _told(row: Row) -> Iterator[str]:
    head = f"{SIGNS[row.state]:<2} {row.title:<{LABEL}}"
    version = f" [{row.version}, {row.rules}]" if row.version else ""
    code = "; needs remote code" if row.remote_code and "remote code" not in row.reason else ""
    said = row.precision if row.precision and row.state == "ok" else ""
    text = "; ".join(filter(None, [f"{row.reason}{code}", said])) + version
    for number, line in enumerate(paragraph(text, len(head), most=MOST_LINES) or [""]):
        yield f"{' ' * len(head) if number else head}{line}".rstrip()
    if command := launch_told(row):
        yield f"{' ' * len(head)}{command}"
