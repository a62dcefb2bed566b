"""Asks the conversion actions beside their screen: plans in a child process, conversions and proofs by jobs."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textual.message import Message

from hfbench.actions.registry import find
from hfbench.codec import decode
from hfbench.errors import HfbenchError, error_from_parts
from hfbench.jobs.directory import JobDirectory
from hfbench.jobs.follow import snapshots
from hfbench.jobs.snapshot import JobSnapshot, read_job
from hfbench.jobs.state import State
from hfbench.models.reference import Location, resolve
from hfbench.paths import jobs_root
from hfbench.screens.background import Stopped
from hfbench.screens.convert_wish import CONVERSIONS, Source, Wish, wish_of
from hfbench.screens.messages import Latest
from hfbench.widgets.plan_rows import PlanRows, plan_rows
from hfbench.widgets.wall_lines import STATES, WALLS, Doing, WallTold

if TYPE_CHECKING:
    from hfbench.actions.aside import Aside
    from hfbench.actions.verify import VerifyResult

VERIFY = "verify"
RUNS_MODELS = ("torch", "transformers", "safetensors")
"""What the walls that run models need."""

CARRIED = "hf"
"""The folder inside a Megatron checkpoint that keeps what was carried along from the model."""

ITERATION = re.compile(r"iter_\d+|release")
"""The name of a folder inside a checkpoint that is named after it."""

PACE = 0.2
"""Seconds between two pictures of a job: more often is not read, and over SSH each one costs."""

MOST_DETAILS = 8
"""Differences of a wall that are listed; its report has all."""

MOST_JOBS = 200
"""Earlier jobs that are looked through for conversions of the same source."""

Post = Callable[[Message], None]


@dataclass
class SourceFound(Message):
    """What is to be converted; without the packages it lacks, models cannot be run to prove it."""

    source: Source
    lacking: tuple[str, ...]


@dataclass
class Planned(Latest):
    """The plan of a wish, and whether something lies already where it would go."""

    wish: Wish
    result: Any
    rows: PlanRows
    taken: bool


@dataclass
class Refused(Latest):
    """Why there is no plan."""

    wish: Wish | None
    error: HfbenchError


@dataclass
class JobTold(Message):
    """How far a conversion or a proof is; `found` among earlier jobs, a conversion with the wish it was started by."""

    doing: Doing
    wish: Wish | None = None
    found: bool = False


class Asker:
    """Plans wishes, one after the other; used by one thread."""

    def __init__(self, cache_dir: str) -> None:
        self.cache_dir = cache_dir
        self.gone = False
        self._aside: Aside | None = None

    def plan(self, wish: Wish) -> Message:
        """The plan of a wish as the action's dry run tells it, in a child process; or why there is none."""
        from hfbench.actions.aside import Aside

        if self._aside is None:
            self._aside = Aside()
        try:
            find(wish.action).require()
            values = wish.values(self.cache_dir) | {"dry_run": True}
            result = self._aside.ask(wish.action, values, lambda: self.gone)
        except HfbenchError as error:
            return Refused(wish, error)
        return Planned(wish, result, plan_rows(result), os.path.lexists(wish.folder))

    def close(self) -> None:
        """End the child."""
        self.gone = True
        if self._aside is not None:
            self._aside.close()


def find_source(reference: str, cache_dir: str, stopped: Stopped, post: Post) -> None:
    """Tell what a reference is: a model of Hugging Face or a checkpoint of Megatron."""
    location = resolve(reference, cache_dir=Path(cache_dir) if cache_dir else None)
    folder = location.folder.absolute()
    if location.source == "local" and (checkpoint := _checkpoint(folder, location.only)):
        whole = checkpoint.parent if ITERATION.fullmatch(checkpoint.name) else checkpoint
        place = _place(whole.parent)
        source = Source(reference=str(checkpoint), name=whole.name, place=place, megatron=True)
    else:
        source = _model(location, folder)
    post(SourceFound(source, tuple(name for name in RUNS_MODELS if find_spec(name) is None)))


def _checkpoint(folder: Path, only: str) -> Path | None:
    """The checkpoint that a folder is, or that it was carried along in; None for a model."""
    from hfbench.convert.formats.megatron_folder import find_megatron

    has_weights = any(folder.glob("*.safetensors")) or any(folder.glob("*.bin")) or any(folder.glob("*.gguf"))
    if only or has_weights:
        return None
    places = [folder, folder.parent] if folder.name == CARRIED else [folder]
    return next((each for each in places if find_megatron(each) is not None), None)


