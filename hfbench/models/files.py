"""The files of a model folder: listed without opening them, and opened only when they are plain files inside it."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal

from hfbench.errors import HfbenchError
from hfbench.models.problem import ModelError, Problem, quoted
from hfbench.models.remote_mark import MARK, Held, RemoteMark, read_mark

FileKind = Literal["weights", "index", "config", "tokenizer", "code", "other"]

MOST_FILES = 10_000
"""Entries listed of one folder; a home folder given by mistake is not walked to its end."""

DEEPEST = 64
"""Levels below the model's folder that are listed: vLLM looks for weights without end."""

_HASH = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
"""What the files of a Hugging Face cache are called."""

SHARED_STORE = ".huggingface-shared-blobs"
"""The file that marks such a store."""

SKIPPED_FOLDERS = frozenset({".git", ".cache", "__pycache__"})

WEIGHT_SUFFIXES = (".safetensors", ".bin", ".pt", ".pth", ".gguf", ".h5", ".msgpack", ".onnx", ".ckpt", ".npz")
TOKENIZER_NAMES = frozenset(
    {
        "tokenizer.json",
        "tokenizer_config.json",
        "special_tokens_map.json",
        "added_tokens.json",
        "vocab.json",
        "vocab.txt",
        "merges.txt",
        "tekken.json",
        "chat_template.jinja",
        "chat_template.json",
        "spiece.model",
        "sentencepiece.bpe.model",
    }
)
ENGINE_MANIFEST = "hfbench-engine.json"
"""In a folder of an engine, which is built from a model and is none."""

MEGATRON_TRACKER = "latest_checkpointed_iteration.txt"
"""At the top of a Megatron checkpoint: which iteration is the last."""

NOT_WEIGHTS = frozenset({"training_args.bin", "optimizer.bin", "optimizer.pt", "scheduler.pt", "scaler.pt"})
"""Files of a training run that carry the suffix of weights."""


@dataclass(frozen=True, slots=True)
class ModelFile:
    """One entry of a model folder. `name` is relative to the folder; `bytes` is the size of what a link leads to."""

    name: str
    path: Path
    bytes: int
    kind: FileKind
    target: str = ""
    """Where a symbolic link points, as it is written in the link."""
    code: str = ""
    problem: str = ""
    """Why the file cannot be opened, in words, and its code; empty for a plain file."""
    held: Held = "whole"
    """How much of it is here: the weights of a model on a hub may be left there, and `bytes` is their size there."""

    def as_problem(self) -> Problem:
        """The fault of an entry that cannot be opened."""
        return Problem(severity="error", where=self.name, found=self.problem, code=self.code)


def list_files(folder: Path, *, deep: bool = True) -> list[ModelFile]:
    """Every file of a model folder by name, its subfolders included unless `deep` is false.

    Nothing is opened and no link to a folder is followed. HfbenchError when the folder cannot be read.
    """
    mark = read_mark(folder)
    try:
        found = {each.name: each for each in _walk(folder, folder, DEEPEST if deep else 0)}
        found |= _left_on_hub(folder, mark, deep=deep) if mark else {}
        return [found[name] for name in sorted(found)]
    except OSError as error:
        raise HfbenchError(f"the folder cannot be read ({error.strerror})", where=folder) from None


def describe_file(path: Path, folder: Path) -> ModelFile:
    """One entry, missing or not, as `list_files` would tell it."""
    name = path.relative_to(folder).as_posix()
    if (mark := read_mark(folder)) is not None and name in mark.files and not mark.holds(name):
        return _remote(name, folder, mark)
    return _described(name, path, folder)


def _described(name: str, path: Path, folder: Path) -> ModelFile:
    try:
        entry = os.lstat(path)
        if not stat.S_ISLNK(entry.st_mode):
            if "/" in name and not _may_follow(path, folder):
                found = "below a link that leads outside the model's folder; it is not followed"
                return ModelFile(name, path, 0, kind_of(name), code="link_escape", problem=found)
            return _plain(name, path, entry, "")
        target = os.readlink(path)
    except OSError as error:
        return ModelFile(name, path, 0, kind_of(name), code="missing", problem=_reason(error))
    except ValueError:  # a NUL, or a lone surrogate, as JSON may hold it
        return ModelFile(name, path, 0, kind_of(name), code="missing", problem="no file can have this name")
    try:
        behind = os.stat(path)
    except OSError:
        return ModelFile(
            name, path, 0, kind_of(name), target, "broken_symlink", f"a link to {quoted(target)}, where nothing is"
        )
    if not _may_follow(path, folder):
        found = f"a link to {quoted(target)}, outside the model's folder; it is not followed"
        return ModelFile(name, path, 0, kind_of(name), target, "link_escape", found)
    return _plain(name, path, behind, target)


def open_regular(path: Path, folder: Path | None = None) -> BinaryIO:
    """Open a plain file for reading, unbuffered; links are followed inside the folder and into a Hugging Face cache.

    A FIFO, a device, a folder, a dangling or an escaping link is a ModelError and is never opened for real. Of a file
    whose header alone is here, the header can be read, and then it ends. Looking is no use: the time of the last access
    stays, where the file is one's own.
    """
    entry = describe_file(path, folder or path.parent)
    if entry.held == "nothing":
        raise ModelError("not_fetched", "was left on the hub: hfbench pull fetches it", where=path)
    if entry.problem:
        raise ModelError(entry.code, entry.problem, where=path)
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW  # a swapped-in FIFO or link must not hang us
    try:
        descriptor = _opened(os.path.realpath(path), flags)
    except OSError as error:
        raise ModelError("unreadable", f"cannot be opened ({error.strerror})", where=path) from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ModelError("not_regular", "is not a plain file", where=path)
    return open(descriptor, "rb", buffering=0)


