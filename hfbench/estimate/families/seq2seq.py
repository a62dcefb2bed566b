"""Encoders and decoders joined by cross attention: T5 and Whisper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hfbench.estimate.blocks.encoder_layer import EncoderLayer
from hfbench.estimate.caches import KEYS_AND_VALUES, LayerCache, attention_cache
from hfbench.estimate.families.encoders import encoder_caches
from hfbench.estimate.families.joined import words_only
from hfbench.estimate.family import Family, labels, purpose_of
from hfbench.estimate.parts import Parts, conv, linear, norm, on_layers, table, under, vector
from hfbench.estimate.settings import Settings

CROSS = "cross_attention"


def encoder_only(c: Settings) -> bool:
    """True for an architecture such as T5EncoderModel."""
    named = c.sequence("architectures")
    return bool(named) and str(named[0]).endswith("EncoderModel")


def hears_only(c: Settings) -> bool:
    """True for an architecture that classifies sound."""
    named = c.sequence("architectures")
    return bool(named) and str(named[0]).endswith("ForAudioClassification")


@dataclass(frozen=True, kw_only=True)
class T5:
    """T5, mT5 and their kin: relative positions in the first layer or in each, no biases."""

    position_in_each: bool = False

    def text(self, config: Settings) -> Settings:
        """The configuration itself."""
        return config

    def caches(self, config: Settings) -> Sequence[LayerCache]:
        """The decoder keeps its own tokens and, once, those of the encoder."""
        if encoder_only(config) or purpose_of(config) == "tokens":
            return encoder_caches(config)
        heads, size = config.heads, config.size("d_kv")
        own = attention_cache("full_attention", heads, size)
        # An encoder may read any length: as many tokens again as the decoder writes.
        cross = LayerCache(CROSS, heads=heads, per_head=KEYS_AND_VALUES * size, told=0)
        layers = self.decoder_layers(config)
        return [own] * layers + [cross] * layers

    def parts(self, config: Settings) -> Parts:
        """The shared embedding, encoder and decoder; transformers 5 ties the head whatever the file says."""
        c = config
        purpose = "encoder" if encoder_only(c) else purpose_of(c)
        yield from table("shared", c.vocab, c.hidden)
        yield from under("encoder", self.stack(c, c.layers, ("SelfAttention",)))
        if purpose not in ("encoder", "tokens"):
            yield from under("decoder", self.stack(c, self.decoder_layers(c), ("SelfAttention", "EncDecAttention")))
        if purpose == "sequences":
            yield from linear("classification_head.dense", c.hidden, c.hidden, True)
            yield from linear("classification_head.out_proj", labels(c), c.hidden, True)
        elif purpose in ("tokens", "spans"):
            yield from linear("classifier", labels(c), c.hidden, True)

    def decoder_layers(self, c: Settings) -> int:
        """As many as the encoder's `num_layers`; its other name, `num_hidden_layers`, reaches the encoder alone."""
        own = Settings({"num_layers": c.raw["num_layers"]} if "num_layers" in c.raw else {}, c.kind)
        return c.size("num_decoder_layers", default=own.layers)

    def stack(self, c: Settings, layers: int, attentions: tuple[str, ...]) -> Parts:
        """One side."""
        inner = c.heads * c.size("d_kv")
        for place, name in enumerate(attentions):
            module = f"layer.{place}.{name}"
            held = [
                *(part for each in "qkv" for part in linear(f"{module}.{each}", inner, c.hidden)),
                *linear(f"{module}.o", c.hidden, inner),
                *norm(f"layer.{place}.layer_norm", c.hidden),
            ]
            yield from on_layers("block", range(layers), held)
        yield from on_layers("block", range(layers), self.feed(c, f"layer.{len(attentions)}"))
        buckets = c.size("relative_attention_num_buckets", default=32)
        yield from on_layers(
            "block",
            range(layers if self.position_in_each else 1),
            table("layer.0.SelfAttention.relative_attention_bias", buckets, c.heads),
        )
        yield from norm("final_layer_norm", c.hidden)

    def feed(self, c: Settings, module: str) -> Parts:
        """The feed-forward: gated in T5 1.1 and later."""
        projection = str(c.get("feed_forward_proj") or "relu")
        names = ("wi_0", "wi_1") if projection.startswith("gated") else ("wi",)
        for name in names:
            yield from linear(f"{module}.DenseReluDense.{name}", c.width, c.hidden)
        yield from linear(f"{module}.DenseReluDense.wo", c.hidden, c.width)
        yield from norm(f"{module}.layer_norm", c.hidden)