def _model(location: Location, folder: Path) -> Source:
    name = location.name.rpartition("/")[2]
    if location.source == "cache":
        return Source(reference=location.given, name=name, place=Path.cwd())
    if location.only:
        return Source(reference=str(folder / location.only), name=Path(location.only).stem, place=_place(folder))
    return Source(reference=str(folder), name=name, place=_place(folder.parent))


def _place(folder: Path) -> Path:
    """Where a folder is made by default: beside the source, if that may be."""
    return folder if os.access(folder, os.W_OK) else Path.cwd()


# -- jobs ---------------------------------------------------------------------


def follow_job(id: str, stopped: Stopped, post: Post) -> None:
    """Tell how far a job is until it is over, and then its result."""
    for snapshot in snapshots(JobDirectory(jobs_root() / id), stop=stopped):
        post(JobTold(doing_of(snapshot)))
        if not snapshot.state.over:
            time.sleep(PACE)


def find_jobs(source: Source, ids: Sequence[tuple[str, str]], stopped: Stopped, post: Post) -> None:
    """Tell of the latest conversion of a source among these jobs, newest first, and of the latest proof of it.

    `ids` are ids with their actions. A conversion is told with the wish it was started by.
    """
    wish: Wish | None = None
    for id, action in ids[:MOST_JOBS]:
        if stopped() or action not in CONVERSIONS:
            continue
        params = JobDirectory(jobs_root() / id).request.get("params")
        wish = wish_of(source, action, params) if isinstance(params, dict) else None
        if wish is not None:
            post(JobTold(doing_of(read_job(JobDirectory(jobs_root() / id))), wish, found=True))
            break
    if wish is None:
        return
    for id, action in ids[:MOST_JOBS]:
        if stopped() or action != VERIFY:
            continue
        params = JobDirectory(jobs_root() / id).request.get("params")
        if isinstance(params, dict) and about(VERIFY, params) == about(VERIFY, wish.proof(())):
            post(JobTold(doing_of(read_job(JobDirectory(jobs_root() / id))), found=True))
            return


def doing_of(snapshot: JobSnapshot) -> Doing:
    """What the screen shows of a job."""
    doing = Doing(
        job=snapshot.id,
        action=snapshot.action,
        about=about(snapshot.action, snapshot.params),
        state=snapshot.state,
        phases=snapshot.phases,
        waits_for=snapshot.waits_for.rpartition("-")[2],
    )
    if snapshot.state is State.FINISHED and snapshot.result is not None:
        doing = replace(doing, result=decode(find(snapshot.action).result, snapshot.result))
    elif snapshot.error:
        doing = replace(doing, error=error_from_parts(snapshot.error))
    elif snapshot.state is State.DIED:
        doing = replace(doing, error=HfbenchError(snapshot.sentence() or "it left no word", where=snapshot.short_id))
    if snapshot.action != VERIFY:
        return doing
    told = walls_found(doing.result) if doing.result is not None else walls_logged(each.text for each in snapshot.logs)
    return replace(doing, walls=told)


def about(action: str, params: Mapping[str, object]) -> tuple[str, ...]:
    """The folder that a conversion makes; the two that a proof compares."""
    names = ("model", "converted") if action == VERIFY else ("out",)
    return tuple(str(params.get(name) or "") for name in names)


def walls_found(result: VerifyResult) -> dict[str, WallTold]:
    """The walls of a proof that is over."""
    from hfbench.convert.walls.report import details
    from hfbench.convert.walls.words import forward_words, task_words, weights_words

    weights, forward, task = result.walls.weights, result.walls.forward, result.walls.task
    return {
        "weights": _told(weights.verdict, weights_words(weights), details(weights, MOST_DETAILS)),
        "forward": _told(forward.verdict, forward_words(forward), details(forward, MOST_DETAILS)),
        "task": _told(task.verdict, task_words(task), details(task, MOST_DETAILS)),
    }


def _told(verdict: str, words: str, more: Sequence[str]) -> WallTold:
    return WallTold(verdict=verdict, words=words, details=tuple(more))


def walls_logged(texts: Iterable[str]) -> dict[str, WallTold]:
    """The walls that a proof under way has told of, in lines like `weights: proven: 54 tensors, ...`."""
    found: dict[str, WallTold] = {}
    for text in texts:
        name, _, rest = text.partition(": ")
        verdict, _, words = rest.partition(": ")
        if name in WALLS and verdict in STATES:
            found[name] = WallTold(verdict=verdict, words=words)
    return found
