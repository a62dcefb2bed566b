"""What the Convert screen asks for, as a value: keys turn it into the next one, and an action gets it as its fields."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hfbench.convert.plan_table import Proposal
from hfbench.widgets.fit_lines import Knob

MEGATRON, HF, SAFETENSORS = "convert.megatron", "convert.hf", "convert.safetensors"
CONVERSIONS = (MEGATRON, HF, SAFETENSORS)

MEGATRON_FORMATS = ("torch", "torch_dist")
FORMATS = (*MEGATRON_FORMATS, "safetensors")
"""What a model of Hugging Face becomes; a Megatron checkpoint becomes a Hugging Face folder."""

DTYPES = ("keep", "bf16", "fp16", "fp32")
NAMES = ("te", "local")
SHARDS = ("5GB", "10GB", "2GB", "500MB")
HEADS = ("as stored", "tie", "untie")
"""What becomes of a head that repeats the embedding."""

DEGREES = ("tp", "pp", "ep")
MOST_DEGREE = 1024


@dataclass(frozen=True, kw_only=True)
class Source:
    """What is to be converted: what actions take for it, its name, and where a folder made of it goes by default."""

    reference: str
    name: str
    place: Path
    megatron: bool = False


@dataclass(frozen=True, kw_only=True)
class Wish:
    """A conversion as it is set up; `out` is empty where the folder's own name is to be used."""

    source: Source
    format: str = FORMATS[0]
    tp: int = 1
    pp: int = 1
    ep: int = 1
    stages: tuple[int | None, int | None] = (None, None)
    """Layers of an uneven first and last stage."""
    names: str = NAMES[0]
    dtype: str = DTYPES[0]
    shards: str = SHARDS[0]
    head: str = HEADS[0]
    allow: tuple[str, ...] = ()
    out: str = ""

    @property
    def action(self) -> str:
        """The action that converts so."""
        if self.source.megatron:
            return HF
        return MEGATRON if self.format in MEGATRON_FORMATS else SAFETENSORS

    @property
    def folder(self) -> str:
        """Where it goes: what was typed, else a new folder beside the source, named by what it holds."""
        return self.out or str(self.source.place / f"{self.source.name}-{self._suffix}")

    @property
    def _suffix(self) -> str:
        if self.action != MEGATRON:
            cast = "" if self.dtype == "keep" else f"-{self.dtype}"
            return ("hf" if self.source.megatron else "safetensors") + cast
        told = [f"{name}{getattr(self, name)}" for name in DEGREES if getattr(self, name) > 1] or ["tp1"]
        told += [
            word
            for word, default in ((self.format, "torch"), (self.names, "te"), (self.dtype, "keep"))
            if word != default
        ]
        return "-".join(["megatron", *told])

    def values(self, cache_dir: str = "") -> dict[str, object]:
        """The fields of the action, but for those at their defaults."""
        found: dict[str, object] = {"out": self.folder}
        if self.dtype != "keep":
            found["dtype"] = self.dtype
            if self.allow:
                found["allow"] = list(self.allow)
        if self.action == HF:
            found |= {"checkpoint": self.source.reference}
        elif self.action == SAFETENSORS:
            found |= {"source": self.source.reference}
        else:
            found |= {"model": self.source.reference}
            found |= {name: getattr(self, name) for name in DEGREES if getattr(self, name) > 1}
            found |= {name: each for name, each in zip(STAGE_FIELDS, self.stages, strict=True) if each}
            found |= {"format": self.format, "names": self.names}
        if self.action != MEGATRON and self.shards != SHARDS[0]:
            found["max_shard_size"] = self.shards
        if self.action == SAFETENSORS and self.head in HEADS[1:]:
            found[self.head] = True
        return found | ({"cache_dir": cache_dir} if cache_dir and self.action != HF else {})

    def proof(self, walls: Sequence[str], environment: str = "") -> dict[str, object]:
        """The fields of `verify` for the folder that was made; an environment's megatron-core is asked too."""
        model, converted = self.source.reference, self.folder
        if self.source.megatron:
            model, converted = converted, model
        found: dict[str, object] = {"model": model, "converted": converted, "walls": list(walls)}
        return found | ({"environment": environment} if environment else {})

    def turned(self, name: str, steps: int) -> Wish:
        """The next choice of a field, round and round; degrees count up and down from 1."""
        if name in DEGREES:
            degree = min(MOST_DEGREE, max(1, getattr(self, name) + steps))
            even = replace(self, stages=(None, None)) if name == "pp" else self
            return replace(even, **{name: degree})
        choices = {"format": FORMATS, "names": NAMES, "dtype": DTYPES, "shards": SHARDS, "head": HEADS}[name]
        place = choices.index(getattr(self, name)) if getattr(self, name) in choices else -1
        changed: dict[str, Any] = {name: choices[(place + steps) % len(choices)]}
        return replace(self, **changed)

    def proposed(self, proposals: Sequence[Proposal], steps: int) -> Wish:
        """The next layout of those proposed."""
        if not proposals:
            return self
        layouts = [(each.tp, each.pp, each.ep) for each in proposals]
        here = (self.tp, self.pp, self.ep)
        place = layouts.index(here) + steps if here in layouts else 0
        tp, pp, ep = layouts[place % len(layouts)]
        return replace(self, tp=tp, pp=pp, ep=ep, stages=(None, None))

    def knobs(self, proposals: Sequence[Proposal] = ()) -> list[Knob]:
        """The keys that turn it, with what they are set to."""
        if self.action != MEGATRON:
            knobs = [] if self.source.megatron else [Knob("f", "format", self.format)]
            knobs += [Knob("d", "dtype", self.dtype), Knob("m", "shards", f"up to {self.shards}")]
            knobs += [] if self.source.megatron else [Knob("k", "head", self.head)]
        else:
            knobs = [Knob("t", "TP", str(self.tp)), Knob("p", "PP", str(self.pp)), Knob("e", "EP", str(self.ep))]
            if self.pp > 1:
                knobs.append(Knob("s", "stages", stage_words(self.stages)))
            knobs += [Knob("f", "format", self.format), Knob("n", "names", self.names), Knob("d", "dtype", self.dtype)]
            if len(proposals) > 1:
                knobs.append(Knob("l", "layout", layout_words(self, proposals)))
        if self.dtype != "keep":
            knobs.append(Knob("a", "allow", ",".join(self.allow) or "nothing"))
        return knobs


