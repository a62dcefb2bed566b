"""Tensor names of Hugging Face checkpoints as their family has them, whatever a wrapper left around them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from hfbench.convert.families.table import Family
from hfbench.errors import HfbenchError
from hfbench.models.problem import counted, listed, quoted

WRAPPERS = {"_orig_mod.": "torch.compile", "module.": "DDP", "base_model.model.": "PEFT"}
"""What puts a prefix in front of every name."""

FINAL_NORMS = ("norm.weight", "final_layernorm.weight", "final_norm.weight", "ln_f.weight", "decoder.norm.weight")
"""Places at which the norm behind the last layer was seen, below the family's prefix or without it."""

ADAPTER = re.compile(
    r"\.(lora_[AB]|lora_embedding_[AB]|lora_magnitude_vector|ia3_l|modules_to_save)\b|\bprompt_encoder\."
)


@dataclass(frozen=True)
class SourceNames:
    """The name of every tensor in the checkpoint by the name its family has for it, and what was noticed."""

    actual: Mapping[str, str]
    notes: tuple[str, ...] = ()


def source_names(names: Iterable[str], family: Family) -> SourceNames:
    """Names without wrappers; HfbenchError for tensors of an adapter, and where two would have one name."""
    every = list(names)
    if adapters := [name for name in every if ADAPTER.search(name)]:
        told = f"{counted(len(adapters), 'tensor')} belong to an adapter: {listed(adapters, 1)}"
        raise HfbenchError(told, remedy="merge it into its model first, with merge_and_unload of peft")
    met: dict[str, int] = {}
    actual: dict[str, str] = {}
    for name in every:
        plain = _unwrapped(name, family, met)
        if plain in actual:
            told = f"{quoted(actual[plain])} and {quoted(name)} are both {quoted(plain)} without their prefixes"
            raise HfbenchError(told, remedy="remove one of them")
        actual[plain] = name
    notes = [
        f"the prefix {what} ({where}) is left out of {counted(count, 'name')}" for (what, where), count in _told(met)
    ]
    _add_base_prefix(actual, family, notes)
    _find_final_norm(actual, family, notes)
    return SourceNames(actual, tuple(notes))


def _unwrapped(name: str, family: Family, met: dict[str, int]) -> str:
    plain, changed = name, True
    while changed:
        changed = False
        for prefix in WRAPPERS:
            if plain.startswith(prefix):
                plain, changed = plain.removeprefix(prefix), True
                met[prefix] = met.get(prefix, 0) + 1
    if "._orig_mod." in plain:
        plain = plain.replace("._orig_mod.", ".")
        met["_orig_mod."] = met.get("_orig_mod.", 0) + 1
    doubled = 2 * family.prefix
    if plain.startswith(doubled):
        plain = plain.removeprefix(family.prefix)
        met[family.prefix] = met.get(family.prefix, 0) + 1
    return plain


def _told(met: Mapping[str, int]) -> Iterable[tuple[tuple[str, str], int]]:
    return (((prefix, WRAPPERS.get(prefix, "doubled")), count) for prefix, count in met.items())


def _add_base_prefix(actual: dict[str, str], family: Family, notes: list[str]) -> None:
    """A model saved without its head leaves out the prefix of every name."""
    if any(name.startswith(family.prefix) for name in actual):
        return
    expected = {source for row in family.rows for source in row.sources if source.startswith(family.prefix)}
    parts = {source.removeprefix(family.prefix).split(".")[0] for source in expected}
    bare = [name for name in actual if name.split(".")[0] in parts]
    for name in bare:
        actual[family.prefix + name] = actual.pop(name)
    if bare:
        notes.append(
            f"{counted(len(bare), 'name')} lack the prefix {family.prefix}: the model was saved without its head"
        )


def _find_final_norm(actual: dict[str, str], family: Family, notes: list[str]) -> None:
    wanted = next((row.sources[0] for row in family.rows if row.target == "decoder.final_layernorm.weight"), None)
    if wanted is None or wanted in actual:
        return
    places = [prefix + place for prefix in (family.prefix, "") for place in FINAL_NORMS]
    found = [name for name in places if name in actual]
    if len(found) == 1:
        actual[wanted] = actual.pop(found[0])
        notes.append(f"{found[0]} is taken as the final norm, {wanted}")
