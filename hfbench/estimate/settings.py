"""Values of a configuration as arithmetic needs them: given, else the default of the model's class, else unknown."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from hfbench.estimate.absent import ABSENT
from hfbench.models.explain.classes import ClassTable, ConfigClass, shipped_table
from hfbench.models.explain.scan import AUTO_PREFIX
from hfbench.models.problem import quoted

LARGEST = 2**40
"""No size of a real model comes near; beyond it a configuration is damaged or hostile."""
MOST_LAYERS = 2048
"""Ten times what the deepest models have."""
LARGEST_RATIO = 1000

HEAD_DIM_BESIDE = frozenset(
    {"apertus", "cohere", "cohere2", "exaone4", "glm4_moe", "glm4_moe_lite", "glm4v_moe_text", "granite", "granitemoe",
     "granitemoeshared", "jamba", "lfm2", "olmo", "olmo2", "olmo3", "olmoe", "phi", "phimoe", "qwen2", "qwen2_moe",
     "qwen3_moe", "smollm3", "starcoder2"}
)  # fmt: skip
"""Classes that do not declare `head_dim` and whose layers look for it all the same; other classes pass it over."""

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
    """One object of a configuration, read as its class in transformers reads it.

    `kind` is the model_type. Where its class is known, only the names that the class reads count, and what is left
    out has the value the class declares; where it is not, every spelling of a fact counts.
    """

    def __init__(self, raw: Mapping[str, Any], kind: str | None = None, cls: ConfigClass | None = None) -> None:
        told = raw.get("model_type")
        self.raw = raw
        self.kind = kind or (told if isinstance(told, str) else "")
        self.cls = cls or class_table().of_type(self.kind)
        self._given = _by_field(raw, self.cls) if self.cls else raw

    def get(self, *names: str) -> Any:
        """The value under the first of the names that the class has, given or declared; None when there is none.

        A null that is written down is no value, and keeps what is declared away.
        """
        spelled = _spelled(names)
        for name in spelled if self.cls else ():
            assert self.cls
            field = self.cls.names.get(name, name)
            if field in self.cls.fields:
                return self._given.get(field) if field in self._given else self.cls.fields[field]
        return next((self.raw[name] for name in spelled if self.raw.get(name) is not None), None)

    def declares(self, name: str) -> bool:
        """True when the class has a field of this name, or the class is not known and the file gives it."""
        return self.cls.names.get(name, name) in self.cls.fields if self.cls else name in self.raw

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
        """A nested object, with what its class declares where there is none."""
        name = next((each for each in names if isinstance(self.raw.get(each), dict)), names[0])
        raw = self.raw.get(name)
        return self.part(name, raw if isinstance(raw, dict) else ABSENT.get((self.kind, name), {}))

    def part(self, name: str, raw: Mapping[str, Any]) -> Settings:
        """An object read as the class of the nested one: the class around it may leave its kind to its model_type."""
        kind = raw.get("model_type")
        kind = kind if isinstance(kind, str) else ""
        told = self.cls.parts.get(name) if self.cls else None
        if told is None:
            return Settings(raw, kind)
        if told.startswith(AUTO_PREFIX):
            kind = kind or told.removeprefix(AUTO_PREFIX)
            return Settings(raw, kind, class_table().of_type(kind))
        return Settings(raw, type_of(told), class_table().find(told))

    def assumed(self, *names: str) -> tuple[str, ...]:
        """Those of the names that the file leaves to its class."""
        cls = self.cls
        fields = [next((each for each in _spelled((name,)) if cls and each in cls.fields), "") for name in names]
        return tuple(
            each for each in fields if cls and each and each not in self._given and cls.fields[each] is not None
        )

    @property
    def layers(self) -> int:
        """Number of layers of the language model, else the length of their list."""
        listed = self.raw.get("layers_block_type") or self.raw.get("hybrid_override_pattern")
        declared = any(map(self.declares, NAMES["layers"]))
        layers = len(listed) if isinstance(listed, (list, str)) and not declared else self.size("layers")
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
        told = self.cls is None or any(map(self.declares, NAMES["kv_heads"]))
        return self.size("kv_heads", default=self.heads) if told else self.heads

    @property
    def head_dim(self) -> int:
        """Elements of a head, the hidden size divided among heads where nothing is said."""
        told = self.cls is None or self.declares("head_dim") or self.kind in HEAD_DIM_BESIDE
        if told and self.get("head_dim") is not None:
            return self.size("head_dim")
        return max(1, self.hidden // self.heads)

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
        """True when head and embedding are one tensor: by the class, or unless denied where it is not known."""
        return self.flag("tie_word_embeddings", self.cls is None)


def class_table() -> ClassTable:
    """The configuration classes of the transformers that hfbench was made with, whatever is installed beside it."""
    return shipped_table()


@lru_cache(maxsize=256)
def type_of(name: str) -> str:
    """The model_type of a configuration class, empty where it has none."""
    return next((kind for kind, each in class_table().names.config_classes.items() if each == name), "")


def _by_field(raw: Mapping[str, Any], cls: ConfigClass) -> Mapping[str, Any]:
    """The values of a file by the fields they set; of two names for one field the other name wins, as in the class."""
    given = {name: value for name, value in raw.items() if name not in cls.names}
    return given | {cls.names[name]: value for name, value in raw.items() if name in cls.names}


def _spelled(names: tuple[str, ...]) -> list[str]:
    return [spelling for name in names for spelling in NAMES.get(name, (name,))]
