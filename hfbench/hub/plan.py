"""Which files of a repository a runtime needs: one set of weights, everything small beside it, nothing twice."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from hfbench.errors import HfbenchError, UsageError
from hfbench.hub.facts import HubFile

AUTO, ALL = "auto", "all"
READS: dict[str, tuple[str, ...]] = {
    "transformers": ("safetensors", "consolidated", "pytorch"),
    "vllm": ("safetensors", "consolidated", "pytorch"),
    "sglang": ("safetensors", "consolidated", "pytorch"),
    "tgi": ("safetensors", "pytorch"),
    "trtllm": ("safetensors", "pytorch"),
    "llama.cpp": ("gguf",),
    "onnx": ("onnx",),
    "openvino": ("openvino",),
}
"""Formats of weights by runtime; the first that a folder of the repository holds is taken, and no other."""

RUNTIMES = (AUTO, *READS, ALL)

GGUF_ORDER = ("Q4_K_M", "Q5_K_M", "Q6_K", "Q8_0", "Q4_K_S", "Q5_K_S", "Q4_0", "Q3_K_M", "IQ4_XS", "BF16", "F16", "F32")
"""Which quantisation is taken where none was named."""

MEDIA = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".svg", ".mp4", ".webm", ".wav", ".mp3", ".pdf")
ARCHIVES = (".zip", ".tar", ".gz", ".tgz", ".7z", ".nemo", ".parquet", ".arrow", ".csv", ".npz", ".pkl", ".zst")
OTHER_WEIGHTS = (".h5", ".msgpack", ".ot", ".tflite", ".mlmodel", ".mlpackage", ".ckpt", ".engine")
OTHER_FOLDERS = re.compile(r"(original|coreml|metal|runs|engines|reports|checkpoint-\d+|global_step\d+|\.cache)(/|$)")
"""Folders that hold the model again in another form, or what its training left."""

_TRAINING = re.compile(r"(optimizer|scheduler|scaler|training_args|rng_state.*|random_states.*)\.(pt|pth|bin|pkl)")
_SHARD = re.compile(r"(.+)-\d{5,6}-of-\d{5,6}\.(safetensors|bin|gguf)")
_GGUF_QUANT = re.compile(r"(?i)(?:^|[-._/])((?:UD-)?(?:I?Q\d\w*|TQ\d_\d|MXFP4\w*|BF16|F16|FP16|F32))(?=[-._/]|$)")
_ONNX_VARIANT = re.compile(r"(.+)_(fp16|int8|uint8|q4f16|q4|q8|bnb4|quantized)\.onnx")


@dataclass(frozen=True, kw_only=True)
class LeftOut:
    """Files that the runtime does not need, by reason."""

    why: str
    files: int
    bytes: int


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is to be fetched for a runtime, and what is not."""

    runtime: str
    files: tuple[HubFile, ...]
    left_out: tuple[LeftOut, ...] = ()
    quant: str = ""
    """The quantisation that was chosen among several."""

    @property
    def bytes(self) -> int:
        """Of all files, each content counted once."""
        return sum({each.etag: each.size for each in self.files}.values())


def plan(
    files: Sequence[HubFile],
    *,
    runtime: str = AUTO,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    quant: str = "",
) -> Plan:
    """The files a runtime needs. `include` takes the place of that choice; `exclude` takes away from either.

    HfbenchError when the repository holds no weights the runtime reads; UsageError for a pattern or a quantisation
    that nothing matches.
    """
    for pattern in (*include, *exclude):
        if not any(matches(each.path, pattern) for each in files):
            raise UsageError(f"no file matches {pattern!r}", remedy="--runtime all --dry-run lists them")
    if include:
        chosen = [each for each in files if any(matches(each.path, pattern) for pattern in include)]
        found = Plan(runtime="", files=tuple(chosen), left_out=tuple(_told(files, chosen, "not asked for")))
    else:
        found = _for_runtime(files, runtime, quant)
    kept = tuple(each for each in found.files if not any(matches(each.path, pattern) for pattern in exclude))
    left = (*found.left_out, *_told(found.files, kept, "excluded"))
    return Plan(runtime=found.runtime, files=kept, left_out=left, quant=found.quant)