def _opened(path: str, flags: int) -> int:
    try:
        return os.open(path, flags | os.O_NOATIME)
    except PermissionError:  # of another user
        return os.open(path, flags)


def read_bytes(path: Path, limit: int, folder: Path | None = None) -> bytes:
    """The whole of a plain file of at most `limit` bytes; ModelError when it is larger or cannot be opened."""
    try:
        with open_regular(path, folder) as file:
            size = os.fstat(file.fileno()).st_size
            if size > limit:
                found = f"has {size:,} bytes, more than the {limit:,} that a file of its kind may have"
                raise ModelError("too_large", found, where=path)
            parts = []
            while part := file.read(size + 1):
                parts.append(part)
                if sum(map(len, parts)) > limit:
                    raise ModelError("too_large", f"grew past {limit:,} bytes while it was read", where=path)
            return b"".join(parts)
    except OSError as error:
        raise ModelError("unreadable", f"cannot be read ({error.strerror})", where=path) from None


def read_text(path: Path, limit: int, folder: Path | None = None) -> str:
    """The text of a plain UTF-8 file; bytes that are not UTF-8 are kept as lone surrogates and painted as `\\xff`."""
    return read_bytes(path, limit, folder).decode("utf-8", "surrogateescape")


def kind_of(name: str) -> FileKind:
    """What a file is for, judged by its name alone."""
    base = name.rpartition("/")[2].lower()
    if base.endswith(".index.json"):
        return "index"
    if base in TOKENIZER_NAMES or base.endswith((".tiktoken", ".jinja")) or base.startswith("tokenizer"):
        return "tokenizer"
    if base.endswith(WEIGHT_SUFFIXES) and base not in NOT_WEIGHTS:
        return "weights"
    if base.endswith(".json"):
        return "config"
    return "code" if base.endswith((".py", ".so", ".sh")) else "other"


def _walk(top: Path, folder: Path, depth: int) -> Iterator[ModelFile]:
    left = MOST_FILES
    pending = [(folder, depth)]
    while pending:
        current, levels = pending.pop()
        with os.scandir(current) as entries:
            for entry in entries:
                left -= 1
                if left < 0:
                    return
                path = Path(entry.path)
                in_place_of_file = current == top and kind_of(entry.name) not in ("other", "code")
                if current == top and entry.name == MARK:
                    continue
                if not entry.is_dir(follow_symlinks=False) or in_place_of_file:
                    yield _described(path.relative_to(top).as_posix(), path, top)
                elif levels > 0 and entry.name not in SKIPPED_FOLDERS and os.access(path, os.R_OK | os.X_OK):
                    pending.append((path, levels - 1))


def _left_on_hub(folder: Path, mark: RemoteMark, *, deep: bool) -> dict[str, ModelFile]:
    """The files of a model on a hub that are not here as a whole."""
    names = [name for name in mark.files if not mark.holds(name) and (deep or "/" not in name)]
    return {name: _remote(name, folder, mark) for name in names}


def _remote(name: str, folder: Path, mark: RemoteMark) -> ModelFile:
    """A file that was left on a hub; where its header should be here and is not, the fault of that."""
    told, path = mark.files[name], folder / name
    if told.held == "header" and (here := _described(name, path, folder)).problem:
        return here
    return ModelFile(name, path, told.size, kind_of(name), held=told.held)


def _plain(name: str, path: Path, status: os.stat_result, target: str) -> ModelFile:
    kind = kind_of(name)
    if stat.S_ISREG(status.st_mode):
        return ModelFile(name, path, status.st_size, kind, target)
    kinds = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket"}
    what = kinds.get(stat.S_IFMT(status.st_mode), "a device")
    return ModelFile(name, path, 0, kind, target, "not_regular", f"{what}, not a plain file")


def _may_follow(path: Path, folder: Path) -> bool:
    """True inside the folder, in the blobs of its own cached repository, and for a blob of any cache by its hash."""
    real, top = Path(os.path.realpath(path)), Path(os.path.realpath(folder))
    if real.is_relative_to(top) or in_shared_store(real):
        return True
    repo = real.parent.parent
    if real.parent.name != "blobs" or not repo.name.startswith(("models--", "datasets--")):
        return False
    return top.is_relative_to(repo) or _HASH.fullmatch(real.name) is not None


def in_shared_store(real: Path) -> bool:
    """Whether a real path is a content of the store that stock clients keep for all repositories of a cache:
    `blobs/ab/ab...`, to which blobs of repositories are links."""
    store = real.parent.parent
    named = store.name == "blobs" and real.parent.name == real.name[:2] and _HASH.fullmatch(real.name) is not None
    return named and (store / SHARED_STORE).is_file()


def _reason(error: OSError) -> str:
    return "not there" if isinstance(error, FileNotFoundError) else f"cannot be looked at ({error.strerror})"
