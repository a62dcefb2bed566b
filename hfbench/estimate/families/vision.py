"""Models that see with the towers of SigLIP, CLIP, Pixtral, Llama 4 and MiniMax, and their projectors."""

from __future__ import annotations

from dataclasses import dataclass

from hfbench.estimate.blocks.encoder_layer import EncoderLayer
from hfbench.estimate.families.joined import Joined
from hfbench.estimate.family import Family
from hfbench.estimate.parts import Part, Parts, conv, linear, norm, on_layers, table, under
from hfbench.estimate.settings import Settings


@dataclass(frozen=True, kw_only=True)
class PatchTower:
    """SigLIP and CLIP: patches, positions, layers."""

    class_token: bool = False
    patch_bias: bool = True
    pre_norm: str = ""
    joined: str = ""

    def parts(self, v: Settings) -> Parts:
        """All tensors of the tower."""
        hidden, patch = v.size("hidden_size"), v.size("patch_size")
        patches = (v.size("image_size") // patch) ** 2 + self.class_token
        if self.class_token:
            yield Part("embeddings.class_embedding", (hidden,))
        yield from conv(
            "embeddings.patch_embedding", hidden, v.size("num_channels", default=3), patch, patch, bias=self.patch_bias
        )
        yield from table("embeddings.position_embedding", patches, hidden)
        if self.pre_norm:
            yield from norm(self.pre_norm, hidden, True)
        layer = EncoderLayer(hidden=hidden, width=v.size("intermediate_size"))
        yield from on_layers("encoder.layers", range(v.size("num_hidden_layers")), layer.parts())
        yield from norm("post_layernorm", hidden, True)


SIGLIP = PatchTower()
CLIP = PatchTower(class_token=True, patch_bias=False, pre_norm="pre_layrnorm")


def siglip_head(v: Settings) -> Parts:
    """The pooling head that SigLIP carries when nothing turns it off."""
    hidden = v.size("hidden_size")
    yield Part("head.probe", (1, 1, hidden))
    yield Part("head.attention.in_proj_weight", (3 * hidden, hidden))
    yield Part("head.attention.in_proj_bias", (3 * hidden,))
    yield from linear("head.attention.out_proj", hidden, hidden, True)
    yield from norm("head.layernorm", hidden, True)
    yield from linear("head.mlp.fc1", v.size("intermediate_size"), hidden, True)
    yield from linear("head.mlp.fc2", hidden, v.size("intermediate_size"), True)


def gemma3_towers(c: Settings) -> Parts:
    """SigLIP, a norm and one projection."""
    v, text = c.section("vision_config"), c.section("text_config")
    yield from under("model.vision_tower", vision_tower(v))
    yield Part("model.multi_modal_projector.mm_input_projection_weight", (v.size("hidden_size"), text.hidden))
    yield from norm("model.multi_modal_projector.mm_soft_emb_norm", v.size("hidden_size"))


def idefics3_towers(c: Settings) -> Parts:
    """A SigLIP tower and one projection of patches shuffled together."""
    v, text = c.section("vision_config"), c.section("text_config")
    yield from under("model.vision_model", SIGLIP.parts(v))
    joined = v.size("hidden_size") * c.size("scale_factor") ** 2
    yield from linear("model.connector.modality_projection.proj", text.hidden, joined)


def llava_towers(c: Settings) -> Parts:
    """A tower named by its own model_type and two projections."""
    v, text = c.section("vision_config"), c.section("text_config")
    yield from under("model.vision_tower", vision_tower(v))
    features = c.get("vision_feature_layer")
    depth = len(features) if isinstance(features, list) else 1
    bias = c.flag("multimodal_projector_bias", True)
    yield from linear("model.multi_modal_projector.linear_1", text.hidden, depth * v.size("hidden_size"), bias)
    yield from linear("model.multi_modal_projector.linear_2", text.hidden, text.hidden, bias)
    if c.kind in ("llava_next", "llava_onevision", "llava_next_video"):
        yield Part("model.image_newline", (text.hidden,))


def vision_tower(v: Settings) -> Parts:
    """The tower of its model_type."""
    if v.kind == "pixtral":
        return pixtral_vision(v)
    if v.kind == "siglip_vision_model":
        headless = v.get("vision_use_head") is False
        return iter((*SIGLIP.parts(v), *(() if headless else siglip_head(v))))
    return CLIP.parts(v)


def pixtral_vision(v: Settings) -> Parts:
    """Pixtral: rotary positions, RMS norms, gated feed-forward, no biases."""
    hidden, patch = v.size("hidden_size"), v.size("patch_size")
    layer = EncoderLayer(
        hidden=hidden,
        width=v.size("intermediate_size"),
        attention="attention",
        out="o_proj",
        bias=False,
        mlp="feed_forward",
        shape="gated",
        up="up_proj",
        down="down_proj",
        mlp_bias=False,
        norms=("attention_norm", "ffn_norm"),
        norm_bias=False,
    )
    yield from conv("patch_conv", hidden, v.size("num_channels", default=3), patch, patch)
    yield from norm("ln_pre", hidden)
    yield from on_layers("transformer.layers", range(v.size("num_hidden_layers")), layer.parts())


def mistral3_towers(c: Settings) -> Parts:
    """Pixtral, a merger of patches, two projections."""
    v, text = c.section("vision_config"), c.section("text_config")
    seen, bias = v.size("hidden_size"), c.flag("multimodal_projector_bias")
    yield from under("model.vision_tower", pixtral_vision(v))
    yield from norm("model.multi_modal_projector.norm", seen)
    merged = seen * c.size("spatial_merge_size", default=2) ** 2
    yield from linear("model.multi_modal_projector.patch_merger.merging_layer", seen, merged)
    yield from linear("model.multi_modal_projector.linear_1", text.hidden, seen, bias)
    yield from linear("model.multi_modal_projector.linear_2", text.hidden, text.hidden, bias)


def llama4_towers(c: Settings) -> Parts:
    """Llama 4: patches by a linear layer, a shuffling adapter, one projection."""
    v, text = c.section("vision_config"), c.section("text_config")
    hidden, patch, width = v.size("hidden_size"), v.size("patch_size"), v.size("intermediate_size")
    patches = (v.size("image_size") // patch) ** 2 + 1
    layer = EncoderLayer(
        hidden=hidden, width=width, out="o_proj", norms=("input_layernorm", "post_attention_layernorm")
    )
    inside = (
        Part("class_embedding", (hidden,)),
        Part("positional_embedding_vlm", (patches, hidden)),
        *linear("patch_embedding.linear", hidden, v.size("num_channels", default=3) * patch * patch),
        *norm("layernorm_pre", hidden, True),
        *norm("layernorm_post", hidden, True),
        *on_layers("model.layers", range(v.size("num_hidden_layers")), layer.parts()),
        *linear("vision_adapter.mlp.fc1", v.size("projector_input_dim"), width),
        *linear("vision_adapter.mlp.fc2", v.size("projector_output_dim"), v.size("projector_output_dim")),
    )
    yield from under("vision_model", inside)
    yield from linear("multi_modal_projector.linear_1", text.hidden, v.size("vision_output_dim"))


def minimax3_towers(c: Settings) -> Parts:
    """MiniMax M3: patches of two frames, a CLIP stack, and a projector that merges afterwards."""
    v, text = c.section("vision_config"), c.section("text_config")
    hidden, patch = v.size("hidden_size"), v.size("patch_size")
    layer = EncoderLayer(hidden=hidden, width=v.size("intermediate_size"))
    inside = (
        *conv(
            "embeddings.proj", hidden, v.size("num_channels", default=3), v.size("temporal_patch_size"), patch, patch
        ),
        *norm("pre_layrnorm", hidden, True),
        *on_layers("layers", range(v.size("num_hidden_layers")), layer.parts()),
    )
    yield from under("model.vision_tower", inside)
    wide = c.size("projector_hidden_size", default=text.hidden)
    step = v.size("spatial_merge_size", default=2) ** 2
    yield from linear("model.multi_modal_projector.linear_1", wide, hidden, True)
    yield from linear("model.multi_modal_projector.linear_2", text.hidden, wide, True)
    yield from linear("model.multi_modal_projector.merge_linear_1", wide, text.hidden * step, True)
    yield from linear("model.multi_modal_projector.merge_linear_2", text.hidden, wide, True)


def minicpmv_towers(c: Settings) -> Parts:
    """MiniCPM-V 4.6: SigLIP with a merger inside, and mergers before the language model."""
    v, text = c.section("vision_config"), c.section("text_config")
    hidden, width = v.size("hidden_size"), v.size("intermediate_size")
    window = v.area("window_kernel_size", 4)
    joined = hidden * window
    attention = (
        *(part for name in ("k", "v", "q") for part in linear(f"self_attn.{name}_proj", hidden, hidden, True)),
        *linear("self_attn.out_proj", hidden, hidden, True),
        *norm("layer_norm1", hidden, True),
        *norm("pre_norm", joined, True),
        *linear("linear_1", window * width, joined, True),
        *linear("linear_2", hidden, window * width, True),
    )
    yield from under("model.vision_tower", SIGLIP.parts(v))
    yield from under("model.vision_tower.vit_merger", attention)
    merged = hidden * c.area("merge_kernel_size", 4)
    rounds = c.size("merger_times", default=1)
    for number in range(rounds):
        out = text.hidden if number == rounds - 1 else hidden
        yield from norm(f"model.merger.mlp.{number}.pre_norm", merged, True)
        yield from linear(f"model.merger.mlp.{number}.linear_1", merged, merged, True)
        yield from linear(f"model.merger.mlp.{number}.linear_2", out, merged, True)


FAMILIES: dict[str, Family] = {
    "gemma3": Joined(towers=gemma3_towers, language="gemma3_text"),
    "idefics3": Joined(towers=idefics3_towers, module="model.text_model"),
    "smolvlm": Joined(towers=idefics3_towers, module="model.text_model"),
    "llava": Joined(towers=llava_towers, tied_by="either"),
    "llava_next": Joined(towers=llava_towers),
    "mistral3": Joined(towers=mistral3_towers),
    "llama4": Joined(
        towers=llama4_towers,
        language="llama4_text",
        module="language_model.model",
        head="language_model.lm_head",
        tied_by="text",
    ),
    "minimax_m3_vl": Joined(towers=minimax3_towers, language="minimax_m3_vl_text", tied_by="either"),
    "minicpmv4_6": Joined(towers=minicpmv_towers, language="qwen3_5_text"),
}
