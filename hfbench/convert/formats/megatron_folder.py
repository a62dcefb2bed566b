"""What a Megatron checkpoint's folder is: its format, iteration, ranks and arguments, read as plain data."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Literal

from hfbench.convert.formats.inert import Global, StandIn, TensorRef
from hfbench.convert.formats.joined import Joined
from hfbench.convert.formats.torch_dist import METADATA, open_torch_dist
from hfbench.convert.formats.torch_file import TorchFile, open_torch_file, refuse_unread
from hfbench.convert.stored import Stored
from hfbench.errors import HfbenchError, UsageError
from hfbench.models.files import MEGATRON_TRACKER, read_text
from hfbench.models.problem import counted, listed, quoted

RANK_FILES = ("model_optim_rng.pt", "model_rng.pt")
COMMON = "common.pt"

WRAPPER = "module."
"""What a model saved from inside of its wrappers has before every name."""

MUST_AGREE = (
    "num_layers",
    "hidden_size",
    "num_attention_heads",
    "rotary_base",
    "norm_epsilon",
    "padded_vocab_size",
    "num_experts",
    "tensor_model_parallel_size",
    "pipeline_model_parallel_size",
    "expert_model_parallel_size",
)
"""Arguments that are the same on every rank of a checkpoint."""

MOST_VALUES = 100_000
"""Values of `args` that are read: they have some six hundred."""

DEEPEST = 16
"""Levels of lists and dictionaries in `args`."""

_RANK = re.compile(r"mp_rank_\d{2,}(_\d{3,}){0,2}")


@dataclass(frozen=True, kw_only=True)
class MegatronFacts:
    """What a Megatron checkpoint says of itself.

    `args` are plain data; values of classes that are no plain data are their names in `<>`, and `foreign` lists those
    classes: nothing of them was imported or called.
    """

    format: Literal["torch", "torch_dist"]
    folder: Path
    """The folder of the iteration, which holds the ranks' folders or .metadata."""
    iteration: int | str
    """A number, or `release`."""
    checkpoint_version: float | None
    args: Mapping[str, object]
    ranks: tuple[str, ...]
    """Names of the ranks' folders, sorted; empty for torch_dist."""
    foreign: tuple[str, ...]


def find_megatron(folder: Path) -> Path | None:
    """The iteration's folder in, or at, a Megatron checkpoint; None where none is to be seen.

    UsageError when the tracker names an iteration that is not there, or several are and no tracker tells which.
    """
    if _is_iteration(folder):
        return folder
    tracker = folder / MEGATRON_TRACKER
    if tracker.exists():
        text = read_text(tracker, 1000, folder).strip()
        if text != "release" and not text.isdecimal():
            raise UsageError(f"holds {quoted(text)} instead of an iteration or 'release'", where=tracker)
        found = folder / (text if text == "release" else f"iter_{int(text):07d}")
        if not _is_iteration(found):
            raise UsageError(f"names {found.name}, which holds no checkpoint", where=tracker)
        return found
    if not folder.is_dir():
        return None
    there = sorted(each for each in folder.iterdir() if re.fullmatch(r"iter_\d{7,}|release", each.name))
    there = [each for each in there if _is_iteration(each)]
    if len(there) > 1:
        found_names = listed(each.name for each in there)
        raise UsageError(
            f"holds {found_names} and no {MEGATRON_TRACKER}", where=folder, remedy="name one of these folders"
        )
    return there[0] if there else None


