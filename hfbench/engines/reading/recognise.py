"""Which kind of engine a path leads to, told by content first and by name where content is private."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from hfbench.engines.reading.found import Found, NoEngine
from hfbench.engines.reading.mega_cache import looks_like_cache, read_mega_cache
from hfbench.engines.reading.onnx_file import looks_like_onnx, read_onnx
from hfbench.engines.reading.openvino_ir import read_openvino
from hfbench.engines.reading.package import read_package
from hfbench.engines.reading.plan import SUFFIXES, read_plan
from hfbench.engines.reading.trtllm import looks_like_trtllm, read_trtllm
from hfbench.models.files import list_files, open_regular
from hfbench.models.magic import LOOK, recognise
from hfbench.models.problem import ModelError, listed

Reader = Callable[[Path, Path], Found]

KNOWN = ".pt2, .onnx, .xml of OpenVINO, .engine or .plan, a folder of TensorRT-LLM, or one that hfbench built"
ENDINGS = (".pt2", ".onnx", ".xml", *SUFFIXES)


def read_engine(path: Path) -> Found:
    """What can be told of an engine that has no manifest; NoEngine says what the path leads to instead."""
    if not os.path.lexists(path):
        raise NoEngine("is not there", where=path, remedy="give the path of an engine")
    if path.is_dir():
        return _read_folder(path)
    try:
        return _reader_of(path)(path, path.parent)
    except NoEngine:
        raise
    except ModelError as error:
        raise NoEngine(error.found, where=path, remedy=error.remedy) from None
    except OSError as error:
        raise NoEngine(f"cannot be read ({error.strerror})", where=path) from None


def _read_folder(folder: Path) -> Found:
    if looks_like_trtllm(folder):
        return read_trtllm(folder)
    files = [each for each in list_files(folder, deep=False) if each.name.endswith(ENDINGS)]
    if len(files) == 1:
        return read_engine(folder / files[0].name)
    if files:
        names = listed(each.name for each in files)
        raise NoEngine(f"holds several engines: {names}", where=folder, remedy="give one of them")
    raise NoEngine("holds no engine", where=folder, remedy=f"give one of {KNOWN}")


def _reader_of(path: Path) -> Reader:
    with open_regular(path, path.parent) as file:
        head = file.read(LOOK)
        cache = looks_like_cache(file)
    if head.startswith(b"PK") or path.suffix == ".pt2":
        return read_package
    if path.suffix == ".xml":
        return read_openvino
    if path.suffix == ".onnx" or looks_like_onnx(head):
        return read_onnx
    if cache:
        return read_mega_cache
    if path.suffix in SUFFIXES:
        _refuse_other(path, head)
        return read_plan
    what = recognise(head)
    raise NoEngine(f"is {what}, no engine" if what else "is no engine", where=path, remedy=f"give one of {KNOWN}")


def _refuse_other(path: Path, head: bytes) -> None:
    """NoEngine when a file that is called a plan is something well known."""
    if what := recognise(head):
        raise NoEngine(f"this is {what}, no TensorRT plan", where=path, remedy="fetch the plan again")
