"""What the layers of a family hold and how large their tensors are, learnt from the classes of transformers.

tests/models/learn_layer_laws.py builds models without memory and writes the table.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

TABLE = Path(__file__).parent / "data" / "layer_laws.json"

ALIASES = {
    "H": "hidden_size",
    "A": "num_attention_heads",
    "K": "num_key_value_heads",
    "D": "head_dim",
    "I": "intermediate_size",
    "V": "vocab_size",
}
"""The letters of sizes in the table, and the keys that every class of configuration takes for them."""

TERMS = {
    "H": "H",
    "I": "I",
    "D": "D",
    "A*D": "AD",
    "K*D": "KD",
    "2*I": "I",
    "2*A*D": "AD",
    "A*D+2*K*D": "AKD",
    "3*H": "H",
    "4*H": "H",
}
"""The ways a dimension is made, and the sizes it is made of. Rows of the vocabulary are judged apart."""

TASK = re.compile(r"(For[A-Z]\w+|LMHeadModel|Model)\Z")
"""What follows the family in the name of a class."""

Law = tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes of one configuration by letter, and the key that each came from."""

    values: Mapping[str, int]
    keys: Mapping[str, str]

    def dimension(self, term: str | None) -> int | None:
        """The length that a term gives; None where the configuration does not say."""
        if term not in TERMS or not all(letter in self.values for letter in TERMS[term]):
            return None
        heads, pairs, width = (self.values.get(letter, 0) for letter in "AKD")
        if term in ("A*D", "2*A*D"):
            return heads * width * (2 if term[0] == "2" else 1)
        if term in ("K*D", "A*D+2*K*D"):
            return (pairs if term[0] == "K" else heads + 2 * pairs) * width
        return self.values[term[-1]] * (int(term[0]) if term[0].isdigit() else 1)

    def said_by(self, law: Law) -> str:
        """The keys that a law reads: `num_attention_heads, head_dim and hidden_size`."""
        letters = [letter for term in law for letter in TERMS.get(term or "", "")]
        *others, last = list(dict.fromkeys(self.keys[letter] for letter in letters))
        return f"{', '.join(others)} and {last}" if others else last


class Laws:
    """The laws of one model type."""

    def __init__(self, model_type: str, told: Mapping[str, Any]) -> None:
        self.model_type, self._told = model_type, told
        self.base: str = told["base"]
        self.renamed: bool = told["renamed"]
        """Whether transformers finds tensors under other names, too."""
        self.counted: bool = told["counted"]
        """Whether num_hidden_layers counts these layers."""

    @cached_property
    def layers(self) -> str:
        """The place of the layers in the model without its head: `layers.` or `encoder.layer.`."""
        return self._inner(self._told["path"]) + "."

    @cached_property
    def each(self) -> tuple[tuple[str, ...], ...]:
        """What every layer holds: a name below it, and other names of the same tensor."""
        return tuple(tuple(name.split("|")) for name in self._told["each"])

    @cached_property
    def shapes(self) -> dict[str, Law]:
        """The law of the shapes of tensors of a layer, by their name below it."""
        return {name: tuple(law) for name, law in self._told["shapes"].items()}

    @cached_property
    def outer(self) -> dict[str, Law | None]:
        """The tensors of the model without its head that belong to no layer, and their laws."""
        kept = {name: law for name, law in self._told["outer"].items() if self._of_base(name)}
        return {self._inner(name): tuple(law) if law else None for name, law in kept.items()}

    def builds(self, name: str) -> bool:
        """Whether a class is of the family: LlamaForSequenceClassification is of LlamaForCausalLM's."""
        return TASK.sub("", name) == TASK.sub("", self._told["class"])

    def named(self) -> str:
        """How a tensor of a layer is called: `model.layers.N.self_attn.q_proj.weight`."""
        return f"{self._told['path']}.N.{self.each[-1][0]}"

    def sizes(self, values: Mapping[str, Any]) -> Sizes:
        """The sizes of a configuration, or of the part of it that describes the language model."""
        found, keys = {}, {}
        for letter, alias in ALIASES.items():
            keys[letter] = alias
            if letter not in self._told["keys"]:
                continue  # a key that stands in the file and is not read
            key, default = self._told["keys"][letter]
            keys[letter] = alias if alias in values else key
            value = values.get(keys[letter], default)
            if type(value) is int and value > 0:
                found[letter] = value
            elif value is not None:
                found[letter] = -1
        heads, hidden = found.get("A", -1), found.get("H", -1)
        found.setdefault("K", heads)
        if heads > 0 and hidden % heads == 0:
            found.setdefault("D", hidden // heads)
        return Sizes({letter: value for letter, value in found.items() if value > 0}, keys)

    def _of_base(self, name: str) -> bool:
        """False for parts of the head; a table of a class without a head names everything."""
        return not self._based or name.startswith(f"{self.base}.")

    @property
    def _based(self) -> bool:
        return bool(self.base) and self._told["path"].startswith(f"{self.base}.")

    def _inner(self, name: str) -> str:
        return name.removeprefix(f"{self.base}.") if self._based else name


@lru_cache(maxsize=64)
def laws_of(model_type: str | None) -> Laws | None:
    """The laws of a model type; None where they are not known."""
    told = _table().get(model_type or "")
    return Laws(model_type or "", told) if told else None


@lru_cache(maxsize=1)
def _table() -> dict[str, Any]:
    table: dict[str, Any] = json.loads(TABLE.read_text("utf-8"))
    return table
