"""What config.json says a model is: named facts, each of the type it must have or absent."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hfbench.models.context import TEXT_PARTS, context_keys, told_context
from hfbench.models.json_text import DEEPEST, Fault, JsonError, NoteKind, cut_depth, parse_small, read_object
from hfbench.models.problem import Problem, Severity, quoted

CONFIG = "config.json"
MISTRAL_CONFIG = "params.json"

# Names that families give one fact, the most common first.
LAYERS = ("num_hidden_layers", "n_layer", "num_layers", "n_layers", "decoder_layers")
HIDDEN = ("hidden_size", "n_embd", "d_model", "dim", "model_dim")
HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads", "decoder_attention_heads")
KV_HEADS = ("num_key_value_heads", "num_kv_heads", "n_kv_heads", "n_head_kv", "multi_query_group_num")
HEAD_DIM = ("head_dim", "attention_head_dim", "kv_channels")
VOCAB = ("vocab_size", "padded_vocab_size")
EXPERTS = ("num_local_experts", "n_routed_experts", "num_experts", "moe_num_experts")

_FAULT_CODES: dict[Fault, str] = {
    "bom": "config_bom",
    "encoding": "config_encoding",
    "syntax": "config_json",
    "empty": "config_json",
    "not_object": "config_not_object",
}
_NOTE_CODES: dict[NoteKind, str] = {"nan": "config_nan", "duplicate": "config_duplicate", "huge_number": "config_value"}


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """The facts of a configuration; None where it does not say. `raw` is the object as it stands in the file."""

    source: str | None
    raw: dict[str, Any]
    problems: tuple[Problem, ...]
    model_type: str | None = None
    architectures: tuple[str, ...] = ()
    layers: int | None = None
    hidden: int | None = None
    heads: int | None = None
    kv_heads: int | None = None
    head_dim: int | None = None
    vocab: int | None = None
    context: int | None = None
    """Tokens, as vLLM derives them; where it would guess, as the class of transformers tells them."""
    dtype: str | None = None
    tied: bool | None = None
    experts: int | None = None
    quantization: str | None = None
    """The method by name, when the configuration or hf_quant_config.json names one."""
    parts: tuple[str, ...] = field(default=())
    """Nested objects in which the facts were found."""


def read_config(folder: Path) -> ModelConfig:
    """The configuration of a folder. Never raises for what the files hold: faults are listed as problems."""
    name = CONFIG if _there(folder / CONFIG) or not _there(folder / MISTRAL_CONFIG) else MISTRAL_CONFIG
    if not _there(folder / name):
        missing = Problem(
            severity="error",
            where=CONFIG,
            found="missing",
            code="config_missing",
            remedy="fetch it from the model's page",
        )
        return ModelConfig(source=None, raw={}, problems=(missing,))
    try:
        read = read_object(folder / name, folder, parse=parse_small)
    except JsonError as error:
        code = "config_missing" if os.path.isdir(folder / name) else _FAULT_CODES.get(error.fault, error.code)
        return ModelConfig(source=name, raw={}, problems=(error.problem(where=name, code=code),))
    too_deep = cut_depth(read.value)
    facts = _Facts(name, read.value)
    if too_deep:
        facts.tell("error", f"nested too deeply; only {DEEPEST} levels are read", "config_depth")
    for note in read.notes:
        facts.tell("warning", note.found, _NOTE_CODES[note.kind])
    return facts.config(_side_quantization(folder, facts))


class _Facts:
    """Looks facts up under all their names and refuses values of a wrong type, once each."""

    def __init__(self, name: str, raw: dict[str, Any]) -> None:
        self.name, self.raw = name, raw
        self.problems: list[Problem] = []
        self.sections: list[tuple[str, Mapping[str, Any]]] = []
        self._collect(raw, "", depth=2)
        self.sections.append(("", raw))  # nested facts first: the root may speak of another tower

    def _collect(self, raw: Mapping[str, Any], prefix: str, depth: int) -> None:
        for part in TEXT_PARTS:
            nested = raw.get(part)
            if isinstance(nested, dict) and depth:
                self._collect(nested, f"{prefix}{part}.", depth - 1)
                self.sections.append((f"{prefix}{part}.", nested))

    def config(self, side_quantization: str | None) -> ModelConfig:
        heads, hidden = self.integer(HEADS), self.integer(HIDDEN)
        head_dim = self.integer(HEAD_DIM)
        latent = (
            self.find("kv_lora_rank") is not None
        )  # multi-head latent attention: heads do not split the hidden size
        if head_dim is None and heads and hidden and hidden % heads == 0 and not latent:
            head_dim = hidden // heads
        return ModelConfig(
            source=self.name,
            raw=self.raw,
            model_type=self.text(self.raw, "model_type"),
            architectures=self.architectures(),
            layers=self.integer(LAYERS),
            hidden=hidden,
            heads=heads,
            kv_heads=1 if self.multi_query() else self.integer(KV_HEADS) or heads,
            head_dim=head_dim,
            vocab=self.integer(VOCAB),
            context=self.context(),
            dtype=self.dtype(),
            tied=self.tied(),
            experts=self.integer(EXPERTS) or self._nested_experts(),
            quantization=self.quantization() or side_quantization,
            problems=tuple(self.problems),
            parts=tuple(prefix.rstrip(".") for prefix, _ in self.sections if prefix),
        )

    def find(self, name: str) -> Any:
        """The value of a name in the innermost part that has it, of whatever type."""
        return next((section[name] for _, section in self.sections if section.get(name) is not None), None)

    def multi_query(self) -> bool:
        """Falcon and GPT BigCode say so in a flag of its own."""
        return self.find("multi_query") is True and self.find("new_decoder_architecture") is not True

    def integer(self, names: Iterable[str]) -> int | None:
        for prefix, section in self.sections:
            for name in names:
                value = section.get(name)
                if value is None:
                    continue
                if type(value) is int and value >= 0:
                    return value
                if type(value) is int or value == float("inf"):
                    self.tell("error", f"{prefix}{name} is {value}, it cannot be negative or endless", "config_value")
                elif not (isinstance(value, list) and value and all(type(each) is int for each in value)):
                    self.tell("error", f"{prefix}{name} is {_shown(value)}, an integer is needed", "config_type")
                return None
        return None

    def context(self) -> int | None:
        """As everybody reads it; a value of a wrong type or sign is told, and no other key is asked instead."""
        before = len(self.problems)
        self.integer(context_keys())
        return told_context(self.raw) if len(self.problems) == before else None

    def text(self, section: Mapping[str, Any], name: str) -> str | None:
        value = section.get(name)
        if value is None or isinstance(value, str):
            return value
        self.tell("error", f"{name} is {_shown(value)}, a string is needed", "config_type")
        return None

    def architectures(self) -> tuple[str, ...]:
        value = self.raw.get("architectures")
        if value is None:
            return ()
        if isinstance(value, list) and all(isinstance(each, str) for each in value):
            return tuple(value)
        self.tell("error", f"architectures is {_shown(value)}, a list of class names is needed", "config_type")
        return (value,) if isinstance(value, str) else ()

    def dtype(self) -> str | None:
        for _, section in reversed(self.sections):
            for name in ("dtype", "torch_dtype"):
                if section.get(name) is not None:
                    value = self.text(section, name)
                    return value.removeprefix("torch.") if value else None
        return None

    def tied(self) -> bool | None:
        for prefix, section in reversed(self.sections):
            value = section.get("tie_word_embeddings")
            if isinstance(value, bool):
                return value
            if value is not None:
                found = f"{prefix}tie_word_embeddings is {_shown(value)}, true or false is needed"
                self.tell("error", found, "config_type")
        return None

    def quantization(self) -> str | None:
        for _, section in reversed(self.sections):
            for name in ("quantization_config", "compression_config", "quantization"):
                value = section.get(name)
                if isinstance(value, dict):
                    method = value.get("quant_method") or value.get("quant_algo")
                    if isinstance(method, str):
                        return method
                    bits = value.get("bits")
                    return f"{bits} bit" if type(bits) is int else "not named"
        return None

    def _nested_experts(self) -> int | None:
        moe = self.raw.get("moe")
        value = moe.get("num_experts") if isinstance(moe, dict) else None
        return value if type(value) is int and value >= 0 else None

    def tell(self, severity: Severity, found: str, code: str) -> None:
        self.problems.append(Problem(severity=severity, where=self.name, found=found, code=code))


def _side_quantization(folder: Path, facts: _Facts) -> str | None:
    """The method in hf_quant_config.json, which ModelOpt writes beside config.json."""
    path = folder / "hf_quant_config.json"
    if not _there(path):
        return None
    try:
        quantization = read_object(path, folder, parse=parse_small).value.get("quantization")
    except JsonError as error:
        facts.problems.append(error.problem(where=path.name))
        return None
    algorithm = quantization.get("quant_algo") if isinstance(quantization, dict) else None
    return algorithm if isinstance(algorithm, str) else None


def _there(path: Path) -> bool:
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True  # in a folder that may be listed and not entered: reading it says so
    return True


def _shown(value: object) -> str:
    kinds = {list: "a list", dict: "an object", bool: str(value).lower(), float: str(value)}
    return quoted(value) if isinstance(value, str) else kinds.get(type(value), "null")
