"""Explains a model's configuration: its files key by key, the defaults of its class, and its generation settings."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from hfbench.models.config import CONFIG, MISTRAL_CONFIG, ModelConfig, read_config
from hfbench.models.explain.classes import ClassTable, ConfigClass, class_table
from hfbench.models.explain.facts import GENERATION, Explained, ExplainedKey
from hfbench.models.explain.filling import Filled, Replaced, fill
from hfbench.models.explain.meanings import meaning_of
from hfbench.models.explain.rows import MOST_ROWS, json_text, leaves, spelled
from hfbench.models.json_text import DEEPEST, JsonError, cut_depth, read_object
from hfbench.models.problem import Problem, counted, quoted
from hfbench.models.reference import Location
from hfbench.models.resolution.config_class import type_in_transformers

SIDE_FILES = ("hf_quant_config.json", "quantize_config.json", "quant_config.json")
"""Files beside the configuration that tell how weights are quantized."""

GENERATION_CLASS = "GenerationConfig"
GENERATES = ("ForCausalLM", "ForConditionalGeneration", "LMHeadModel", "ForSeq2SeqLM")
"""Endings of architectures that `generate` works with."""

NOTHING: Mapping[tuple[str, ...], Replaced] = {}

LONGEST_HOW = 300
"""Characters of an expression that are told."""


def explain(location: Location, config: ModelConfig | None = None, *, most: int = MOST_ROWS) -> Explained:
    """Every key of the model in a folder, of each file `most` values; `config` is what was read of it already.

    Never raises for what the files hold: faults are listed as problems.
    """
    folder = location.folder
    config = config or read_config(folder)
    table = class_table()
    kind, notes = _class_of(config, table)
    made = list(fill(config.raw, kind, table)) if kind else []
    problems = list(config.problems)
    keys = list(_file_rows(config.raw, config.source or CONFIG, most, _replaced(made)))
    for name in SIDE_FILES:
        if (beside := _read(folder, name, problems)) is not None:
            keys += _file_rows(beside, name, most)
    keys += [_default_row(each, table) for each in made if isinstance(each, Filled)]
    keys += _generation_rows(folder, config, table, most, problems)
    return Explained(
        model=location.name,
        source=config.source,
        config_class=kind.name if kind else None,
        runtime=table.title,
        keys=tuple(keys),
        notes=(*filter(None, [location.note]), *notes),
        problems=tuple(problems),
    )


def _class_of(config: ModelConfig, table: ClassTable) -> tuple[ConfigClass | None, list[str]]:
    """The class that reads the configuration, or a note why no defaults can be told."""
    if not config.raw:
        return None, []
    if config.source == MISTRAL_CONFIG:
        return None, [f"{MISTRAL_CONFIG} is read by no class of transformers: no defaults are filled in"]
    model_type = type_in_transformers(config.raw)
    kind = table.of_type(model_type)
    if kind is not None:
        return kind, []
    what = f"model_type {quoted(model_type)} is not one that {table.title} knows" if model_type else "no model_type"
    remote = config.raw.get("auto_map")
    by = "; the repository's own code decides" if isinstance(remote, dict) and "AutoConfig" in remote else ""
    return None, [f"{what}: what is filled in is not known{by}"]


def _replaced(made: list[Filled | Replaced]) -> Mapping[tuple[str, ...], Replaced]:
    return {each.path: each for each in made if isinstance(each, Replaced)}


def _file_rows(
    raw: Mapping[str, Any], file: str, most: int, replaced: Mapping[tuple[str, ...], Replaced] = NOTHING
) -> Iterator[ExplainedKey]:
    """A row a value, and one that says how many more there are."""
    rows = leaves(raw)
    for path, value in islice(rows, most):
        by = replaced.get(path)
        yield ExplainedKey(
            key=spelled(path),
            value=value,
            meaning=meaning_of(path, file),
            origin="file",
            file=file,
            by=by.owner if by else "",
            how=by.how[:LONGEST_HOW] if by else "",
            becomes=json_text(by.value) if by else "",
        )
    if beyond := sum(1 for _ in rows):
        told = f"{counted(beyond, 'value')} beyond the first {most:,}, not shown"
        yield ExplainedKey(key="...", value=told, meaning="", origin="file", file=file)


def _default_row(filled: Filled, table: ClassTable) -> ExplainedKey:
    return ExplainedKey(
        key=spelled(filled.path),
        value=filled.value,
        meaning=meaning_of(filled.path),
        origin="default",
        file=CONFIG,
        by=f"default of {filled.owner}, {table.title}",
        how=filled.how[:LONGEST_HOW],
        known=filled.known,
    )


def _generation_rows(
    folder: Path, config: ModelConfig, table: ClassTable, most: int, problems: list[Problem]
) -> Iterator[ExplainedKey]:
    """The file's settings, then what `generate` takes for the others; none for a model that generates nothing."""
    told = _read(folder, GENERATION, problems)
    yield from _file_rows(told or {}, GENERATION, most)
    if told is None and not any(name.endswith(GENERATES) for name in config.architectures):
        return
    legacy = {} if told is not None else config.raw  # without the file, settings in config.json still count
    for name, value in table.generation.items():
        if name not in (told or {}) and name not in legacy:
            yield ExplainedKey(
                key=name,
                value=value,
                meaning=meaning_of((name,), GENERATION),
                origin="default",
                file=GENERATION,
                by=f"default of {GENERATION_CLASS}, {table.title}",
            )


def _read(folder: Path, name: str, problems: list[Problem]) -> dict[str, Any] | None:
    """The object of a file beside the configuration, None when there is none or it cannot be read."""
    if not os.path.lexists(folder / name):
        return None
    try:
        read = read_object(folder / name, folder)
    except JsonError as error:
        problems.append(error.problem(where=name))
        return None
    if cut_depth(read.value):
        found = f"nested too deeply; only {DEEPEST} levels are read"
        problems.append(Problem(severity="error", where=name, found=found, code="config_depth"))
    problems += [Problem(severity="warning", where=name, found=note.found) for note in read.notes]
    return read.value
