"""The Launch screen: one form for every action, with the command and the script it stands for: a job, or a sweep."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.events import DescendantFocus, Resize
from textual.message import Message
from textual.widgets import Static

from hfbench.actions.base import Spec
from hfbench.actions.registry import find
from hfbench.config import ExecutorConfig
from hfbench.environments.choose import place_for
from hfbench.errors import HfbenchError
from hfbench.jobs.executors.spec import LOCAL
from hfbench.jobs.leases import holder
from hfbench.models.reference import resolve
from hfbench.paths import leases_root
from hfbench.screens.background import Background
from hfbench.screens.base import BenchScreen
from hfbench.screens.launch_place import PlaceDesk, PlacesAnswered
from hfbench.screens.launch_runs import RUNS_IN, RUNS_ON, asked_in, asked_on, environment_field, places_field
from hfbench.screens.launch_sweep import MOST_CELLS, script_of, start_sweep, step_of, time_of
from hfbench.screens.messages import Latest, Trouble
from hfbench.screens.recording import save_script
from hfbench.text import printable
from hfbench.widgets.facts_lines import Fact
from hfbench.widgets.facts_table import FactsTable
from hfbench.widgets.form import FieldInput, Form, help_of
from hfbench.widgets.form_state import FormState
from hfbench.widgets.glyphs import glyphs_of
from hfbench.widgets.help import Help


@dataclass
class SweepStarted(Message):
    """The sweep of a form is on its way."""

    name: str
    state: FormState


@dataclass
class LookedUp(Latest):
    """What a form amounts to on this machine."""

    state: FormState
    facts: dict[str, Fact]


class LaunchScreen(BenchScreen):
    """Fill in what an action needs and start it as a job."""

    help = Help(
        "Launch",
        "Fields are checked as you type. `enter` starts the job in a process of its own: it goes on when you leave. A "
        "field that is a list such as 1,8,32 or a range such as 16..128*2 makes it a sweep: a job for each "
        "combination.\n"
        "`y` copies the command, `s` the step of a script, or all of it where it is a sweep; `S` saves the script. "
        "`pagedown` scrolls what stands below the fields where it has too little room.",
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "copy_command", "copy command", id="launch.copy-command"),
        Binding("s", "copy_step", "copy script step", id="launch.copy-step"),
        Binding("S", "save", "save script", id="launch.save"),
        Binding("L", "lease", "do not wait for device", show=False, id="launch.lease"),
    ]

    DEFAULT_CSS = """
    LaunchScreen {
        & #summary { height: auto; color: $text-muted; padding: 0 0 1 0; }
        &.-cramped #summary { display: none; }
        & #below { height: auto; max-height: 50%; margin: 1 0 0 0; scrollbar-size-vertical: 1; }
    }
    """

    def __init__(
        self,
        action: str,
        values: Mapping[str, object] | None = None,
        *,
        environments: Sequence[str] = (),
        executors: Mapping[str, ExecutorConfig] | None = None,
        runs_in: str = "",
        on: str = "",
        texts: Mapping[str, str] | None = None,
    ) -> None:
        """`texts` stand in fields as they would be typed, such as lists and ranges, in place of `values`."""
        super().__init__()
        self.spec = find(action)
        fields = (environment_field(environments, runs_in), places_field(executors or {}, on))
        given = {**(values or {}), RUNS_IN: runs_in, RUNS_ON: (on or LOCAL,)}
        self.state = FormState.of(self.spec, given, tuple(filter(None, fields)))
        for name, text in (texts or {}).items():
            self.state = self.state.typed(name, text)
        self.lease = True
        self.more = False
        """Whether some of what stands below the fields is out of view."""
        self.facts: dict[str, Fact] = {}
        self._background = Background(self, Trouble)
        self._starting = Background(self, Trouble)
        self._places: dict[tuple[str, tuple[str, ...]], Fact] = {}
        self._placing = threading.Lock()
        self._desk = PlaceDesk(self)
        self._launching = False

    @property
    def typed(self) -> dict[str, str]:
        """The texts of its fields, without those that nobody else may read."""
        return {param.name: self.state.texts[param.name] for param in self.state.params if not param.secret}

    def type_again(self, texts: Mapping[str, str]) -> None:
        """Fill in what was typed before, as far as there are such fields still."""
        for field in self.query(FieldInput):
            field.value = texts.get(field.param.name, field.value)

    def trail(self) -> tuple[str, ...]:
        """Which action, on which model."""
        model = self.state.texts.get("model", "").rstrip("/").rpartition("/")[2]
        return tuple(filter(None, ("Launch", model, self.spec.name)))

    def body(self) -> ComposeResult:
        """Summary, fields, and what they stand for."""
        yield Static(f"{self.spec.summary}.", id="summary", markup=False)
        yield Form(self.state)
        with VerticalScroll(id="below", can_focus=False):  # the fields have half of the room, whatever stands here
            yield FactsTable(id="stands-for")

    def on_unmount(self) -> None:
        """Nobody looks any more."""
        self._background.stop()
        self._desk.stop()

    def on_mount(self) -> None:
        """Begin in the first field that needs something, else on the form itself."""
        wrong = next(iter(self.state.problems), None)
        self.set_focus(self.query_one(f"#field-{wrong}" if wrong else Form))
        self._changed(Form.Changed(self.state))

    @on(Form.Changed)
    def _changed(self, message: Form.Changed) -> None:
        self.state = state = message.state
        self._desk.look(self.spec, state.request, runs_in=asked_in(state), on=asked_on(state))
        self.show_facts()
        self._background.start(lambda stopped, post: post(LookedUp(state, self.facts_of(state))))
        self.refresh_frame()

    @on(DescendantFocus)
    def _another_field(self) -> None:
        self.query_one("#below").scroll_home(animate=False)  # what the field takes stands first
        self.show_facts()

    @on(Form.Submitted)
    def _submitted(self, message: Form.Submitted) -> None:
        state, on = message.state, asked_on(message.state)
        request = state.request
        if request is None:
            self.bench.complain("the form cannot be started: a field is wrong")
        elif len(on) > 1 and not state.axes:
            self.bench.complain("one job runs in one place: name one, or vary a field to make it a sweep")
        elif self._desk.refusal:
            self.bench.complain(self._desk.refusal)
        elif state.axes:
            self._start_sweep(state)
        elif not self._launching:
            self._launching = True
            self.bench.start_job(
                request,
                lease=self.lease,
                runs_in=asked_in(state),
                on=on[0],
                started=self._job_started,
                failed=self._job_refused,
            )

    def _job_started(self, job: str) -> None:
        if self.app.screen is self:
            self.app.pop_screen()
        self.bench.open_job(job)

    def _job_refused(self, error: HfbenchError) -> None:
        """What was typed stays, to be mended."""
        self._launching = False
        self.bench.complain(error)

    def _start_sweep(self, state: FormState) -> None:
        if state.cells > MOST_CELLS:
            self.bench.complain(f"that makes {state.cells:,} cells; a sweep may have {MOST_CELLS:,}: leave values out")
        elif not self._starting.busy:
            runs_in, on = asked_in(state), asked_on(state)
            self._starting.start(
                lambda stopped, post: post(SweepStarted(start_sweep(state, runs_in=runs_in, on=on), state))
            )

    @on(SweepStarted)
    def _sweep_started(self, message: SweepStarted) -> None:
        if self.bench.recorder.recording:
            state = message.state
            self.bench.recorder.add_sweep(self.spec, *step_of(state, asked_in(state), asked_on(state)))
        self.app.pop_screen()
        self.bench.open_sweep(message.name)

    @on(PlacesAnswered)
    def _places_answered(self, message: PlacesAnswered) -> None:
        self._desk.answered(message)
        if self.is_attached:
            self.show_facts()

    def show_facts(self) -> None:
        """The lines below the form."""
        facts = [self.facts[name] for name in ("model", "device", "waits", "needs") if name in self.facts]
        if told := self._desk.fact:
            facts.insert(0, told)
        if self.state.axes:
            facts.insert(0, self._sweep_fact())
        if isinstance(field := self.focused, FieldInput):  # its hint beside it is cut to the room there is
            facts.insert(0, Fact(field.param.name, help_of(field.param), "muted"))
        for name, problem in list(self.state.problems.items())[:1]:
            facts.insert(0, Fact(name, problem, "error"))
        if not self.lease:
            facts.append(Fact("device", "does not wait until it is free (L waits again)", "warn"))
        facts.append(Fact("command", self.state.command))
        self.query_one(FactsTable).show(facts)
        self.call_after_refresh(self._tell_more)

    def _tell_more(self) -> None:
        """The key line names the key that scrolls what stands below where some of it is out of view."""
        if self.is_attached and self.more != (more := self.query_one("#below").max_scroll_y > 0):
            self.more = more
            self.refresh_bindings()

    def on_resize(self, event: Resize) -> None:
        """There may be other room."""
        super().on_resize(event)
        self.call_after_refresh(self._tell_more)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """What is in view as a whole is not scrolled."""
        return self.more if action == "below" else super().check_action(action, parameters)

    def _sweep_fact(self) -> Fact:
        """How many cells, and how long they may take once that is known."""
        cells = self.state.cells
        if cells > MOST_CELLS:
            return Fact("sweep", f"of {cells:,} cells, and {MOST_CELLS:,} is the most: leave values out", "error")
        told = f" {glyphs_of(self.app).dot} {self.facts['time'].value}" if "time" in self.facts else ""
        return Fact("sweep", f"of {cells:,} cell{'s' * (cells != 1)}{told}")

    def facts_of(self, state: FormState) -> dict[str, Fact]:
        """Resolve the model, see whether the device is free and whether this Python has what it takes."""
        facts: dict[str, Fact] = {}
        here = any(param.name == param.kind == "model" for param in self.spec.params)  # pull takes one that is not
        if here and (model := state.values.get("model")):
            try:
                facts["model"] = Fact("resolves to", str(resolve(str(model)).folder), "ok")
            except HfbenchError as error:
                facts["model"] = Fact("model", str(error), "error")
        if device := self.device_of(state):
            try:
                facts |= _device_facts(device, needs_gpu=self.spec.needs_gpu)
            except HfbenchError as error:
                facts["device"] = Fact("device", str(error), "error")
        with self._placing:  # asking an environment may take as long as its limit: once for all keys pressed meanwhile
            facts["needs"] = self._place(asked_in(state), self.spec.needing(state.values))
        if state.axes and state.request is not None and state.cells <= MOST_CELLS:
            with contextlib.suppress(HfbenchError):  # whoever starts it is told why it cannot be
                facts["time"] = Fact("time", time_of(state, asked_on(state)))
        return {name: fact for name, fact in facts.items() if fact.value}

    def _place(self, asked: str, spec: Spec) -> Fact:
        """Where the job would run, or what is missing for it; without a text where there is nothing to say."""
        known = (asked, spec.needs)
        if known not in self._places:
            self._places[known] = self._placed(asked, spec)
        return self._places[known]

    def _placed(self, asked: str, spec: Spec) -> Fact:
        try:
            place = place_for(spec, asked)
        except HfbenchError as error:
            return Fact("in" if asked else "missing", str(error), "error")
        if place.why:
            return Fact("runs in", place.why, "warn")
        lacking = [] if place.environment else spec.missing()
        install = f"; pip install 'hfbench[{spec.extra}]'" if spec.extra else ""
        return Fact("missing", f"{', '.join(lacking)}{install}" if lacking else "", "error")

    def device_of(self, state: FormState) -> str:
        """The device the job would hold; empty when it needs none."""
        if self.spec.lease is None:
            return ""
        return str(state.values.get(self.spec.lease, self.spec.param(self.spec.lease).default))

    @on(LookedUp)
    def _found(self, message: LookedUp) -> None:
        if message.state is self.state and self.is_attached:
            self.facts = message.facts
            self.show_facts()

    async def action_copy_command(self) -> None:
        """The shell command of this form."""
        await self.copy(self.state.command)

    async def action_copy_step(self) -> None:
        """The script step of this form."""
        request = self.state.request
        if request is None:
            self.bench.complain("the form has a wrong field: a step cannot be made of it")
            return
        if self.state.axes:
            await self.copy(script_of(self.state, self._script_name, asked_in(self.state), asked_on(self.state)))
            return
        from hfbench.scripts.format import arguments_of, step_text

        arguments = arguments_of(self.spec, request)
        if asked := asked_in(self.state):
            arguments[RUNS_IN] = asked
        if (places := asked_on(self.state)) != (LOCAL,):
            arguments[RUNS_ON] = places[0]
        await self.copy(step_text(self.spec.name, arguments))

    @property
    def _script_name(self) -> str:
        """What a script of this form is called."""
        return " ".join((self.spec.name, *self.state.axes))

    @work
    async def action_save(self) -> None:
        """Ask for a file and write the script of this form, with a matrix where fields are varied."""
        state = self.state
        if state.request is None:
            self.bench.complain("the form has a wrong field: a script cannot be made of it")
            return
        try:
            text = script_of(state, self._script_name, asked_in(state), asked_on(state))
        except HfbenchError as error:
            self.bench.complain(error)
        else:
            await save_script(self.bench, text, "-".join((self.spec.name, *state.axes)))

    def action_below(self, pages: int) -> None:
        """Scroll what stands below the fields."""
        below = self.query_one("#below")
        below.scroll_relative(y=pages * max(1, below.size.height - 1), animate=False)

    def action_lease(self) -> None:
        """Wait for the device, or do not."""
        self.lease = not self.lease
        self.show_facts()


def _device_facts(device: str, *, needs_gpu: bool) -> dict[str, Fact]:
    """Which device `auto` is on this machine, and who holds what the job would need."""
    from hfbench.gpu.devices import AUTO, choose_device

    facts: dict[str, Fact] = {}
    chosen = choose_device(device, needs_gpu=needs_gpu)
    if device.strip().lower() == AUTO:
        name = f"{chosen.name} {chosen.gpu.name}" if chosen.gpu else f"{chosen.name}: no GPU here"
        facts["device"] = Fact("device", printable(f"auto is {name}"), "muted")
    if job := holder(leases_root(), chosen.lease):
        facts["waits"] = Fact("waits for", printable(f"{chosen.name}: job {job.rpartition('-')[2]} holds it"), "warn")
    return facts
