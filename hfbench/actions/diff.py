"""diff: what sets one model apart from another: tensors, values on request, configuration, tokenizer, template."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hfbench.actions.base import action
from hfbench.actions.params import param
from hfbench.actions.results import result_data
from hfbench.errors import HfbenchError, UsageError
from hfbench.exits import Exit
from hfbench.models.diff.facts import TENSOR_KINDS, ModelDiff, farthest_first
from hfbench.models.problem import counted

if TYPE_CHECKING:
    from hfbench.jobs.run import Run

ACTION = "diff"
SECTIONS = ("config", "generation", "tokenizer", "template")
LISTS = ("added", "removed", "unread", "renamed", "clashes", "shape", "dtype", "values")
"""Fields that grow with the number of tensors."""

MOST_KEPT = 10_000
"""Entries of each such list that the result of a job keeps; the whole is in a file of the job then."""

WHOLE = "diff.json"


@dataclass(frozen=True, kw_only=True)
class DiffResult(ModelDiff):
    """What sets two models apart."""

    whole: str = ""
    """The file with all of it, where the lists of this one end early."""

    @property
    def exit(self) -> int:
        """0 the same, 1 different, 2 when something could not be compared."""
        return int(Exit.USAGE if self.problems else Exit.FAILED if self.differs else Exit.OK)

    @property
    def failed(self) -> bool:
        """True unless the two are the same."""
        return self.exit != Exit.OK

    @property
    def headline(self) -> str:
        """`different: 2 added, 1 dtype, 3 config`; `same, values not compared` where only headers were."""
        told = [f"{self.counts[kind]:,} {kind}" for kind in (*TENSOR_KINDS, "unread") if self.counts.get(kind)]
        apart = self.counts.get("close", 0) + self.counts.get("differ", 0)
        told += [f"{counted(apart, 'tensor')}'{'s' * (apart == 1)} values"] if apart else []
        told += [f"{len(found):,} {kind}" for kind in SECTIONS if (found := getattr(self, kind))]
        told += [counted(len(self.problems), "problem")] if self.problems else []
        verdict = ("same", "different", "trouble")[self.exit]
        unread = "" if self.values_compared or self.failed or not self.compared else ", values not compared"
        return f"{verdict}: {', '.join(told)}" if told else f"{verdict}{unread}"

    def lines(self) -> list[str]:
        """The differences for people, as wide as the terminal."""
        from hfbench.actions.diff_text import diff_lines

        return diff_lines(self, self.headline)


@action("diff", result=DiffResult, inline=True)
@dataclass(frozen=True, kw_only=True)
class Diff:
    """Compare two models: tensors, values on request, configuration, tokenizer and chat template."""

    a: str = param("Folder, repository in the cache, or one file of weights", kind="model", positional=True)
    b: str = param("What to compare it with", kind="model", positional=True)
    values: bool = param("Read and compare the values too", default=False)
    include: tuple[str, ...] = param("Only tensors of these names, with * and ?", default=())
    rename: tuple[str, ...] = param(
        "Rules that turn A's names into B's: OLD=NEW for runs of whole dotted parts, with * for what has no dot and "
        "** for anything, as in 'model.layers.*.attn=model.layers.*.self_attn', 'module.=' or '=model.'; or "
        're:PATTERN=NEW with a regular expression; "double quotes" around a rule that holds a comma',
        default=(),
    )
    rtol: float | None = param("Relative tolerance of close values, in place of the dtypes' own", default=None, ge=0)
    atol: float | None = param("Absolute tolerance of close values, in place of the dtypes' own", default=None, ge=0)
    cache_dir: Path | None = param("Hugging Face cache to look in", default=None, kind="path")

    def perform(self, run: Run) -> DiffResult:
        """Compare; UsageError, exit 2 as of diff(1), when a side cannot be opened at all."""
        from hfbench.models.diff.compare import diff_models

        try:
            found = diff_models(
                self.a,
                self.b,
                values=self.values,
                include=self.include,
                rename=self.rename,
                rtol=self.rtol,
                atol=self.atol,
                cache_dir=self.cache_dir,
                done=lambda done, total: run.progress("values", done, total, "B"),
            )
        except HfbenchError as error:
            if error.exit != Exit.FAILED:
                raise
            raise UsageError(error.found, where=error.where, remedy=error.remedy) from None
        result = DiffResult(**{field.name: getattr(found, field.name) for field in fields(found)})
        return _shortened(result, run) if run.directory is not None else result


def _shortened(result: DiffResult, run: Run) -> DiffResult:
    """The result with the beginnings of long lists, all of which go to a file: results are read by every front end.

    Of values those come first that are farthest apart.
    """
    found: dict[str, Any] = {name: getattr(result, name) or () for name in LISTS}
    found["values"] = sorted(found["values"], key=farthest_first)
    long: dict[str, Any] = {
        name: tuple(listed[:MOST_KEPT]) for name, listed in found.items() if len(listed) > MOST_KEPT
    }
    if not long:
        return result
    path = run.artifacts / WHOLE
    with path.open("w", encoding="ascii") as file:
        json.dump(result_data(result), file, separators=(",", ":"))
    run.artifact(path, "all differences")
    return replace(result, whole=str(path), **long)
