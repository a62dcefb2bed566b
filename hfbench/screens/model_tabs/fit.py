"""Whether the model fits a GPU: a grid of contexts and batches, and the terms of the cell under the cursor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.dom import DOMNode
from textual.message import Message

from hfbench.actions.fit_text import model_rows, most_rows, term_rows, term_title, terms_by_size, verdict, verdict_rows
from hfbench.errors import HfbenchError
from hfbench.paths import expand
from hfbench.screens.base import BenchScreen
from hfbench.screens.latest_wins import LatestWins
from hfbench.screens.messages import Latest
from hfbench.screens.model_tabs.base import ModelTab
from hfbench.screens.model_tabs.fit_asked import DEFAULT_GPU, Asked
from hfbench.screens.model_view import ModelView
from hfbench.widgets.facts_lines import Fact, facts_lines
from hfbench.widgets.fit_grid import FitGrid
from hfbench.widgets.fit_lines import Knob
from hfbench.widgets.glyphs import State
from hfbench.widgets.notice import Notice
from hfbench.widgets.span_view import SpanView

if TYPE_CHECKING:
    from hfbench.actions.aside import Aside
    from hfbench.actions.fit import FitResult

STATES: dict[str, State] = {"ok": "ok", "x": "error", "~": "unknown"}
AS_STORED, AS_MODEL, HERE = "as stored", "as the model", "this machine's"
"""What stands for a field that is left to its default."""


@dataclass(frozen=True)
class Question:
    """The fields to perform `fit` with, and what they stand for."""

    asked: Asked
    values: dict[str, object]


@dataclass
class Counted(Latest):
    """An answer, and the names of the GPUs that may be asked for."""

    question: Question
    result: FitResult
    gpus: tuple[str, ...]


@dataclass
class NotCounted(Message):
    """Why there is no answer to the latest question."""

    error: HfbenchError


class Details(SpanView):
    """Terms and verdict of the cell under the cursor, or the formulas behind them."""

    can_focus = False


class FitTab(ModelTab):
    """Context and batch against the memory of a GPU, as the action `fit` counts it."""

    title: ClassVar[str] = "Fit"
    keys_to = FitGrid
    filters: ClassVar[bool] = False

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "close_formulas", "close", show=False, id="fit.close-formulas"),
    ]

    DEFAULT_CSS = "FitTab > Notice { margin-bottom: 1; }"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.asked = Asked()
        self.result: FitResult | None = None
        self.formulas = False
        self._view: ModelView | None = None
        self._gpus: tuple[str, ...] = ()
        self._latest: Question | None = None
        self._answered: Question | None = None
        self._refused = False
        self._aside: Aside | None = None
        self._gone = False
        self._answers = LatestWins(self, self._count, NotCounted)

    @property
    def at_rest(self) -> bool:
        """True once the latest question is answered."""
        return self._latest is None or self._refused or self._answered is self._latest

    def compose(self) -> ComposeResult:
        """Trouble, the grid, its details."""
        yield Notice()
        yield FitGrid()
        yield Details()

    def on_unmount(self) -> None:
        """Nobody looks any more."""
        self._gone = True
        self._answers.stop()
        if self._aside is not None:
            self._aside.close()

    def show(self, view: ModelView) -> None:
        """Ask once it is known where the model lies, and again when it was read anew."""
        before, self._view = self._view, view
        if view.location is None:
            return
        if before is None or before.location != view.location or before.columns is not view.columns:
            self.result, self._answered = None, None
            self._ask(self.asked)

    def copied(self) -> str:
        """The command line that tells the same."""
        from hfbench.actions.fit import Fit
        from hfbench.actions.params import command_line

        if self._latest is None:
            return ""
        return command_line(["hfbench", "fit"], Fit.spec.params, self._latest.values)  # type: ignore[attr-defined]

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """`escape` is the screen's while no formulas are open."""
        return action != "close_formulas" or self.formulas

    # -- asking ---------------------------------------------------------------

    def _ask(self, asked: Asked) -> None:
        """Perform `fit` for this; what is on the screen stays until the answer comes."""
        if self._view is None:
            return
        if asked.gpu is None and not self._gpus_here():
            asked = replace(asked, gpu=DEFAULT_GPU)
        self.asked, self._refused = asked, False
        self._latest = Question(asked, asked.values(self._view.anywhere, self._cache_dir()))
        self._answers.ask(self._latest)
        self._paint()

    def _count(self, question: Question) -> Message:
        """In the thread of answers: the action is performed in a child process, which keeps what it has read."""
        from hfbench.actions.aside import Aside
        from hfbench.estimate.devices import devices

        if self._aside is None:
            self._aside = Aside()
        result = self._aside.ask("fit", question.values, lambda: self._gone)
        return Counted(question, result, tuple(device.name for device in devices()))

    @on(Counted)
    def _counted(self, message: Counted) -> None:
        message.stop()
        self._gpus = message.gpus
        self.result, self._answered = message.result, message.question
        self.query_one(Notice).clear()
        if message.question is self._latest and message.result.device is None and self.asked.gpu is None:
            self._ask(replace(self.asked, gpu=DEFAULT_GPU))  # the driver shows no GPU after all
        else:
            self._paint()

    @on(NotCounted)
    def _not_counted(self, message: NotCounted) -> None:
        message.stop()
        self._refused = True
        self.query_one(Notice).show_error(message.error)
        self._paint()

    # -- keys -----------------------------------------------------------------

    @on(FitGrid.Moved)
    def _moved(self, message: FitGrid.Moved) -> None:
        if self.result is not None and self.result.grid:
            self._ask(self.asked.moved(message.rows, message.columns, self.result))

    @on(FitGrid.Turned)
    def _turned(self, message: FitGrid.Turned) -> None:
        gpus: Sequence[str | None] = (*((None,) if self._gpus_here() else ()), *self._gpus)
        self._ask(self.asked.turned(message.name, message.steps, self.result, gpus))

    @on(FitGrid.Explained)
    def _explained(self) -> None:
        self.formulas = not self.formulas
        self._paint()

    @on(FitGrid.Scrolled)
    def _scrolled(self, message: FitGrid.Scrolled) -> None:
        self.query_one(Details).action_scroll_pages(message.pages)

    def action_close_formulas(self) -> None:
        """Back to the terms."""
        self.formulas = False
        self._paint()

    # -- painting -------------------------------------------------------------

    def _paint(self) -> None:
        cell = self.asked.context, self.asked.batch
        stale = self.result is not None and not self.at_rest
        self.query_one(FitGrid).show(self._knobs(), self.result, cell, stale=stale)
        facts = self._facts()
        glyphs = self.query_one(FitGrid).glyphs
        self.query_one(Details).show(lambda width: facts_lines(facts, width, glyphs))

    def _knobs(self) -> list[Knob]:
        asked = self.asked
        return [
            Knob("d", "dtype", asked.dtype or AS_STORED),
            Knob("k", "kv", asked.kv_dtype or AS_MODEL),
            Knob("t", "tp", str(asked.tp)),
            Knob("p", "pp", str(asked.pp)),
            Knob("e", "ep", str(asked.ep)),
            Knob("r", "runtime", asked.runtime),
            Knob("g", "gpu", asked.gpu or HERE),
        ]

    def _facts(self) -> list[Fact]:
        if self.result is None:
            return [] if self._refused else [Fact("", "counting ...", "muted")]
        return formula_facts(self.result) if self.formulas else cell_facts(self.result)

    def _gpus_here(self) -> bool:
        """True when this machine has a GPU, as far as it is known."""
        screen: DOMNode = self.screen
        seen = screen.bench.machine.gpus if isinstance(screen, BenchScreen) else None
        return seen is None or bool(seen.devices)

    def _cache_dir(self) -> str:
        screen: DOMNode = self.screen
        cache = screen.bench.config.models.cache if isinstance(screen, BenchScreen) else ""
        return str(expand(cache)) if cache else ""


