"""Where models are looked for, and how a model reads as a row and as a few lines of detail."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from hfbench.config import ModelsConfig
from hfbench.errors import HfbenchError
from hfbench.models.problem import counted
from hfbench.models.reference import DEMO
from hfbench.paths import config_file, demo_model, expand
from hfbench.screens.model_loads import Loads
from hfbench.screens.model_look import Look
from hfbench.screens.model_words import heads_text
from hfbench.screens.recent import forget, forgotten_file, read_recent
from hfbench.text import printable
from hfbench.units import show_ago, show_bytes, show_count
from hfbench.widgets.cells import Span, clip, clip_middle, fit, spans_width
from hfbench.widgets.glyphs import Glyphs, State
from hfbench.widgets.hub_rows import HubPage
from hfbench.widgets.record_rows import Record

if TYPE_CHECKING:
    from hfbench.jobs.history import JobRow
    from hfbench.models.catalog import ModelEntry

# What lists models is imported by the functions that list, in a thread: the first frame does not wait for it.

Source = Literal["local", "cache", "recent"]

SOURCES: dict[Source, str] = {"local": "Local", "cache": "HF cache", "recent": "Recent"}
RECENT: Source = "recent"
HUB = "hub:"
"""Begins the key of a source that is an endpoint; its name follows."""
STATES: dict[str, State] = {"ok": "ok", "!": "warn", "x": "error"}
SHORT_DTYPES = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}
NO_MODEL = "no configuration and no weights in this folder"
WORDS: dict[str, str] = {"ok": "read", "!": "warning", "x": "error"}
"""Behind the sign of a state. Headers and configuration were read; they are judged when the model is opened."""


@dataclass(frozen=True)
class Listing:
    """The models of one source, and what kept others from being listed."""

    entries: tuple[ModelEntry, ...]
    trouble: str = ""


def list_source(source: Source, config: ModelsConfig, used: Sequence[str] = ()) -> Listing:
    """The models of a source, not yet looked at; `used` are models of jobs, for the recent ones."""
    from hfbench.models.catalog import list_cache, list_local

    if source == "cache":
        return Listing(tuple(list_cache(_cache_dir(config))))
    if source == "recent":
        return Listing(tuple(_recent_models(used)))
    roots = [expand(root) for root in config.roots]
    missing = [str(root) for root in roots if not root.is_dir()]
    trouble = f"models.roots names no folder: {', '.join(missing)}" if missing else ""
    return Listing(tuple(list_local([*roots, *_current_folder(), demo_model().parent])), trouble)


def empty_lines(source: Source, config: ModelsConfig) -> tuple[str, str]:
    """Why a source is empty, and what fills it."""
    from hfbench.models.reference import cache_folder

    if source == "cache":
        return f"no models in {_cache_dir(config) or cache_folder()}", "hf download ORG/NAME fetches one"
    if source == "recent":
        return "no model was opened yet", "enter opens one, and it is remembered here"
    return (
        "no models here",
        f"hfbench demo makes a small one; or name your folders in {config_file()}: [models] roots = [...]",
    )


def source_records(counts: Mapping[Source, str], pages: Iterable[HubPage]) -> list[Record]:
    """The sources as rows: this machine's, the hubs, and last what was opened lately."""
    here = {key: Record(key, {"source": title, "count": counts.get(key, "...")}) for key, title in SOURCES.items()}
    hubs = [Record(f"{HUB}{page.endpoint}", {"source": page.endpoint, "count": page.count}) for page in pages]
    recent = here.pop("recent")
    return [*here.values(), *hubs, recent]


def record_of(look: Look) -> Record:
    """A model as a row of the list."""
    entry = look.entry
    state = STATES.get(entry.state, "muted")
    return Record(
        str(entry.folder),
        {
            "name": entry.name,
            "type": entry.type or "",
            "params": show_count(entry.parameters) if entry.parameters is not None else "",
            "size": show_bytes(entry.bytes),
            "state": f"{entry.state} {WORDS.get(entry.state, '')}".strip() if entry.state else "...",
            "finding": entry.problem,
        },
        states={"state": state, "finding": "muted"},
        order={"params": entry.parameters, "size": entry.bytes},
    )


