"""What every layer of a family holds, learnt from models of transformers that are built without memory.

`python tests/models/learn_layer_laws.py` writes hfbench/models/data/layer_laws.json anew, which takes minutes; with
model types it prints what it learnt of these. A slow test compares some of the table.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

TABLE = Path(__file__).parents[2] / "hfbench" / "models" / "data" / "layer_laws.json"

KEYS = {
    "H": "hidden_size",
    "A": "num_attention_heads",
    "K": "num_key_value_heads",
    "D": "head_dim",
    "I": "intermediate_size",
    "V": "vocab_size",
}
SIZES = (
    {"H": 96, "A": 6, "K": 3, "D": 20, "I": 232, "V": 1010},
    {"H": 320, "A": 10, "K": 5, "D": 24, "I": 344, "V": 2222},
    {"H": 480, "A": 12, "K": 12, "D": 56, "I": 1544, "V": 3030},
)
"""Sizes of which no product is another's, so that a dimension tells which of them it is made of."""

LAWS: dict[str, Callable[[Mapping[str, float]], float]] = {
    "H": lambda v: v["H"],
    "I": lambda v: v["I"],
    "V": lambda v: v["V"],
    "A*D": lambda v: v["A"] * v["D"],
    "K*D": lambda v: v["K"] * v["D"],
    "D": lambda v: v["D"],
    "2*I": lambda v: 2 * v["I"],
    "2*A*D": lambda v: 2 * v["A"] * v["D"],
    "3*H": lambda v: 3 * v["H"],
    "4*H": lambda v: 4 * v["H"],
    "A*D+2*K*D": lambda v: (v["A"] + 2 * v["K"]) * v["D"],
}
NO_SIZE = float("nan")
"""Equal to no length, so that no law is found in a size that a configuration lacks."""

FEW = 16
"""Experts of a layer where a family has more: they are alike, and hundreds take minutes."""

NUMBER = 6
"""Layers of a model that is built."""

LAYER = re.compile(r"^(.*?\b(?:layers|layer|h|blocks|block))\.(\d+)\.(.+)$")
STRANGE = re.compile(r"expert|rotary|visual|vision|audio|mtp")
"""Parts whose tensors are stored in more than one way, or are not of the language model."""

Names = dict[str, tuple[int, ...]]
Built = tuple[Names, Mapping[str, float]]
"""The tensors of a model, and the sizes that its configuration tells."""


def main() -> None:
    """Learn all families, or those named, and write or print them."""
    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)
    found = {}
    for name in sys.argv[1:] or families():
        if (law := learn(name)) is not None:
            found[name] = law
        print(name, "learnt" if law else "left out", file=sys.stderr, flush=True)
    if sys.argv[1:]:
        print(as_text(found))
    else:
        TABLE.write_text(as_text(found))


def as_text(found: Mapping[str, Any]) -> str:
    """One family a line, sorted."""
    lines = [f"{json.dumps(name)}: {json.dumps(found[name], sort_keys=True)}" for name in sorted(found)]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def families() -> list[str]:
    """The model types of language models, and of the language models inside others."""
    from transformers.models.auto import modeling_auto as auto

    masked = ("bert", "roberta", "xlm-roberta", "electra", "camembert", "distilbert", "mpnet", "modernbert", "new")
    text = [each for each in auto.MODEL_MAPPING_NAMES if each.endswith("_text")]
    return sorted({*auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, *text, *masked} - {"new"})


