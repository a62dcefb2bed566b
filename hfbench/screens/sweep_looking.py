"""Where the user of a sweep's page stands: which metric, which axes, and what is weighed against what."""

from __future__ import annotations

from dataclasses import replace

from textual import work

from hfbench.jobs.doubt import MEANING
from hfbench.screens.pick import Pick
from hfbench.screens.sweep_keys import SweepKeys
from hfbench.screens.sweep_sight import STATE, Look, Sight, combinations
from hfbench.sweeps.model import CellView, SweepSnapshot, value_text
from hfbench.widgets.fit_lines import Knob


class SweepLooking(SweepKeys):
    """A page of one sweep that can be looked at from several places. Subclasses give `stand`."""

    def __init__(self) -> None:
        super().__init__()
        self.snapshot: SweepSnapshot | None = None
        self.sight: Sight | None = None
        self.view = "map"
        self.cells: dict[int, CellView] = {}

    def stand(self, look: Look) -> None:
        """Look from there."""
        raise NotImplementedError

    @work
    async def action_metric(self) -> None:
        """Ask which metric the map and the table show, or which latency the front weighs."""
        if self.sight is None:
            return
        if self.view == "front":
            if chosen := await self._pick("latency of the front", self.sight.look.latency, state=False):
                self.stand(replace(self.sight.look, latency=chosen))
        elif chosen := await self._pick("metric of the map", self.sight.look.metric, state=True):
            self.stand(replace(self.sight.look, metric=chosen))

    @work
    async def action_throughput(self) -> None:
        """Ask which throughput the front weighs."""
        if self.sight and (
            chosen := await self._pick("throughput of the front", self.sight.look.throughput, state=False)
        ):
            self.stand(replace(self.sight.look, throughput=chosen))

    async def _pick(self, question: str, current: str, *, state: bool) -> str | None:
        names = [(STATE, "what each cell is doing")] if state else []
        names += [(name, self._about(name)) for name in (self.sight.metrics if self.sight else ())]
        return await self.app.push_screen_wait(Pick(question, names, current))

    def _about(self, metric: str) -> str:
        """The unit of a metric, which way is better, and how many cells have it."""
        having = [cell.metrics[metric] for cell in self.cells.values() if metric in cell.metrics]
        better = f"{having[0].better} is better" if having[0].better else ""
        return ", ".join(filter(None, (having[0].unit, better, f"{len(having)} of {len(self.cells)} cells")))

    def action_axis(self, which: str) -> None:
        """The next axis across, or down; the two change places where one would be both."""
        if self.snapshot is None or self.sight is None or len(self.snapshot.axes) < 2:
            self.notify("this sweep has no other axis")
            return
        look, names = self.sight.look, [axis.name for axis in self.snapshot.axes]
        now, other = (look.x, look.y) if which == "x" else (look.y, look.x)
        then = names[(names.index(now) + 1) % len(names)]
        other = now if then == other else other
        self.stand(replace(look, x=then, y=other) if which == "x" else replace(look, y=then, x=other))

    def action_fix(self, by: int) -> None:
        """The next values of the axes that are neither across nor down."""
        if self.snapshot is None or self.sight is None:
            return
        look = self.sight.look
        ways = combinations(self.snapshot, look)
        if len(ways) < 2:
            self.notify("every axis is across or down already")
            return
        at = ways.index(dict(look.fixed)) if dict(look.fixed) in ways else 0
        self.stand(replace(look, fixed=ways[(at + by) % len(ways)]))

    def knobs(self, snapshot: SweepSnapshot, sight: Sight) -> list[Knob]:
        """The keys of the view in front with what they are set to."""
        look, doubt = sight.look, [Knob("", MEANING, "")] if snapshot.in_doubt else []
        if self.view == "front":
            lacking = sight.front.lacking if sight.front else 0
            told = [Knob("", f"{lacking} cells lack one of them", "")] if lacking else []
            return [Knob("m", "latency", look.latency), Knob("t", "throughput", look.throughput), *told]
        metric = Knob(
            "m", "metric", look.metric if self.view == "map" or look.metric != STATE else sight.leading or STATE
        )
        if self.view == "cells":
            return [metric, *doubt]
        knobs = [
            metric,
            *([Knob("a", "across", look.x)] if look.x else []),
            *([Knob("d", "down", look.y)] if look.y else []),
        ]
        if look.fixed:
            ways = combinations(snapshot, look)
            fixed = " ".join(f"{name}={value_text(value)}" for name, value in look.fixed.items())
            at = ways.index(dict(look.fixed)) + 1 if dict(look.fixed) in ways else 1
            knobs.append(Knob("f", "with", f"{fixed} ({at} of {len(ways)})"))
        return [*knobs, *(doubt if look.metric != STATE else [])]
