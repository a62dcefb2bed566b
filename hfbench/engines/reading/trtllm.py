"""TensorRT-LLM engines: config.json tells version and model, and nothing of GPU, driver, CUDA or TensorRT."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hfbench.engines.manifest import BuiltOn
from hfbench.engines.reading.found import LARGEST_JSON, Fact, Found, NoEngine, facts
from hfbench.models.files import list_files
from hfbench.models.json_text import JsonError, cut_depth, read_object
from hfbench.models.problem import counted, listed

CONFIG = "config.json"
MOST_RANKS = 4096
_RANK = re.compile(r"rank(\d{1,4})\.engine")


def looks_like_trtllm(folder: Path) -> bool:
    """Whether a folder holds ranks of TensorRT-LLM."""
    try:
        with os.scandir(folder) as entries:
            return any(_RANK.fullmatch(entry.name) for entry in entries)
    except OSError:
        return False


def read_trtllm(folder: Path) -> Found:
    """What the folder of an engine tells; NoEngine when its configuration cannot be read."""
    try:
        config = read_object(folder / CONFIG, folder, LARGEST_JSON).value
    except JsonError as error:
        remedy = error.remedy or "copy the whole engine folder, config.json included"
        raise NoEngine(error.found, where=folder / CONFIG, remedy=remedy) from None
    cut_depth(config)
    model, build = _object(config, "pretrained_config"), _object(config, "build_config")
    mapping = _object(model, "mapping")
    files = {each.name: each for each in list_files(folder, deep=False)}
    world = _count(mapping.get("world_size")) or 1
    return Found(
        kind="trtllm",
        what="TensorRT-LLM engine",
        path=folder,
        size=sum(each.bytes for each in files.values()),
        facts=(*_model_facts(config, model), *_build_facts(mapping, build, world)),
        built_on=BuiltOn(python="", tensorrt_llm=_text(config.get("version"))),
        world_size=world,
        faults=tuple(_faults(config, files, world)),
        silent=(
            "the GPU, its compute capability and its driver",
            "the version of TensorRT, by which a plan stands or falls",
            "the checkpoint it was built from",
        ),
    )


def _model_facts(config: Mapping[str, Any], model: Mapping[str, Any]) -> tuple[Fact, ...]:
    return facts(
        version=_text(config.get("version")),
        model=_text(model.get("architecture")),
        dtype=_text(model.get("dtype")),
        quantisation=_text(_object(model, "quantization").get("quant_algo")),
        kv_cache=_text(_object(model, "quantization").get("kv_cache_quant_algo")),
    )


def _build_facts(mapping: Mapping[str, Any], build: Mapping[str, Any], world: int) -> tuple[Fact, ...]:
    names = ("max_batch_size", "max_input_len", "max_seq_len", "max_num_tokens", "max_beam_width")
    limits = [f"{name} {build[name]}" for name in names if type(build.get(name)) is int and build[name] < 10**9]
    plugins = _object(build, "plugin_config")
    chosen = [f"{_text(k)}={_text(v)}" for k, v in plugins.items() if v not in (None, False, "disable")]
    spread = [
        f"{name.removesuffix('_size').upper()} {_count(mapping.get(name)) or 1}" for name in ("tp_size", "pp_size")
    ]
    return facts(
        ranks=f"{world}: {', '.join(spread)}",
        shapes=", ".join(limits),
        plugins=", ".join(filter(None, chosen[:8])) + (f" and {len(chosen) - 8} more" if len(chosen) > 8 else ""),
    )


def _faults(config: Mapping[str, Any], files: Mapping[str, Any], world: int) -> list[str]:
    found = []
    if "pretrained_config" not in config or "build_config" not in config:
        found.append("config.json has no pretrained_config and build_config: it is a checkpoint's, not an engine's")
    if world > MOST_RANKS:
        return [*found, f"config.json tells a world size of {world:,}"]
    wanted = [f"rank{rank}.engine" for rank in range(world)]
    if missing := [name for name in wanted if name not in files or files[name].problem]:
        found.append(f"of {counted(world, 'rank')} these are not there: {listed(missing)}")
    if empty := [name for name in wanted if name in files and not files[name].problem and not files[name].bytes]:
        found.append(f"empty: {listed(empty)}")
    if extra := sorted(name for name in files if _RANK.fullmatch(name) and name not in wanted):
        found.append(f"more ranks than the world size of {world}: {listed(extra)}")
    return found


def _object(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = data.get(name)
    return found if isinstance(found, Mapping) else {}


def _text(value: object) -> str:
    return str(value)[:80] if isinstance(value, (str, int, float, bool)) and not _huge(value) else ""


def _huge(value: object) -> bool:
    return isinstance(value, int) and abs(value) >= 10**18


def _count(value: object) -> int:
    return value if type(value) is int and 0 < value < 10**9 else 0
