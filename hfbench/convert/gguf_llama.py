"""The llama family of GGUF: its configuration and tensor names in Hugging Face terms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hfbench.convert.gguf_file import GgufFile, GgufTensor
from hfbench.errors import HfbenchError, UsageError

ARCHITECTURE = "llama"


@dataclass(frozen=True)
class Row:
    """One tensor of both layouts. `shape` names sizes of `Sizes`; `heads` names how many heads its rows hold
    when llama.cpp interleaved them for its rotary embedding."""

    source: str
    target: str
    shape: tuple[str, ...]
    heads: str = ""
    optional: bool = False


MODEL_ROWS = (
    Row("token_embd.weight", "model.embed_tokens.weight", ("vocab", "hidden")),
    Row("output_norm.weight", "model.norm.weight", ("hidden",)),
    Row("output.weight", "lm_head.weight", ("vocab", "hidden"), optional=True),
)
LAYER_ROWS = (
    Row("blk.{n}.attn_norm.weight", "model.layers.{n}.input_layernorm.weight", ("hidden",)),
    Row("blk.{n}.attn_q.weight", "model.layers.{n}.self_attn.q_proj.weight", ("q_rows", "hidden"), heads="heads"),
    Row("blk.{n}.attn_k.weight", "model.layers.{n}.self_attn.k_proj.weight", ("kv_rows", "hidden"), heads="kv_heads"),
    Row("blk.{n}.attn_v.weight", "model.layers.{n}.self_attn.v_proj.weight", ("kv_rows", "hidden")),
    Row("blk.{n}.attn_output.weight", "model.layers.{n}.self_attn.o_proj.weight", ("hidden", "q_rows")),
    Row("blk.{n}.ffn_norm.weight", "model.layers.{n}.post_attention_layernorm.weight", ("hidden",)),
    Row("blk.{n}.ffn_gate.weight", "model.layers.{n}.mlp.gate_proj.weight", ("inner", "hidden")),
    Row("blk.{n}.ffn_up.weight", "model.layers.{n}.mlp.up_proj.weight", ("inner", "hidden")),
    Row("blk.{n}.ffn_down.weight", "model.layers.{n}.mlp.down_proj.weight", ("hidden", "inner")),
)


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """The numbers that decide every shape of a model of this family."""

    layers: int
    hidden: int
    inner: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int

    @property
    def q_rows(self) -> int:
        """Rows of the query projection."""
        return self.heads * self.head_dim

    @property
    def kv_rows(self) -> int:
        """Rows of the key and of the value projection."""
        return self.kv_heads * self.head_dim


@dataclass(frozen=True)
class Placement:
    """Where one tensor goes. `heads` is 0 unless the order of its rows must be undone."""

    source: GgufTensor
    target: str
    heads: int


def sizes_of(file: GgufFile) -> Sizes:
    """The sizes in the metadata; UsageError for another family, HfbenchError for what this family cannot express."""
    family = file.metadata.get("general.architecture")
    if family != ARCHITECTURE:
        raise UsageError(
            f"the architecture is {family!r}, only {ARCHITECTURE} can be converted so far", where=file.path
        )
    _refuse_variants(file)
    heads, hidden = _integer(file, "attention.head_count"), _integer(file, "embedding_length")
    head_dim = _integer(file, "attention.key_length", default=hidden // heads)
    sizes = Sizes(
        layers=_integer(file, "block_count"),
        hidden=hidden,
        inner=_integer(file, "feed_forward_length"),
        heads=heads,
        kv_heads=_integer(file, "attention.head_count_kv", default=heads),
        head_dim=head_dim,
        vocab=_integer(file, "vocab_size", default=len(file.metadata.get("tokenizer.ggml.tokens", ()))),
    )
    if _integer(file, "rope.dimension_count", default=head_dim) != head_dim or head_dim % 2:
        raise HfbenchError("rotary embedding over a part of each head is not supported", where=file.path)
    if heads % sizes.kv_heads:
        raise HfbenchError(f"{heads} heads do not divide into {sizes.kv_heads} key-value heads", where=file.path)
    return sizes


def config_of(file: GgufFile, sizes: Sizes) -> dict[str, Any]:
    """config.json of the model, weights in bf16."""
    token = "tokenizer.ggml.{}_token_id".format
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": sizes.vocab,
        "hidden_size": sizes.hidden,
        "intermediate_size": sizes.inner,
        "num_hidden_layers": sizes.layers,
        "num_attention_heads": sizes.heads,
        "num_key_value_heads": sizes.kv_heads,
        "head_dim": sizes.head_dim,
        "max_position_embeddings": _integer(file, "context_length"),
        "rope_theta": _number(file, "rope.freq_base", default=10000.0),
        "rms_norm_eps": _number(file, "attention.layer_norm_rms_epsilon"),
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": "output.weight" not in file.tensors,
        "bos_token_id": file.metadata.get(token("bos")),
        "eos_token_id": file.metadata.get(token("eos")),
        "pad_token_id": file.metadata.get(token("padding")),
        "dtype": "bfloat16",
    }
    return {key: value for key, value in config.items() if value is not None}


def placements(file: GgufFile, sizes: Sizes) -> list[Placement]:
    """Where every tensor goes; HfbenchError lists what is missing, left over, or of another shape."""
    rows = [*MODEL_ROWS, *(_for_layer(row, number) for number in range(sizes.layers) for row in LAYER_ROWS)]
    missing = [row.source for row in rows if row.source not in file.tensors and not row.optional]
    left = sorted(file.tensors.keys() - {row.source for row in rows})
    for names, what in ((missing, "are missing"), (left, "have no place in a llama model")):
        if names:
            shown = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
            raise HfbenchError(f"{len(names)} tensors {what}: {shown}", where=file.path)
    return [_placement(file, sizes, row) for row in rows if row.source in file.tensors]


def _placement(file: GgufFile, sizes: Sizes, row: Row) -> Placement:
    tensor = file.tensors[row.source]
    expected = tuple(int(getattr(sizes, name)) for name in row.shape)
    if tensor.shape != expected:
        told = f"{row.source} has shape {list(tensor.shape)}, the metadata asks for {list(expected)}"
        raise HfbenchError(told, where=file.path)
    return Placement(tensor, row.target, int(getattr(sizes, row.heads)) if row.heads else 0)


def _for_layer(row: Row, number: int) -> Row:
    return Row(row.source.format(n=number), row.target.format(n=number), row.shape, row.heads, row.optional)


def _refuse_variants(file: GgufFile) -> None:
    scaling = file.metadata.get(f"{ARCHITECTURE}.rope.scaling.type", "none")
    if scaling != "none" or "rope_freqs.weight" in file.tensors:
        raise HfbenchError("a scaled rotary embedding cannot be converted so far", where=file.path)
    if file.metadata.get(f"{ARCHITECTURE}.expert_count"):
        raise HfbenchError("a mixture of experts cannot be converted so far", where=file.path)


def _integer(file: GgufFile, key: str, default: int | None = None) -> int:
    value = _field(file.metadata, key, default)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value < 2**31:
        raise HfbenchError(f"{ARCHITECTURE}.{key} is {value!r}, not a size", where=file.path)
    return value


def _number(file: GgufFile, key: str, default: float | None = None) -> float:
    """A float32 of the metadata as the shortest decimal that rounds to it, so that 1e-05 stays 1e-05."""
    value = _field(file.metadata, key, default)
    if not isinstance(value, float) or not 0 < value < float("inf"):
        raise HfbenchError(f"{ARCHITECTURE}.{key} is {value!r}, not a positive number", where=file.path)
    return float(f"{value:.7g}")


def _field(metadata: Mapping[str, Any], key: str, default: float | int | None) -> Any:
    return metadata.get(f"{ARCHITECTURE}.{key}", default)
