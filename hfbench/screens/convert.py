"""The Convert screen: a plan before anything is written, the writing as a job, and the proof in three walls."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import ClassVar

from textual import on, work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType

from hfbench.actions.params import command_line
from hfbench.actions.registry import find
from hfbench.errors import HfbenchError, UsageError
from hfbench.paths import expand
from hfbench.screens.background import Background
from hfbench.screens.base import BenchScreen
from hfbench.screens.convert_asks import VERIFY, Asker, JobTold, Planned, Refused, SourceFound, find_source
from hfbench.screens.convert_body import ConvertBody
from hfbench.screens.convert_jobs import ConvertJobs, JobLost
from hfbench.screens.convert_questions import ask_allow, ask_folder, ask_stages
from hfbench.screens.convert_view import ConvertView
from hfbench.screens.convert_wish import TURNED, Wish
from hfbench.screens.latest_wins import LatestWins
from hfbench.widgets.convert_chooser import ConvertChooser
from hfbench.widgets.help import Help


class ConvertScreen(BenchScreen):
    """One model or checkpoint, what would become of it, and whether it did."""

    filters = True

    help = Help(
        "Convert",
        "The letters at the left set it up, and each change is planned anew; nothing is written until `x` starts it, "
        "as a job that goes on when you leave. `V` proves what was written; `w` turns what that looks at: all "
        "three walls, all with megatron-core of `[environments]` in the configuration, the weights alone. `J` opens "
        "the job under way, or the latest.\n"
        "`o` names the folder, `s` an uneven first and last stage, `a` what a cast may lose; `enter` tells a row of "
        "the plan in full, `b` opens the way back. `y` copies the command, `Y` that of the proof.",
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("x", "convert", "convert", id="convert.start"),
        Binding("V", "prove", "prove", id="convert.prove"),
        Binding("o", "out", "folder", id="convert.out"),
        Binding("J", "job", "job", id="convert.job"),
        Binding("y", "copy_command", "copy command", id="convert.copy"),
        Binding("Y", "copy_proof", "copy proof", show=False, id="convert.copy-proof"),
        Binding("b", "way_back", "way back", show=False, id="convert.way-back"),
        *(Binding(key, f"turn('{key}', 1)", name, show=False, id=f"convert.{name}") for key, name in TURNED.items()),
        *(
            Binding(key.upper(), f"turn('{key}', -1)", f"{name} back", show=False, id=f"convert.{name}-back")
            for key, name in TURNED.items()
        ),
        Binding("l", "turn('l', 1)", "layout", show=False, id="convert.layout"),
        Binding("L", "turn('l', -1)", "layout back", show=False, id="convert.layout-back"),
        Binding("s", "turn('s', 1)", "stages", show=False, id="convert.stages"),
        Binding("a", "turn('a', 1)", "allow", show=False, id="convert.allow"),
        Binding("w", "walls", "walls", show=False, id="convert.walls"),
        Binding("u", "update", "update", show=False, id="convert.update"),
        Binding("escape", "back", "back", show=False, id="screen.back"),
    ]

    def __init__(self, reference: str) -> None:
        super().__init__()
        self.reference = reference
        self.view = ConvertView()
        self.jobs = ConvertJobs(self)
        self._looking = Background(self, _no_source)
        self._asker: Asker | None = None
        self._answers: LatestWins[Wish] | None = None
        self._touched = False

    @property
    def chosen_model(self) -> str:
        """What the palette fills into an action's form."""
        return self.view.source.reference if self.view.source else self.reference

    @property
    def takes_keys(self) -> bool:
        """Keys wait until it is known what is to be converted."""
        return self.view.wish is not None or self.view.refusal is not None

    @property
    def at_rest(self) -> bool:
        """Planned, earlier jobs looked through, and every job under way has told of itself."""
        jobs = (self.view.conversion, self.view.proof)
        asked = self.view.planning or (self.view.source is not None and self.jobs.searching)
        return super().at_rest and not asked and all(each is None or each.job for each in jobs)

    def trail(self) -> tuple[str, ...]:
        """What is converted."""
        name = self.view.source.name if self.view.source else self.reference.rstrip("/").rpartition("/")[2]
        return ("Convert", name)

    def body(self) -> ComposeResult:
        """All that is painted anew when more is known."""
        yield ConvertBody()

    def on_mount(self) -> None:
        """Look what it is."""
        self.set_focus(self.query_one(ConvertChooser))
        self.view = replace(self.view, environments=self._environments)
        self.action_update()

    def on_unmount(self) -> None:
        """Nobody looks any more; jobs go on."""
        self._looking.stop()
        self.jobs.stop()
        self._end_asking()

    def on_screen_resume(self) -> None:
        """Show what came while another screen was in front."""
        super().on_screen_resume()
        self._paint()

    # -- what is known --------------------------------------------------------

    def action_update(self) -> None:
        """Look at the source anew, and plan."""
        self._end_asking()
        self._show(replace(self.view, source=None, planned=None, refusal=None))
        cache = self._cache_dir
        self._asker = Asker(cache)
        self._answers = LatestWins(self, self._asker.plan, _no_source)
        self._looking.start(partial(find_source, self.reference, cache))

    def _end_asking(self) -> None:
        if self._answers is not None and self._asker is not None:
            self._answers.stop()
            self._asker.close()

    @property
    def _cache_dir(self) -> str:
        cache = self.bench.config.models.cache
        return str(expand(cache)) if cache else ""

    @property
    def _environments(self) -> tuple[str, ...]:
        return tuple(name for name, each in self.bench.config.environments.items() if each.python)

    @on(SourceFound)
    def _found(self, message: SourceFound) -> None:
        wish = self.view.wish or Wish(source=message.source)
        self._show(replace(self.view, source=message.source, lacking=message.lacking))
        self._ask(replace(wish, source=message.source))
        self.jobs.search(message.source)

    def machine_changed(self) -> None:
        """The first list of jobs may come after the source."""
        super().machine_changed()
        if self.view.source:
            self.jobs.search(self.view.source)

    def _ask(self, wish: Wish) -> None:
        """Plan this; what is shown stays until the answer comes."""
        self.query_one(ConvertBody).calm()
        self._show(replace(self.view, wish=wish, refusal=None))
        if self._answers is not None:
            self._answers.ask(wish)

    @on(Planned)
    def _planned(self, message: Planned) -> None:
        if message.wish == self.view.wish:
            plan = replace(self.view, planned=message.wish, result=message.result, rows=message.rows)
            self._show(replace(plan, taken=message.wish.folder if message.taken else "", refusal=None))

    @on(Refused)
    def _refused(self, message: Refused) -> None:
        if message.wish is None or message.wish == self.view.wish:
            self._show(replace(self.view, planned=message.wish, refusal=message.error))

    # -- the chooser ----------------------------------------------------------

    @on(ConvertChooser.Turned)
    def _turned(self, message: ConvertChooser.Turned) -> None:
        self.action_turn(message.key, message.steps)

    def action_turn(self, key: str, steps: int) -> None:
        """The next choice of what stands beside a key."""
        wish = self.view.wish
        if wish is None or key not in [knob.key for knob in wish.knobs(self.view.proposals)]:
            return
        self._touched = True
        if key == "s":
            self._ask_in_words(ask_stages, wish)
        elif key == "a":
            self._ask_in_words(ask_allow, wish)
        elif key == "l":
            self._ask(wish.proposed(self.view.proposals, steps))
        else:
            self._ask(wish.turned(TURNED[key], steps))

    @work
    async def _ask_in_words(self, question: Callable[[App[None], Wish], Awaitable[Wish | None]], wish: Wish) -> None:
        try:
            changed = await question(self.app, wish)
        except UsageError as error:
            self._complain(error)
            return
        if changed is not None:
            self._touched = True
            self._ask(changed)

    def action_out(self) -> None:
        """Ask for the folder."""
        if self.view.wish:
            self._ask_in_words(ask_folder, self.view.wish)

    def action_way_back(self) -> None:
        """Convert what was made, the other way."""
        if self.view.wish and self.view.made and self.view.made.finished:
            self.bench.open_convert(self.view.wish.folder)
        else:
            self.notify("nothing was converted into this folder yet; x converts")

    # -- jobs -----------------------------------------------------------------

    def action_convert(self) -> None:
        """Start the conversion that is planned."""
        wish, doing = self.view.wish, self.view.conversion
        if wish is None or self.view.refusal is not None:
            return  # the refusal stands where the plan would
        if doing is not None and doing.live:
            self.notify("a conversion is under way; J opens its job")
            return
        self._touched = True
        self.query_one(ConvertBody).calm()
        started = self.jobs.start(wish.action, wish.values(self._cache_dir))
        self._show(replace(self.view, conversion=started))

    def action_prove(self) -> None:
        """Start the proof of what was made."""
        wish, doing = self.view.wish, self.view.proof
        if wish is None:
            return
        if doing is not None and doing.live:
            self.notify("a proof is under way; J opens its job")
            return
        if not self.view.there:
            self.notify("there is nothing to prove yet; x converts")
            return
        self._touched = True
        self.query_one(ConvertBody).calm()
        self._show(replace(self.view, proof=self.jobs.start(VERIFY, self._proof(wish))))

    @on(JobTold)
    def _told(self, message: JobTold) -> None:
        doing = message.doing
        if message.wish is not None and not self._touched:
            self._ask(message.wish)
        if doing.action == VERIFY:
            self._show(replace(self.view, proof=doing))
        else:
            taken = doing.about[0] if doing.finished else self.view.taken
            self._show(replace(self.view, conversion=doing, taken=taken))
        if message.found and doing.live:
            self.jobs.follow(doing.action, doing.job)

    @on(JobLost)
    def _lost(self, message: JobLost) -> None:
        if message.action == VERIFY:
            self._show(replace(self.view, proof=None))
        elif message.action:
            self._show(replace(self.view, conversion=None))
        self._complain(message.error)

    def _complain(self, error: HfbenchError) -> None:
        if self.is_attached and self.app.is_running:
            self.query_one(ConvertBody).complain(error)

    def action_job(self) -> None:
        """The page of the job under way, or of the latest one."""
        jobs = [each for each in (self.view.proven, self.view.made) if each is not None and each.job]
        if jobs:
            self.bench.open_job(next((each.job for each in jobs if each.live), jobs[0].job))
        else:
            self.notify("no job converts this yet; x starts one")

    def action_walls(self) -> None:
        """All walls, all with an environment's megatron-core, or the weights alone."""
        self._show(replace(self.view, reach=self.view.next_reach))

    # -- keys -----------------------------------------------------------------

    async def action_copy_command(self) -> None:
        """The command that converts so."""
        if wish := self.view.wish:
            spec = find(wish.action)
            await self.copy(command_line(["hfbench", *spec.name.split(".")], spec.params, wish.values(self._cache_dir)))

    async def action_copy_proof(self) -> None:
        """The command that proves it."""
        if wish := self.view.wish:
            await self.copy(command_line(["hfbench", VERIFY], find(VERIFY).params, self._proof(wish)))

    def _proof(self, wish: Wish) -> dict[str, object]:
        return wish.proof(self.view.walls, self.view.environment)

    def action_back(self) -> None:
        """First close the row that is told in full."""
        if not self.query_one(ConvertBody).close_row():
            super().action_back()

    # -- painting -------------------------------------------------------------

    def _show(self, view: ConvertView) -> None:
        before, self.view = self.view, view
        if not self.is_mounted or not self.app.is_running:
            return
        self._paint(plan=view.result is not before.result or view.refusal is not before.refusal)

    def _paint(self, *, plan: bool = True) -> None:
        if not self.is_mounted or not self.in_front:
            return
        self.query_one(ConvertBody).show(self.view, plan=plan)
        self.refresh_frame()


def _no_source(error: HfbenchError) -> Refused:
    return Refused(None, error)
