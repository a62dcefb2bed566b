"""Makes a tokenizer.json of older tokenizer files, by the conversion of transformers in a process with limits.

The process sees a copy of the files it needs and nothing else of the model; code of the model is never run.
"""

from __future__ import annotations

import importlib.util
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hfbench.errors import HfbenchError, MissingError
from hfbench.models.files import describe_file, read_bytes
from hfbench.models.json_text import MOST_BYTES, JsonError, read_object
from hfbench.models.problem import ModelError, counted
from hfbench.models.tokenizer import read_tokenizer
from hfbench.tokens.child import Child, ChildEnded

SECONDS = 60.0
"""CPU time; importing transformers takes 2 s, merges of a large sentencepiece model some ten more."""

VOCABULARIES = (
    "tokenizer.model",
    "spiece.model",
    "sentencepiece.bpe.model",
    "source.spm",
    "target.spm",
    "vocab.json",
    "merges.txt",
    "vocab.txt",
    "tekken.json",
)
NEEDS = {"sentencepiece": ("sentencepiece", "google.protobuf"), "tiktoken": ("tiktoken",)}
"""What transformers itself needs to read a vocabulary, by the kind `models.tokenizer` tells."""

SETTINGS = ("config.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json")

KEPT = 0.99
"""The least share of the tokens in the files that a conversion must have; less means that a file was passed over."""


def converted(folder: Path) -> tuple[bytes, str]:
    """The text of a tokenizer.json for the folder's tokenizer, and the files it was made from.

    Raises ModelError when there is nothing to convert or no way to, MissingError when transformers is not installed.
    """
    names = vocabulary_files(folder)
    if not names:
        raise ModelError("no_tokenizer", "there are no tokenizer files")
    source = " and ".join(names)
    facts = read_tokenizer(folder)
    for problem in facts.problems:
        raise ModelError(problem.code, problem.found, where=problem.where, remedy=problem.remedy)
    _require(facts.model or "", source)
    with tempfile.TemporaryDirectory(prefix="hfbench-tokenizer-") as copy:
        custom = _copy(folder, Path(copy), names)
        told, text = _ask(copy, custom, source)
    if facts.vocab_size is not None and told["tokens"] < KEPT * facts.vocab_size:
        found = f"its conversion has {counted(told['tokens'], 'token')}, the files hold {facts.vocab_size:,}"
        raise ModelError("tokenizer_convert", f"there is no tokenizer.json, and {found}", where=source)
    return text, f"{source}, converted by transformers {told['version']}"


def vocabulary_files(folder: Path) -> list[str]:
    """The files of the folder that hold a vocabulary in an older form."""
    named = [name for name in VOCABULARIES if os.path.lexists(folder / name)]
    try:
        return named + sorted(each for each in os.listdir(folder) if each.endswith((".tiktoken", "tiktoken.model")))
    except OSError:
        return named


def _require(kind: str, source: str) -> None:
    """MissingError unless transformers, and what it needs to read this kind of vocabulary, are installed."""
    lacking = [name for name in ("transformers", *NEEDS.get(kind, ())) if not _installed(name)]
    if lacking:
        names = ["protobuf" if name == "google.protobuf" else name for name in lacking]
        found = (
            f"there is no tokenizer.json, and converting {source} needs {' and '.join(names)}, which this Python lacks"
        )
        raise MissingError(found, where=source, remedy=f"install it with: pip install {' '.join(names)}")


def _installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):  # the package above it is not there
        return False


def _ask(copy: str, custom: str, source: str) -> tuple[dict[str, Any], bytes]:
    child = Child("hfbench.tokens.convert_child")
    try:
        return child.ask({"folder": copy, "custom": custom}, seconds=SECONDS)
    except ChildEnded as ended:
        how = {"timeout": f"takes more than {SECONDS:.0f} s of CPU time", "memory": "takes more memory than allowed"}
        found = how.get(ended.ending, f"ended the process with {ended.signal}")
        raise ModelError(
            "tokenizer_convert", f"there is no tokenizer.json, and its conversion {found}", where=source
        ) from None
    except HfbenchError as error:
        found = f"there is no tokenizer.json, and it cannot be converted: {error.found}"
        raise ModelError("tokenizer_convert", found, where=source) from None
    finally:
        child.close()


def _copy(folder: Path, copy: Path, names: list[str]) -> str:
    """Copy what the conversion reads, without what leads elsewhere; gives the model's own tokenizer class, if any."""
    for name in names:
        (copy / name).write_bytes(read_bytes(folder / name, MOST_BYTES, folder))
    custom = ""
    for name in SETTINGS:
        if describe_file(folder / name, folder).code == "missing":
            continue
        try:
            values = read_object(folder / name, folder).value
        except JsonError as error:
            raise ModelError(error.code, error.found, where=name) from None
        custom = custom or _own_class(values.pop("auto_map", None), name)
        kept = {key: value for key, value in values.items() if not key.endswith("_file")}
        (copy / name).write_text(json.dumps(kept), "utf-8")
    return custom


def _own_class(auto_map: object, name: str) -> str:
    """The class of the model's own code that would be its tokenizer; empty when a library has it."""
    named = auto_map.get("AutoTokenizer") if isinstance(auto_map, Mapping) else auto_map
    if name not in ("config.json", "tokenizer_config.json") or not isinstance(named, (list, tuple, str)):
        return ""
    classes = [named] if isinstance(named, str) else [each for each in named if isinstance(each, str)]
    return classes[-1] if classes else ""
