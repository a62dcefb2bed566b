"""Models that see with the towers of Qwen-VL and GLM-V: patches of several frames, merged before the language model."""

from __future__ import annotations

from hfbench.estimate.blocks.encoder_layer import EncoderLayer
from hfbench.estimate.families.joined import Joined
from hfbench.estimate.family import Family
from hfbench.estimate.parts import Parts, conv, linear, norm, on_layers, table, times, under
from hfbench.estimate.settings import Settings


def qwen_blocks(v: Settings, layer: EncoderLayer, *, patch_bias: bool) -> Parts:
    """The convolution over patches of several frames, and the layers."""
    patch = v.size("patch_size")
    frames, channels = v.size("temporal_patch_size", default=2), v.size("in_channels", "in_chans", default=3)
    yield from conv("patch_embed.proj", layer.hidden, channels, frames, patch, patch, bias=patch_bias)
    yield from on_layers("blocks", range(v.size("depth")), layer.parts())


def qwen2_vl_tower(c: Settings) -> Parts:
    """Qwen2-VL: LayerNorms, plain feed-forward, and a merger of 2 x 2 patches."""
    v = c.section("vision_config")
    hidden, out = v.size("embed_dim"), v.size("hidden_size")
    width = int(hidden * v.ratio("mlp_ratio", 4))
    layer = EncoderLayer(
        hidden=hidden, width=width, attention="attn", joined="qkv", out="proj", norms=("norm1", "norm2")
    )
    merged = hidden * v.size("spatial_merge_size") ** 2
    inside = (
        *qwen_blocks(v, layer, patch_bias=False),
        *norm("merger.ln_q", hidden, True),
        *linear("merger.mlp.0", merged, merged, True),
        *linear("merger.mlp.2", out, merged, True),
    )
    return under("model.visual", inside)


def qwen2_5_vl_vision(v: Settings, *, joined: bool = True) -> Parts:
    """Qwen2.5-VL: RMS norms, gated feed-forward, a merger."""
    hidden = v.size("hidden_size")
    layer = EncoderLayer(
        hidden=hidden,
        width=v.size("intermediate_size"),
        attention="attn",
        joined="qkv" if joined else "",
        names=("q", "k", "v"),
        out="proj",
        shape="gated",
        up="up_proj",
        down="down_proj",
        norms=("norm1", "norm2"),
        norm_bias=False,
    )
    merged = hidden * v.size("spatial_merge_size") ** 2
    yield from qwen_blocks(v, layer, patch_bias=False)
    yield from norm("merger.ln_q", hidden)
    yield from linear("merger.mlp.0", merged, merged, True)
    yield from linear("merger.mlp.2", v.size("out_hidden_size"), merged, True)


def qwen3_vl_vision(v: Settings) -> Parts:
    """Qwen3-VL and Qwen3.5: learned positions, a merger, and mergers of deeper layers."""
    hidden = v.size("hidden_size")
    layer = EncoderLayer(
        hidden=hidden,
        width=v.size("intermediate_size"),
        attention="attn",
        joined="qkv",
        out="proj",
        up="linear_fc1",
        down="linear_fc2",
        norms=("norm1", "norm2"),
    )
    yield from qwen_blocks(v, layer, patch_bias=True)
    yield from table("pos_embed", v.size("num_position_embeddings"), hidden)
    merged, out = hidden * v.size("spatial_merge_size") ** 2, v.size("out_hidden_size")

    def merger(name: str, normed: int) -> Parts:
        yield from norm(f"{name}.norm", normed, True)
        yield from linear(f"{name}.linear_fc1", merged, merged, True)
        yield from linear(f"{name}.linear_fc2", out, merged, True)

    yield from merger("merger", hidden)
    deep = v.get("deepstack_visual_indexes")
    yield from times(len(deep) if isinstance(deep, list) else 0, merger("deepstack_merger_list", merged))


def glm4v_vision(v: Settings) -> Parts:
    """GLM-4V: gated layers, a convolution that joins patches, and a gated merger."""
    hidden, out, width = v.size("hidden_size"), v.size("out_hidden_size"), v.size("intermediate_size")
    layer = EncoderLayer(
        hidden=hidden,
        width=out,
        attention="attn",
        joined="qkv",
        out="proj",
        bias=v.flag("attention_bias"),
        out_bias=False,
        shape="gated",
        up="up_proj",
        down="down_proj",
        mlp_bias=False,
        norms=("norm1", "norm2"),
        norm_bias=False,
    )
    step = v.size("spatial_merge_size")
    yield from table("embeddings.position_embedding", (v.size("image_size") // v.size("patch_size")) ** 2, hidden)
    yield from qwen_blocks(v, layer, patch_bias=True)
    yield from linear("merger.proj", out, out)
    yield from norm("merger.post_projection_norm", out, True)
    yield from linear("merger.gate_proj", width, out)
    yield from linear("merger.up_proj", width, out)
    yield from linear("merger.down_proj", out, width)
    yield from norm("post_conv_layernorm", hidden)
    yield from conv("downsample", out, hidden, step, step, bias=True)
    yield from norm("post_layernorm", hidden)


def visual(tower: object) -> object:
    """A tower under `model.visual` that needs nothing but its own settings."""
    return lambda c: under("model.visual", tower(c.section("vision_config")))  # type: ignore[operator]


QWEN3_VISION = visual(qwen3_vl_vision)

FAMILIES: dict[str, Family] = {
    "qwen2_vl": Joined(towers=qwen2_vl_tower, language="qwen2", tied_by="either", flat=True),
    "qwen2_5_vl": Joined(towers=visual(qwen2_5_vl_vision), language="qwen2", tied_by="either", flat=True),  # type: ignore[arg-type]
    "qwen3_vl": Joined(towers=QWEN3_VISION, language="qwen3"),  # type: ignore[arg-type]
    "qwen3_vl_moe": Joined(towers=QWEN3_VISION, language="qwen3_moe"),  # type: ignore[arg-type]
    "qwen3_5": Joined(towers=QWEN3_VISION, language="qwen3_5_text"),  # type: ignore[arg-type]
    "qwen3_5_moe": Joined(towers=QWEN3_VISION, language="qwen3_5_moe_text"),  # type: ignore[arg-type]
    "glm4v": Joined(towers=visual(glm4v_vision), language="glm4v_text", tied_by="either"),  # type: ignore[arg-type]
    "glm4v_moe": Joined(towers=visual(glm4v_vision), language="glm4_moe", tied_by="either"),  # type: ignore[arg-type]
}
