"""Opens the weights of a folder: all headers, shard by shard, whatever is wrong with some of them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path

from hfbench.models.columns import TensorColumns
from hfbench.models.files import ModelFile, open_regular
from hfbench.models.index import BadIndex, Index, misplaced, missing_shards
from hfbench.models.problem import ModelError, Problem, counted, listed
from hfbench.models.safetensors import Header, read_header
from hfbench.models.weights import Format, WeightSet, choose_weights, one_file


@dataclass(frozen=True, slots=True)
class ShardRead:
    """One file of the weights, read or not: exactly one of `header` and `problem` is there."""

    shard: str
    number: int
    """Counts from 1 to `total`."""
    total: int
    header: Header | None
    problem: Problem | None


@dataclass(frozen=True, slots=True)
class Shard:
    """What is kept of one file that was read. Sizes are bytes."""

    name: str
    tensors: int
    header_bytes: int
    data_bytes: int
    metadata: dict[str, str]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Every tensor that could be read, and every reason why another could not."""

    folder: Path
    format: Format
    columns: TensorColumns
    shards: tuple[Shard, ...]
    index: Index | None
    problems: tuple[Problem, ...]

    @property
    def weight_bytes(self) -> int:
        """Bytes of all tensors read."""
        return sum(self.columns.sizes)


class Gathering:
    """Puts shards together as they are read; `checkpoint` may be asked for once all have come."""

    def __init__(self, folder: Path, weights: WeightSet) -> None:
        self.folder, self.weights = folder, weights
        self.columns = TensorColumns()
        self.shards: list[Shard] = []
        self.broken: list[Problem] = []
        self.missing: set[int] = set()
        """Numbers of the shards that are not there: a problem has a name as it is painted, not as the index has it."""

    def add(self, read: ShardRead) -> None:
        """Take in one shard."""
        if read.problem:
            self.broken.append(read.problem)
            if read.problem.code == "missing":
                self.missing.add(read.number)
        if read.header is None:
            return
        read.header.add_to(self.columns, read.shard)
        header = read.header
        self.shards.append(Shard(read.shard, len(header), header.header_bytes, header.data_bytes, header.metadata))
        for code, found in header.notes:
            self.broken.append(Problem(severity="warning", where=read.shard, found=found, code=code))

    def checkpoint(self) -> Checkpoint:
        """All that was read, compared with what the index says."""
        problems = [*self.weights.problems]
        try:
            problems += [*self._missing(), *self._compared()]
        except BadIndex as error:
            problems += [error.problem(), *self.broken]
        return Checkpoint(
            self.folder, self.weights.format, self.columns, tuple(self.shards), self.weights.index, tuple(problems)
        )

    def _missing(self) -> list[Problem]:
        others = [problem for problem in self.broken if problem.code != "missing"]
        index = self.weights.index
        if index is None:
            return self.broken
        unread = any(problem.severity == "error" for problem in others)
        present = [shard for number, shard in enumerate(index.shards, 1) if number not in self.missing]
        return [*missing_shards(index, present, None if unread else sum(self.columns.sizes)), *others]

    def _compared(self) -> list[Problem]:
        names, index = self.columns.names, self.weights.index
        problems = [_twice(names)] if len(self.shards) > 1 and len(set(names)) != len(names) else []
        if index is None:
            return problems
        problems += misplaced(index, self.columns)
        total, stored = index.total_size, sum(self.columns.sizes)
        if total is not None and total != stored and len(self.shards) == len(index.shards):
            found = f"total_size is {total:,}, the tensors take {stored:,} bytes"
            problems.append(Problem(severity="warning", where=index.name, found=found, code="index_total_size"))
        claimed, whole = index.total_parameters, len(self.shards) == len(index.shards)
        if claimed is not None and whole and claimed != (held := _elements(self.columns)):
            found = f"total_parameters is {claimed:,}, the tensors hold {held:,} elements"
            problems.append(Problem(severity="info", where=index.name, found=found, code="index_total_parameters"))
        return problems


def open_checkpoint(
    folder: Path, files: Sequence[ModelFile] | None = None, *, only: ModelFile | None = None
) -> Checkpoint:
    """All tensors of a folder, or of one file. A broken shard is a problem of the checkpoint, not an exception."""
    weights = one_file(only) if only else choose_weights(folder, files)
    gathering = Gathering(folder, weights)
    for read in read_weights(folder, weights):
        gathering.add(read)
    return gathering.checkpoint()


def read_shards(folder: Path) -> Iterator[ShardRead]:
    """The headers of a folder's weights one by one, for whoever shows rows as they arrive."""
    yield from read_weights(folder, choose_weights(folder))


def read_weights(folder: Path, weights: WeightSet) -> Iterator[ShardRead]:
    """The headers of a chosen set of weights one by one."""
    total = len(weights.shards)
    for number, shard in enumerate(weights.shards, 1):
        header, problem = _read(shard, folder)
        yield ShardRead(shard.name, number, total, header, problem)


def _read(shard: ModelFile, folder: Path) -> tuple[Header | None, Problem | None]:
    try:
        with open_regular(shard.path, folder) as file:
            here = os.fstat(file.fileno()).st_size
            return read_header(file, shard.bytes if shard.held == "header" else here), None
    except ModelError as error:
        return None, error.problem(where=shard.name)
    except OSError as error:
        found = f"cannot be read ({error.strerror})"
        return None, Problem(severity="error", where=shard.name, found=found, code="unreadable")


def _elements(columns: TensorColumns) -> int:
    each = [prod(shape) for shape in columns.shapes]
    return sum(map(each.__getitem__, columns.shape_ids))


def _twice(names: list[str]) -> Problem:
    seen: set[str] = set()
    again = [name for name in names if name in seen or seen.add(name)]  # type: ignore[func-returns-value]
    found = f"{counted(len(again), 'tensor')} in two files at once: {listed(again)}"
    return Problem(severity="error", where="", found=found, code="tensor_twice")
