"""The Kernels screen: what the compiler says of each configuration of a kernel, for six architectures and no GPU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message

from hfbench.actions.kernel_static import KernelStaticResult
from hfbench.actions.params import command_line
from hfbench.actions.registry import find
from hfbench.errors import HfbenchError
from hfbench.paths import expand
from hfbench.screens.background import Background
from hfbench.screens.base import BenchScreen
from hfbench.screens.confirm import AskText
from hfbench.screens.kernel_asks import (
    STATIC,
    Analysed,
    Compiled,
    Compiling,
    Listed,
    ReadAll,
    follow_job,
    follow_running,
    open_kernel,
    own_state,
    read_kernels,
)
from hfbench.screens.kernel_trials import Trials, Tried
from hfbench.screens.places import Places
from hfbench.widgets.glyphs import glyphs_of
from hfbench.widgets.help import Help
from hfbench.widgets.kernel_matrix import KernelMatrix
from hfbench.widgets.kernel_rows import WAITS, KernelState, Trial, row_lines
from hfbench.widgets.notice import Notice
from hfbench.widgets.progress_line import ProgressLine
from hfbench.widgets.progress_text import Phase
from hfbench.widgets.span_view import SpanView

STARTING = "starting"
"""Stands for the id of a job that has none yet."""


@dataclass
class NotOpened(Message):
    """Why a file is no kernel."""

    error: HfbenchError


class KernelsScreen(BenchScreen):
    """Every kernel with its verdicts, and the row under the cursor in full."""

    help = Help(
        "Kernels",
        "Verdicts of earlier runs are here at once; `s` compiles the kernel under the cursor, `S` one after the other "
        "all that lack some, as jobs that need no GPU. A job goes on when you leave, those that wait do not begin.\n"
        "`J` opens the job. `c`, `t` and `T` check, time and tune the kernel, and what the latest job of each found "
        "stands below; `o` opens a file with one of your own; "
        "`tab` goes to the text below, which scrolls. `u` reads anew, `y` copies the command.",
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "compile", "compile", id="kernels.compile"),
        Binding("S", "compile_all", "compile all", id="kernels.compile-all"),
        Binding("c", "form('kernel.check')", "check", id="kernels.check"),
        Binding("t", "form('kernel.time')", "time", id="kernels.time"),
        Binding("T", "form('kernel.tune')", "tune", id="kernels.tune"),
        Binding("o", "open", "open file", id="kernels.open"),
        Binding("J", "job", "job", show=False, id="kernels.job"),
        Binding("u", "update", "update", show=False, id="kernels.update"),
        Binding("y", "copy_command", "copy command", show=False, id="kernels.copy"),
    ]

    DEFAULT_CSS = """
    KernelsScreen {
        & ProgressLine { display: none; margin-bottom: 1; }
        & SpanView { height: 40%; min-height: 10; margin-top: 1; }
    }
    """

    def __init__(self) -> None:
        super().__init__()
        self.kernels: dict[str, KernelState] = {}
        self.job = ""
        """The job that compiles, empty while none does."""
        self.waiting: list[str] = []
        """Kernels to be compiled after it."""
        self.phases: tuple[Phase, ...] = ()
        self._reading = Background(self, ReadAll)
        self._following = Background(self, lambda error: Compiled("", error=error))
        self._opening = Background(self, NotOpened)
        self._trials = Trials(self)
        self._tried: Mapping[str, tuple[Trial, ...]] = {}
        self._read = False
        self._came_back = False
        """Whether a job compiles that this screen did not start: its kernel is where the cursor is wanted."""
        self._left: Places | None = None
        """Where the cursor was left when the screen was shown last, until it is there again or somewhere else."""

    @property
    def at_rest(self) -> bool:
        """All that earlier runs left is shown, and no job is under way."""
        return super().at_rest and self._read and not self.job

    def trail(self) -> tuple[str, ...]:
        """The matrix itself."""
        return ("Kernels",)

    def body(self) -> ComposeResult:
        """Trouble, progress, the matrix, one row of it."""
        yield Notice()
        yield ProgressLine()
        yield KernelMatrix()
        yield SpanView()

    def on_mount(self) -> None:
        """Read, and look whether a job compiles already."""
        matrix = self.query_one(KernelMatrix)
        self.set_focus(matrix)
        matrix.folded = self.bench.places.folded
        if self.bench.places.kernel:
            self._left = replace(self.bench.places)
        self.action_update()
        self._trials.look(self.bench.machine.known_jobs)
        jobs = [row.id for row in self.bench.machine.known_jobs if row.action == STATIC and not row.state.over]
        if jobs:
            self._came_back = True
            self._following.start(partial(follow_running, jobs))

    def on_unmount(self) -> None:
        """Nobody looks any more; a job goes on."""
        for each in (self._reading, self._following, self._opening, self._trials):
            each.stop()

    def on_screen_resume(self) -> None:
        """Show what came while another screen was in front."""
        super().on_screen_resume()
        self._paint()

    def machine_changed(self) -> None:
        """Jobs began or ended, such as a check."""
        super().machine_changed()
        self._trials.look(self.bench.machine.known_jobs)

    # -- what is known --------------------------------------------------------

    @on(Tried)
    def _told(self, message: Tried) -> None:
        self._tried = message.trials
        if self.is_mounted and self.in_front:
            self._paint_row()

    def action_update(self) -> None:
        """Read anew what earlier runs left."""
        self._read = False
        self._reading.start(read_kernels)

    @on(Listed)
    def _listed(self, message: Listed) -> None:
        self.kernels = {each.kernel: each for each in message.states}
        for kernel in self.waiting:
            self._mark(kernel, WAITS)
        self._paint()
        if self._left and not self.query_one(KernelMatrix).go_to(self._left.kernel):
            self._left = None

    @on(Analysed)
    def _analysed(self, message: Analysed) -> None:
        if message.opened:
            self.kernels = {message.kernel: own_state(message.kernel)} | self.kernels
        self._take(message.kernel, message.result)
        if message.opened and self.app.is_running:
            self.query_one(Notice).clear()
            self.query_one(KernelMatrix).go_to(message.kernel)

    @on(ReadAll)
    def _read_all(self, message: ReadAll) -> None:
        self._read, self._left = True, None
        self._complain(message.error)

    @on(NotOpened)
    def _not_opened(self, message: NotOpened) -> None:
        self._complain(message.error)

    def _complain(self, error: HfbenchError | None) -> None:
        if self.is_attached and self.app.is_running and error is not None:
            self.query_one(Notice).show_error(error)

    def _take(self, kernel: str, result: KernelStaticResult) -> None:
        if kernel in self.kernels:
            verdicts = {each.config: each.text for each in result.verdicts}
            self.kernels[kernel] = replace(self.kernels[kernel], rows=result.rows, verdicts=verdicts)
            self._paint()
            if self._left and self._left.kernel == kernel and self.in_front:
                self.query_one(KernelMatrix).go_to(kernel, self._left.config)
                self._left = None

    # -- compiling ------------------------------------------------------------

    def action_compile(self) -> None:
        """Compile the kernel under the cursor."""
        if row := self.query_one(KernelMatrix).current:
            self._compile([row.state.kernel])

    def action_compile_all(self) -> None:
        """Compile every kernel that has no rows yet."""
        lacking = [each.kernel for each in self.kernels.values() if not each.rows]
        if lacking:
            self._compile(lacking)
        else:
            self.notify("every kernel is compiled; s compiles one again")

    def _compile(self, kernels: list[str]) -> None:
        try:
            find(STATIC).require()
        except HfbenchError as error:
            self._complain(error)
            return
        self.query_one(Notice).clear()
        self.waiting += [each for each in kernels if each not in self.waiting and not self._at_work(each)]
        self._next()

    def _at_work(self, kernel: str) -> bool:
        return self.kernels[kernel].work not in ("", WAITS)

    def _next(self) -> None:
        if not self.job and self.waiting:
            kernel = self.waiting.pop(0)
            self._mark(kernel, "compiling")
            self.job = STARTING
            request = find(STATIC).build({"kernel": kernel, "fail_on": "never"})
            failed = partial(self._refused, kernel)
            self.bench.start_job(request, started=partial(self._started, kernel), failed=failed)
        for kernel in self.waiting:
            self._mark(kernel, WAITS)
        self._paint()

    def _started(self, kernel: str, id: str) -> None:
        if self.is_attached:
            self.job = id
            self._following.start(partial(follow_job, kernel, id))

    def _refused(self, kernel: str, error: HfbenchError) -> None:
        if self.is_attached:
            self._compiled(Compiled(kernel, error=error))

    @on(Compiling)
    def _compiling(self, message: Compiling) -> None:
        self.job = message.job
        self.phases = message.phases
        self._mark(message.kernel, "compiling")
        self._paint()
        if self._came_back and self.in_front and message.kernel in self.kernels:
            self._came_back = False
            if not (matrix := self.query_one(KernelMatrix)).cursor:
                matrix.go_to(message.kernel)

    @on(Compiled)
    def _compiled(self, message: Compiled) -> None:
        self.job, self.phases = "", ()
        for kernel in [message.kernel] if message.kernel else [*self.kernels]:
            self._mark(kernel, "")
        self._complain(message.error)
        if message.result is not None:
            self._take(message.kernel, message.result)
        self._next()

    def _mark(self, kernel: str, work: str) -> None:
        if kernel in self.kernels:
            self.kernels[kernel] = replace(self.kernels[kernel], work=work)

    # -- keys -----------------------------------------------------------------

    def action_form(self, action: str) -> None:
        """The form of an action on the kernel under the cursor."""
        if row := self.query_one(KernelMatrix).current:
            self.bench.open_form(action, {"kernel": row.state.kernel})

    @work
    async def action_open(self) -> None:
        """Ask for a file, and show its kernel."""
        path = await self.app.push_screen_wait(AskText("Python file with a kernel"))
        if path:
            self._opening.start(partial(open_kernel, str(expand(path).absolute())))

    def action_job(self) -> None:
        """The page of the job that compiles."""
        if self.job not in ("", STARTING):
            self.bench.open_job(self.job)
        else:
            self.notify("no job compiles a kernel now; s starts one")

    async def action_copy_command(self) -> None:
        """The command that tells what the row tells."""
        if row := self.query_one(KernelMatrix).current:
            values = {"kernel": row.state.kernel} | ({"config": row.config} if row.config else {})
            await self.copy(command_line(["hfbench", *STATIC.split(".")], find(STATIC).params, values))

    # -- painting -------------------------------------------------------------

    @on(KernelMatrix.Moved)
    def _moved(self) -> None:
        matrix = self.query_one(KernelMatrix)
        if (row := matrix.current) and (self._left is None or row.state.kernel != self._left.kernel):
            if self._left and matrix.cursor:  # a key was quicker than what is read
                self._left = None
            if self._left is None:
                self.bench.places.kernel, self.bench.places.config = row.state.kernel, row.config
        if self.in_front:
            self._paint_row()
            self.query_one(SpanView).action_scroll_ends(-1)

    def _paint(self) -> None:
        if self.is_mounted and self.in_front:
            progress = self.query_one(ProgressLine)
            progress.display = bool(self.phases)
            progress.show(self.phases)
            self.query_one(KernelMatrix).show([*self.kernels.values()])
            self._paint_row()

    def _paint_row(self) -> None:
        row, glyphs = self.query_one(KernelMatrix).current, glyphs_of(self.app)
        trials = self._tried.get(row.state.kernel, ()) if row else ()
        self.query_one(SpanView).show(lambda width: row_lines(row, width, glyphs, trials) if row else [])
