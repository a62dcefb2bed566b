"""Reads a checkpoint in a child process and hands it over in slices, so that a screen never waits for a parse.

`python -m hfbench.models.stream FOLDER` writes frames to its stdout; `follow` starts it and reads them.
"""

from __future__ import annotations

import json
import marshal
import os
import subprocess
import sys
import threading
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, BinaryIO

from hfbench.beside import end_with_parent, python_path
from hfbench.codec import decode, encode
from hfbench.errors import HfbenchError, error_from_parts
from hfbench.models.checkpoint import Gathering, ShardRead, read_weights
from hfbench.models.columns import TensorColumns
from hfbench.models.facts import ModelSummary
from hfbench.models.files import list_files
from hfbench.models.header_rows import Kind
from hfbench.models.problem import Problem
from hfbench.models.reference import Location
from hfbench.models.summary import summary_of
from hfbench.models.weights import choose_weights

SLICE_ROWS = 2048
SLICE_CHARACTERS = 2**19
"""Rows and characters of names in one frame: taking one in costs the receiver about a millisecond."""

LENGTH_BYTES = 4


@dataclass(frozen=True, slots=True)
class Begun:
    """The weights are chosen: their format and how many files will be read."""

    format: str
    shards: int


@dataclass(frozen=True, slots=True)
class Rows:
    """Some tensors of one file; a file with many comes in several such frames, in order."""

    shard: str
    number: int
    total: int
    names: list[str]
    kinds: list[Kind]
    kind_ids: array[int]
    begins: array[int]

    def add_to(self, columns: TensorColumns) -> None:
        """Append the tensors to the receiver's columns."""
        columns.add_rows(self.shard, self.names, self.kinds, self.kind_ids, self.begins)


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something is wrong with one file; the others still come."""

    problem: Problem


@dataclass(frozen=True, slots=True)
class Done:
    """All is read. The summary stays text until somebody wants it."""

    tensors: int
    text: bytes

    def summary(self) -> ModelSummary:
        """What `summarise` would say of the folder."""
        return decode(ModelSummary, json.loads(self.text))


@dataclass(frozen=True, slots=True)
class Failed:
    """Nothing could be read, or the child died."""

    error: HfbenchError


Frame = Begun | Rows | Trouble | Done | Failed


def follow(location: Location | Path) -> Iterator[Frame]:
    """The frames of a folder as its child process sends them; the last one is Done or Failed.

    Closing the iterator kills the child, and so does the end of this process.
    """
    at = location if isinstance(location, Location) else Location(str(location), location, "local")
    child = _start(at)
    assert child.stdout
    frame: Frame | None = None
    try:
        while raw := _receive(child.stdout):
            frame = _frame(*raw)
            yield frame
        if not isinstance(frame, (Done, Failed)):
            found = f"the process that read the model ended with status {child.wait()}"
            yield Failed(HfbenchError(found, where=at.folder))
    finally:
        child.kill()
        with child:  # closes the pipes and waits
            pass


def slices(read: ShardRead) -> Iterator[Rows]:
    """The tensors of one file in parts that are cheap to take in."""
    if read.header is None:
        return
    header, start = read.header, 0
    while start < len(header):
        end = _end_of_slice(header.names, start)
        used = list(dict.fromkeys(header.kind_ids[start:end]))
        local = {kind: number for number, kind in enumerate(used)}
        yield Rows(
            read.shard,
            read.number,
            read.total,
            header.names[start:end],
            [header.kinds[kind] for kind in used],
            array("L", map(local.__getitem__, header.kind_ids[start:end])),
            header.begins[start:end],
        )
        start = end


def _end_of_slice(names: list[str], start: int) -> int:
    end = min(start + SLICE_ROWS, len(names))
    while end - start > 1 and sum(map(len, names[start:end])) > SLICE_CHARACTERS:
        end = start + (end - start) // 2
    return end


def _start(at: Location) -> subprocess.Popen[bytes]:
    """The child. -P: it must never import from the current folder, which may be a model's."""
    command = [sys.executable, "-P", "-m", "hfbench.models.stream", json.dumps(encode(at))]
    pipe = subprocess.PIPE
    return subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": python_path()}
    )


def _receive(pipe: IO[bytes]) -> tuple[str, tuple[Any, ...]] | None:
    head = pipe.read(LENGTH_BYTES)
    body = pipe.read(int.from_bytes(head, "little")) if len(head) == LENGTH_BYTES else b""
    if not body or len(body) != int.from_bytes(head, "little"):
        return None
    tag, values = marshal.loads(body)  # written by our own code in the same interpreter
    return tag, values


def _frame(tag: str, values: tuple[Any, ...]) -> Frame:
    if tag == "rows":
        shard, number, total, names, kinds, kind_ids, begins = values
        return Rows(shard, number, total, names, kinds, array("L", kind_ids), array("Q", begins))
    if tag == "trouble":
        return Trouble(Problem(**values[0]))
    if tag == "failed":
        return Failed(error_from_parts(values[0]))
    return Begun(*values) if tag == "begun" else Done(*values)


def _send(pipe: BinaryIO, tag: str, *values: Any) -> None:
    body = marshal.dumps((tag, values))
    pipe.write(len(body).to_bytes(LENGTH_BYTES, "little") + body)
    pipe.flush()


def _serve(at: Location, pipe: BinaryIO) -> None:
    files = list_files(at.folder)
    weights = choose_weights(at.folder, files)
    _send(pipe, "begun", weights.format, len(weights.shards))
    gathering = Gathering(at.folder, weights)
    for read in read_weights(at.folder, weights):
        for part in slices(read):
            row = (part.shard, part.number, part.total, part.names, part.kinds)
            _send(pipe, "rows", *row, part.kind_ids.tobytes(), part.begins.tobytes())
        gathering.add(read)
        if read.problem:
            _send(pipe, "trouble", encode(read.problem))
    summary = summary_of(at, files, gathering.checkpoint())
    text = json.dumps(encode(summary), separators=(",", ":")).encode()
    _send(pipe, "done", len(gathering.columns), text)


def main() -> None:
    """Serve the folder named on the command line."""
    threading.Thread(target=end_with_parent, daemon=True).start()
    os.nice(5)
    pipe = sys.stdout.buffer
    at = decode(Location, json.loads(sys.argv[1]))
    try:
        _serve(at, pipe)
    except BrokenPipeError:
        os._exit(0)
    except HfbenchError as error:
        _send(pipe, "failed", error.parts())
    except Exception as error:  # the receiver tells it: our stderr leads nowhere
        unforeseen = HfbenchError(f"unforeseen {type(error).__name__}: {error}", where=at.folder)
        _send(pipe, "failed", unforeseen.parts())
    os._exit(0)  # the thread that watches stdin cannot be joined


if __name__ == "__main__":
    main()
