"""The first tab: what the model is, what is wrong with it, and where its bytes are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.containers import Container, Vertical
from textual.events import Resize
from textual.geometry import Size

from hfbench.models.config import ModelConfig
from hfbench.models.facts import BigTensor, DtypeShare, ModelSummary
from hfbench.models.runtimes import Runtime
from hfbench.screens.model_judge import Judgement
from hfbench.screens.model_tabs.base import Reading
from hfbench.screens.model_tabs.explanation import ExplainedTab, Explanation
from hfbench.screens.model_tabs.finding_lines import sentences_of
from hfbench.screens.model_tabs.findings import Findings
from hfbench.screens.model_tabs.told import finding_facts, others_facts, verdict_facts
from hfbench.screens.model_tabs.verdict_lines import title_of
from hfbench.screens.model_view import ModelView
from hfbench.screens.model_words import heads_text
from hfbench.text import printable
from hfbench.units import show_bytes, show_count
from hfbench.widgets.cells import Span, clip_middle, width_of
from hfbench.widgets.facts_lines import Fact
from hfbench.widgets.facts_table import FactsTable
from hfbench.widgets.glyphs import Glyphs, glyphs_of
from hfbench.widgets.painted import Painted
from hfbench.widgets.tensor_widths import shape_text

MOST_DTYPES = 5
MOST_BIGGEST = 5
BAR = 8


class OverviewText(Reading, can_focus=False):
    """The overview's text; the list in it takes the keys."""


class Biggest(Painted):
    """The largest tensors, as wide as there is room."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.tensors: tuple[BigTensor, ...] = ()

    def show(self, tensors: tuple[BigTensor, ...]) -> None:
        """Show these."""
        self.tensors = tensors
        self.styles.height = len(biggest_lines(tensors, 80, self.glyphs))
        self.repaint()

    def lines(self, width: int, height: int) -> list[list[Span]]:
        """A line each."""
        return biggest_lines(self.tensors, width, self.glyphs)


class Overview(ExplainedTab):
    """What the model is, which runtimes load it, and what is wrong with it."""

    title: ClassVar[str] = "Overview"
    keys_to = Findings

    DEFAULT_CSS = """
    Overview {
        & #columns { height: auto; layout: vertical; }
        & #what, & #found { height: auto; }
        & #what { margin-bottom: 0; }
        & Findings { margin-bottom: 1; }
        &.-spaced #what { margin-bottom: 1; }
        & #where { margin-bottom: 1; }
        & #what Biggest { display: none; margin-top: 1; }
        &.-wide #columns { layout: horizontal; }
        &.-wide #what { width: 64; margin-right: 3; }
        &.-wide #found { width: 1fr; }
        &.-wide #what Biggest { display: block; }
        &.-wide #found Biggest { display: none; }
        &.-open #columns { layout: vertical; }
        &.-wide.-open #what Biggest { display: none; }
        &.-wide.-open #found Biggest { display: block; }
        &.-open #what { width: 1fr; margin: 0 0 1 0; }
    }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._view: ModelView | None = None
        self._room: Size | None = None

    def compose(self) -> ComposeResult:
        """Facts, verdicts and findings, where it lies, the biggest tensors; and room for one finding."""
        with OverviewText(id="list"), Container(id="columns"):
            with Vertical(id="what"):
                yield FactsTable(id="facts")
                yield Biggest()
            with Vertical(id="found"):
                yield Findings()
                yield FactsTable(id="where")
                yield Biggest()
        yield Explanation()

    @property
    def findings(self) -> Findings:
        """The list of verdicts and findings."""
        return self.query_one(Findings)

    def show(self, view: ModelView) -> None:
        """Show what is known; while headers arrive the sums grow."""
        news = self._view is None or view.judgement is not self._view.judgement
        self._view = view
        facts, where, beside = (
            list(facts_of(view, glyphs_of(self.app))),
            list(where_facts(view)),
            self.has_class("-wide"),
        )
        self.query_one("#facts", FactsTable).show([*facts, *where] if beside else facts)
        below = self.query_one("#where", FactsTable)
        below.display = bool(where) and not beside
        below.show(() if beside else where)
        spaced = self.findings.show(view, room=None if beside else self.size.height - len(facts) - 1)
        self.set_class(spaced, "-spaced")
        for place in self.query(Biggest):  # beside the list or below it, as there is room
            place.show(view.summary.biggest[:MOST_BIGGEST] if view.summary else ())
        if self.explains and news:
            self._explain_current()

    def copied(self) -> str:
        """The explanation that is read, else the finding under the cursor."""
        finding = self.findings.finding
        return super().copied() or (" ".join(sentences_of(finding)).strip() if finding else "")

    def on_resize(self, event: Resize) -> None:
        """Facts beside the list where there is room; where the model lies comes last where there is little."""
        super().on_resize(event)
        room, self._room = self._room, event.size
        if self._view is not None and room != event.size:  # a tab that comes to the front is told its size again
            self.show(self._view)

    @on(Findings.Chosen)
    def _chosen(self) -> None:
        self.close_explanation() if self.explains else self._explain_current()

    @on(Findings.Moved)
    def _moved(self) -> None:
        if self.explains:
            self._explain_current()

    def _explain_current(self) -> None:
        """The entry under the cursor: a finding, several of one kind, or a verdict."""
        chosen, judgement = self.findings, self._view.judgement if self._view else Judgement()
        if others := chosen.others:
            self.explain(
                f"{len(others):,} more of {others[0].id} {others[0].name}".rstrip(), list(others_facts(others))
            )
        elif finding := chosen.finding:
            title = f"{finding.id} {finding.name}".strip() or "finding"
            self.explain(title, list(finding_facts(finding, judgement.rules.get(finding.id))))
        elif chosen.runtime and judgement.resolution:
            runtime: Runtime = chosen.runtime  # type: ignore[assignment]
            verdict = judgement.resolution.runtimes[runtime]
            self.explain(title_of(runtime, verdict), list(verdict_facts(runtime, verdict, judgement.resolution.steps)))