@dataclass(frozen=True, kw_only=True)
class Whisper:
    """Whisper: an encoder of 30 s of sound, and a decoder that listens to it."""

    def text(self, config: Settings) -> Settings:
        """The configuration itself."""
        return config

    def caches(self, config: Settings) -> Sequence[LayerCache]:
        """The decoder keeps its own tokens and the encoder's fixed number of frames."""
        c = config
        if hears_only(c):
            return []
        heads = c.size("decoder_attention_heads")
        own = attention_cache("full_attention", heads, c.hidden // heads)
        frames = c.size("max_source_positions")
        cross = LayerCache(CROSS, heads=heads, per_head=own.per_head, fixed=frames, told=0)
        layers = c.size("decoder_layers")
        return [own] * layers + ([] if words_only(c) else [cross] * layers)

    def parts(self, config: Settings) -> Parts:
        """Encoder, decoder; the head is the embedding."""
        c = config
        if hears_only(c):
            yield from under("encoder", self.encoder(c))
            yield from linear("projector", c.size("classifier_proj_size"), c.hidden, True)
            yield from linear("classifier", labels(c), c.size("classifier_proj_size"), True)
            if c.flag("use_weighted_layer_sum"):
                yield from vector("layer_weights", c.size("encoder_layers") + 1)
            return
        if not words_only(c):
            yield from under("model.encoder", self.encoder(c))
        yield from under("model.decoder", self.decoder(c))
        if not c.tied and purpose_of(c) != "none":
            yield from linear("proj_out", c.vocab, c.hidden)

    def encoder(self, c: Settings) -> Parts:
        """Two convolutions over the spectrum, positions, layers."""
        yield from conv("conv1", c.hidden, c.size("num_mel_bins"), 3, bias=True)
        yield from conv("conv2", c.hidden, c.hidden, 3, bias=True)
        yield from table("embed_positions", c.size("max_source_positions"), c.hidden)
        layer = sound_layer(c.hidden, c.size("encoder_ffn_dim"))
        yield from on_layers("layers", range(c.size("encoder_layers")), layer.parts())
        yield from norm("layer_norm", c.hidden, True)

    def decoder(self, c: Settings) -> Parts:
        """Words, positions, layers with cross attention."""
        yield from table("embed_tokens", c.vocab, c.hidden)
        yield from table("embed_positions", c.size("max_target_positions"), c.hidden)
        every = range(c.size("decoder_layers"))
        layer = sound_layer(c.hidden, c.size("decoder_ffn_dim"))
        yield from on_layers("layers", every, layer.parts())
        cross = [
            *linear("encoder_attn.q_proj", c.hidden, c.hidden, True),
            *linear("encoder_attn.k_proj", c.hidden, c.hidden),
            *linear("encoder_attn.v_proj", c.hidden, c.hidden, True),
            *linear("encoder_attn.out_proj", c.hidden, c.hidden, True),
            *norm("encoder_attn_layer_norm", c.hidden, True),
        ]
        yield from on_layers("layers", every, cross)
        yield from norm("layer_norm", c.hidden, True)


def sound_layer(hidden: int, width: int, key_bias: bool = False) -> EncoderLayer:
    """A layer of a sound encoder as Whisper has it: keys without a bias."""
    return EncoderLayer(
        hidden=hidden, width=width, key_bias=key_bias, mlp="", norms=("self_attn_layer_norm", "final_layer_norm")
    )


FAMILIES: dict[str, Family] = {"t5": T5(), "mt5": T5(), "umt5": T5(position_in_each=True), "whisper": Whisper()}
