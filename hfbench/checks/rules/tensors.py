"""The configuration against the tensors: layers, vocabulary, sizes, dtype, and the head."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from hfbench.checks.base import Found, rule
from hfbench.checks.known import default_tied, known_type
from hfbench.checks.same_bytes import compare
from hfbench.checks.subject import Subject
from hfbench.checks.tensor_names import EXTRA_ROWS, FLOATING, PLAIN
from hfbench.models.columns import TensorInfo
from hfbench.models.problem import Severity, counted, listed, quoted
from hfbench.models.tensor_fit import Fit
from hfbench.units import show_bytes

EXTRA_LAYERS = ("num_nextn_predict_layers", "num_mtp_layers", "mtp_num_hidden_layers", "num_mtp_modules")
"""Keys that count layers for predicting further tokens, stored after the model's own."""

PADDING = ("pad_vocab_size_multiple", "pad_vocab_size_multiple_of", "make_vocab_size_divisible_by")
"""Keys by which a model rounds its embedding up."""

HEADS_OF_TEXT = ("lm_head.weight", "embed_out.weight")
"""Names that only a head over the vocabulary has."""

WRAPPERS = ("_orig_mod.", "module.", "base_model.model.", "_fsdp_wrapped_module.", "_forward_module.", "state_dict.")
"""Prefixes of torch.compile, data parallel, PEFT, FSDP, DeepSpeed and of trainers."""

WIDESPREAD = frozenset({"llama", "mistral", "qwen2", "qwen3", "gemma"})
"""Families that everybody writes in one form, so that other names are a fault wherever they come from."""

DTYPES = {"float32": "F32", "float": "F32", "float16": "F16", "half": "F16", "bfloat16": "BF16", "float64": "F64"}


@rule("HB220", "layers-differ")
def layers_differ(subject: Subject) -> Iterator[Found]:
    """The configuration counts other layers than the weights hold.

    Why: transformers fills missing layers with random values and drops further ones, and tells neither to the user.
    Remedy: fetch config.json and the weights again, from one revision.
    """
    said = subject.config.layers
    if said is None or not subject.complete or subject.raw.get("is_encoder_decoder"):
        return
    layers = subject.layers
    if layers is None:
        if said and not subject.places.numbered and subject.config.model_type in PLAIN:
            yield Found(message=f"the configuration counts {said:,} layers, the weights hold none", file="config.json")
        return
    extra = max((_number(subject, name) for name in EXTRA_LAYERS), default=0)
    gone = sorted(set(range(min(said, 100_000))) - layers.numbers)
    if not gone and layers.count <= said + extra:
        return
    if gone and layers.count >= said:
        message = f"the weights hold nothing of {counted(len(gone), 'layer')}, such as number {gone[0]}"
    else:
        message = f"the configuration counts {said:,} layers, the weights hold {layers.count:,}"
    yield Found(
        message=message,
        file="config.json",
        evidence={"config": said, "weights": layers.count, "prefix": layers.prefix, "missing": gone[:20]},
        severity="warning" if subject.custom else None,
    )


@rule("HB221", "vocabulary-differs")
def vocabulary_differs(subject: Subject) -> Iterator[Found]:
    """vocab_size is not the number of rows of the embedding.

    Why: the tensor does not fit the model that is built, or ids beyond the table are asked for.
    Remedy: write the number of rows as vocab_size.
    """
    said, table = subject.config.vocab, subject.places.embedding if subject.raw else None
    if said is None or table is None or any(subject.config.raw.get(name) for name in PADDING):
        return
    head = subject.places.head
    if head is not None and head.name.endswith(HEADS_OF_TEXT) and len(head.shape) == 2 and _other_rows(subject, head):
        message = f"vocab_size is {said:,}, {quoted(head.name)} has {head.shape[0]:,} rows"
        yield Found(message=message, file="config.json", evidence={"tensor": head.name, "rows": head.shape[0]})
    if table.shape[0] != said + EXTRA_ROWS.get(subject.config.model_type or "", 0):
        fewer = table.shape[0] < said
        yield Found(
            message=f"vocab_size is {said:,}, the embedding has {table.shape[0]:,} rows",
            file="config.json",
            evidence={"vocab_size": said, "rows": table.shape[0], "tensor": table.name},
            severity=None if known_type(subject.config.model_type) or fewer else "warning",
        )


@rule("HB223", "dtype-differs", severity="warning")
def dtype_differs(subject: Subject) -> Iterator[Found]:
    """The configuration names another dtype than the weights have.

    Why: the weights are converted while loading, which takes time and may take twice the memory, or loses bits.
    Remedy: name the dtype of the weights, or load with an explicit dtype.
    """
    said = DTYPES.get(subject.config.dtype or "")
    if said is None or subject.config.quantization or not subject.raw:
        return
    columns = subject.checkpoint.columns
    sizes: Counter[str] = Counter()
    for dtype, size in zip(columns.dtype_ids, columns.sizes, strict=True):
        sizes[columns.dtypes[dtype]] += size
    stored, size = max(sizes.items(), key=lambda item: item[1], default=("", 0))
    if stored in FLOATING and stored != said:
        yield Found(
            message=f"dtype is {subject.config.dtype}, {show_bytes(size)} of the weights are {stored}",
            file="config.json",
            evidence={"config": subject.config.dtype, "weights": stored, "bytes": size},
        )


