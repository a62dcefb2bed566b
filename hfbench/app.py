"""The workbench: themes, key map, watchers and the screens. What a screen does stands in its own file."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from textual import on, work
from textual.binding import Binding, BindingType
from textual.driver import Driver
from textual.events import DescendantFocus
from textual.screen import Screen
from textual.widgets import Input

from hfbench.config import Config, read_config, stamp_of
from hfbench.errors import HfbenchError, UsageError
from hfbench.exits import Exit
from hfbench.frugal_driver import frugal
from hfbench.paths import config_file, jobs_root
from hfbench.screens.base import BenchScreen
from hfbench.screens.dressing import Dressing, refuse_unknown
from hfbench.screens.later import BEHIND_MODELS, load_later
from hfbench.screens.leaving import Leaving
from hfbench.screens.machine import MachineState
from hfbench.screens.messages import GpusSampled, JobsListed
from hfbench.screens.models import ModelsScreen
from hfbench.screens.opening import Opening
from hfbench.screens.palette import Palette
from hfbench.screens.places import Places
from hfbench.screens.watchers import Watchers
from hfbench.widgets.glyphs import glyphs
from hfbench.widgets.help_panel import show_help
from hfbench.widgets.jump_overlay import start_jump

if TYPE_CHECKING:
    from hfbench.actions.base import Action, Spec
    from hfbench.jobs.directory import JobDirectory
    from hfbench.screens.attached import PlaceKeeper
    from hfbench.screens.kept import Left, PlaceFile
    from hfbench.screens.tour import Tour
    from hfbench.scripts.record import Recorder

# Imports inside functions below keep screens and rooms that are not shown yet out of the first frame;
# `load_later` brings them in beside it.

TURN = 0.0005
"""Seconds a thread that reads may keep the interpreter while a key waits for it; Python's own 5 ms add up."""

FIRST_FRAME = 1.0
"""Seconds after which the first frame is taken to be painted: a screen that a key covers at once never says so."""

PLACE_POLL = 1.0
"""Seconds between two looks at where the user is; a kill loses no more than that."""

THEME_POLL = 2.0
"""Seconds between two looks at the theme files."""


