"""Watches torch's allocator while a job uses a GPU: metrics as it runs, and what was where when memory ran out."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from hfbench.codec import encode
from hfbench.errors import HfbenchError
from hfbench.gpu.explain.picture import Explanation, MemoryPicture, merged
from hfbench.gpu.explain.reading import device_picture, find_reading
from hfbench.gpu.explain.rules import explain
from hfbench.gpu.explain.segments import Snapshot
from hfbench.gpu.explain.sentence import OomSentence, parse_oom
from hfbench.gpu.explain.snapshot_file import write_snapshot
from hfbench.gpu.explain.statistics import LARGEST_FREE, Statistics, TorchStatistics, metrics, statistics_picture
from hfbench.gpu.reading import Unavailable

if TYPE_CHECKING:
    from hfbench.jobs.run import Run

INTERVAL = 1.0
"""Seconds between two looks at the statistics."""
SNAPSHOT_EVERY = 10.0
"""Seconds between two looks at the segments, which cost as long as there are blocks."""
SNAPSHOT_SHARE = 0.01
"""Share of the time at most that walking the segments may take: it holds the allocator's lock."""
EXPLANATION = "memory.json"
SNAPSHOT = "memory-snapshot.json"
DEEPEST = 20
"""Errors looked at behind an error."""


class DeviceMemoryError(HfbenchError):
    """Device memory ran out; the sentence names the cause."""


@contextmanager
def watching_memory(
    run: Run, index: int, lease: str, *, source: Statistics | None = None, interval: float = INTERVAL
) -> Iterator[None]:
    """Report the allocator of CUDA device `index` while the body runs; DeviceMemoryError when memory ran out in it.

    `lease` is the UUID of the card or slice. Before that error is raised, what was known lies in the job's artifacts.
    """
    source = source or TorchStatistics(index)
    watch = _Watch(run, source, index, interval)
    watch.start()
    try:
        yield
    except Exception as error:
        if (said := oom_in(error)) is None:
            raise
        watch.stop()
        told = _told(run, error, said, watch, index=index, lease=lease)
        traceback.print_exc(file=sys.stderr)  # a sentence has no place for it, the log of the job does
        raise told from error
    finally:
        watch.stop()


def oom_in(error: BaseException | None) -> OomSentence | None:
    """What an error, or one that it was raised from, says of memory that ran out; None when none does."""
    for _ in range(DEEPEST):
        if error is None:
            return None
        kind, text = type(error).__name__, str(error)
        said = parse_oom(text) if kind == "OutOfMemoryError" or isinstance(error, RuntimeError) else None
        if said is not None:
            return said
        if kind == "OutOfMemoryError":
            return OomSentence(wording="not known")
        error = error.__cause__ or error.__context__
    return None


def _told(
    run: Run, error: BaseException, said: OomSentence, watch: _Watch, *, index: int, lease: str
) -> DeviceMemoryError:
    """Look at everything once more, write it down, and name the cause; never fails itself."""
    snapshot = watch.snapshot()
    explanation = explained(said, snapshot, watch.pictures(), driver=_by_the_driver(lease), index=index)
    with suppress(OSError, HfbenchError):  # a full disk must not hide why the job ended
        if snapshot is not None:
            write_snapshot(run.artifacts / SNAPSHOT, snapshot)
            run.artifact(run.artifacts / SNAPSHOT, "segments and blocks of torch's allocator when memory ran out")
        _write(run, explanation)
    cause = explanation.cause
    found = f"out of device memory: {cause.title}: {cause.evidence}" if cause else f"out of device memory: {error}"
    return DeviceMemoryError(
        found[:1000], where=f"cuda:{index}", remedy=cause.remedy if cause else "use a smaller batch or dtype"
    )


def explained(
    said: OomSentence,
    snapshot: Snapshot | None,
    statistics: tuple[MemoryPicture, ...],
    *,
    driver: MemoryPicture | None,
    index: int,
) -> Explanation:
    """The causes of one failure. What the error says was true at its moment, so it goes before what is read after."""
    pictures = [said.picture()]
    sources = [f"error of {said.wording}" if said.outside == "" else f"error of {said.outside}"]
    notes: tuple[str, ...] = ()
    if snapshot is not None:
        pictures.append(snapshot.picture(index, said.request))
        sources.append("segments of the allocator")
        notes = snapshot.notes
    for each in statistics:
        pictures.append(each)
        sources.append("statistics of the allocator")
    if driver is not None:
        pictures.append(driver)
        sources.append("driver (NVML)")
    return explain(merged(pictures), sources=tuple(dict.fromkeys(sources)), notes=notes)


def _by_the_driver(lease: str) -> MemoryPicture | None:
    """The card as NVML has it now, with the other processes on it; None when the driver does not tell."""
    from hfbench.gpu.telemetry import Sampler

    sampler = Sampler(demo=0)
    try:
        found = find_reading(sampler.sample(), lease)
    except Exception:  # nothing of the telemetry may stand between a failure and its sentence
        return None
    finally:
        sampler.close()
    if found is None or isinstance(found[0].memory.total, Unavailable):
        return None
    return device_picture(found[0], os.getpid(), slice=found[1])


def _write(run: Run, explanation: Explanation) -> None:
    path = run.artifacts / EXPLANATION
    unseen = path.with_name(f".{path.name}.new")
    unseen.write_text(json.dumps(encode(explanation), indent=1), encoding="utf-8")
    os.replace(unseen, path)
    run.artifact(path, "why memory ran out")


class _Watch:
    """Reads the statistics every `interval` seconds on a daemon thread and reports them as metrics."""

    def __init__(self, run: Run, source: Statistics, index: int, interval: float) -> None:
        self._run, self._source, self._index, self._interval = run, source, index, interval
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True, name="hfbench-allocator")
        self._next_snapshot = 0.0

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """End, after the look that is under way."""
        self._stop.set()
        self._thread.join(1.0)

    def snapshot(self) -> Snapshot | None:
        """The segments now; None when they cannot be read."""
        try:
            return self._source.snapshot()
        except Exception:  # an allocator that has just failed owes nobody an answer
            return None

    def pictures(self) -> tuple[MemoryPicture, ...]:
        """The statistics and limits now, as far as they can be read."""
        found = []
        with suppress(Exception):
            if (told := self._source.read()) is not None:
                found.append(statistics_picture(told, f"cuda:{self._index}"))
        with suppress(Exception):
            if (limits := self._source.limits()) is not None:
                found.append(limits)
        return tuple(found)

    def _work(self) -> None:
        while not self._stop.wait(self._interval):
            try:
                self._report()
            except Exception:  # a full disk, or a torch that is still being imported: the run itself will say so
                if isinstance(sys.exc_info()[1], (HfbenchError, OSError)):
                    return

    def _report(self) -> None:
        if (told := self._source.read()) is None:
            return
        for name, value, unit in metrics(told):
            self._run.metric(name, value, unit)
        now = time.monotonic()
        if now < self._next_snapshot or (snapshot := self._source.snapshot()) is None:
            return
        took = time.monotonic() - now
        self._next_snapshot = now + max(SNAPSHOT_EVERY, took / SNAPSHOT_SHARE)
        if (largest := snapshot.picture(self._index).largest_free) is not None:
            self._run.metric(LARGEST_FREE, largest, "B")
