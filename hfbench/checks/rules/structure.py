"""The format of a safetensors file: what its header must say, and what must follow it."""

from __future__ import annotations

from collections.abc import Iterator

from hfbench.checks.base import Found, passed_on, rule
from hfbench.checks.subject import Subject


@rule("HB101", "file-too-small", on="weights", codes=("st_too_small",))
def file_too_small(subject: Subject) -> Iterator[Found]:
    """A safetensors file is too short to hold even the length of its header.

    Why: a download or a copy ended at once; every loader refuses the file.
    Remedy: fetch the file again.
    """
    yield from passed_on(subject, "st_too_small")


@rule("HB102", "header-too-large", on="weights", codes=("st_header_too_large",))
def header_too_large(subject: Subject) -> Iterator[Found]:
    """The length field claims a header larger than the format allows.

    Why: the limit of 100 MB protects readers from being made to allocate what a hostile file asks for.
    Remedy: fetch the file again; if it comes out the same, do not trust its source.
    """
    yield from passed_on(subject, "st_header_too_large")


@rule("HB103", "header-cut-short", on="weights", codes=("st_truncated_header",))
def header_cut_short(subject: Subject) -> Iterator[Found]:
    """The file ends inside its header.

    Why: a download or a copy was interrupted.
    Remedy: fetch the file again and compare its sha256.
    """
    yield from passed_on(subject, "st_truncated_header")


@rule("HB104", "header-not-json", on="weights", codes=("st_bad_json",))
def header_not_json(subject: Subject) -> Iterator[Found]:
    """The header is not one JSON object.

    Why: the header was edited or overwritten; no tensor can be found without it.
    Remedy: fetch the file again.
    """
    yield from passed_on(subject, "st_bad_json")


@rule("HB105", "header-start", severity="warning", on="weights", codes=("st_header_start",))
def header_start(subject: Subject) -> Iterator[Found]:
    """The header begins with white space instead of a brace.

    Why: the format asks for a brace as the first byte; the reference reader is lenient, other readers are not.
    Remedy: write the file again with the safetensors library.
    """
    yield from passed_on(subject, "st_header_start")


@rule("HB106", "duplicate-name", on="weights", codes=("st_duplicate_key",))
def duplicate_name(subject: Subject) -> Iterator[Found]:
    """A name stands twice in the header.

    Why: readers disagree on which of the two entries counts, so two programs may load different weights.
    Remedy: write the file again from its source.
    """
    yield from passed_on(subject, "st_duplicate_key")


@rule("HB107", "bad-entry", on="weights", codes=("st_bad_entry",))
def bad_entry(subject: Subject) -> Iterator[Found]:
    """The entry of a tensor is not an object with dtype, shape and data_offsets.

    Why: the tensor cannot be located.
    Remedy: write the file again with the safetensors library.
    """
    yield from passed_on(subject, "st_bad_entry")


@rule("HB108", "unknown-dtype", on="weights", codes=("st_unknown_dtype",))
def unknown_dtype(subject: Subject) -> Iterator[Found]:
    """A tensor has an element type that the format does not know.

    Why: its size cannot be checked and loaders refuse the whole file.
    Remedy: write the file again with a dtype of the format, in capital letters.
    """
    yield from passed_on(subject, "st_unknown_dtype")


@rule("HB109", "bad-shape", on="weights", codes=("st_bad_shape", "st_too_many_shapes"))
def bad_shape(subject: Subject) -> Iterator[Found]:
    """A shape is not a list of sizes.

    Why: loaders refuse the file, or take true for 1 and read garbage.
    Remedy: write the file again with the safetensors library.
    """
    yield from passed_on(subject, "st_bad_shape", "st_too_many_shapes")


@rule("HB110", "shape-overflow", on="weights", codes=("st_overflow",))
def shape_overflow(subject: Subject) -> Iterator[Found]:
    """A shape counts more bytes than 64 bits can hold.

    Why: a product that wraps around is a way to make a reader reach outside its buffer.
    Remedy: do not trust the file; fetch it from another source.
    """
    yield from passed_on(subject, "st_overflow")


@rule("HB111", "partial-byte", on="weights", codes=("st_misaligned",))
def partial_byte(subject: Subject) -> Iterator[Found]:
    """A tensor of 4 or 6 bit elements does not fill whole bytes.

    Why: its end cannot be addressed, and loaders refuse it.
    Remedy: pad the last dimension to whole bytes and write the file again.
    """
    yield from passed_on(subject, "st_misaligned")


@rule("HB112", "bad-offsets", on="weights", codes=("st_bad_offsets",))
def bad_offsets(subject: Subject) -> Iterator[Found]:
    """The offsets of a tensor are not a pair of ascending integers.

    Why: the tensor cannot be located.
    Remedy: write the file again with the safetensors library.
    """
    yield from passed_on(subject, "st_bad_offsets")


@rule("HB113", "size-mismatch", on="weights", codes=("st_size_mismatch",))
def size_mismatch(subject: Subject) -> Iterator[Found]:
    """A tensor has another number of bytes than its dtype and shape take.

    Why: either the shape or the offsets are wrong, and the tensor would be read askew.
    Remedy: write the file again from its source.
    """
    yield from passed_on(subject, "st_size_mismatch")


@rule("HB114", "overlapping-tensors", on="weights", codes=("st_overlap",))
def overlapping_tensors(subject: Subject) -> Iterator[Found]:
    """Two tensors claim the same bytes.

    Why: one of them was truncated or the header was edited; the format forbids sharing.
    Remedy: fetch the file again and compare its sha256, or save shared tensors once.
    """
    yield from passed_on(subject, "st_overlap")


@rule("HB115", "hole-in-data", on="weights", codes=("st_hole",))
def hole_in_data(subject: Subject) -> Iterator[Found]:
    """Bytes between the tensors belong to none of them.

    Why: the format forbids holes, because they can carry a second file unseen.
    Remedy: write the file again with the safetensors library.
    """
    yield from passed_on(subject, "st_hole")


@rule("HB116", "data-cut-short", on="weights", codes=("st_truncated",))
def data_cut_short(subject: Subject) -> Iterator[Found]:
    """The file ends before its tensors do.

    Why: a download or a copy was interrupted.
    Remedy: fetch the file again and compare its sha256.
    """
    yield from passed_on(subject, "st_truncated")


@rule("HB117", "trailing-bytes", on="weights", codes=("st_trailing",))
def trailing_bytes(subject: Subject) -> Iterator[Found]:
    """Bytes follow the last tensor.

    Why: the format forbids them, because they can carry a second file unseen.
    Remedy: write the file again with the safetensors library.
    """
    yield from passed_on(subject, "st_trailing")


@rule("HB118", "bad-metadata", on="weights", codes=("st_bad_metadata",))
def bad_metadata(subject: Subject) -> Iterator[Found]:
    """The metadata is not an object of strings.

    Why: some readers refuse the file and some crash on what they do not expect.
    Remedy: write the file again with string values.
    """
    yield from passed_on(subject, "st_bad_metadata")


@rule("HB119", "not-safetensors", on="weights", codes=("not_safetensors",))
def not_safetensors(subject: Subject) -> Iterator[Found]:
    """A file called .safetensors is of another kind.

    Why: it was renamed, or an error page was saved in its place.
    Remedy: fetch the file again; never load a pickle to find out.
    """
    yield from passed_on(subject, "not_safetensors")