def cell_facts(result: FitResult) -> list[Fact]:
    """What the command line says of it, the verdict first."""
    sign, sentence = verdict(result)
    limit = f" of {result.context_limit:,}" if result.context_limit else ""
    facts = [Fact("cell", f"context {result.context:,}{limit}, batch {result.batch:,}")]
    facts.append(Fact("verdict", sentence, STATES[sign]))
    facts += [Fact("warnings" if not number else "", each, "warn") for number, each in enumerate(result.warnings)]
    facts += [Fact(label, text) for label, text in most_rows(result)]
    facts += [Fact(label, text) for label, text in term_rows(result)]
    facts += [Fact(label, text) for label, text in verdict_rows(result) if label == "GPU"]
    _, weights, _, (_, types), *cache = model_rows(result)
    facts += [Fact(label, text) for label, text in (weights, ("counted as", types), *cache)]
    facts += [Fact("guesses" if not number else "", each, "unknown") for number, each in enumerate(result.guesses)]
    return facts


def formula_facts(result: FitResult) -> list[Fact]:
    """By which formula each term is counted, the largest first."""
    facts = [Fact("formulas", "bytes on the fullest GPU; enter closes them", "muted")]
    return [*facts, *(Fact(term_title(name), result.formulas[name]) for name, _ in terms_by_size(result))]
