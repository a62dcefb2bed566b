"""Values of a configuration as arithmetic needs them: given, else the default of the model's class, else unknown."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Any

from hfbench.models.problem import quoted

LARGEST = 2**40
"""No size of a real model comes near; beyond it a configuration is damaged or hostile."""
MOST_LAYERS = 2048
"""Ten times what the deepest models have."""
LARGEST_RATIO = 1000

NAMES: dict[str, tuple[str, ...]] = {
    "layers": ("num_hidden_layers", "n_layer", "n_layers", "num_layers"),
    "hidden": ("hidden_size", "n_embd", "d_model", "dim"),
    "heads": ("num_attention_heads", "n_head", "n_heads", "num_heads"),
    "kv_heads": ("num_key_value_heads", "num_kv_heads", "n_head_kv"),
    "width": ("intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size", "d_ff"),
    "vocab": ("vocab_size", "padded_vocab_size"),
    "positions": ("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len"),
    "experts": ("num_experts", "num_local_experts", "n_routed_experts"),
}
"""One fact, the names that families give it."""


class NotKnown(Exception):
    """A figure cannot be counted from this configuration; `str()` is the reason, safe to show."""


class Settings:
    """One object of a configuration. `kind` is the model_type whose class defaults fill in what it leaves out."""

    def __init__(self, raw: Mapping[str, Any], kind: str | None = None) -> None:
        told = raw.get("model_type")
        self.raw = raw
        self.kind = kind or (told if isinstance(told, str) else "")
        self.defaults: Mapping[str, Any] = class_defaults().get(self.kind, {})

    def get(self, *names: str) -> Any:
        """The first value given under any of the names, else the first default; None when there is neither.

        A null that is written down is no value, and keeps the default away.
        """
        spelled = _spelled(names)
        for source in (self.raw, self.defaults):
            for name in spelled:
                if source.get(name) is not None:
                    return source[name]
            if any(name in source for name in spelled):
                return None
        return None

    def size(self, *names: str, default: int | None = None) -> int:
        """A positive integer; NotKnown when it is missing or is none."""
        value = self.number(*names, default=default)
        if value < 1:
            raise NotKnown(f"{_spelled(names)[0]} is {value}")
        return value

    def number(self, *names: str, default: int | None = None) -> int:
        """An integer from 0; NotKnown when it is missing or is none."""
        value = self.get(*names)
        if value is None:
            value = default
        name = _spelled(names)[0]
        if value is None:
            raise NotKnown(f"the configuration does not give {name}")
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if type(value) is not int:
            raise NotKnown(f"{name} is {quoted(value)}, an integer is needed")
        if not 0 <= value <= LARGEST:
            raise NotKnown(f"{name} is out of range")
        return value

    def optional(self, *names: str) -> int:
        """An integer, 0 where nothing is said."""
        return self.number(*names, default=0)

    def flag(self, name: str, default: bool = False) -> bool:
        """A switch; what is not true or false counts as its default."""
        value = self.get(name)
        return value if isinstance(value, bool) else default

    def sequence(self, *names: str) -> tuple[Any, ...]:
        """A list, empty where nothing is said."""
        value = self.get(*names)
        return tuple(value) if isinstance(value, list) else ()

    def numbers(self, name: str) -> frozenset[int]:
        """The integers of a list."""
        return frozenset(each for each in self.sequence(name) if type(each) is int)

    def sizes(self, name: str) -> tuple[int, ...]:
        """A list of positive integers; NotKnown when it is empty or holds anything else."""
        listed = self.sequence(name)
        if not listed or not all(type(each) is int and 0 < each <= LARGEST for each in listed):
            raise NotKnown(f"{name} is not a list of sizes")
        return listed

    def ratio(self, name: str, default: float) -> float:
        """A positive factor; NotKnown when it is none."""
        value = self.get(name)
        value = default if value is None else value
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= LARGEST_RATIO:
            raise NotKnown(f"{name} is not a factor")
        return float(value)

    def area(self, name: str, default: int) -> int:
        """Rows times columns of a pair."""
        pair = self.sequence(name)
        if not pair:
            return default
        if len(pair) != 2 or not all(type(each) is int and 0 < each <= LARGEST for each in pair):
            raise NotKnown(f"{name} is not a pair of sizes")
        return int(pair[0] * pair[1])

    def section(self, *names: str) -> Settings:
        """A nested object, empty where there is none; its class is its own model_type or the parent's part."""
        name = next((each for each in names if isinstance(self.raw.get(each), dict)), names[0])
        raw = self.raw.get(name)
        given: Mapping[str, Any] = raw if isinstance(raw, dict) else {}
        part = f"{self.kind}.{name}"
        told = given.get("model_type")
        told = told if isinstance(told, str) else ""
        return Settings(given, told if told in class_defaults() and part not in class_defaults() else part)

    def has(self, name: str) -> bool:
        """True when the nested object is there, in the file or by default."""
        given = self.raw.get(name, ...)
        return isinstance(given, dict) or (given is ... and f"{self.kind}.{name}" in class_defaults())

    @property
    def layers(self) -> int:
        """Number of layers of the language model, else the length of their list."""
        listed = self.raw.get("layers_block_type") or self.raw.get("hybrid_override_pattern")
        layers = self.size("layers", default=len(listed) if isinstance(listed, (list, str)) else None)
        if layers > MOST_LAYERS:
            raise NotKnown(f"{layers} layers is out of range")
        return layers

    @property
    def hidden(self) -> int:
        """Width of the residual stream."""
        return self.size("hidden")

    @property
    def heads(self) -> int:
        """Query heads."""
        return self.size("heads")

    @property
    def kv_heads(self) -> int:
        """Key and value heads, as many as query heads where nothing is said."""
        return self.size("kv_heads", default=self.heads)

    @property
    def head_dim(self) -> int:
        """Elements of a head, the hidden size divided among heads where nothing is said."""
        return self.size("head_dim", default=max(1, self.hidden // self.heads))

    @property
    def width(self) -> int:
        """Inner width of the dense feed-forward."""
        return self.size("width")

    @property
    def vocab(self) -> int:
        """Rows of the embedding."""
        return self.size("vocab")

    @property
    def tied(self) -> bool:
        """True when head and embedding are one tensor."""
        return self.flag("tie_word_embeddings", True)


@lru_cache(maxsize=1)
def class_defaults() -> dict[str, dict[str, Any]]:
    """Defaults of configuration classes by model_type; the version they were read from stands in the file."""
    text = (files("hfbench.estimate") / "defaults.toml").read_text("utf-8")
    read: dict[str, dict[str, Any]] = tomllib.loads(text)["defaults"]
    return read


def _spelled(names: tuple[str, ...]) -> list[str]:
    return [spelling for name in names for spelling in NAMES.get(name, (name,))]
