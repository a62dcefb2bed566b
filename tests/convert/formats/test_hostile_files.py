"""Damaged and hostile files of torch end in one sentence, soon, and nothing in them runs."""

from __future__ import annotations

import os
import pickle
import struct
import time
import zipfile
from argparse import Namespace
from pathlib import Path

import pytest

from hfbench.convert.boxes import TensorSpec
from hfbench.convert.formats.inert import Global, StandIn
from hfbench.convert.formats.layout import FileLayout
from hfbench.convert.formats.megatron_folder import plain_arguments
from hfbench.convert.formats.open import megatron_facts, open_tensors
from hfbench.convert.formats.pickle_reader import PickleError, unpickled
from hfbench.convert.formats.pickle_writer import Reduced, pickled
from hfbench.convert.formats.pt_layout import lay_out_pt
from hfbench.errors import HfbenchError

PLAIN = {
    "none": None,
    "flags": [True, False],
    "numbers": [0, 255, 256, -1, 2**31, -(2**70), 1.5],
    "texts": ("a", "ü", ""),
    "bytes": b"\x00\xff",
    "set": {"x"},
    "deep": {"a": {"b": [(1, 2, 3, 4)]}},
}


def laid(layout: FileLayout, path: Path) -> Path:
    """A file as it is laid out, its tensors zero."""
    with path.open("wb") as file:
        file.truncate(layout.size)
        for at, data in layout.fixed:
            file.seek(at)
            file.write(data)
    return path


def rank_file(path: Path, **extra: object) -> Path:
    return laid(lay_out_pt(path.name, [TensorSpec("w", "F32", (2, 3))], extra), path)


def with_pickle(path: Path, raw: bytes, *, storage: bytes = b"\0" * 24) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", raw)
        archive.writestr("archive/data/0", storage)
    return path


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_plain_data_is_read_as_pickle_wrote_it(protocol: int) -> None:
    assert unpickled(pickle.dumps(PLAIN, protocol), where="x") == PLAIN


def test_plain_data_is_written_as_pickle_reads_it() -> None:
    args = Namespace(a=1, b=["c"])
    assert pickle.loads(pickled({**PLAIN, "args": args})) == {**PLAIN, "args": args}


def test_what_would_run_is_only_named(tmp_path: Path) -> None:
    """A call of os.system in args becomes a name; nothing is called."""
    mark = tmp_path / "it ran"
    evil = Reduced(Global("posix", "system"), (f"touch '{mark}'",))
    path = rank_file(tmp_path / "a.pt", args=Namespace(layers=2, evil=evil))
    assert set(open_tensors(path).tensors) == {"w"}
    (tmp_path / "iter_0000001" / "mp_rank_00").mkdir(parents=True)
    os.rename(path, tmp_path / "iter_0000001" / "mp_rank_00" / "model_optim_rng.pt")
    facts = megatron_facts(tmp_path)
    assert facts.args == {"layers": 2, "evil": f"""<posix.system {f"touch '{mark}'"!r}>"""}
    assert facts.foreign == ("posix.system",)
    assert not mark.exists()


def test_args_that_are_of_a_foreign_class_are_refused_by_its_name() -> None:
    with pytest.raises(HfbenchError, match=r"its args are an object of the class nemo\.Config"):
        plain_arguments(StandIn(Global("nemo", "Config")), Path("x"))


def test_args_that_refer_to_themselves_end(tmp_path: Path) -> None:
    twice: list[object] = []
    for _ in range(14):
        twice = [twice, twice, twice]
    endless: list[object] = []
    endless.append(endless)
    for nested, found in ((twice, "hold more than 100,000 values"), (endless, "nested more than 16 deep")):
        with pytest.raises(HfbenchError, match=found):
            plain_arguments({"a": unpickled(pickle.dumps(nested), where="x")}, tmp_path)