class Workbench(Opening, Leaving, Dressing):
    """The terminal application. Jobs live outside of it: leaving is always safe."""

    TITLE = "hfbench"
    COMMANDS = {Palette}
    CSS = "Toast { width: auto; max-width: 76; }"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("1", "go('models')", "models", show=False, id="app.models"),
        Binding("2", "go('jobs')", "jobs", show=False, id="app.jobs"),
        Binding("3", "go('gpus')", "GPUs", show=False, id="app.gpus"),
        Binding("4", "go('kernels')", "kernels", show=False, id="app.kernels"),
        Binding("5", "go('engines')", "engines", show=False, id="app.engines"),
        Binding("6", "go('doctor')", "doctor", show=False, id="app.doctor"),
        Binding("7", "go('cache')", "cache", show=False, id="app.cache"),
        Binding("8", "go('registry')", "registry", show=False, id="app.registry"),
        Binding("9", "go('sweeps')", "sweeps", show=False, id="app.sweeps"),
        Binding("colon", "command_palette", "palette", show=False, id="app.palette"),
        Binding("semicolon", "jump", "jump", show=False, id="app.jump"),
        Binding("r", "record", "record", show=False, id="app.record"),
        Binding("question_mark", "help", "help", show=False, id="app.help"),
        Binding("greater_than_sign", "tour_step(1)", "next of the tour", show=False, id="app.tour-next"),
        Binding("less_than_sign", "tour_step(-1)", "back in the tour", show=False, id="app.tour-back"),
        Binding("ctrl+z", "suspend_process", "stop, fg goes on", show=False, id="app.suspend"),
        Binding("q", "quit", "quit", show=False, id="app.quit"),
    ]

    def __init__(self, config: Config, model: str | None = None, *, ascii: bool = False, watch: bool = True) -> None:
        super().__init__()
        self.no_color = bool(os.environ.get("NO_COLOR"))  # Textual takes an empty one for a wish, too
        self.config = config
        self._config_seen = stamp_of(config_file())
        self.model = model
        self.glyphs = glyphs(ascii)
        self.machine = MachineState()
        self.places = Places()
        self.tour: Tour | None = None
        """The walk that is on, if one is."""
        self.place_file: PlaceFile | None = None
        """Where it is taken down where the user is, if it is."""
        self.left: Left | None = None
        """Where to go back to."""
        self._keeper: PlaceKeeper | None = None
        self.baud = config.ui.baud
        """Bits a second of the terminal's line, 0 for as fast as one likes."""
        self._watching = False
        self.watchers = Watchers(self.post_message, jobs_root(), config.ui.refresh) if watch else None
        self.animation_level = "none"  # nothing moves unless something happened; over SSH each frame costs

    @cached_property
    def recorder(self) -> Recorder:
        """What takes down the actions that are started."""
        from hfbench.scripts.record import Recorder

        return Recorder()

    def get_driver_class(self) -> type[Driver]:
        """Textual's own, writing fewer bytes."""
        return frugal(super().get_driver_class())

    def get_default_screen(self) -> Screen[None]:
        """The models are below everything else."""
        return ModelsScreen()

    def on_load(self) -> None:
        """Themes and keys, before there is a screen that would have to be styled twice."""
        self.load_themes()
        if self.config.keys:  # asking for the ids would load every screen
            self.apply_keys(binding_ids())

    def on_mount(self) -> None:
        """The model that was asked for; watchers and other screens after the first frame was painted."""
        if self.model:
            self.open_model(self.model)
        if self.left:
            self._go_back(self.left)
        if not self.is_headless:
            self.listen_to_signals()
        self.call_after_refresh(self._first_frame_painted)
        self.set_timer(FIRST_FRAME, self._first_frame_painted)

    def _first_frame_painted(self) -> None:
        if self.watchers and not self._watching:
            self._watching = True
            self.watchers.start()
            self.set_interval(THEME_POLL, self.reload_themes)
            if self.place_file and not self.left:
                self._keep_place(self.place_file)
            load_later(BEHIND_MODELS)

    def exit(self, *arguments: Any, **more: Any) -> None:
        """Take down where the user is, and leave."""
        if self._keeper:
            self._keeper.look_last()
        super().exit(*arguments, **more)

    @work
    async def _go_back(self, left: Left) -> None:
        """Be where the user was; from there on it is taken down where they go."""
        from hfbench.screens.attached import go_back

        await go_back(self, left)
        if self.place_file:
            self._keep_place(self.place_file)

    def _keep_place(self, file: PlaceFile) -> None:
        from hfbench.screens.attached import PlaceKeeper

        self._keeper = PlaceKeeper(self, file)
        self.set_interval(PLACE_POLL, self._keeper.look)

    @property
    def may_paint(self) -> bool:
        """False while a slow line still carries what was painted before: what changes meanwhile is painted once."""
        asks = getattr(self._driver, "may_paint", None)
        return asks is None or bool(asks(self.last_key))

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        """No cursor blinks: each time it does crosses the line."""
        if isinstance(event.widget, Input):
            event.widget.cursor_blink = False

    def on_unmount(self) -> None:
        """Let the watchers end."""
        if self.watchers:
            self.watchers.stop()

    # -- what screens ask for -------------------------------------------------

    @work(thread=True, group="launch")
    def start_job(
        self,
        request: Action,
        *,
        lease: bool = True,
        runs_in: str = "",
        on: str = "",
        started: Callable[[str], object] | None = None,
        failed: Callable[[HfbenchError], object] | None = None,
    ) -> None:
        """Start a job for a request, and open its page unless `started` takes its id; the recorder notes it."""
        from hfbench.actions.asking import ask
        from hfbench.actions.base import spec_of
        from hfbench.jobs.launch import launch

        spec = spec_of(request)
        try:
            job = launch(jobs_root(), ask(spec, request, runs_in=runs_in, on=on, lease=lease))
        except HfbenchError as error:
            self.call_from_thread(failed or self.complain, error)
            return
        self.call_from_thread(self._started, spec, request, job, started or self.open_job, runs_in, on)

    def _started(
        self, spec: Spec, request: Action, job: JobDirectory, then: Callable[[str], object], runs_in: str, on: str
    ) -> None:
        self.recorder.add(spec, request, runs_in=runs_in, on="" if on == "local" else on)
        if self.watchers:
            self.watchers.look_now()
        then(job.id)

    def reread_config(self) -> None:
        """Go by the configuration as it is now, if its file was changed; keys and colours wait for the next start."""
        seen = stamp_of(config_file())
        if seen == self._config_seen:
            return
        self._config_seen = seen
        try:
            self.config = read_config()
        except HfbenchError as error:
            self.complain(error)
        else:
            self.notify("the configuration was read again; keys, theme and pace change with the next start")

    # -- what the watchers tell -----------------------------------------------

    @on(GpusSampled)
    def _gpus(self, message: GpusSampled) -> None:
        self._see(self.machine.with_sample(message.snapshot))

    @on(JobsListed)
    def _jobs(self, message: JobsListed) -> None:
        self._see(replace(self.machine, jobs=message.rows, jobs_trouble=message.trouble))

    def _see(self, machine: MachineState) -> None:
        """Take a new picture of the machine and let the screen in front show it; the others do when they return."""
        self.machine = machine
        for screen in self.screen_stack:
            if isinstance(screen, BenchScreen) and screen.is_mounted and screen.in_front:
                screen.machine_changed()

    # -- keys -----------------------------------------------------------------

    def action_go(self, name: str) -> None:
        """Go to one of the main screens, keeping what is below it."""
        from hfbench.screens.every import main_screen

        kind = main_screen(name)
        while len(self.screen_stack) > 1 and not isinstance(self.screen, kind):
            self.pop_screen()
        if not isinstance(self.screen, kind):
            self.push_screen(kind())

    @work
    async def action_compare(self) -> None:
        """Choose a second model and compare it with the one in view."""
        from hfbench.screens.choose_model import choose_and_compare

        await choose_and_compare(self, getattr(self.screen, "chosen_model", ""))

    @work
    async def action_convert(self, ask: bool = False) -> None:
        """Convert the model in view, or one that is asked for."""
        from hfbench.screens.choose_model import ChooseModel

        model = "" if ask else getattr(self.screen, "chosen_model", "")
        question = "convert which model, or checkpoint of Megatron"
        if model := model or await self.push_screen_wait(ChooseModel(question)):
            self.open_convert(model)

    def action_jump(self) -> None:
        """Letters on every region."""
        start_jump(self)

    def action_help(self) -> None:
        """Help for what is focused."""
        show_help(self)

    def action_tour(self) -> None:
        """Begin the tour at its first stop, or end it."""
        from hfbench.screens.tour import Tour

        if self.tour:
            self.tour.end()
        else:
            self.tour = Tour(self)

    def action_tour_step(self, by: int) -> None:
        """A stop of the tour forward or back."""
        if self.tour:
            self.tour.step(by)

    def action_record(self) -> None:
        """Begin to record, or end and ask where to save."""
        if not self.recorder.recording:
            self.recorder.start()
            self._see(replace(self.machine, recording=True))
            self.notify("recording: jobs you start become steps of a script; r ends it")
        else:
            self._end_recording()

    async def action_quit(self) -> None:
        """Leave; a recording that holds steps is asked about first."""
        if self.recorder_holds_steps:
            self._end_recording(leave=True)
        else:
            self.exit()

    @property
    def recorder_holds_steps(self) -> bool:
        """True while a recording would be lost by leaving."""
        return self.machine.recording and len(self.recorder) > 0

    @work
    async def _end_recording(self, *, leave: bool = False) -> None:
        from hfbench.screens.recording import end_recording

        if await end_recording(self):
            del self.recorder  # the next one begins empty
            self._see(replace(self.machine, recording=False))
            if leave:
                self.exit()


