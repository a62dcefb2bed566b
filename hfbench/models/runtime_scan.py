"""Takes the names a runtime knows from its source, read as text and never imported.

`python -m hfbench.models.runtime_scan transformers FOLDER VERSION DATE` writes what data/ ships; for vllm the folder
and the version of the newest transformers it allows follow.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from hfbench.models.config_scan import config_facts
from hfbench.models.source_tables import tables_in

TASKS = (
    "MODEL_FOR_CAUSAL_LM_MAPPING_NAMES",
    "MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES",
    "MODEL_FOR_MULTIMODAL_LM_MAPPING_NAMES",
    "MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES",
    "MODEL_FOR_MASKED_LM_MAPPING_NAMES",
)
"""The tables that say which class generates text for a model type, the likeliest first."""

VLLM_ARCHITECTURES = "_VLLM_MODELS"

_ATTENTION_CLASS = re.compile(r"^class \w*Attention\w*\(nn\.Module\):", re.MULTILINE)
_MODEL_CLASS = re.compile(r"^class (\w+)\(", re.MULTILINE)


def scan_transformers(root: Path) -> dict[str, Any]:
    """Tables of the `transformers` package in a folder: model types, classes, tokenizers."""
    auto = root / "models" / "auto"
    every = _every_mapping(auto / "modeling_auto.py")
    tokenization = tables_in(
        auto / "tokenization_auto.py", ["TOKENIZER_MAPPING_NAMES", "MODELS_WITH_INCORRECT_HUB_TOKENIZER_CLASS"]
    )
    tasks: dict[str, str] = {}
    for task in TASKS:
        tasks = {**_first_names(every.get(task, {})), **tasks}
    architectures = {name for table in every.values() for value in table.values() for name in _listed(value)}
    return {
        "config_classes": config_classes(root),
        "base_models": _first_names(every["MODEL_MAPPING_NAMES"]),
        "task_models": tasks,
        "architectures": {name: name for name in sorted(architectures)},
        "tokenizers": {key: value for key, value in tokenization["TOKENIZER_MAPPING_NAMES"].items() if value},
        "wrong_tokenizers": tokenization.get("MODELS_WITH_INCORRECT_HUB_TOKENIZER_CLASS", []),
    }


def config_classes(root: Path) -> dict[str, str]:
    """The configuration class of each model type that transformers knows."""
    auto, name = root / "models" / "auto", "CONFIG_MAPPING_NAMES"
    shared = tables_in(auto / "auto_mappings.py", [name]) if (auto / "auto_mappings.py").is_file() else {}
    found: dict[str, str] = tables_in(auto / "configuration_auto.py", [name], shared)[name]
    return found


def scan_vllm(root: Path) -> dict[str, Any]:
    """Tables of the `vllm` package in a folder: its own configuration classes, architectures, exceptions."""
    config = tables_in(
        root / "transformers_utils" / "config.py",
        ["_CONFIG_REGISTRY", "_ARCHITECTURE_TO_MODEL_TYPE", "_SPECULATIVE_DECODING_CONFIGS"],
    )
    registry = tables_in(
        root / "model_executor" / "models" / "registry.py",
        [VLLM_ARCHITECTURES, "_PREVIOUSLY_SUPPORTED_MODELS", "_OOT_SUPPORTED_MODELS"],
    )
    tokenizers = tables_in(root / "tokenizers" / "registry.py", ["_MODEL_TYPES_WITH_INCORRECT_TOKENIZER_CLASS"])
    refused = tables_in(root / "config" / "model.py", ["_FLOAT16_NOT_SUPPORTED_MODELS"])
    return {
        "config_classes": config["_CONFIG_REGISTRY"],
        "type_of_architecture": config.get("_ARCHITECTURE_TO_MODEL_TYPE", {}),
        "architectures": {name: value[1] for name, value in sorted(registry[VLLM_ARCHITECTURES].items())},
        "previous": registry.get("_PREVIOUSLY_SUPPORTED_MODELS", {}),
        "plugins": registry.get("_OOT_SUPPORTED_MODELS", {}),
        "wrong_tokenizers": tokenizers.get("_MODEL_TYPES_WITH_INCORRECT_TOKENIZER_CLASS", []),
        "float16_refused": sorted(refused.get("_FLOAT16_NOT_SUPPORTED_MODELS", {})),
    }


def shipped_tables(runtime: str, root: Path) -> dict[str, Any]:
    """All that the package ships of a runtime: the names, and for transformers what takes a second to find out."""
    if runtime == "vllm":
        return scan_vllm(root)
    names = scan_transformers(root)
    backend = set(backend_classes(root))
    names["without_backend"] = sorted(name for name in names["architectures"] if name not in backend)
    names["architectures"] = sorted(names["architectures"])
    return {**names, **config_facts(root, names["config_classes"])}


def backend_classes(root: Path) -> list[str]:
    """Model classes of transformers that vLLM can run without an implementation of its own.

    vLLM's rule: the attention of the module is replaceable, or the module defines none.
    """
    found: set[str] = set()
    for path in sorted((root / "models").glob("*/modeling_*.py")):
        text = path.read_text("utf-8", "replace")
        signs = ("ALL_ATTENTION_FUNCTIONS.get_interface(", "_supports_attention_backend = True")
        if not _ATTENTION_CLASS.search(text) or any(sign in text for sign in signs):
            found.update(_MODEL_CLASS.findall(text))
    return sorted(name for name in found if "For" in name or name.endswith(("Model", "HeadModel")))


def _every_mapping(path: Path) -> dict[str, dict[str, Any]]:
    names = set(re.findall(r"^(MODEL_\w*NAMES) = ", path.read_text("utf-8"), re.MULTILINE))
    return {name: table for name, table in tables_in(path, sorted(names)).items() if isinstance(table, dict)}


def _first_names(table: dict[str, Any]) -> dict[str, str]:
    return {key: _listed(value)[0] for key, value in table.items() if _listed(value)}


def _listed(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else [each for each in value or [] if isinstance(each, str)]


def main(words: list[str]) -> None:
    """Write the tables of one runtime to stdout as the JSON that data/ holds."""
    runtime, folder, version, date, *beside = words
    told = {"runtime": runtime, "version": version, "read": date, **shipped_tables(runtime, Path(folder))}
    if beside:
        told["transformers"] = {"version": beside[1], "types": sorted(config_classes(Path(beside[0])))}
    sys.stdout.write(json.dumps(told, indent=0) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
