"""A model written again as safetensors: from .bin or .pt, in shards of another size, cast, tied or untied."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from hfbench.convert.beside import all_but_weights
from hfbench.convert.boxes import Box, Copy, TensorSpec
from hfbench.convert.formats.inert import TORCH_DTYPES
from hfbench.convert.formats.layout import bytes_by_file
from hfbench.convert.formats.megatron_folder import find_megatron
from hfbench.convert.formats.open import is_hugging_face, open_tensors
from hfbench.convert.formats.safetensors_layout import lay_out_safetensors
from hfbench.convert.megatron.converting import Conversion
from hfbench.convert.megatron.quantized import PACKED
from hfbench.convert.plan import Dropped, Plan, Target
from hfbench.convert.stored import TensorSet
from hfbench.convert.stream.cast import FLOATS
from hfbench.convert.stream.same import same_bits, same_place
from hfbench.errors import HfbenchError, UsageError
from hfbench.estimate.settings import Settings
from hfbench.jobs.run import Run
from hfbench.models.json_text import read_object
from hfbench.models.problem import listed, quoted

FLOAT32_KEPT = ("e_score_correction_bias", "router.expert_bias")
"""Ends of names of what stays float32: it decides between experts whose scores are close."""

HEADS = ("lm_head.weight", "embed_out.weight")
EMBEDDINGS = ("embed_tokens.weight", "wte.weight", "word_embeddings.weight", "embed_in.weight")


def plan_repacked(
    source: Path,
    run: Run,
    *,
    dtype: str | None = None,
    most_bytes: int,
    tie: bool = False,
    untie: bool = False,
    fix_index: bool = False,
) -> Conversion:
    """The plan of a model folder or of one file of weights. UsageError and HfbenchError say what cannot be done."""
    if tie and untie:
        raise UsageError("--tie and --untie contradict each other", remedy="give one of them")
    if source.is_dir() and not is_hugging_face(source) and find_megatron(source):
        remedy = "hfbench convert hf turns it into a Hugging Face folder"
        raise UsageError("is a Megatron checkpoint", where=source, remedy=remedy)
    sources = open_tensors(source, trust_index=not fix_index)
    config = _config(source) if source.is_dir() else {}
    planning = _Planning(sources, config, dtype or "")
    planning.drop_aliases()
    if tie:
        planning.tie(run)
    if untie:
        planning.untie()
    targets = planning.targets()
    try:
        layouts = lay_out_safetensors([target.spec for target in targets], most_bytes=most_bytes)
    except ValueError as error:
        raise HfbenchError(str(error), where=source) from None
    extra, notes = all_but_weights(source) if source.is_dir() else ({}, [])
    if config and planning.config != config:
        extra["config.json"] = json.dumps(planning.config, indent=2, ensure_ascii=False).encode() + b"\n"
    plan = Plan(
        family=str(config.get("model_type") or "tensors"),
        targets=tuple(targets),
        dropped=tuple(planning.dropped),
        notes=(*planning.notes, *notes),
        args=planning.config,
    )
    ranks = bytes_by_file(layouts, [target.spec for target in targets])
    folder = source if source.is_dir() else source.parent
    return Conversion(folder=folder, plan=plan, sources=sources, layouts=tuple(layouts), extra=extra, ranks=ranks)


class _Planning:
    """Which tensor becomes which: most stay what they are."""

    def __init__(self, sources: TensorSet, config: Mapping[str, object], dtype: str) -> None:
        self.sources, self.dtype = sources, dtype
        self.config = dict(config)
        self.places = {name: name for name in sources.tensors}
        """The source of each target."""
        self.dropped: list[Dropped] = []
        self.notes: list[str] = []
        if dtype:
            self.refuse_quantized()

    def refuse_quantized(self) -> None:
        """A cast would take quantized weights for numbers: their scales lie in other tensors."""
        packed = [
            name
            for name, source in self.sources.tensors.items()
            if PACKED.search(name)
            or (source.spec.dtype.startswith(("F8", "F4", "F6")) and source.spec.dtype not in FLOATS)
        ]
        if packed or "quantization_config" in self.config:
            what = f" ({listed(packed)})" if packed else ""
            found = f"the weights are quantized{what}: a cast would leave out their scales"
            raise UsageError(found, where=self.sources.folder, remedy="keep the dtype, or dequantize the model first")

    def drop_aliases(self) -> None:
        """Leave out a head that is tied and shares its embedding's bytes, as .bin files have it."""
        if not self.config or not Settings(self.config).tied:
            return
        head, embedding = self.head(), self.embedding()
        if head and embedding and same_place(self.sources, head, embedding):
            self.drop(head, f"shares the bytes of {embedding}, to which the configuration ties it")

    def tie(self, run: Run) -> None:
        """Leave out a head that repeats the embedding bit by bit. UsageError when it does not."""
        head, embedding = self.head(), self.embedding()
        if not embedding:
            raise UsageError("there is no embedding to tie a head to", where=self.sources.folder)
        if head and head in self.places:
            if not same_bits(self.sources, head, embedding, run):
                found = f"{quoted(head)} does not repeat {quoted(embedding)}: tying them would change the model"
                raise UsageError(found, where=self.sources.folder, remedy="leave --tie out")
            self.drop(head, f"repeats {embedding} bit by bit")
        self.config["tie_word_embeddings"] = True

    def untie(self) -> None:
        """Give the head a tensor of its own, a copy of the embedding."""
        head, embedding = self.head(), self.embedding()
        if not embedding:
            raise UsageError("there is no embedding to copy", where=self.sources.folder)
        name = head or HEADS[0]
        if name not in self.places:
            self.places[name] = embedding
            self.dropped = [each for each in self.dropped if each.source != name]
            self.notes.append(f"{name} is a copy of {embedding}")
        self.config["tie_word_embeddings"] = False

    def targets(self) -> list[Target]:
        """A target for each tensor that stays, in the order of the source."""
        found = []
        for name, origin in self.places.items():
            spec = self.sources.tensors[origin].spec
            box = Box(0, spec.rows, 0, spec.columns)
            kept = TensorSpec(name, self.dtype_of(name, spec.dtype), spec.shape)
            transform = "copy" if kept.dtype == spec.dtype else f"cast from {spec.dtype}"
            found.append(Target(kept, "", (Copy(origin, box, name, box),), transform))
        if self.dtype and self.config:
            key = "dtype" if "dtype" in self.config else "torch_dtype"
            self.config[key] = TORCH_DTYPES[self.dtype]
        return found

    def dtype_of(self, name: str, dtype: str) -> str:
        if not self.dtype or dtype not in FLOATS or (dtype == "F32" and name.endswith(FLOAT32_KEPT)):
            return dtype
        return self.dtype

    def drop(self, name: str, why: str) -> None:
        del self.places[name]
        self.dropped.append(Dropped(name, why))

    def head(self) -> str:
        return next((name for name in self.sources.tensors if name.endswith(HEADS)), "")

    def embedding(self) -> str:
        found = [name for name in self.sources.tensors if name.endswith(EMBEDDINGS)]
        return found[0] if len(found) == 1 else ""


def _config(folder: Path) -> dict[str, object]:
    if not (folder / "config.json").exists():
        return {}
    return dict(read_object(folder / "config.json", folder).value)
