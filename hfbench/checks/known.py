"""What the runtimes know: model types, classes, and what they fill in where a configuration is silent."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from pathlib import Path
from typing import Any

from hfbench.models.runtimes import Names, known

_TIED = Path(__file__).parent / "data" / "tied.json"

_TASK = re.compile(r"(For[A-Z]\w+|LMHeadModel|Model)\Z")
"""What follows the family in the name of a class."""


def titles() -> str:
    """`transformers 5.24.0 nor vLLM 0.33.0`, for a sentence that begins with neither."""
    return f"{transformers().title} nor {vllm().title}"


def transformers() -> Names:
    """The names transformers knows."""
    return known("transformers")


def vllm() -> Names:
    """The names vLLM knows."""
    return known("vllm")


def known_type(model_type: str | None) -> bool:
    """True when transformers has a configuration class for it."""
    return model_type in transformers().config_classes


def vllm_only_type(model_type: str | None) -> bool:
    """True when vLLM has a configuration class of its own for it and transformers has none."""
    return model_type in vllm().config_classes and not known_type(model_type)


def every_type() -> list[str]:
    """All model types that either knows."""
    return sorted({*transformers().config_classes, *vllm().config_classes})


def known_architecture(name: str) -> bool:
    """True when transformers or vLLM has the class, or vLLM runs it in a plug-in."""
    return name in transformers().architectures or name in vllm().architectures or name in vllm().plugins


def known_tokenizer(name: str) -> bool:
    """True for a tokenizer class of transformers, with or without `Fast` at its end."""
    if name.startswith(("PreTrainedTokenizer", "TokenizersBackend")):
        return True
    stem = name.removesuffix("Fast")
    return any(each.removesuffix("Fast") == stem for each in transformers().tokenizers.values())


def last_vllm_with(name: str) -> str | None:
    """The last version of vLLM that had an architecture since given up."""
    return vllm().previous.get(name)


def base_model(model_type: str | None) -> str | None:
    """The class without a head that a model type leads to."""
    return transformers().base_models.get(model_type or "")


def of_type(name: str, model_type: str | None) -> bool:
    """True when a class may stand in `architectures` of a model type."""
    base = base_model(model_type)
    stem = _stem(name)
    return base in (f"{stem}Model", f"{stem}TextModel") or transformers().task_models.get(model_type or "") == name


def type_of_architecture(name: str) -> str | None:
    """The model type whose base class has the same stem, so that a missing model_type can be suggested."""
    stem = _stem(name)
    types = [each for each, base in transformers().base_models.items() if base == f"{stem}Model"]
    builds = [each for each in types if transformers().task_models.get(each) == name]
    alike = [each for each in types if each.replace("_", "").replace("-", "") == stem.lower()]
    return next(iter(alike or builds or types), None)


def _stem(name: str) -> str:
    return _TASK.sub("", name)


def uses_rope(model_type: str | None) -> bool:
    """True for families of transformers with rotary position embeddings."""
    return (model_type or "") in transformers().rope


def default_theta(model_type: str | None) -> float | None:
    """The base of the rotary embedding that is filled in; None when not known or not one number."""
    told = transformers().rope.get(model_type or "")
    theta = told.get("theta") if isinstance(told, dict) else told
    return float(theta) if isinstance(theta, (int, float)) else None


def default_tied(model_type: str | None) -> bool | None:
    """Whether the family ties its head to the embedding when the configuration does not say; None when not known."""
    told = _tied()
    return True if model_type in told["tied"] else False if model_type in told["untied"] else None


@lru_cache(maxsize=1)
def _tied() -> dict[str, frozenset[str]]:
    told: dict[str, Any] = json.loads(_TIED.read_text("utf-8"))
    return {name: frozenset(told[name]) for name in ("tied", "untied")}
