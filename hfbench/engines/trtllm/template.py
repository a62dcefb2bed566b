"""Named recipes for plans: TOML files that came with hfbench, and the user's own beside the configuration."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from hfbench.engines.runtimes.precision import scheme_named
from hfbench.engines.trtllm.flags import NAMED_ELSEWHERE, FlagFault, FlagTable, Value, build_flags, tool_flags
from hfbench.errors import UsageError
from hfbench.models.files import read_bytes
from hfbench.models.problem import ModelError, quoted
from hfbench.paths import config_root, expand
from hfbench.text import did_you_mean, printable

FOLDER = "templates"
"""Below the folder of the configuration."""
LARGEST = 2**18
"""Bytes of one template."""
MOST_PARTS = 100
"""Dots on one line: reading a dotted key takes time that grows with the square of its parts."""
DTYPES = ("auto", "float16", "bfloat16", "float32")
KEYS = {"title": str, "summary": str, "dtype": str, "quantisation": str, "tp": int, "pp": int, "convert": dict}
KEYS |= {"build": dict}
CONVERT_KEYS = ("tool", "script")
PLAIN_SCHEMES = ("int8-kv", "int8-weights", "int4-weights")
"""Packings that no card is too old for among those the plan backend runs on."""
MOST_RANKS = 1024
NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")


class TemplateError(UsageError):
    """A template cannot be used; `where` is its file with line and key."""


@dataclass(frozen=True, kw_only=True)
class Template:
    """One recipe: which program converts the checkpoint with which flags, and the flags of trtllm-build."""

    name: str
    title: str
    summary: str = ""
    dtype: str = "auto"
    quantisation: str = ""
    """A scheme of the precision table, one of PLAIN_SCHEMES, or empty for none."""
    tp: int = 1
    pp: int = 1
    tool: str = "convert_checkpoint"
    script: str = ""
    """Of the conversion, relative to the examples; empty: by the architecture."""
    convert: Mapping[str, Value] = field(default_factory=dict)
    build: Mapping[str, Value] = field(default_factory=dict)
    file: str = ""


@dataclass(frozen=True, kw_only=True)
class Templates:
    """Those that can be used, by name, and the faults of the others. A user's own wins over one that is shipped."""

    loaded: Mapping[str, Template]
    failed: tuple[TemplateError, ...]


def load_templates(own: Path | None = None) -> Templates:
    """Every template: shipped ones, then those of a folder, by default the user's."""
    loaded: dict[str, Template] = {}
    failed: list[TemplateError] = []
    for path in [*_shipped(), *_own(own or config_root() / FOLDER)]:
        try:
            found = read_template(path)
            loaded[found.name] = found
        except TemplateError as error:
            failed.append(error)
    return Templates(loaded=loaded, failed=tuple(failed))


def find_template(text: str) -> Template:
    """The template of a name, or in the file of a path; TemplateError with the nearest name, or that file's fault."""
    if "/" in text or text.endswith(".toml"):
        return read_template(expand(text))
    known = load_templates()
    if text in known.loaded:
        return known.loaded[text]
    for error in known.failed:
        if Path(error.where.partition(":")[0]).stem == text:
            raise error
    remedy = did_you_mean(text, known.loaded) or f"the templates are {', '.join(sorted(known.loaded))}"
    raise TemplateError(f"there is no template {quoted(text)}", where="template", remedy=remedy)


def read_template(path: Path) -> Template:
    """The template in a file; TemplateError names line and key of the first fault."""
    try:
        text = read_bytes(path, LARGEST).decode("utf-8")
    except UnicodeDecodeError as error:
        raise TemplateError(f"byte {error.start} is not UTF-8", where=path) from None
    except ModelError as error:
        raise TemplateError(error.found, where=path, remedy=error.remedy) from None
    for number, line in enumerate(text.splitlines(), 1):
        if line.count(".") > MOST_PARTS:
            raise TemplateError(f"is no template: more than {MOST_PARTS} dots on one line", where=f"{path}:{number}")
    try:
        told = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise TemplateError(f"is not TOML: {error}", where=path) from None
    except (ValueError, RecursionError):
        raise TemplateError("is no template: a value is too long or too deep", where=path) from None
    return _Reading(path, text).template(told)


