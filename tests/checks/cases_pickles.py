"""Pickles, none of which is ever loaded."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import pickle
import tarfile
import zipfile
import zlib

from rule_case import Case, error, info, passes, warning
from small_model import TENSORS, Edit, all_of, gone, put, weights

from hfbench.checks.pickle_ops import MOST_OPCODES


def torch_zip(content: bytes, name: str = "archive/data.pkl", **more: bytes) -> bytes:
    """An archive as torch.save writes it."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
        for other, raw in more.items():
            archive.writestr(other.replace("__", "/") + ".py", raw)
    return buffer.getvalue()


def called(module: str, name: str, protocol: int = 4) -> bytes:
    """A pickle that would call a function with one text; it is only ever looked at."""
    if protocol < 2:
        return f"c{module}\n{name}\n(S'true'\ntR.".encode()

    def text(value: str) -> bytes:
        return b"\x8c" + bytes([len(value)]) + value.encode()

    return b"\x80\x04" + text(module) + text(name) + b"\x93" + text("true") + b"\x85R."


def array_of_objects(content: bytes, kind: str = "|O") -> bytes:
    """A file of numpy, whose objects are a pickle."""
    told = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': (1,), }}".encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\0" + len(told).to_bytes(2, "little") + told + content


def tarred(content: bytes) -> bytes:
    """An archive as the first releases of torch wrote it."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, raw in (("sys_info", PLAIN), ("pickle", content), ("storages", PLAIN), ("tensors", PLAIN)):
            member = tarfile.TarInfo(name)
            member.size = len(raw)
            archive.addfile(member, io.BytesIO(raw))
    return buffer.getvalue()


PLAIN = pickle.dumps({"step": 1, "names": ["a", "b"], "half": 0.5})

MEMO = b"\x80\x04\x8c\x02os\x94\x8c\x06system\x94\x8c\x04junk\x940h\x00h\x01\x93\x8c\x04true\x85R."
"""The two names are fetched from the memo, so that they do not stand before the opcode that uses them."""


def bin_only(raw: bytes, name: str = "pytorch_model.bin") -> Edit:
    return all_of(gone("model.safetensors"), put(name, raw))


PACKED = {
    "gzip": gzip.compress,
    "zlib": zlib.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "an archive of tar": tarred,
    "a compressed archive of tar": lambda raw: gzip.compress(tarred(raw)),
}

CASES: list[Case] = [
    *[
        error("HB710", f"{module}.{name}", bin_only(called(module, name)))
        for module, name in (("posix", "system"), ("subprocess", "Popen"), ("builtins", "eval"), ("torch.hub", "load"))
    ],
    error("HB710", "an array of objects", put("x.npy", array_of_objects(called("os", "system")))),
    passes("HB710", "an array of numbers", put("x.npy", array_of_objects(b"\0" * 8, "<f8"))),
    error("HB710", "a pickle in a pickle", bin_only(called("pandas", "read_pickle"))),
    error("HB710", "a shell of Python 2", bin_only(called("popen2", "popen3"))),
    error("HB710", "protocol 0", bin_only(called("os", "system", 0))),
    error("HB710", "inside an archive", bin_only(torch_zip(called("os", "system")))),
    error("HB710", "another pickle in the archive", bin_only(torch_zip(called("os", "system"), "x/other.pkl"))),
    *[error("HB710", f"in {name}", bin_only(pack(called("os", "system")))) for name, pack in PACKED.items()],
    error(
        "HB710", "in an archive in an archive", bin_only(torch_zip(torch_zip(called("os", "system")), "x/inner.zip"))
    ),
    error("HB710", "under another name in the archive", bin_only(torch_zip(called("os", "system"), "x/weights"))),
    error("HB710", "after ten others", bin_only(PLAIN * 10 + called("os", "system"))),
    error("HB710", "of the oldest protocol after another", bin_only(PLAIN + called("os", "system", 0))),
    error("HB710", "by way of getattr", bin_only(called("builtins", "getattr"))),
    error("HB710", "by a method of a path", bin_only(called("pathlib", "Path.unlink"))),
    error("HB710", "in training arguments", put("training_args.bin", called("os", "system"))),
    error("HB710", "in a folder below", put("checkpoint-1/optimizer.pt", called("os", "system"))),
    error("HB710", "names fetched from the memo", bin_only(MEMO)),
    error("HB710", "after another pickle", bin_only(PLAIN + called("os", "system"))),
    passes("HB710", "numbers and texts", bin_only(PLAIN)),
    passes("HB710", "the word os.system as a text", bin_only(pickle.dumps(["os", "system"]))),
    warning("HB711", "a path", bin_only(called("pathlib", "PosixPath"))),
    info("HB711", "arguments of a script", put("training_args.bin", called("__main__", "TrainingArguments"))),
    warning("HB711", "a class of a package", bin_only(called("mypackage.models", "Net"))),
    info(
        "HB711",
        "training arguments",
        put("training_args.bin", called("transformers.training_args", "TrainingArguments")),
    ),
    passes("HB711", "what torch writes", bin_only(called("torch._utils", "_rebuild_tensor_v2"))),
    error("HB712", "cut short", bin_only(PLAIN[:-3])),
    error("HB712", "a damaged archive", bin_only(torch_zip(PLAIN)[:40])),
    error("HB712", "a text", bin_only(b"hello")),
    error("HB712", "empty", bin_only(b"")),
    error("HB712", "a page", bin_only(b"<!DOCTYPE html>")),
    error("HB712", "GGUF", bin_only(b"GGUF" + bytes(40))),
    error("HB712", "safetensors", bin_only(weights(TENSORS))),
    warning("HB712", "a long one", bin_only(b"\x80\x02" + b"N0" * MOST_OPCODES + b".")),
    error("HB712", "an archive of nothing", bin_only(torch_zip(b"", "x/version"))),
    info("HB712", "a damaged optimizer", put("optimizer.pt", b"PK")),
    passes("HB712", "a whole one", bin_only(torch_zip(PLAIN))),
    info("HB713", "weights", bin_only(torch_zip(PLAIN))),
    passes("HB713", "only an optimizer", put("optimizer.pt", PLAIN)),
    warning("HB714", "a program", put("model.pt", torch_zip(PLAIN, archive__code__model=b"def f(): pass"))),
    passes("HB714", "weights", put("model.pt", torch_zip(PLAIN))),
]