def read_facts(folder: Path) -> MegatronFacts:
    """The facts of an iteration's folder. HfbenchError when it cannot be read or its arguments are missing."""
    ranks = _ranks(folder)
    kind: Literal["torch", "torch_dist"] = "torch" if ranks else "torch_dist"
    file = _rank_file(folder / ranks[0], folder) if ranks else _common(folder)
    content = file.content if file and isinstance(file.content, dict) else {}
    args, foreign = plain_arguments(content.get("args"), file.path if file else folder)
    version = content.get("checkpoint_version")
    iteration = content.get("iteration")
    named = re.fullmatch(r"iter_(\d+)", folder.name)
    return MegatronFacts(
        format=kind,
        folder=folder,
        iteration="release" if folder.name == "release" else int(named[1]) if named else _whole(iteration),
        checkpoint_version=float(version) if isinstance(version, (int, float)) else None,
        args=args,
        ranks=tuple(ranks),
        foreign=foreign,
    )


def open_megatron(folder: Path) -> dict[str, Stored | Joined]:
    """The tensors of an iteration's folder: `RANK:NAME` for files by rank, names alone for torch_dist."""
    ranks = _ranks(folder)
    if not ranks:
        return open_torch_dist(folder)
    found: dict[str, Stored | Joined] = {}
    first: dict[str, object] = {}
    processes: dict[str, object] = {}
    for rank in ranks:
        file = _rank_file(folder / rank, folder)
        model, told = _model_of(file), _identity(file)
        if told != (first := first or told):
            what = next(name for name in told if told[name] != first[name])
            raise HfbenchError(
                f"its {what} is {quoted(told[what])}, that of {ranks[0]} {quoted(first[what])}",
                where=file.path,
                remedy="the ranks are of different checkpoints: bring those of one together",
            )
        processes[rank] = _process_of(file)
        refuse_unread(file, model)
        for name, tensor in model.items():
            if isinstance(tensor, TensorRef):  # `_extra_state` is None or bytes
                found[f"{rank}:{name}"] = file.stored(f"{rank}:{name}", tensor)
    _refuse_exchanged(folder, processes)
    return found


def plain_arguments(namespace: object, where: Path) -> tuple[dict[str, object], tuple[str, ...]]:
    """`args` as a dictionary of plain data, and the classes in it that are none. Missing `args` are no arguments."""
    if namespace is None:
        return {}, ()
    if isinstance(namespace, StandIn):
        state = namespace.attributes()
        if str(namespace.of) != "argparse.Namespace" and not state:
            raise HfbenchError(f"its args are an object of the class {namespace.of}, which is not read", where=where)
    elif isinstance(namespace, dict):
        state = {key: value for key, value in namespace.items() if isinstance(key, str)}
    else:
        raise HfbenchError("its args are no arguments", where=where)
    reader = _Plain(where)
    values = {key: reader.plain(value, 0) for key, value in state.items()}
    return values, tuple(sorted(reader.foreign))


class _Plain:
    """Turns what a pickle holds into plain data, of bounded size however often it refers to the same."""

    def __init__(self, where: Path) -> None:
        self.where, self.left = where, MOST_VALUES
        self.foreign: set[str] = set()

    def plain(self, value: object, depth: int) -> object:
        self.left -= 1
        if self.left < 0:
            raise HfbenchError(f"its args hold more than {MOST_VALUES:,} values", where=self.where)
        if depth > DEEPEST:
            raise HfbenchError(f"its args are nested more than {DEEPEST} deep", where=self.where)
        match value:
            case None | bool() | int() | float() | str() | bytes():
                return value
            case list() | tuple() | set() | frozenset():
                kept = [self.plain(each, depth + 1) for each in value]
                return tuple(kept) if isinstance(value, tuple) else kept
            case dict():
                return {key: self.plain(each, depth + 1) for key, each in value.items() if isinstance(key, (str, int))}
            case Global():
                return str(value)
            case StandIn():
                return self.stand_in(value, depth)
            case TensorRef():
                return f"<tensor {list(value.shape)}>"
        return f"<{type(value).__name__}>"

    def stand_in(self, value: StandIn, depth: int) -> object:
        name = str(value.of)
        if name == "argparse.Namespace":
            return self.plain(value.attributes(), depth + 1)
        if name.startswith("pathlib.") and all(isinstance(each, str) for each in value.args):
            return str(Path(*map(str, value.args)))
        self.foreign.add(name)
        held = [self.plain(each, depth + 1) for each in value.args]
        return f"<{name}{f' {held[0]!r}' if len(held) == 1 and isinstance(held[0], (int, str)) else ''}>"


