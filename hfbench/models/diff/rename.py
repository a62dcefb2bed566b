"""Tensor names that differ only by what wrappers and base classes put around them."""

from __future__ import annotations

from collections.abc import Iterable

from hfbench.models.diff.facts import Rename

PREFIXES = ("module.", "base_model.model.", "base_model.", "model.", "language_model.", "transformer.")
"""What data parallelism, PEFT and the base classes of transformers put before a name, in any order."""

WRAPPERS = frozenset({"_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module", "base_layer"})
"""What torch.compile, FSDP, checkpointing and PEFT put between the parts of a name."""


def bare_name(name: str) -> str:
    """The name without wrappers and prefixes: `module._orig_mod.model.norm.weight` -> `norm.weight`."""
    bare = ".".join(part for part in name.split(".") if part not in WRAPPERS) or name
    while prefix := next((each for each in PREFIXES if bare.startswith(each) and bare != each), ""):
        bare = bare.removeprefix(prefix)
    return bare


def find_renames(only_a: Iterable[str], only_b: Iterable[str]) -> list[Rename]:
    """Pairs of names with one bare name, in the order of A; a bare name that one side has twice makes no pair."""
    bare_a, bare_b = _by_bare_name(only_a), _by_bare_name(only_b)
    return [_rename(a, b) for bare, a in bare_a.items() if a is not None and (b := bare_b.get(bare)) is not None]


def _by_bare_name(names: Iterable[str]) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for name in names:
        bare = bare_name(name)
        found[bare] = None if bare in found else name
    return found


def _rename(a: str, b: str) -> Rename:
    """The pair, with the parts that the two names do not share."""
    left, right = a.split("."), b.split(".")
    while left and right and left[-1] == right[-1]:
        del left[-1], right[-1]
    while left and right and left[0] == right[0]:
        del left[0], right[0]
    return Rename(a=a, b=b, dropped="".join(f"{part}." for part in left), gained="".join(f"{part}." for part in right))
