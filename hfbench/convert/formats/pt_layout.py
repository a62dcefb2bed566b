"""The zip-based .pt files of torch.save, laid out before a tensor is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hfbench.convert.boxes import TensorSpec
from hfbench.convert.formats.layout import FileLayout, Piece, bytes_of, key_of
from hfbench.convert.formats.pickle_writer import pickled
from hfbench.convert.formats.zip_layout import Slot, lay_out_zip

FOLDER = "archive"
"""What torch calls the folder inside of a file it writes to a stream."""

VERSION = b"3\n"


def lay_out_pt(
    path: str, specs: Sequence[TensorSpec], extra: Mapping[str, object], *, under: str = "model"
) -> FileLayout:
    """A file that `torch.load(weights_only=True, mmap=True)` reads as `{**extra, under: {name: tensor}}`.

    `RANK:` is cut off the names of tensors; with `under=""` they stand beside what is extra. ValueError for extra
    values that are no plain data and for dtypes that torch has no name for.
    """
    tensors = {key_of(spec.name): spec for spec in specs}
    if len(tensors) != len(specs):
        raise ValueError(f"{path}: two tensors of one name")
    content = {**extra, under: tensors} if under else {**extra, **tensors}
    slots, storages = archive(content, specs)
    zipped = lay_out_zip(slots)
    pieces = tuple(
        Piece(spec.name, 0, spec.rows, zipped.placed[row].begin, zipped.placed[row].crc32_at)
        for row, spec in enumerate(specs, storages)
    )
    return FileLayout(path=path, size=zipped.end, pieces=pieces, fixed=zipped.fixed)


def archive(content: object, specs: Sequence[TensorSpec]) -> tuple[list[Slot], int]:
    """The entries of a torch file that holds `content`, and the number of the first that is a tensor's storage.

    Every tensor of `specs` is somewhere in it; each has a storage of its own, in this order.
    """
    keys = {spec.name: str(number) for number, spec in enumerate(specs)}
    slots = [
        Slot.of(f"{FOLDER}/data.pkl", pickled(content, lambda spec: keys[spec.name])),
        Slot.of(f"{FOLDER}/byteorder", b"little"),
        Slot.of(f"{FOLDER}/version", VERSION),
    ]
    slots += [Slot(f"{FOLDER}/data/{keys[spec.name]}", bytes_of(spec)) for spec in specs]
    return slots, len(slots) - len(specs)


def pt_bytes(path: str, content: object) -> FileLayout:
    """A torch file without tensors."""
    slots, _ = archive(content, ())
    zipped = lay_out_zip(slots)
    return FileLayout(path=path, size=zipped.end, fixed=zipped.fixed)