def facts_of(view: ModelView, glyphs: Glyphs) -> Iterator[Fact]:
    """Everything the first screen answers; what is not known is not named."""
    if view.tensors or not view.reading:
        told = f"{view.parameters:,} ({show_count(view.parameters)})"
        yield Fact("parameters", told if view.tensors else "none read")
    if view.tensors:
        yield Fact("weights", f"{show_bytes(view.weight_bytes)} in {counted(view.tensors, 'tensor')}, {_stored(view)}")
        yield from dtype_facts(view.shares, glyphs)
    elif view.reading:
        yield Fact("weights", "reading the headers", "muted")
    if view.left_on:
        yield Fact("", f"weights are on {view.left_on}, not here: p pulls them", "warn")
    if view.config is not None:
        yield from config_facts(view.config, glyphs)
    if view.summary is not None and view.summary.tokenizer.files:
        yield Fact("tokenizer", _tokenizer(view.summary))


def where_facts(view: ModelView) -> Iterator[Fact]:
    """Where the model lies and what it takes there."""
    if view.files is not None:
        size = sum(file.bytes for file in view.files)
        where = f"on {view.left_on}" if view.left_on else "on disk"
        yield Fact(where, f"{show_bytes(size)} in {counted(len(view.files), 'file')}")
    if view.location is not None:
        yield Fact("folder", str(view.location.folder), "muted")
        if view.location.commit:
            yield Fact("revision", f"{view.location.revision} at {view.location.commit}", "muted")


