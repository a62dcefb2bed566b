"""What is known of one model at one moment of reading it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod

from hfbench.checks.finding import SEVERITIES, Finding
from hfbench.errors import HfbenchError
from hfbench.models.columns import TensorColumns
from hfbench.models.config import ModelConfig
from hfbench.models.facts import DtypeShare, ModelSummary
from hfbench.models.files import ModelFile
from hfbench.models.problem import Problem, counted
from hfbench.models.reference import Location, hub_reference
from hfbench.models.stream import Rows
from hfbench.screens.model_judge import Judgement
from hfbench.units import show_bytes
from hfbench.widgets.glyphs import State

SIGNS: dict[str, State] = {"error": "error", "warning": "warn", "info": "muted"}
"""How the severity of a problem is painted."""


@dataclass(frozen=True, kw_only=True)
class ModelView:
    """A frozen picture, but for `columns`: they are shared with the thread that still appends to them."""

    reference: str
    columns: TensorColumns = field(default_factory=TensorColumns)
    location: Location | None = None
    format: str = ""
    shard: int = 0
    """The file being read, from 1; `shards` are all of them."""
    shards: int = 0
    shares: Mapping[str, DtypeShare] = field(default_factory=dict)
    """By dtype, the largest first."""
    files: tuple[ModelFile, ...] | None = None
    config: ModelConfig | None = None
    config_text: tuple[str, ...] = ()
    """The lines of a configuration that is no JSON object."""
    troubles: tuple[Problem, ...] = ()
    summary: ModelSummary | None = None
    reading: bool = True
    error: HfbenchError | None = None
    """Why nothing more can be read."""
    judgement: Judgement = field(default_factory=Judgement)
    """What `resolve` and `check` say so far."""

    @property
    def name(self) -> str:
        """What to call the model."""
        return self.location.name if self.location else self.reference.rstrip("/").rpartition("/")[2] or self.reference

    @property
    def anywhere(self) -> str:
        """What means this model from any folder: a local one by its whole path."""
        local = self.location is not None and self.location.source == "local"
        return str(self.location.folder.absolute()) if local and self.location else self.reference

    @property
    def left_on(self) -> str:
        """The endpoint where files of the model were left; empty when all of it is here."""
        left = any(file.held != "whole" for file in self.files or ())
        named = hub_reference(self.location.given) if self.location and left else None
        return named.endpoint if named else ""

    @property
    def tensors(self) -> int:
        """Tensors read."""
        return sum(share.tensors for share in self.shares.values())

    @property
    def parameters(self) -> int:
        """Stored elements read."""
        return sum(share.elements for share in self.shares.values())

    @property
    def weight_bytes(self) -> int:
        """Bytes of the tensors read."""
        return sum(share.bytes for share in self.shares.values())

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Everything found wrong so far, errors first."""
        if self.summary:
            return self.summary.problems
        told = [*(self.config.problems if self.config else ()), *self.troubles]
        return tuple(sorted(told, key=lambda problem: list(SIGNS).index(problem.severity)))

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What `check` found, until it is done what reading found; nothing twice, nor what the error says already."""
        checked = self.judgement.check.findings if self.judgement.check else ()
        told = {(each.file, each.message) for each in checked}
        read = [_as_finding(each) for each in self.problems if (each.where, each.found) not in told]
        every = [each for each in (*checked, *read) if self.error is None or each.message != self.error.found]
        return tuple(sorted(every, key=lambda each: SEVERITIES.index(each.severity)))

    @property
    def counts(self) -> str:
        """For the title line: `272 tensors · 256.6 MiB`, and how far the reading is."""
        if not self.tensors:
            return "reading" if self.reading else ""
        read = f"{counted(self.tensors, 'tensor')} {show_bytes(self.weight_bytes)}"
        return f"file {self.shard} of {self.shards}, {read}" if self.reading else read


def _as_finding(problem: Problem) -> Finding:
    """A problem met while reading; it has no rule, and so no id."""
    return Finding(
        id="",
        name=problem.code.replace("_", "-"),
        severity=problem.severity,
        file=problem.where,
        message=problem.found,
        remedy=problem.remedy,
    )


class Tally:
    """Tensors, elements and bytes by dtype, summed up as slices arrive."""

    def __init__(self) -> None:
        self._sums: dict[str, tuple[int, int, int]] = {}

    def take(self, rows: Rows) -> None:
        """Count the tensors of one slice."""
        for kind, count in Counter(rows.kind_ids).items():
            dtype, shape, size = rows.kinds[kind]
            tensors, elements, in_bytes = self._sums.get(dtype, (0, 0, 0))
            self._sums[dtype] = (tensors + count, elements + count * prod(shape), in_bytes + count * size)

    def shares(self) -> dict[str, DtypeShare]:
        """The sums so far, the largest first."""
        ordered = sorted(self._sums.items(), key=lambda item: (-item[1][2], item[0]))
        return {dtype: DtypeShare(tensors=t, elements=e, bytes=b) for dtype, (t, e, b) in ordered}