def learn(model_type: str) -> dict[str, Any] | None:
    """What holds for every layer of every model of a type that could be built; None where nothing could."""
    from transformers import CONFIG_MAPPING

    config_class = CONFIG_MAPPING[model_type]
    model_class = _class(model_type)
    if model_class is None or getattr(config_class, "sub_configs", None) or config_class().is_encoder_decoder:
        return None
    try:
        _values(config_class())
    except Exception:  # sizes that differ from layer to layer raise an error of transformers' own
        return None
    unsaid = _unsaid(config_class, model_class)
    built = list(_models(config_class, model_class, unsaid))
    if not all(built[: len(SIZES)]):
        return None
    kept = [each for each in built if each]
    every = [names for names, _ in kept]
    paths = {path for names in every for path in _layers(names)}
    path = max(paths, key=lambda each: len(_layers(every[0]).get(each, {})), default="")
    if not path or not all(path in _layers(names) for names in every):
        return None
    layers = [layer for names in every for layer in _layers(names)[path].values()]
    required = sorted(set.intersection(*(set(layer) for layer in layers)))
    required = [each for each in required if each.endswith(".weight") and not STRANGE.search(each)]
    outer = set.intersection(*({name for name in names if not LAYER.match(name)} for names in every))
    outer = {name for name in outer if name.endswith(".weight") and not STRANGE.search(name)}
    others = _other_names(config_class, model_class)
    shapes = {
        suffix: law
        for suffix in required
        if (law := _law([({layer[suffix] for layer in _layers(names)[path].values()}, v) for names, v in kept]))
    }
    beside = {name: _law([({names[name]}, values) for names, values in kept]) for name in sorted(outer)}
    return {
        "class": model_class.__name__,
        "path": path,
        "base": model_class.base_model_prefix,
        "each": [_with_others(each, others) for each in required],
        "outer": beside,
        "shapes": shapes,
        "keys": _keys(config_class) | {short: [KEYS[short], None] for short in sorted(unsaid)},
        "renamed": _renamed(model_type),
        "counted": all(set(_layers(names)[path]) == set(range(NUMBER)) for names in every[: len(SIZES)]),
    }


def _class(model_type: str) -> Any:
    import transformers
    from transformers.models.auto import modeling_auto as auto

    for names in (
        auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
        auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES,
        auto.MODEL_MAPPING_NAMES,
    ):
        if isinstance(name := names.get(model_type), str):
            return getattr(transformers, name, None)
    return None


def _unsaid(config_class: Any, model_class: Any) -> set[str]:
    """The letters of sizes that the class of the configuration does not name and the model reads all the same."""
    told = config_class().to_dict()
    named = {short: config_class().attribute_map.get(KEYS[short], KEYS[short]) in told for short in "DKHA"}
    if not named["H"] or not named["A"]:
        return set()
    given = {KEYS[short]: value for short, value in SIZES[0].items() if short in "HA"}
    plain = _tensors(config_class, model_class, given)
    found = set()
    for short in "DK":
        if not named[short]:
            other = _tensors(config_class, model_class, given | {KEYS[short]: SIZES[0][short]})
            found |= {short} if other and plain and other[0] != plain[0] else set()
    return found


def _models(config_class: Any, model_class: Any, unsaid: set[str]) -> Iterator[Built | None]:
    """The tensors of models of the sizes above, then of models with one further key changed each."""
    plain = config_class()
    told = plain.to_dict()
    keys = {short: key for short, key in KEYS.items() if plain.attribute_map.get(key, key) in told or short in unsaid}
    few = {key: FEW for key, value in told.items() if "experts" in key and type(value) is int and value > FEW}
    for size in SIZES:
        yield _tensors(config_class, model_class, few | {key: size[short] for short, key in keys.items()})
    yield _tensors(config_class, model_class, few, layers=None)
    for key, value in _changes(plain, {*keys.values(), *plain.attribute_map.values()}):
        yield _tensors(config_class, model_class, few | {key: value})


def _changes(plain: Any, sizes: set[str]) -> Iterator[tuple[str, Any]]:
    from transformers import PretrainedConfig
    from transformers.configuration_utils import ALLOWED_LAYER_TYPES

    common = set(PretrainedConfig().to_dict())
    for key, value in plain.to_dict().items():
        if key in common or key in sizes or key.endswith("_token_id") or key.startswith("num_hidden"):
            continue
        if isinstance(value, bool):
            yield key, not value
        elif isinstance(value, int):
            yield from ((key, other) for other in (0, 1, 2, None) if other != value)
        elif value is None:
            yield from ((key, other) for other in (True, 2))
        elif isinstance(value, list) and (key.endswith("types") or key == "layers_block_type"):
            kinds = {*map(str, value), *ALLOWED_LAYER_TYPES, "sparse", "dense", "full", "shared"}
            yield from ((key, [kind] * NUMBER) for kind in sorted(kinds))