def _is_iteration(folder: Path) -> bool:
    return folder.is_dir() and ((folder / METADATA).exists() or bool(_ranks(folder)))


def _ranks(folder: Path) -> list[str]:
    found = [each.name for each in folder.iterdir() if _RANK.fullmatch(each.name)] if folder.is_dir() else []
    return sorted(name for name in found if (folder / name).is_dir())


def _rank_file(folder: Path, top: Path) -> TorchFile:
    for name in RANK_FILES:
        if (folder / name).exists():
            return open_torch_file(folder / name, top)
    raise HfbenchError(f"holds no {RANK_FILES[0]}", where=folder, remedy="fetch the checkpoint again")


def _common(folder: Path) -> TorchFile | None:
    return open_torch_file(folder / COMMON, folder) if (folder / COMMON).exists() else None


def _identity(file: TorchFile) -> dict[str, object]:
    """What the files of all ranks of one checkpoint say alike."""
    content = file.content if isinstance(file.content, dict) else {}
    args, _ = plain_arguments(content.get("args"), file.path)
    return {"iteration": content.get("iteration"), **{name: args.get(name) for name in MUST_AGREE}}


def _process_of(file: TorchFile) -> object:
    """The number of the process that saved a file, where its arguments tell one."""
    content = file.content if isinstance(file.content, dict) else {}
    namespace = content.get("args")
    return namespace.attributes().get("rank") if isinstance(namespace, StandIn) else None


def _refuse_exchanged(folder: Path, processes: Mapping[str, object]) -> None:
    """HfbenchError for two ranks whose files were saved by each other's process.

    However Megatron orders its processes, their numbers rise with each of TP, PP and EP. Tools that save all ranks
    from one process tell nothing.
    """
    numbers = {rank: number for rank, number in processes.items() if type(number) is int}
    if len(set(numbers.values())) != len(processes):
        return
    places = {rank: tuple(map(int, rank.removeprefix("mp_rank_").split("_"))) for rank in numbers}
    for one, other in combinations(places, 2):
        steps = [b - a for a, b in zip(places[one], places[other], strict=True) if a != b]
        if len(steps) == 1 and (steps[0] > 0) != (numbers[other] > numbers[one]):
            found = f"{one} and {other} hold files that the processes {numbers[one]} and {numbers[other]} saved"
            raise HfbenchError(found, where=folder, remedy="files were exchanged: fetch the checkpoint again")


def _model_of(file: TorchFile) -> dict[str, object]:
    content = file.content
    if not isinstance(content, dict):
        raise HfbenchError("holds no dictionary", where=file.path)
    model = content.get("model")
    if isinstance(model, dict):
        if isinstance(model.get("language_model"), dict):
            found = "is a checkpoint of Megatron's old model classes (language_model), which are not read"
            raise HfbenchError(found, where=file.path, remedy="convert it with the Megatron-LM of its time first")
        names = {key: value for key, value in model.items() if isinstance(key, str)}
        while names and all(key.startswith(WRAPPER) for key in names):
            names = {key.removeprefix(WRAPPER): value for key, value in names.items()}
        return names
    virtual = [key for key in content if isinstance(key, str) and re.fullmatch(r"model\d+", key)]
    if virtual:
        found = f"holds {counted(len(virtual), 'model part')} ({listed(virtual)}): virtual pipeline stages are not read"
        remedy = "save the checkpoint without --num-layers-per-virtual-pipeline-stage"
        raise HfbenchError(found, where=file.path, remedy=remedy)
    raise HfbenchError(f"holds no 'model', but {listed(map(str, content))}", where=file.path)


def _whole(value: object) -> int:
    return value if type(value) is int else 0