def matches(path: str, pattern: str) -> bool:
    """Whether a pattern with `*` and `?` names the path, its last part, or a folder above it."""
    below = pattern.endswith("/") and path.startswith(pattern)
    return below or fnmatchcase(path, pattern) or fnmatchcase(path.rpartition("/")[2], pattern)


def format_of(path: str) -> str:
    """The format of weights a file belongs to; `media`, `archive`, `training` or `other` for what no runtime reads,
    empty for everything small that all of them do."""
    name = path.rpartition("/")[2]
    low = name.lower()
    if OTHER_FOLDERS.match(path):
        return "other"
    if _TRAINING.fullmatch(name) or low.startswith("imatrix"):
        return "training"
    if low.startswith("openvino_") and low.endswith((".xml", ".bin")):
        return "openvino"
    if low.endswith((".onnx", ".onnx.data")) or ".onnx_data" in low:
        return "onnx"
    if low.endswith(".gguf"):
        return "gguf"
    if name == "params.json" or name.startswith("consolidated"):
        return "consolidated" if not low.endswith((".pth", ".pt")) else "other"
    for suffix, kind in ((".safetensors", "safetensors"), (".bin", "pytorch"), (".pt", "pytorch"), (".pth", "pytorch")):
        if low.endswith((suffix, f"{suffix}.index.json")):
            return kind
    for suffixes, kind in ((MEDIA, "media"), (ARCHIVES, "archive"), (OTHER_WEIGHTS, "other")):
        if low.endswith(suffixes):
            return kind
    return ""


def _for_runtime(files: Sequence[HubFile], runtime: str, quant: str) -> Plan:
    if runtime == ALL:
        return Plan(runtime=ALL, files=tuple(files))
    if runtime == AUTO:
        held = {format_of(each.path) for each in files}
        runtime = next((name for name, reads in READS.items() if held & set(reads)), "")
        if not runtime:
            return Plan(runtime=ALL, files=tuple(files))
    taken, dropped, quant = _choose(files, runtime, quant)
    if not any(format_of(each.path) in READS[runtime] for each in taken):
        other = sorted({format_of(each.path) for each in files} - {"", "media", "archive", "training"})
        raise HfbenchError(
            f"holds nothing that {runtime} loads; its weights are {', '.join(other) or 'none'}",
            remedy="choose another --runtime, or --runtime all",
        )
    return Plan(runtime=runtime, files=tuple(taken), left_out=tuple(_reasons(dropped)), quant=quant)


def _choose(files: Sequence[HubFile], runtime: str, quant: str) -> tuple[list[HubFile], list[tuple[str, HubFile]], str]:
    """Files taken, files left with the reason, and the quantisation."""
    folders: dict[str, set[str]] = defaultdict(set)
    for each in files:
        folders[each.path.rpartition("/")[0]].add(format_of(each.path))
    everywhere = {kind for kinds in folders.values() for kind in kinds}
    reads = READS[runtime]
    taken, dropped = [], []
    for each in files:
        kind = format_of(each.path)
        here = folders[each.path.rpartition("/")[0]]
        best = next((kind for kind in reads if kind in (here if len(reads) > 1 else everywhere)), "")
        if kind == "" or kind == best:
            taken.append(each)
        else:
            dropped.append((_WHY.get(kind, f"{kind} weights, which {runtime} does not need"), each))
    if quant and runtime not in ("llama.cpp", "onnx"):
        raise UsageError(f"{runtime} has no quantisations to choose from", remedy="leave --quant out")
    narrow = {"llama.cpp": _one_gguf, "onnx": _one_onnx}.get(runtime, _one_set)
    kept, quant = narrow(taken, quant)
    names = {each.path for each in kept}
    dropped += [("the same weights in another form", each) for each in taken if each.path not in names]
    return kept, dropped, quant


_WHY = {
    "media": "pictures and sound",
    "archive": "archives and tables",
    "training": "what training left",
    "other": "other forms of the model",
}