def _tensors(config_class: Any, model_class: Any, given: dict[str, Any], layers: int | None = NUMBER) -> Built | None:
    import torch
    from transformers.core_model_loading import revert_weight_conversion
    from transformers.initialization import no_init_weights

    try:
        config = config_class(**{"pad_token_id": 0} | given, **({"num_hidden_layers": layers} if layers else {}))
        with torch.device("meta"), no_init_weights():
            model = model_class(config)
        stored = dict(model.state_dict())
        disk = revert_weight_conversion(model, dict(stored))
    except Exception:  # some changes make no model, and whatever they raise, they teach nothing
        return None
    for name in getattr(model, "all_tied_weights_keys", None) or {}:
        disk.pop(name, None)
    return {name: tuple(tensor.shape) for name, tensor in disk.items()}, _values(config)


def _other_names(config_class: Any, model_class: Any) -> set[str]:
    """The names below a layer as the class itself has them, which files saved without renaming hold."""
    import torch

    try:
        with torch.device("meta"):
            stored = model_class(config_class(num_hidden_layers=NUMBER)).state_dict()
    except Exception:  # as above
        return set()
    return {match[3] for name in stored if (match := LAYER.match(name))}


def _with_others(suffix: str, others: set[str]) -> str:
    """The name, and after a bar those that the class has for what is likely the same tensor."""
    end = suffix.split(".")[-2:]
    same = sorted(each for each in others if each.split(".")[-2:] == end) if suffix not in others else []
    return "|".join([suffix, *same])


def _layers(names: Names) -> dict[str, dict[int, Names]]:
    found: dict[str, dict[int, Names]] = {}
    for name, shape in names.items():
        if match := LAYER.match(name):
            found.setdefault(match[1], {}).setdefault(int(match[2]), {})[match[3]] = shape
    return found


def _values(config: Any) -> dict[str, float]:
    told = {short: getattr(config, key, None) for short, key in KEYS.items()}
    values: dict[str, float] = {short: value for short, value in told.items() if type(value) is int}
    values.setdefault("K", values.get("A", NO_SIZE))
    if values.get("A") and "H" in values:
        values.setdefault("D", values["H"] // values["A"])
    return {short: values.get(short, NO_SIZE) for short in KEYS}


def _law(seen: list[tuple[set[tuple[int, ...]], Mapping[str, float]]]) -> list[str | None] | None:
    """The law of each dimension that held in every layer of every model, None for a dimension that follows none."""
    if any(len({len(shape) for shape in shapes}) != 1 for shapes, _ in seen):
        return None
    shapes = [(shape, values) for of_model, values in seen for shape in of_model]
    if len({len(shape) for shape, _ in shapes}) != 1:
        return None
    laws = [
        next((law for law, work in LAWS.items() if all(work(v) == shape[place] for shape, v in shapes)), None)
        for place in range(len(shapes[0][0]))
    ]
    return laws if any(laws) else None


def _keys(config_class: Any) -> dict[str, list[Any]]:
    """The key of each size in config.json and what the class fills in for it; null where it follows from the others."""
    plain = config_class()
    told = plain.to_dict()
    keys = {short: plain.attribute_map.get(key, key) for short, key in KEYS.items()}
    others = [config_class(**{keys["H"]: hidden, keys["A"]: heads}).to_dict() for hidden, heads in ((96, 6), (320, 10))]
    found = {}
    for short, key in keys.items():
        if key in told:
            follows = short not in "HA" and len({other.get(key) for other in others}) > 1
            found[short] = [key, None if follows else told[key]]
    return found


def _renamed(model_type: str) -> bool:
    """Whether transformers renames tensors of this family while it loads them."""
    from transformers.conversion_mapping import get_checkpoint_conversion_mapping

    return bool(get_checkpoint_conversion_mapping(model_type))


if __name__ == "__main__":
    main()