STAGE_FIELDS = ("first_stage_layers", "last_stage_layers")

TURNED = {
    "t": "tp",
    "p": "pp",
    "e": "ep",
    "f": "format",
    "n": "names",
    "d": "dtype",
    "m": "shards",
    "k": "head",
}
"""Fields that a key turns, by the key; `s` and `a` ask, `l` walks through what is proposed."""


def stage_words(stages: tuple[int | None, int | None]) -> str:
    """`even`, or the layers of the first and of the last stage."""
    return "even" if stages == (None, None) else ",".join(str(each or "-") for each in stages)


def stages_of(text: str) -> tuple[int | None, int | None] | None:
    """What was typed for them: `7,8`, `7,-`, `-,8`, nothing for even ones; None when it is nothing of that."""
    if text.strip() in ("", "even"):
        return None, None
    first, _, last = text.replace(" ", "").partition(",")
    if any(each not in ("", "-") and not (each.isascii() and each.isdecimal() and int(each)) for each in (first, last)):
        return None
    return (int(first) if first not in ("", "-") else None, int(last) if last not in ("", "-") else None)


def layout_words(wish: Wish, proposals: Sequence[Proposal]) -> str:
    """`2 of 4 proposed`."""
    layouts = [(each.tp, each.pp, each.ep) for each in proposals]
    here = (wish.tp, wish.pp, wish.ep)
    return f"{layouts.index(here) + 1} of {len(layouts)}" if here in layouts else f"{len(layouts)} proposed"


def wish_of(source: Source, action: str, params: dict[str, Any]) -> Wish | None:
    """The wish that an earlier job was started by; None when it was about another source."""
    given = params.get({MEGATRON: "model", HF: "checkpoint", SAFETENSORS: "source"}[action])
    if given != source.reference or params.get("dry_run"):
        return None
    out = str(params.get("out") or "")
    known: dict[str, Any] = {name: params[name] for name in (*DEGREES, "format", "names", "dtype") if params.get(name)}
    if action == SAFETENSORS:
        known["format"] = FORMATS[-1]
        known["head"] = next((each for each in HEADS[1:] if params.get(each)), HEADS[0])
    if action != MEGATRON and params.get("max_shard_size"):
        known["shards"] = params["max_shard_size"]
    known["stages"] = tuple(params.get(name) for name in STAGE_FIELDS)
    known["allow"] = tuple(params.get("allow") or ())
    wish = Wish(source=source, **known)
    return wish if wish.folder == out else replace(wish, out=out)
