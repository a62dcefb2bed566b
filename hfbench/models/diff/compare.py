"""Compares two models: tensors by name, then values when asked, then the files beside the weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hfbench.errors import UsageError
from hfbench.models.checkpoint import Checkpoint, Gathering, read_weights
from hfbench.models.diff.facts import ModelDiff, ValueDiff
from hfbench.models.diff.files import CONFIG, GENERATION, TOKENIZER, FolderPair, Side
from hfbench.models.diff.tensors import Pairing, dtype_changes, pair_tensors, shape_changes
from hfbench.models.diff.values import compare_values
from hfbench.models.files import describe_file
from hfbench.models.problem import ModelError, Problem, listed
from hfbench.models.reference import resolve
from hfbench.models.weights import WeightSet, choose_weights
from hfbench.paths import expand

NO_TROUBLE = frozenset({"weights_missing", "adapter_not_model"})
"""Faults of a model to load that keep nobody from comparing it."""


@dataclass(frozen=True, slots=True)
class Subject:
    """One side: its weights, and the folder with its other files unless it is a single file."""

    checkpoint: Checkpoint
    folder: Path | None
    problems: tuple[Problem, ...]


def diff_models(
    a: str,
    b: str,
    *,
    values: bool = False,
    include: Sequence[str] = (),
    cache_dir: Path | None = None,
    done: Callable[[int, int], None] = lambda done, total: None,
) -> ModelDiff:
    """What sets B apart from A; `done` is told bytes of values compared and their total.

    UsageError when `include` matches no tensor, NotFound when a side is not there. Faults of the files are problems.
    """
    one, other = _open("A", a, cache_dir), _open("B", b, cache_dir)
    columns = one.checkpoint.columns, other.checkpoint.columns
    pairing = pair_tensors(*columns, include)
    if include and not (pairing.pairs or pairing.added or pairing.removed):
        raise UsageError(f"no tensor of either model matches {listed(include)}", remedy="write names with * and ?")
    problems = [*one.problems, *other.problems]
    measured = _values(one.checkpoint, other.checkpoint, pairing, problems, done) if values else None
    files = FolderPair(one.folder, other.folder) if one.folder and other.folder else None
    return ModelDiff(
        a=a,
        b=b,
        tensors_a=len(columns[0]),
        tensors_b=len(columns[1]),
        compared=len(pairing.pairs),
        added=pairing.added,
        removed=pairing.removed,
        renamed=pairing.renamed,
        shape=shape_changes(*columns, pairing),
        dtype=dtype_changes(*columns, pairing),
        values=measured,
        config=files.diff_files(CONFIG) if files else (),
        generation=files.diff_files(GENERATION) if files else (),
        tokenizer=files.diff_files(TOKENIZER) if files else (),
        template=files.diff_templates() if files else (),
        problems=(*problems, *(files.problems if files else ())),
    )


def _open(side: Side, text: str, cache_dir: Path | None) -> Subject:
    path = expand(text.strip())
    single = path.name.endswith(".safetensors") and "\0" not in text and not path.is_dir() and path.exists()
    if single:
        folder = path.absolute().parent
        weights = WeightSet("safetensors", (describe_file(folder / path.name, folder),), None, ())
    else:
        folder = resolve(text, cache_dir=cache_dir).folder
        weights = choose_weights(folder)
    gathering = Gathering(folder, weights)
    for read in read_weights(folder, weights):
        gathering.add(read)
    checkpoint = gathering.checkpoint()
    problems = [each for each in checkpoint.problems if each.severity == "error" and each.code not in NO_TROUBLE]
    if weights.unopened and not weights.shards:
        found = f"weights that are not opened: {listed(each.name for each in weights.unopened)}"
        problems.append(Problem(severity="error", where="", found=found, code="weights_unopened"))
    sided = tuple(replace(each, where=f"{side}: {each.where}" if each.where else side) for each in problems)
    return Subject(checkpoint, None if single else folder, sided)


def _values(
    a: Checkpoint,
    b: Checkpoint,
    pairing: Pairing,
    problems: list[Problem],
    done: Callable[[int, int], None],
) -> tuple[ValueDiff, ...]:
    """Values of all pairs; what was measured before a file gave out is kept."""
    total, passed, found = sum(a.columns.sizes[row] for row, _ in pairing.pairs), 0, list[ValueDiff]()

    def count(size: int) -> None:
        nonlocal passed
        passed += size
        done(passed, total)

    try:
        found.extend(compare_values(a, b, pairing.pairs, count))
    except ModelError as error:
        problems.append(error.problem())
    return tuple(found)
