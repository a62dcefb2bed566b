"""Which files of a folder are its weights, and which are beside them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from hfbench.checks.base import Found, as_found, passed_on, rule
from hfbench.checks.subject import Subject
from hfbench.models.files import MEGATRON_TRACKER, ModelFile, open_regular
from hfbench.models.problem import ModelError, counted, listed, quoted
from hfbench.models.safetensors import read_header
from hfbench.models.weights import SINGLE
from hfbench.units import show_bytes

ADAPTER_CONFIG = "adapter_config.json"

OF_ADAPTER = re.compile(
    r"\.lora_|lora_[AB]\b|\.(ia3_l|vera_lambda|hada_w|oft_|lokr_|boft_)|prompt_embeddings|prompt_encoder"
)
"""Parts of tensor names that PEFT gives."""

MOST_OTHERS = 64
"""Files beside the chosen set whose headers are read."""


@rule("HB150", "no-weights", codes=("weights_missing",))
def no_weights(subject: Subject) -> Iterator[Found]:
    """The folder holds no weights.

    Why: nothing can be loaded; files of a training run such as training_args.bin are no weights.
    Remedy: fetch the weights.
    """
    cached = sorted({top for each in subject.files if (top := each.name.partition("/")[0]).startswith("models--")})
    for found in passed_on(subject, "weights_missing"):
        if subject.has(MEGATRON_TRACKER):
            found = replace(found, remedy="the weights of a Megatron checkpoint lie in its folders")
        elif cached:
            repo = cached[0].removeprefix("models--").replace("--", "/", 1)
            found = replace(found, remedy=f"this is a cache of repositories: give one of them, such as {repo}")
        yield found
    read = subject.checkpoint
    if read.shards and not read.columns.names and not any(each.severity == "error" for each in read.problems):
        yield Found(message="the files hold no tensor", file=read.shards[0].name)


@rule("HB151", "adapter-not-model", codes=("adapter_not_model",))
def adapter_not_model(subject: Subject) -> Iterator[Found]:
    """The only weights are an adapter.

    Why: vLLM takes the adapter for the model's weights and fails on its names; the base model lies elsewhere.
    Remedy: load the base model and give the adapter to it, or merge the two.
    """
    base = subject.json(ADAPTER_CONFIG).get("base_model_name_or_path")
    evidence = {"base_model": base} if isinstance(base, str) else {}
    for found in passed_on(subject, "adapter_not_model"):
        yield replace(found, evidence={**found.evidence, **evidence})
    names = subject.tensor_names
    if subject.checkpoint.format != "adapter" and names and all(OF_ADAPTER.search(name) for name in names):
        message = f"all {counted(len(names), 'tensor')} are of an adapter, such as {quoted(names[0])}"
        yield Found(message=message, file=subject.checkpoint.shards[0].name, evidence=evidence)
    elif subject.checkpoint.format == "none" and subject.has(ADAPTER_CONFIG):
        message = "belongs to an adapter, and there are neither its weights nor those of a model"
        yield Found(message=message, file=ADAPTER_CONFIG, evidence=evidence)


@rule("HB152", "two-weight-sets", severity="warning", codes=("two_weight_sets", "consolidated_beside"))
def two_weight_sets(subject: Subject) -> Iterator[Found]:
    """The folder holds two complete sets of weights.

    Why: transformers and vLLM choose different ones, and a tool that reads all files counts or loads them twice.
    Remedy: keep the set that your runtime reads and remove the other.
    """
    yield from passed_on(subject, "two_weight_sets", "consolidated_beside")


@rule("HB153", "stray-weights", severity="warning", codes=("stray_weights",))
def stray_weights(subject: Subject) -> Iterator[Found]:
    """Files of weights lie beside those of the model.

    Why: without an index vLLM reads every .safetensors file of the folder, so strays overwrite the model's tensors;
    with one, both runtimes leave out what it does not name.
    Remedy: move the other files away.
    """
    yield from passed_on(subject, "stray_weights")
    index = subject.weights.index
    if index is None or subject.weights.format != "safetensors-sharded":
        return
    named = {*index.shards, SINGLE}
    strays = [each.name for each in subject.files if _is_safetensors(each) and each.name not in named]
    if strays:
        yield Found(
            message=f"{index.name} does not name {listed(strays)}", file=strays[0], evidence={"files": strays[:20]}
        )


@rule("HB154", "odd-weight-name", severity="info", codes=("odd_weight_name",))
def odd_weight_name(subject: Subject) -> Iterator[Found]:
    """The weights have a name that transformers does not look for.

    Why: vLLM reads any .safetensors file, transformers only model.safetensors or what an index names.
    Remedy: rename the file to model.safetensors.
    """
    yield from passed_on(subject, "odd_weight_name")


@rule("HB155", "other-weight-format", severity="info", codes=("weights_pytorch", "weights_gguf", "weights_other"))
def other_weight_format(subject: Subject) -> Iterator[Found]:
    """The weights are in another format than safetensors.

    Why: their tensors are not listed and not compared with the configuration here; pickles are scanned for code.
    Remedy: convert them to safetensors.
    """
    for problem in subject.problems:
        if problem.code in ("weights_pytorch", "weights_gguf", "weights_other"):
            found = as_found(problem)
            yield Found(message=found.message, file=found.file, evidence=found.evidence)


@rule("HB156", "extra-weight-copies", severity="info")
def extra_weight_copies(subject: Subject) -> Iterator[Found]:
    """Folders below the model hold further weights.

    Why: they take room on the disk and are not part of the model; its size counts the files at the top only.
    Remedy: leave them out of the download if you do not need them.
    """
    chosen = {shard.name for shard in subject.weights.shards}
    below = [each for each in subject.files if _is_weights(each) and "/" in each.name and each.name not in chosen]
    if below and subject.checkpoint.format != "none":
        folders = sorted({each.name.rpartition("/")[0] for each in below})
        size = sum(each.bytes for each in below)
        yield Found(
            message=f"{counted(len(below), 'file')} of weights below the model, {show_bytes(size)}: {listed(folders)}",
            file=folders[0],
            evidence={"folders": folders[:20], "files": len(below), "bytes": size},
        )


@rule("HB157", "consolidated-below", severity="warning")
def consolidated_below(subject: Subject) -> Iterator[Found]:
    """A file called consolidated*.safetensors lies in a folder below the model.

    Why: vLLM finds it, switches to Mistral's format, and then says that there are no weights.
    Remedy: move the file away, or start vLLM with --load-format safetensors.
    """
    at_top = any(_is_consolidated(each) and "/" not in each.name for each in subject.files)
    for each in subject.files:
        if _is_consolidated(each) and "/" in each.name and not at_top:
            yield Found(message="makes vLLM look for Mistral's format, which is not at the top", file=each.name)


@rule("HB158", "params-json-ignored", severity="info")
def params_json_ignored(subject: Subject) -> Iterator[Found]:
    """Mistral's params.json is there, but no consolidated*.safetensors.

    Why: vLLM uses params.json only together with such a file, although its message says otherwise.
    Remedy: fetch the consolidated files, or rely on config.json.
    """
    if subject.has("params.json") and not any(map(_is_consolidated, subject.files)):
        alone = not subject.has("config.json")
        message = "is ignored: there is no consolidated*.safetensors" + (", and no config.json either" * alone)
        yield Found(message=message, file="params.json", severity="error" if alone else None)


@rule("HB159", "split-formats", severity="warning")
def split_formats(subject: Subject) -> Iterator[Found]:
    """Mistral's files and Hugging Face's are mixed.

    Why: vLLM and transformers read different configurations, weights or tokenizers of the same folder.
    Remedy: choose a format in vLLM with --config-format, --load-format and --tokenizer-mode.
    """
    consolidated = [each.name for each in subject.files if _is_consolidated(each) and "/" not in each.name]
    if not consolidated or not subject.has("config.json"):
        return
    if not subject.has("params.json"):
        message = "without params.json vLLM takes the configuration from config.json, but these weights"
        yield Found(message=message, file=consolidated[0])
    elif subject.checkpoint.format == "consolidated":
        message = "vLLM uses Mistral's format here; transformers uses config.json and finds no weights"
        yield Found(message=message, file=consolidated[0])
    else:
        yield Found(
            message="vLLM uses Mistral's params.json and these weights, transformers uses config.json",
            file=consolidated[0],
        )


@rule("HB160", "broken-second-set", severity="warning")
def broken_second_set(subject: Subject) -> Iterator[Found]:
    """A safetensors file that is not of the set chosen here cannot be read.

    Why: vLLM prefers consolidated files and reads every .safetensors file where no index chooses.
    Remedy: fetch the file again, or remove it.
    """
    chosen = {shard.name for shard in subject.weights.shards}
    others = [each for each in subject.files if _is_weights(each) and each.name.endswith(".safetensors")]
    for each in [other for other in others if "/" not in other.name and other.name not in chosen][:MOST_OTHERS]:
        try:
            with open_regular(each.path, subject.folder) as file:
                read_header(file, each.bytes)
        except (ModelError, OSError) as error:
            found = error.found if isinstance(error, ModelError) else f"cannot be read ({error.strerror})"
            yield Found(message=found, file=each.name, evidence={"code": getattr(error, "code", "unreadable")})


def _is_weights(file: ModelFile) -> bool:
    return file.kind == "weights" and not file.problem


def _is_safetensors(file: ModelFile) -> bool:
    """One of the files at the top that could be the model's own."""
    name = file.name
    return "/" not in name and name.endswith(".safetensors") and not name.startswith(("consolidated", "adapter_"))


def _is_consolidated(file: ModelFile) -> bool:
    base = file.name.rpartition("/")[2]
    return base.startswith("consolidated") and base.endswith(".safetensors")