def dtype_facts(shares: Mapping[str, DtypeShare], glyphs: Glyphs) -> Iterator[Fact]:
    """A bar a dtype, by bytes."""
    total = sum(share.bytes for share in shares.values()) or 1
    width = max(map(len, shares), default=0)
    for number, (dtype, share) in enumerate(list(shares.items())[:MOST_DTYPES]):
        part = share.bytes / total
        per_cent = f"{part:.1%}" if 0.0005 <= part < 0.9995 else "100%" if part >= 0.9995 else "<0.1%"
        value = f"{glyphs.bar(part, BAR)} {per_cent:>5}  {dtype:<{width}}  {show_bytes(share.bytes):>9}"
        yield Fact("" if number else "by dtype", f"{value}  {counted(share.tensors, 'tensor')}")
    if len(shares) > MOST_DTYPES:
        yield Fact("", f"and {len(shares) - MOST_DTYPES} more")


def config_facts(config: ModelConfig, glyphs: Glyphs) -> Iterator[Fact]:
    """What the configuration claims."""
    if config.architectures or config.model_type:
        named = config.architectures[0] if config.architectures else "not named"
        yield Fact("architecture", f"{named} ({config.model_type})" if config.model_type else named)
    if shape := dimensions(config, glyphs):
        yield Fact("shape", shape)
    if config.source is not None and config.raw:
        context = f"{config.context:,} tokens" if config.context is not None else "not stated"
        vocabulary = f" {glyphs.dot} vocabulary {config.vocab:,}" if config.vocab is not None else ""
        yield Fact("context", context + vocabulary)
    if stated := stated_text(config, glyphs):
        yield Fact("config", stated)


def dimensions(config: ModelConfig, glyphs: Glyphs) -> str:
    """`30 layers · 576 hidden · 9/3 heads of 64`."""
    parts = (
        counted(config.layers, "layer") if config.layers is not None else "",
        f"{config.hidden:,} hidden" if config.hidden is not None else "",
        heads_text(config) + (f" of {config.head_dim}" if config.heads and config.head_dim else ""),
        counted(config.experts, "expert") if config.experts else "",
    )
    return f" {glyphs.dot} ".join(filter(None, parts))


def stated_text(config: ModelConfig, glyphs: Glyphs) -> str:
    """dtype, quantization and tying as the configuration states them."""
    tied = {True: "tied embeddings", False: "untied embeddings", None: ""}[config.tied]
    quantized = f"quantized: {config.quantization}" if config.quantization else ""
    return f" {glyphs.dot} ".join(filter(None, (config.dtype or "", quantized, tied)))


def biggest_lines(tensors: Sequence[BigTensor], width: int, glyphs: Glyphs) -> list[list[Span]]:
    """A title and a line a tensor: bytes first, they are what it is about; the name gives way to all else."""
    if not tensors:
        return []
    lines: list[list[Span]] = [[("Biggest tensors", "title")]]
    for tensor in tensors:
        kind = f"{tensor.dtype} {shape_text(tensor.shape)}"
        name = clip_middle(printable(tensor.name), max(8, width - 13 - width_of(kind)), ellipsis=glyphs.ellipsis)
        lines.append([(f"{show_bytes(tensor.bytes):>9}", ""), (f"  {name}  ", ""), (kind, "muted")])
    return lines


def counted(count: int, what: str) -> str:
    """`1 tensor`, `14,848 tensors`."""
    return f"{count:,} {what}{'s' * (count != 1)}"


def _stored(view: ModelView) -> str:
    total = view.shards
    read = view.summary.shards if view.summary else total
    kind = view.format.partition("-")[0]
    return f"{f'{read:,} of ' if read != total else ''}{counted(total, f'{kind} file')}"


def _tokenizer(summary: ModelSummary) -> str:
    facts = summary.tokenizer
    size = f"{facts.vocab_size:,} tokens" if facts.vocab_size is not None else ""
    template = "chat template" if facts.chat_templates else "no chat template"
    return ", ".join(filter(None, (facts.tokenizer_class or facts.model or "", size, template)))