def refuse_without_terminal() -> None:
    """UsageError when there is no terminal to draw on."""
    if not (sys.stdin.isatty() and sys.__stderr__ is not None and sys.__stderr__.isatty()):
        raise UsageError(
            "the workbench needs a terminal", remedy="use a command (hfbench --help) or hfbench --script FILE"
        )


def open_workbench(
    model: str | None,
    *,
    ascii: bool = False,
    mouse: bool = True,
    baud: int = 0,
    theme: str = "",
    tour: bool = False,
    attach: bool = False,
) -> int:
    """Run the workbench until the user leaves, from where it was left if `attach`; UsageError when there is no terminal
    to draw on, or no such theme."""
    from hfbench.screens.kept import PlaceFile

    refuse_without_terminal()
    config = read_config()
    if theme:
        refuse_unknown(theme)
        config = replace(config, ui=replace(config.ui, theme=theme))
    sys.setswitchinterval(TURN)
    app = Workbench(config, model, ascii=ascii or config.ui.ascii or not draws_unicode())
    app.baud = baud or app.baud
    app.place_file = PlaceFile()
    app.left = app.place_file.take_over() if attach else None
    if tour:
        app.call_later(app.action_tour)
    app.run(mouse=mouse and config.ui.mouse)
    return app.return_code or Exit.OK


def draws_unicode() -> bool:
    """False where block characters would come out as escapes: Textual draws on stderr in its encoding."""
    encoding = (getattr(sys.__stderr__, "encoding", "") or "").lower().replace("-", "")
    return encoding == "utf8" and os.environ.get("TERM", "") not in ("linux", "dumb")


def bindings() -> list[tuple[str, str, str]]:
    """Id, keys and label of every binding a key map may change: the application's, and those of screens and tabs."""
    from hfbench.screens.every import bindings_of, holders

    return bindings_of((Workbench, *holders()))


def binding_ids() -> set[str]:
    """Every id a key map may name."""
    return {name for name, _, _ in bindings()}