def _one_set(files: list[HubFile], quant: str) -> tuple[list[HubFile], str]:
    """Without shards beside a whole `model.safetensors`, and without variants such as `model.fp16.safetensors`."""
    names = {each.path for each in files}

    def doubled(path: str) -> bool:
        folder, _, name = path.rpartition("/")
        at = f"{folder}/" if folder else ""
        for suffix in (".safetensors", ".bin"):
            match = _SHARD.fullmatch(name)
            stem = match[1] if match else name.removesuffix(f"{suffix}.index.json")
            if (match or name.endswith(f"{suffix}.index.json")) and f"{at}{stem}{suffix}" in names:
                return True
            if not match and name.endswith(suffix) and "." in (bare := name.removesuffix(suffix)):
                whole = f"{at}{bare.partition('.')[0]}{suffix}"
                if whole != path and whole in names:
                    return True
        return False

    return [each for each in files if not doubled(each.path)], ""


def _one_gguf(files: list[HubFile], quant: str) -> tuple[list[HubFile], str]:
    """One quantisation with all its parts, and one projector of a vision model."""
    weights = [each for each in files if format_of(each.path) == "gguf"]
    projectors = [each for each in weights if "mmproj" in each.path.lower()]
    by_quant: dict[str, list[HubFile]] = defaultdict(list)
    for each in weights:
        if each not in projectors:
            by_quant[quant_of(each.path)].append(each)
    chosen = _chosen_quant(by_quant, quant) if by_quant else ""
    kept = {each.path for each in by_quant.get(chosen, [])}
    if projectors:
        halves = [each for each in projectors if quant_of(each.path) in ("F16", "BF16")]
        kept.add((halves or projectors)[0].path)
    return [each for each in files if format_of(each.path) != "gguf" or each.path in kept], chosen


def _one_onnx(files: list[HubFile], quant: str) -> tuple[list[HubFile], str]:
    """The plain graphs, or those of one variant, each with its external data."""
    graphs = {each.path: _ONNX_VARIANT.fullmatch(each.path) for each in files if each.path.endswith(".onnx")}
    variants = sorted({match[2] for match in graphs.values() if match})
    if quant and quant not in variants:
        raise _unknown_quant(quant, variants)
    plain = [path for path, match in graphs.items() if match is None]
    varied = [path for path, match in graphs.items() if match and match[2] == quant]
    chosen = varied if quant else plain or list(graphs)
    dropped = tuple(f"{path.removesuffix('.onnx')}.onnx" for path in graphs if path not in chosen)
    return [each for each in files if not (dropped and each.path.startswith(dropped))], quant


def quant_of(path: str) -> str:
    """The quantisation that the name of a GGUF file tells, in capitals; empty for none."""
    name = path.removesuffix(".gguf")
    match = _SHARD.fullmatch(path)
    found = _GGUF_QUANT.findall(match[1] if match else name)
    return found[-1].upper().replace("FP16", "F16") if found else ""


def _chosen_quant(by_quant: dict[str, list[HubFile]], quant: str) -> str:
    if quant:
        if quant.upper() not in by_quant:
            raise _unknown_quant(quant, [name for name in by_quant if name])
        return quant.upper()
    known = [name for name in GGUF_ORDER if name in by_quant]
    return known[0] if known else min(by_quant, key=lambda name: (sum(each.size for each in by_quant[name]), name))


def _unknown_quant(quant: str, known: Sequence[str]) -> UsageError:
    return UsageError(f"has no quantisation {quant!r}", remedy=f"it has {', '.join(sorted(known)) or 'none'}")


def _told(every: Sequence[HubFile], kept: Sequence[HubFile], why: str) -> Iterator[LeftOut]:
    names = {each.path for each in kept}
    yield from _reasons([(why, each) for each in every if each.path not in names])


def _reasons(dropped: Iterable[tuple[str, HubFile]]) -> Iterator[LeftOut]:
    by_why: dict[str, list[HubFile]] = defaultdict(list)
    for why, each in dropped:
        by_why[why].append(each)
    for why, every in sorted(by_why.items()):
        yield LeftOut(why=why, files=len(every), bytes=sum(each.size for each in every))