BOMBS = {
    "a memo of four thousand million places": (b"\x80\x02]r\xff\xff\xff\xff.", "under the number 4,294,967,295"),
    "bytes that do not follow": (b"\x80\x04\x8e" + struct.pack("<Q", 2**60) + b".", "damaged at byte 2"),
    "a text that does not follow": (b"\x80\x02X\xff\xff\xff\x7f.", "damaged at byte 2"),
    "a number of a megabyte": (b"\x80\x02\x8b" + struct.pack("<I", 1 << 20) + b"\1" * (1 << 20) + b".", "whole number"),
    "keys that hash for ever": (b"\x80\x02}N" + b"2\x86" * 80 + b"Ns.", "key of the kind 'tuple'"),
    "no end": (b"\x80\x02]" * 10, "damaged at byte"),
    "an empty stack": (b"\x80\x02.", "damaged at byte 2"),
    "a mark in the place of a value": (b"\x80\x02(\x85.", "a mark in the place"),
    "old text": (b"I1\n.", "an old text form"),
    "protocol 9": (b"\x80\x09.", "protocol 9"),
    "a dictionary as a list": (b"\x80\x02}Na.", "dict takes no elements"),
    "a call of a text": (b"\x80\x02U\1a)R.", "called that has no name"),
    "nothing": (b"", "damaged at byte 0"),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_hostile_pickle_ends_in_one_sentence(name: str) -> None:
    raw, found = BOMBS[name]
    began = time.process_time()
    with pytest.raises(PickleError, match=found) as caught:
        unpickled(raw, where="file.pt")
    assert time.process_time() - began < 1
    assert str(caught.value).startswith("file.pt: ")
    assert "\n" not in str(caught.value)


def test_a_deep_pickle_is_read_and_let_go() -> None:
    deep = unpickled(b"\x80\x02" + b"]" * 200_000 + b"a" * 199_999 + b".", where="x")
    assert isinstance(deep, list)


def test_every_cut_of_a_file_is_told(tmp_path: Path) -> None:
    """Wherever a file ends early, the sentence names it and no other error comes."""
    raw = rank_file(tmp_path / "whole.pt", args=Namespace(a=1)).read_bytes()
    cut = tmp_path / "cut.pt"
    for length in range(0, len(raw), 7):
        cut.write_bytes(raw[:length])
        with pytest.raises(HfbenchError, match=r"cut\.pt"):
            open_tensors(cut)


def test_every_changed_byte_gives_a_sentence_or_a_set_of_tensors(tmp_path: Path) -> None:
    raw = rank_file(tmp_path / "whole.pt", args=Namespace(a=1)).read_bytes()
    changed = tmp_path / "changed.pt"
    refused = 0
    for place in range(0, len(raw), 3):
        changed.write_bytes(raw[:place] + bytes([raw[place] ^ 0xA5]) + raw[place + 1 :])
        try:
            open_tensors(changed)
        except HfbenchError:
            refused += 1
    assert refused > 30


def zip_of(path: Path, *, method: int = zipfile.ZIP_STORED) -> bytes:
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("archive/data.pkl", pickled({"a": 1}))
        archive.writestr("archive/data/0", b"1234" * 100)
    return path.read_bytes()


def test_compressed_entries_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.pt"
    zip_of(path, method=zipfile.ZIP_DEFLATED)
    with pytest.raises(HfbenchError, match="is compressed, which torch never does"):
        open_tensors(path)


@pytest.mark.parametrize(
    ("field", "value", "found"),
    [(42, 0x7FFFFFFF, "outside of the file"), (42, 0, "overlaps another one"), (20, 0x7FFFFFF0, "is compressed")],
    ids=["offset beyond the file", "two entries at one place", "sizes that differ"],
)
def test_a_directory_that_lies_is_found_out(tmp_path: Path, field: int, value: int, found: str) -> None:
    path = tmp_path / "a.pt"
    raw = bytearray(zip_of(path))
    second = raw.rfind(b"PK\x01\x02")
    struct.pack_into("<I", raw, second + field, value)
    if field == 42 and value == 0:  # the first entry's bytes under another name
        size = struct.unpack_from("<I", raw, raw.find(b"PK\x01\x02") + 20)[0]
        struct.pack_into("<II", raw, second + 20, size, size)
    path.write_bytes(raw)
    with pytest.raises(HfbenchError, match=found):
        open_tensors(path)


def test_a_tensor_that_reaches_out_of_its_storage_is_refused(tmp_path: Path) -> None:
    spec = TensorSpec("w", "F32", (2, 3))
    path = with_pickle(tmp_path / "a.pt", pickled({"w": spec}, lambda spec: "0"), storage=b"\0" * 20)
    with pytest.raises(HfbenchError, match="storage of tensor 'w' has 20 bytes instead of 24"):
        open_tensors(path)
    path = with_pickle(tmp_path / "b.pt", pickled({"w": spec}, lambda spec: "1"))
    with pytest.raises(HfbenchError, match="storage '1' that is missing"):
        open_tensors(path)


def test_megatron_folders_that_are_not_read_say_why(tmp_path: Path) -> None:
    def folder(name: str, raw: bytes) -> Path:
        place = tmp_path / name / "mp_rank_00"
        place.mkdir(parents=True)
        with_pickle(place / "model_optim_rng.pt", raw)
        return tmp_path / name

    with pytest.raises(HfbenchError, match="virtual pipeline stages are not read"):
        open_tensors(folder("virtual", pickled({"model0": {}, "model1": {}})))
    with pytest.raises(HfbenchError, match="Megatron's old model classes"):
        open_tensors(folder("old", pickled({"model": {"language_model": {"x": 1}}})))
    (tmp_path / "tracked").mkdir()
    (tmp_path / "tracked" / "latest_checkpointed_iteration.txt").write_text("12")
    with pytest.raises(HfbenchError, match="names iter_0000012, which holds no checkpoint"):
        open_tensors(tmp_path / "tracked")
