"""Opens the tensors of a checkpoint whatever its format, and says what a Megatron checkpoint is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from hfbench.convert.boxes import TensorSpec
from hfbench.convert.formats.joined import Joined
from hfbench.convert.formats.megatron_folder import MegatronFacts, find_megatron, open_megatron, read_facts
from hfbench.convert.formats.torch_file import TorchFile, open_torch_file, refuse_unread, tensors_in
from hfbench.convert.stored import Stored, TensorSet
from hfbench.errors import HfbenchError, UsageError
from hfbench.models.checkpoint import Checkpoint, open_checkpoint
from hfbench.models.files import NOT_WEIGHTS, describe_file
from hfbench.models.index import Index, read_index
from hfbench.models.problem import counted, listed, quoted
from hfbench.models.remote_mark import refuse_headers_only

BIN, BIN_INDEX = "pytorch_model.bin", "pytorch_model.bin.index.json"
TORCH_SUFFIXES = (".bin", ".pt", ".pth", ".ckpt")
INNER = ("state_dict", "model", "model_state_dict", "module")
"""Keys below which training programs put the tensors of a file."""


NUMBERED = re.compile(r"pytorch_model-\d+-of-\d+\.bin$")
FIX_INDEX = "hfbench convert safetensors --fix-index takes the tensors as the files hold them"

INDEX_FAULTS = frozenset({"index_tensor_absent", "index_wrong_shard", "index_bad"})
"""Faults of an index alone: the files themselves are whole."""


def open_tensors(path: Path, *, trust_index: bool = True) -> TensorSet:
    """The tensors of a Hugging Face folder (safetensors or .bin), a Megatron checkpoint, or one file of these kinds.

    Nothing is executed and no tensor is read. UsageError when there is no such thing, HfbenchError when a shard is
    missing or broken, or an index disagrees with its files and is not to be put aside for them.
    """
    if not path.exists():
        raise UsageError("there is no such file or folder", where=path)
    refuse_headers_only(path.parent if path.is_file() else path, "converting")
    if path.is_file():
        return _one_file(path)
    iteration = None if is_hugging_face(path) else find_megatron(path)
    if iteration is not None:
        return TensorSet(folder=iteration, tensors=open_megatron(iteration))
    if _has_safetensors(path):
        return _safetensors(path, open_checkpoint(path), trust_index)
    files = _bin_files(path, trust_index)
    if not files:
        raise UsageError("holds no weights in safetensors, .bin or Megatron's formats", where=path)
    found: dict[str, Stored | Joined] = {}
    for file in files:
        _add(found, open_torch_file(path / file, path))
    if trust_index and (path / BIN_INDEX).exists():
        _refuse_ghosts(path, found)
    return TensorSet(folder=path, tensors=found)


def megatron_facts(folder: Path) -> MegatronFacts:
    """Format, iteration, ranks and arguments of a Megatron checkpoint; UsageError when the folder holds none."""
    found = find_megatron(folder) if folder.exists() else None
    if found is None:
        remedy = "name a folder with latest_checkpointed_iteration.txt, mp_rank_* or .metadata"
        raise UsageError("holds no Megatron checkpoint", where=folder, remedy=remedy)
    return read_facts(found)


def is_hugging_face(folder: Path) -> bool:
    """Whether a folder is a Hugging Face model, whatever else lies in it: some hold copies that were cut for ranks."""
    if not (folder / "config.json").is_file():
        return False
    return _has_safetensors(folder) or any((folder / name).exists() for name in (BIN, BIN_INDEX))


def _has_safetensors(folder: Path) -> bool:
    return any(each.name.endswith((".safetensors", ".safetensors.index.json")) for each in folder.iterdir())


def _one_file(path: Path) -> TensorSet:
    if path.name.endswith(".safetensors"):
        return _safetensors(path.parent, open_checkpoint(path.parent, only=describe_file(path, path.parent)))
    if path.name.endswith(TORCH_SUFFIXES):
        found: dict[str, Stored | Joined] = {}
        _add(found, open_torch_file(path))
        return TensorSet(folder=path.parent, tensors=found)
    remedy = "name a folder, or a file that ends in .safetensors, .bin, .pt, .pth or .ckpt"
    raise UsageError("is a file of another kind", where=path, remedy=remedy)


def _safetensors(folder: Path, checkpoint: Checkpoint, trust_index: bool = True) -> TensorSet:
    for problem in checkpoint.problems:
        of_index = problem.code in INDEX_FAULTS
        if problem.severity == "error" and (trust_index or not of_index):
            where = folder / problem.where if problem.where else folder
            raise HfbenchError(problem.found, where=where, remedy=FIX_INDEX if of_index else problem.remedy)
    starts = {shard.name: shard.header_bytes for shard in checkpoint.shards}
    found: dict[str, Stored | Joined] = {}
    for info in checkpoint.columns:
        spec = TensorSpec(info.name, info.dtype, info.shape)
        found[info.name] = Stored(spec, folder / info.shard, starts[info.shard] + info.begin)
    return TensorSet(folder=folder, tensors=found)


def _bin_files(folder: Path, trust_index: bool) -> list[str]:
    """The index's files where there is an index, pytorch_model.bin, or an only file of torch."""
    if trust_index and (folder / BIN_INDEX).exists():
        index: Index = read_index(folder, BIN_INDEX)
        missing = [name for name in index.shards if not (folder / name).exists()]
        if missing:
            found = f"names {counted(len(missing), 'file')} that {'is' if len(missing) == 1 else 'are'} missing: "
            raise HfbenchError(found + listed(missing), where=folder / BIN_INDEX, remedy="fetch the model again")
        _refuse_gaps(folder / BIN_INDEX, "names", [name for name in index.shards if NUMBERED.match(name)])
        return list(index.shards)
    if (folder / BIN).exists():
        return [BIN]
    others = sorted(
        each.name for each in folder.iterdir() if each.name.endswith(TORCH_SUFFIXES) and each.name not in NOT_WEIGHTS
    )
    numbered = [name for name in others if NUMBERED.match(name)]
    _refuse_gaps(folder, "holds", numbered)
    if len(others) > 1 and len(numbered) != len(others):
        remedy = "name one of them"
        raise UsageError(
            f"holds {counted(len(others), 'file')} of torch: {listed(others)}", where=folder, remedy=remedy
        )
    return others