def detail_lines(
    look: Look, jobs: Iterable[JobRow], width: int, glyphs: Glyphs, loads: Loads | None = None
) -> list[list[Span]]:
    """Name and shape, state and who loads it, last job, path: four lines of at most `width` cells."""
    entry = look.entry
    mark = "!" if entry.state == "ok" and loads and not loads.somewhere else entry.state
    name = clip_middle(printable(entry.name), max(8, width // 2), ellipsis=glyphs.ellipsis)
    told = shape_of(look, glyphs)
    fine = loads.sentence if loads else "read without a fault; enter checks it"
    sentence = entry.problem or (fine if entry.state else "not looked at yet")
    return [
        _line([(name, "title"), ("   ", ""), (told, "")], width, glyphs),
        _line([(f"{mark}: " if mark else "", STATES.get(mark, "muted")), (printable(sentence), "")], width, glyphs),
        _line([(last_job(entry, jobs), "muted")], width, glyphs),
        [(clip_middle(printable(str(entry.folder)), width, ellipsis=glyphs.ellipsis), "muted")],
    ]


def shape_of(look: Look, glyphs: Glyphs) -> str:
    """`LlamaForCausalLM · 30 layers · 9/3 heads · 8,192 context · bf16 · tied`."""
    config = look.config
    if config is None:
        return ""
    parts = (
        config.architectures[0] if config.architectures else config.model_type or "",
        counted(config.layers, "layer") if config.layers is not None else "",
        heads_text(config),
        f"{config.context:,} context" if config.context is not None else "",
        SHORT_DTYPES.get(config.dtype or "", config.dtype or ""),
        config.quantization or "",
        "tied" if config.tied else "",
    )
    return printable(f" {glyphs.dot} ".join(filter(None, parts)))


def last_job(entry: ModelEntry, jobs: Iterable[JobRow]) -> str:
    """`last: bench.generate 2 h ago  tpot 8.1 ms`, of the newest job on this model."""
    from hfbench.jobs.history import ON_HUBS

    for job in jobs:
        if job.action != "inspect" and is_of(job.model, entry, on_hub=job.action in ON_HUBS):
            told = job.headline or str(job.state)
            return printable(f"last: {job.action} {show_ago(time.time() - job.created)}  {told}")
    return "last: no job yet; B measures it"


def is_of(model: str, entry: ModelEntry, *, on_hub: bool = False) -> bool:
    """True when a job's reference means the entry; compared as text, nothing is looked up. What is asked of a hub is
    no folder, even where one has its name."""
    if on_hub:
        return bool(model) and entry.source != "local" and model == entry.reference
    path = str(demo_model()) if model == DEMO else model
    return bool(model) and (model == entry.reference or _same_path(path, entry.folder))


def _same_path(model: str, folder: Path) -> bool:
    try:
        return expand(model).absolute() == folder.absolute()
    except (OSError, RuntimeError, ValueError):  # ~nobody, or the current folder is gone
        return False


def forget_recent(entry: ModelEntry, used: Sequence[str]) -> None:
    """Take a model off the recent ones, by whatever references it is among them."""
    for reference in dict.fromkeys([*read_recent(), *used]):
        if reference == entry.reference or _recent(reference).folder == entry.folder:
            forget(reference)


def _recent_models(used: Sequence[str]) -> list[ModelEntry]:
    """Those opened lately, and those of jobs that lead somewhere: a job may have been asked for a name mistyped."""
    opened, gone = read_recent(), set(read_recent(forgotten_file()))
    found: dict[Path, ModelEntry] = {}
    for reference in dict.fromkeys([*opened, *used]):
        if reference in opened or reference not in gone:
            entry = _recent(reference)
            if reference in opened or entry.state != "x":
                found[entry.folder] = entry
    return told_apart(list(found.values()))


def told_apart(entries: Sequence[ModelEntry]) -> list[ModelEntry]:
    """The entries; of several with one name each is named by as much of its path as tells it from the others."""
    names: dict[str, list[ModelEntry]] = {}
    for entry in entries:
        names.setdefault(entry.name, []).append(entry)
    return [replace(each, name=_own_name(each, names[each.name])) for each in entries]


def _own_name(entry: ModelEntry, alike: Sequence[ModelEntry]) -> str:
    parts, others = entry.folder.parts, [each.folder.parts for each in alike if each is not entry]
    if not others or entry.source != "local":
        return entry.name  # of a repository the name is all there is to write
    tails = range(2, len(parts) + 1)
    needed = next((count for count in tails if parts[-count:] not in [each[-count:] for each in others]), len(parts))
    return str(Path(*parts[-needed:]))


def _recent(reference: str) -> ModelEntry:
    """The entry of a reference; one that leads nowhere any more, or to no model, says so."""
    from hfbench.models.catalog import is_engine, is_model, list_local
    from hfbench.models.reference import resolve

    try:
        location = resolve(reference)
    except HfbenchError as error:
        name = reference.rstrip("/").rpartition("/")[2] or reference
        return _unusable(name, Path(reference), reference, error.found)
    if not is_model(location.folder):
        engine = is_engine(location.folder)
        problem = "an engine, and no model: key 5 lists engines" if engine else NO_MODEL
        return _unusable(location.name, location.folder, reference, problem)
    [entry] = list_local([location.folder])
    return replace(entry, name=location.name, source=location.source, reference=reference)


def _unusable(name: str, folder: Path, reference: str, problem: str) -> ModelEntry:
    from hfbench.models.catalog import ModelEntry

    return ModelEntry(
        name=name, folder=folder, source="local", bytes=0, state="x", problem=problem, reference=reference
    )


def _cache_dir(config: ModelsConfig) -> Path | None:
    return expand(config.cache) if config.cache else None


def _current_folder() -> list[Path]:
    try:
        return [Path.cwd()]
    except OSError:
        return []  # the folder hfbench was started in is gone


def _line(spans: list[Span], width: int, glyphs: Glyphs) -> list[Span]:
    """The spans, the last of them cut where the line ends."""
    *head, (text, style) = spans
    room = max(0, width - spans_width(head))
    return [*head, (clip(text, room, ellipsis=glyphs.ellipsis) if room else fit("", 0), style)]