@rule("HB224", "head-missing")
def head_missing(subject: Subject) -> Iterator[Found]:
    """The head is not tied to the embedding, and the weights hold no head.

    Why: transformers gives it random values, some engines tie it in silence; the output is noise or luck.
    Remedy: set tie_word_embeddings to true if the model was trained so, or fetch the missing tensor.
    """
    if subject.custom or not subject.writes_text or not subject.complete or subject.places.head:
        return
    config = subject.config
    tied = config.tied if config.tied is not None else _tied_by_default(subject)
    if tied is False and subject.places.embedding is not None:
        said = (
            "tie_word_embeddings is false" if config.tied is not None else f"{config.model_type} does not tie its head"
        )
        yield Found(message=f"{said}, and there is no lm_head", file="config.json")


@rule("HB225", "head-beside-tied", severity="warning")
def head_beside_tied(subject: Subject) -> Iterator[Found]:
    """The head is tied to the embedding, and the weights hold another head.

    Why: transformers and vLLM compare the two and untie them, other engines drop the head and answer differently.
    Remedy: set tie_word_embeddings to false.
    """
    for name, compared, same in _stored_head(subject):
        if not same:
            message = f"tie_word_embeddings is true, but {quoted(name)} differs from the embedding"
            yield Found(message=message, file="config.json", evidence={"tensor": name, "bytes_compared": compared})


@rule("HB226", "head-stored-twice", severity="info")
def head_stored_twice(subject: Subject) -> Iterator[Found]:
    """The head is tied to the embedding and stored a second time.

    Why: it is the same table twice, so it takes room on the disk only.
    Remedy: save the model again with transformers to store it once.
    """
    for name, compared, same in _stored_head(subject):
        if same:
            message = f"{quoted(name)} repeats the embedding ({show_bytes(compared)} compared)"
            yield Found(message=message, file="config.json", evidence={"tensor": name, "bytes_compared": compared})


@rule("HB238", "tensors-missing")
def tensors_missing(subject: Subject) -> Iterator[Found]:
    """The weights lack tensors that every layer of the family has, or none has the names of the family.

    Why: transformers fills them with random values and only tells its log. Where all layers of a family that is
    written in several forms lack the same, it is only noted: a converter may have named them otherwise.
    Remedy: fetch the weights again, and config.json of the same revision.
    """
    config, fit = subject.config, subject.fit
    if fit is None or config.quantization or not subject.complete or _wrapper(subject):
        return
    file = subject.checkpoint.shards[0].name
    widespread = fit.laws.model_type in WIDESPREAD
    if strange := fit.stranger():
        message = f"no tensor is called {fit.laws.named()}, as those of {fit.laws.model_type} are"
        severity: Severity | None = None if widespread else "info"
        yield Found(message=f"{message}: {quoted(strange)}", file=file, evidence={"tensor": strange}, severity=severity)
    elif lacking := fit.missing(config.layers or 0):
        message = f"{counted(len(lacking), 'tensor')} of {fit.laws.model_type} missing: {listed(lacking)}"
        severity = None if widespread or not _everywhere(lacking, fit) else "info"
        yield Found(message=message, file=file, evidence={"missing": lacking[:20]}, severity=severity)


@rule("HB228", "wrapped-names")
def wrapped_names(subject: Subject) -> Iterator[Found]:
    """All tensors carry the prefix of a wrapper that was around the model when it was saved.

    Why: no name fits the model, so transformers fills every layer with random values.
    Remedy: rename the tensors without the prefix, or save the model again without the wrapper.
    """
    prefix = _wrapper(subject)
    adapter = subject.checkpoint.format == "adapter" or subject.has("adapter_config.json")
    if prefix and not adapter:
        message = f"every tensor is called {prefix}*"
        yield Found(message=message, file=subject.checkpoint.shards[0].name, evidence={"prefix": prefix})


def _everywhere(lacking: Sequence[str], fit: Fit) -> bool:
    """Whether every layer lacks the same: layers written in another form, not a checkpoint that lost a part."""
    layers = {number: f".{number}." for number in fit.numbers}
    ends = Counter(name.partition(part)[2] for part in layers.values() for name in lacking if part in name)
    return ends.total() == len(lacking) and set(ends.values()) == {len(layers)}


def _wrapper(subject: Subject) -> str:
    """The prefix of a wrapper that all names have; empty when there is none."""
    first = next(iter(subject.tensor_names), "")
    prefix = next((each for each in WRAPPERS if first.startswith(each)), "")
    return prefix if prefix and all(name.startswith(prefix) for name in subject.tensor_names) else ""


def _stored_head(subject: Subject) -> Iterator[tuple[str, int, bool]]:
    """The stored head of a tied model: its name, the bytes compared, and whether they equal the embedding's. Nothing
    where no byte could be compared."""
    tied = subject.config.tied
    if (tied if tied is not None else _tied_by_default(subject)) is not True or not subject.writes_text:
        return
    stored, table = subject.places.head, subject.places.embedding
    if stored is None or table is None:
        return
    if stored.dtype in FLOATING and len(stored.shape) == 2:
        compared, same = compare(subject, table, stored)
        if compared or not same:
            yield stored.name, compared, same


def _other_rows(subject: Subject, head: TensorInfo) -> bool:
    """True for a head that does not fit: fewer rows never do, more only in code of the repository or packed."""
    said = subject.config.vocab or 0
    known = known_type(subject.config.model_type) and head.dtype in FLOATING and not subject.config.quantization
    return head.shape[0] < said or (head.shape[0] != said and known)


def _tied_by_default(subject: Subject) -> bool | None:
    return default_tied(subject.config.model_type)


def _number(subject: Subject, name: str) -> int:
    value = subject.text.values.get(name, subject.raw.get(name))
    return value if type(value) is int and 0 <= value < 1000 else 0
