"""The index of a sharded checkpoint against the files it names."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

from hfbench.checks.base import Found, passed_on, rule
from hfbench.checks.subject import Subject
from hfbench.models.index import SAFETENSORS_INDEX, BadIndex
from hfbench.text import printable

MOST_NAMES = 20
"""Tensors of one missing file that are named."""


@rule("HB140", "bad-index", codes=("index_bad",))
def bad_index(subject: Subject) -> Iterator[Found]:
    """The index is not an object with a weight_map of file names.

    Why: loaders that rely on the index fail, each in another way.
    Remedy: fetch the index again, or remove it where there is one file only.
    """
    yield from passed_on(subject, "index_bad")
    there = subject.by_name.get(SAFETENSORS_INDEX)
    unread = subject.weights.index is None and there and not there.problem
    if unread and subject.json(SAFETENSORS_INDEX).get("weight_map") == {}:
        yield Found(message="weight_map names no file", file=SAFETENSORS_INDEX)


@rule("HB141", "index-leads-outside", codes=("index_path_escape",))
def index_leads_outside(subject: Subject) -> Iterator[Found]:
    """The index names a file outside the model's folder.

    Why: transformers 5.24 follows such a path and loads tensors from wherever it points.
    Remedy: do not load this model; report it to whoever gave it to you.
    """
    yield from passed_on(subject, "index_path_escape")


@rule("HB142", "missing-shard", codes=("shard_missing",))
def missing_shard(subject: Subject) -> Iterator[Found]:
    """A file of the weights is missing.

    Why: the download was interrupted; some engines used to start with random weights in its place.
    Remedy: fetch the file again.
    """
    lost = _lost(subject)
    for found in passed_on(subject, "shard_missing"):
        names = lost.get(found.file, [])
        yield replace(found, evidence={"tensors": len(names), "names": names[:MOST_NAMES]} if names else found.evidence)


@rule("HB143", "no-index", severity="warning", codes=("index_missing",))
def no_index(subject: Subject) -> Iterator[Found]:
    """Several files of weights lie there without an index.

    Why: vLLM reads all of them, transformers finds none.
    Remedy: fetch model.safetensors.index.json.
    """
    yield from passed_on(subject, "index_missing")


@rule("HB144", "index-names-absent-tensor", codes=("index_tensor_absent",))
def index_names_absent_tensor(subject: Subject) -> Iterator[Found]:
    """The index names a tensor that its file does not hold.

    Why: the index and the weights are of different versions; the tensor stays at its random initial values.
    Remedy: fetch the index and the files again, from one revision.
    """
    yield from passed_on(subject, "index_tensor_absent")


@rule("HB145", "index-names-wrong-shard", codes=("index_wrong_shard",))
def index_names_wrong_shard(subject: Subject) -> Iterator[Found]:
    """The index places a tensor in another file than the one that holds it.

    Why: loaders accept it in silence or miss the tensor, depending on how they read.
    Remedy: write the index again from the headers.
    """
    yield from passed_on(subject, "index_wrong_shard")


@rule("HB146", "tensor-not-indexed", severity="warning", codes=("index_unlisted",))
def tensor_not_indexed(subject: Subject) -> Iterator[Found]:
    """A file holds a tensor that the index does not list.

    Why: loaders that go by the index leave it out.
    Remedy: write the index again from the headers.
    """
    yield from passed_on(subject, "index_unlisted")


@rule("HB147", "wrong-total", severity="warning", codes=("index_total_size", "index_total_parameters"))
def wrong_total(subject: Subject) -> Iterator[Found]:
    """The total in the index is not what the files hold.

    Why: tools that plan by it are wrong; loaders accept it in silence.
    Remedy: write the index again from the headers.
    """
    yield from passed_on(subject, "index_total_size", "index_total_parameters")


@rule("HB148", "odd-index-text", severity="warning", codes=("index_text",))
def odd_index_text(subject: Subject) -> Iterator[Found]:
    """The text of the index is not strict JSON.

    Why: Python reads it, other readers refuse it or take another entry.
    Remedy: write the index again with unique keys and finite numbers.
    """
    yield from passed_on(subject, "index_text")


@rule("HB138", "index-without-metadata", severity="warning", codes=("index_metadata",))
def index_without_metadata(subject: Subject) -> Iterator[Found]:
    """The index has no object of metadata.

    Why: transformers 5.24 ends with a KeyError or a TypeError that names no file; vLLM does not need it.
    Remedy: write "metadata": {"total_size": BYTES} into the index.
    """
    yield from passed_on(subject, "index_metadata")


@rule("HB149", "tensor-in-two-files", codes=("tensor_twice",))
def tensor_in_two_files(subject: Subject) -> Iterator[Found]:
    """One tensor stands in two files.

    Why: which copy is loaded depends on the order of the files.
    Remedy: remove the file that does not belong to the set.
    """
    yield from passed_on(subject, "tensor_twice")


def _lost(subject: Subject) -> dict[str, list[str]]:
    """The tensors that the index puts into each file that is missing, by the file's name as it is painted."""
    index = subject.checkpoint.index
    gone = {problem.where for problem in subject.problems if problem.code == "shard_missing"}
    if index is None or not gone:
        return {}
    try:
        weight_map = index.weight_map()
    except BadIndex:
        return {}
    painted = {shard: printable(shard).rstrip(".") for shard in index.shards}
    lost = defaultdict(list)
    for tensor, shard in weight_map.items():
        if painted.get(shard) in gone:
            lost[painted[shard]].append(tensor)
    return lost