def _refuse_ghosts(folder: Path, found: Mapping[str, Stored | Joined]) -> None:
    """HfbenchError when the index of .bin files names tensors that they do not hold."""
    if ghosts := [name for name in read_index(folder, BIN_INDEX).weight_map() if name not in found]:
        told = f"names {counted(len(ghosts), 'tensor')} that the files do not hold: {listed(ghosts)}"
        raise HfbenchError(told, where=folder / BIN_INDEX, remedy=FIX_INDEX)


def _refuse_gaps(where: Path, verb: str, numbered: list[str]) -> None:
    """HfbenchError when files that count themselves, as in `pytorch_model-00002-of-00003.bin`, are not all there."""
    totals = {found[1] for name in numbered if (found := re.search(r"-of-(\d+)\.", name))}
    if len(totals) == 1 and (whole := int(totals.pop())) != len(numbered):
        found_files = f"{verb} {counted(len(numbered), 'file')} of {whole}: {listed(numbered)}"
        raise HfbenchError(found_files, where=where, remedy="fetch the model again")


def _add(found: dict[str, Stored | Joined], file: TorchFile) -> None:
    content = file.content
    if isinstance(content, dict) and not any(True for _ in tensors_in(content, deepest=1)):
        content = next((content[key] for key in INNER if any(True for _ in tensors_in(content.get(key)))), content)
    refuse_unread(file, content)
    before = len(found)
    for name, tensor in tensors_in(content):
        if name in found:
            raise HfbenchError(f"tensor {quoted(name)} is in two files", where=file.path)
        found[name] = file.stored(name, tensor)
    if len(found) == before:
        raise HfbenchError("holds no tensors by name", where=file.path)
