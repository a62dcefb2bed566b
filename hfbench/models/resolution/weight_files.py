"""Which weight files each runtime would read from a folder, which it would pass over, and what stops it."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

from hfbench.models.files import NOT_WEIGHTS
from hfbench.models.index import CONSOLIDATED_INDEX, SAFETENSORS_INDEX, BadIndex, Index, read_index
from hfbench.models.problem import listed, quoted
from hfbench.models.resolution.subject import CONSOLIDATED, Subject
from hfbench.models.weights import SINGLE

PYTORCH_SINGLE = "pytorch_model.bin"
PYTORCH_INDEX = "pytorch_model.bin.index.json"
VLLM_PATTERNS = ("*.safetensors", "*.bin", "*.pt")


@dataclass(frozen=True, slots=True)
class Selection:
    """The files one runtime reads, and why; `fault` when it cannot go on."""

    files: tuple[str, ...]
    why: str
    fault: str = ""
    alarm: str = ""
    """What is dangerous about reading them, where the runtime reads them all the same."""


def in_transformers(subject: Subject) -> Selection:
    """The explicit transformers_weights, else the single safetensors file, else its index, else the same of .bin."""
    explicit = (subject.config or {}).get("transformers_weights")
    if isinstance(explicit, str):
        return _explicit(subject, explicit)
    for name in (SINGLE, SAFETENSORS_INDEX, PYTORCH_SINGLE, PYTORCH_INDEX):
        if name not in subject.by_name:
            continue
        if not name.endswith(".index.json"):
            return Selection((name,), f"{name} is there" + _over(subject, name), _unreadable(subject, (name,)))
        return _indexed(subject, name, f"{name} names them", beyond=True)
    fault = f"there is no {SINGLE} and no {SAFETENSORS_INDEX}, the names transformers looks for"
    if any(name.endswith(".gguf") for name in subject.weights):
        fault += "; a GGUF file is given with gguf_file="
    return Selection((), "", fault)


def in_vllm(subject: Subject) -> Selection:
    """Consolidated files when any subfolder holds one, else the first pattern that matches, narrowed by the index."""
    roots = [name for name in subject.by_name if "/" not in name]
    consolidated = subject.consolidated()
    if consolidated:
        names = [name for name in roots if fnmatchcase(name, CONSOLIDATED)]
        if not names:
            why = f"{quoted(consolidated[0])} turns vLLM to Mistral's weights, and there are none at the root"
            return Selection((), "", f"{why}: it cannot find any model weights")
        return _narrowed(subject, names, CONSOLIDATED_INDEX, f"{CONSOLIDATED} comes first")
    for pattern in VLLM_PATTERNS:
        names = [name for name in roots if fnmatchcase(name, pattern)]
        if not names:
            continue
        if pattern == VLLM_PATTERNS[0]:
            return _narrowed(subject, names, SAFETENSORS_INDEX, f"every {pattern} at the root")
        kept = tuple(name for name in names if not name.endswith(tuple(NOT_WEIGHTS)))
        fault = "" if kept else f"{listed(names)} is no weight file: vLLM cannot find any model weights"
        return Selection(kept, f"every {pattern} at the root", fault or _unreadable(subject, kept))
    fault = "there is no *.safetensors, *.bin or *.pt at the root: vLLM cannot find any model weights"
    if any(name.endswith(".gguf") for name in subject.weights):
        fault += "; a GGUF file is given by its own name"
    return Selection((), "", fault)


def in_others(subject: Subject) -> Selection:
    """TensorRT-LLM and Megatron-Bridge: all safetensors files at the root but consolidated ones, else .bin."""
    roots = [name for name in subject.by_name if "/" not in name]
    safetensors = [name for name in roots if name.endswith(".safetensors")]
    plain = [name for name in safetensors if "consolidated" not in name] or safetensors
    kept = tuple(plain or [name for name in roots if name.endswith(".bin") and name not in NOT_WEIGHTS])
    fault = "" if kept else "there is no *.safetensors and no *.bin at the root"
    why = "every *.safetensors at the root, consolidated ones last"
    return Selection(kept, why, fault or _incomplete(subject) or _unreadable(subject, kept))


def passed_over(subject: Subject, selection: Selection) -> list[str]:
    """Weight files that are in the folder and are not read."""
    read = set(selection.files)
    return [name for name in subject.weights if name not in read]


def _narrowed(subject: Subject, names: list[str], index: str, why: str) -> Selection:
    if index not in subject.by_name:
        note = "" if len(names) == 1 else ", strays and adapters too"
        return Selection(tuple(names), f"{why}; no {index}, so all are read{note}", _unreadable(subject, tuple(names)))
    return _indexed(subject, index, f"{why} that {index} names", beyond=False)


def _indexed(subject: Subject, name: str, why: str, *, beyond: bool) -> Selection:
    """The files an index names. `beyond`: paths that leave the folder are followed, as transformers does."""
    try:
        index = _read_index(subject, name)
    except BadIndex as error:
        return Selection((), why, str(error))
    if bad := next((each for each in index.problems if each.code == "index_bad"), None):
        return Selection(index.shards, why, str(bad))
    escapes = [each for each in index.problems if each.code == "index_path_escape"]
    if escapes and not beyond:
        return Selection(index.shards, why, f"{escapes[0].found}, and vLLM refuses what is not in the folder")
    alarm = f"{escapes[0].found}, and transformers follows it: do not load this model" if escapes else ""
    missing = [shard for shard in index.shards if shard not in subject.by_name]
    if missing:
        return Selection(index.shards, why, _not_there(name, missing), alarm)
    return Selection(index.shards, why, _unreadable(subject, index.shards), alarm)


def _incomplete(subject: Subject) -> str:
    """Files that the index names and that are not there: whoever does not read the index lacks their tensors too."""
    index = subject.checkpoint.index
    missing = [shard for shard in index.shards if shard not in subject.by_name] if index else []
    return _not_there(SAFETENSORS_INDEX, missing) if missing else ""


def _not_there(index: str, missing: list[str]) -> str:
    verb, which = ("is", "it") if len(missing) == 1 else ("are", "them")
    return f"{listed(missing)} {verb} not there, and {index} names {which}"


def _read_index(subject: Subject, name: str) -> Index:
    if name == SAFETENSORS_INDEX and subject.checkpoint.index is not None:
        return subject.checkpoint.index
    return read_index(subject.folder, name)


def _explicit(subject: Subject, name: str) -> Selection:
    why = "config.json: transformers_weights names it"
    if name not in subject.by_name:
        return Selection((), why, f"transformers_weights names {quoted(name)}, which is not there")
    if name.endswith(".index.json"):
        return _indexed(subject, name, why, beyond=True)
    return Selection((name,), why, _unreadable(subject, (name,)))


def _over(subject: Subject, name: str) -> str:
    return f" and beats {SAFETENSORS_INDEX}" if name == SINGLE and SAFETENSORS_INDEX in subject.by_name else ""


def _unreadable(subject: Subject, names: tuple[str, ...]) -> str:
    """The first file that cannot be opened, or whose header is wrong."""
    for name in names:
        entry = subject.by_name.get(name)
        if entry is not None and entry.problem:
            return f"{name}: {entry.problem}"
    wanted = set(names)
    broken = (each for each in subject.checkpoint.problems if each.severity == "error" and each.where in wanted)
    return next((str(each) for each in broken), "")
