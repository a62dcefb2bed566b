"""The first tab: what the model is, what is wrong with it, and where its bytes are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.containers import Container, Vertical
from textual.events import Resize

from hfbench.models.config import ModelConfig
from hfbench.models.facts import BigTensor, DtypeShare, ModelSummary
from hfbench.screens.model_tabs.base import ModelTab, Reading
from hfbench.screens.model_tabs.findings import Findings
from hfbench.screens.model_view import ModelView
from hfbench.screens.model_words import heads_text
from hfbench.text import printable
from hfbench.units import show_bytes, show_count
from hfbench.widgets.cells import Span, clip_middle, width_of
from hfbench.widgets.facts_lines import Fact
from hfbench.widgets.facts_table import FactsTable
from hfbench.widgets.glyphs import Glyphs, glyphs_of
from hfbench.widgets.help import Help
from hfbench.widgets.painted import Painted
from hfbench.widgets.tensor_widths import shape_text

WIDE = 110
"""Columns from which findings stand beside the facts instead of below them."""

MOST_DTYPES = 5
MOST_BIGGEST = 5
BAR = 8


class OverviewText(Reading):
    """The overview's text."""

    help = Help(
        "Overview",
        "Parameters are counted from the headers of the weights, stored elements as they lie in the files.\n"
        "Findings say what was found, where, and what to do. `b` lists the biggest tensors, `]` goes to the next tab,\n"
        "`B` measures how fast the model generates, `R` reads it again, `y` copies its path.",
    )


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


class Overview(ModelTab):
    """What the model is."""

    title: ClassVar[str] = "Overview"
    keys_to = OverviewText
    filters: ClassVar[bool] = False

    DEFAULT_CSS = """
    Overview {
        & #columns { height: auto; layout: vertical; }
        & #what, & #found { height: auto; }
        & #what { margin-bottom: 1; }
        & Findings { margin-bottom: 1; }
        &.-wide #columns { layout: horizontal; }
        &.-wide #what { width: 64; margin-right: 3; }
        &.-wide #found { width: 1fr; }
    }
    """

    def compose(self) -> ComposeResult:
        """Facts, findings, biggest tensors."""
        with OverviewText(), Container(id="columns"):
            with Vertical(id="what"):
                yield FactsTable(id="facts")
            with Vertical(id="found"):
                yield Findings()
                yield Biggest()

    def on_resize(self, event: Resize) -> None:
        """Beside each other where there is room."""
        self.set_class(event.size.width >= WIDE, "-wide")

    def show(self, view: ModelView) -> None:
        """Show what is known; while headers arrive the sums grow."""
        glyphs = glyphs_of(self.app)
        self.query_one("#facts", FactsTable).show(list(facts_of(view, glyphs)))
        self.query_one(Findings).show(view.problems, reading=view.reading and view.error is None)
        self.query_one(Biggest).show(view.summary.biggest[:MOST_BIGGEST] if view.summary else ())


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
    if view.files is not None:
        size = sum(file.bytes for file in view.files)
        yield Fact("on disk", f"{show_bytes(size)} in {counted(len(view.files), 'file')}")
    if view.config is not None:
        yield from config_facts(view.config, glyphs)
    if view.summary is not None and view.summary.tokenizer.files:
        yield Fact("tokenizer", _tokenizer(view.summary))
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
        f"{config.layers} layers" if config.layers is not None else "",
        f"{config.hidden} hidden" if config.hidden is not None else "",
        heads_text(config) + (f" of {config.head_dim}" if config.heads and config.head_dim else ""),
        f"{config.experts} experts" if config.experts else "",
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
