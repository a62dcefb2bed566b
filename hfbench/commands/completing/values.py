"""Words that depend on this machine: models, jobs, sweeps, places. Asked at each tab: nothing big is loaded."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from hfbench.errors import HfbenchError
from hfbench.paths import baselines_root, demo_model, expand, jobs_root, sweeps_root, theme_folders

MOST = 200
"""Jobs that are offered, the newest."""

Value = tuple[str, str]
"""A word and what it is, empty where the word tells enough."""

FULL_ID = re.compile(r"\d{2,4}(-|$)")
"""A word that begins like a whole job id, and no short one is meant."""


def values(kind: str, begun: str = "") -> list[Value]:
    """What a word of this kind may be, given how it begins; nothing for a kind that is not known or cannot be read."""
    try:
        return [(word, told) for word, told in VALUES[kind](begun) if word.startswith(begun)] if kind in VALUES else []
    except (OSError, ValueError, HfbenchError):
        return []  # a tab is no place for complaints


def _jobs(begun: str) -> Iterator[Value]:
    from hfbench.jobs.directory import job_ids

    ids = sorted(job_ids(jobs_root()), reverse=True)[:MOST]
    if ids and not FULL_ID.match(begun):
        yield "last", "the newest"
    for job_id in ids:
        if FULL_ID.match(begun):
            yield job_id, ""
        else:
            yield job_id[-6:], f"{job_id[20:-7]} {job_id[:10]} {job_id[11:19].replace('-', ':')}"


def _sweeps(begun: str) -> Iterator[Value]:
    for entry in sorted(os.scandir(sweeps_root()), key=lambda each: each.name):
        if os.path.exists(os.path.join(entry.path, "sweep.json")):
            yield entry.name, ""


def _baselines(begun: str) -> Iterator[Value]:
    for entry in sorted(os.scandir(baselines_root()), key=lambda each: each.name):
        if not entry.name.startswith("."):
            yield entry.name.removesuffix(".json"), ""


def _models(begun: str) -> Iterator[Value]:
    from hfbench.config import examine
    from hfbench.models.catalog import list_cache, list_local

    config, _ = examine()
    if demo_model().is_dir():
        yield "demo", "the model of hfbench demo"
    for entry in list_cache(expand(config.models.cache) if config.models.cache else None):
        yield entry.name, "in the Hugging Face cache"
    for entry in list_local(map(Path, config.models.roots)):
        yield str(entry.folder), ""


def _environments(begun: str) -> Iterator[Value]:
    from hfbench.config import HERE, examine

    yield HERE, "the Python of hfbench"
    yield from ((name, each.python) for name, each in examine()[0].environments.items())


def _devices(begun: str) -> Iterator[Value]:
    yield from (("auto", "the first GPU, else the CPU"), ("cpu", ""))
    cards = sorted(int(name[6:]) for name in os.listdir("/dev") if re.fullmatch(r"nvidia\d+", name))
    yield from ((f"cuda:{position}", "") for position, _ in enumerate(cards))


def _measured(begun: str) -> Iterator[Value]:
    """What can be compared: baselines first, which are few, then sweeps and jobs."""
    for what, listed in (("baseline", _baselines), ("sweep", _sweeps), ("", _jobs)):
        with contextlib.suppress(OSError):  # a folder that is not there yet
            yield from ((word, told or what) for word, told in listed(begun))


def _places(begun: str) -> Iterator[Value]:
    from hfbench.config import examine

    yield "local", "this machine"
    yield from ((name, f"{each.kind}, of [executors]") for name, each in examine()[0].executors.items())
    yield from (("slurm:", "and a partition"), ("ray:", "auto, or //HOST:PORT"), ("ssh:", "and a host"))


def _themes(begun: str) -> Iterator[Value]:
    import tomllib

    for folder in theme_folders():
        for file in sorted(folder.glob("[!.]*.toml")):
            with contextlib.suppress(OSError, ValueError, KeyError):
                yield str(tomllib.loads(file.read_text())["name"]), ""


def _kernels(begun: str) -> Iterator[Value]:
    from hfbench.gpu.kernels.loading import shipped

    yield from ((name, "") for name in shipped())


def _actions(begun: str) -> Iterator[Value]:
    from hfbench.commands.known import summaries

    yield from summaries().items()


def _pages(begun: str) -> Iterator[Value]:
    from hfbench.commands.docs import packaged_docs, page_names

    yield from ((name, "") for name in page_names(packaged_docs()))


VALUES: dict[str, Callable[[str], Iterator[Value]]] = {
    "job": _jobs,
    "sweep": _sweeps,
    "baseline": _baselines,
    "measured": _measured,
    "place": _places,
    "model": _models,
    "environment": _environments,
    "device": _devices,
    "theme": _themes,
    "kernel": _kernels,
    "action": _actions,
    "page": _pages,
}
"""What lists the words of a kind."""