class _Reading:
    """Turns one file into a template, and knows on which line a key stands."""

    def __init__(self, path: Path, text: str) -> None:
        self.path, self.text = path, text

    def template(self, told: dict[str, Any]) -> Template:
        name = self.path.name.removesuffix(".toml")
        if not NAME.fullmatch(name):
            remedy = "use small letters, digits and dashes"
            raise TemplateError(f"{quoted(name)} is no name of a template", where=self.path, remedy=remedy)
        for key, value in told.items():
            if key not in KEYS:
                raise self.fault(
                    key, f"unknown key {quoted(key)}", did_you_mean(key, KEYS) or f"known: {', '.join(KEYS)}"
                )
            if type(value) is not KEYS[key]:
                words = {str: "text", int: "a whole number", dict: "a table"}
                raise self.fault(key, f"{key} needs {words[KEYS[key]]}")
        if not str(told.get("title", "")).strip():
            raise self.fault("title", "a template needs a title")
        convert = dict(told.get("convert", {}))
        tool, script = convert.pop("tool", "convert_checkpoint"), convert.pop("script", "")
        self._check_words(told, tool, script)
        return Template(
            name=name,
            title=printable(told["title"]),
            summary=printable(told.get("summary", "")),
            dtype=told.get("dtype", "auto"),
            quantisation=told.get("quantisation", ""),
            tp=self._ranks(told, "tp"),
            pp=self._ranks(told, "pp"),
            tool=tool,
            script=script,
            convert=self._flags(tool_flags()[tool], convert, "convert"),
            build=self._flags(build_flags(), told.get("build", {}), "build"),
            file=str(self.path),
        )

    def fault(self, key: str, found: str, remedy: str = "") -> TemplateError:
        """A fault at a dotted key: `FILE:LINE: found`."""
        line = line_of(self.text, key)
        return TemplateError(found, where=f"{self.path}:{line}" if line else self.path, remedy=remedy)

    def _check_words(self, told: Mapping[str, Any], tool: object, script: object) -> None:
        if tool not in tool_flags():
            near = did_you_mean(str(tool), tool_flags())
            raise self.fault("convert.tool", f"tool is one of {', '.join(tool_flags())}, not {quoted(str(tool))}", near)
        if not isinstance(script, str) or script.startswith("/") or ".." in script.split("/"):
            raise self.fault("convert.script", "script is a path below the folder of examples")
        dtype = told.get("dtype", "auto")
        if dtype not in DTYPES:
            near = did_you_mean(dtype, DTYPES)
            raise self.fault("dtype", f"dtype is one of {', '.join(DTYPES)}, not {quoted(dtype)}", near)
        scheme = told.get("quantisation", "")
        if scheme and scheme not in PLAIN_SCHEMES and scheme_named(scheme) is None:
            raise self.fault("quantisation", f"no scheme is called {quoted(scheme)}")

    def _ranks(self, told: Mapping[str, Any], key: str) -> int:
        value: int = told.get(key, 1)
        if not 1 <= value <= MOST_RANKS:
            raise self.fault(key, f"{key} is from 1 to {MOST_RANKS}")
        return value

    def _flags(self, table: FlagTable, given: Mapping[str, Any], section: str) -> dict[str, Value]:
        read: dict[str, Value] = {}
        for word, value in given.items():
            key = f"{section}.{word}"
            try:
                flag, checked = table.read(word, value)
            except FlagFault as fault:
                raise self.fault(key, fault.found, fault.remedy) from None
            if section == "build" and flag.name in NAMED_ELSEWHERE:
                raise self.fault(key, f"{flag.name} is set from {NAMED_ELSEWHERE[flag.name]}", "leave it away")
            read[flag.name] = checked
        return read


def line_of(text: str, key: str) -> int:
    """The line, from 1, on which a dotted key of a TOML text stands; 0 where it is not found."""
    section, _, name = key.rpartition(".")
    at = ""
    wanted = re.compile(rf"""\s*["']?{re.escape(name)}["']?\s*=""")
    for number, line in enumerate(text.splitlines(), 1):
        if header := re.fullmatch(r"\s*\[([^\[\]]+)\]\s*(?:#.*)?", line):
            at = header[1].strip()
            if not section and at == name:
                return number
        elif at == section and wanted.match(line):
            return number
    return 0


def _shipped() -> Iterator[Path]:
    with_data = Path(str(files("hfbench.engines.trtllm") / "templates"))
    yield from sorted(with_data.glob("*.toml"))


def _own(folder: Path) -> Iterator[Path]:
    try:
        yield from sorted(folder.glob("*.toml"))
    except OSError:
        return
