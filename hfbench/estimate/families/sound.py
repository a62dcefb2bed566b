"""Models that hear and speak: Qwen2-Audio, Qwen3-ASR, Qwen2.5-Omni; and GIT, which describes images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hfbench.estimate.caches import LayerCache, attention_cache
from hfbench.estimate.families.encoders import encoder_layer
from hfbench.estimate.families.joined import Joined
from hfbench.estimate.families.seq2seq import sound_layer
from hfbench.estimate.families.video import qwen2_5_vl_vision
from hfbench.estimate.families.vision import CLIP
from hfbench.estimate.family import Decoder, Family, families, purpose_of
from hfbench.estimate.parts import Part, Parts, conv, linear, norm, on_layers, table, times, under
from hfbench.estimate.settings import NotKnown, Settings

HALVED_THRICE = 8
"""Three convolutions of stride 2 over the spectrum's bins."""


def sound_stack(a: Settings, key_bias: bool = False) -> Parts:
    """The layers of a sound encoder."""
    layer = sound_layer(a.size("d_model"), a.size("encoder_ffn_dim"), key_bias)
    return on_layers("layers", range(a.size("encoder_layers")), layer.parts())


def qwen2_audio_tower(c: Settings) -> Parts:
    """Whisper's encoder and one projection."""
    a, text = c.section("audio_config"), c.section("text_config")
    width = a.size("d_model")
    inside = (
        *conv("conv1", width, a.size("num_mel_bins"), 3, bias=True),
        *conv("conv2", width, width, 3, bias=True),
        *table("embed_positions", a.size("max_source_positions"), width),
        *sound_stack(a),
        *norm("layer_norm", width, True),
    )
    yield from under("audio_tower", inside)
    yield from linear("multi_modal_projector.linear", text.hidden, width, True)


def qwen3_asr_tower(c: Settings) -> Parts:
    """Three strided convolutions over the spectrum, layers, two projections."""
    a = c.section("audio_config")
    width, channels = a.size("d_model"), a.size("downsample_hidden_size")
    bins = -(-a.size("num_mel_bins") // HALVED_THRICE)
    inside = (
        *sound_stack(a, key_bias=True),
        *norm("ln_post", width, True),
        *conv("conv2d1", channels, 1, 3, 3, bias=True),
        *conv("conv2d2", channels, channels, 3, 3, bias=True),
        *conv("conv2d3", channels, channels, 3, 3, bias=True),
        *linear("conv_out", width, channels * bins),
    )
    yield from under("model.audio_tower", inside)
    yield from linear("model.multi_modal_projector.linear_1", width, width, True)
    yield from linear("model.multi_modal_projector.linear_2", a.size("output_dim"), width, True)


@dataclass(frozen=True, kw_only=True)
class Omni:
    """Qwen2.5-Omni: a thinker that sees and hears, a talker, and what turns codes into sound."""

    def text(self, config: Settings) -> Settings:
        """The thinker's language model."""
        return config.section("thinker_config").section("text_config")

    def caches(self, config: Settings) -> Sequence[LayerCache]:
        """Those of the thinker."""
        return self.decoder().caches(self.text(config))

    def decoder(self) -> Decoder:
        """Thinker and talker are Qwen2 decoders."""
        found = families()["qwen2"]
        assert isinstance(found, Decoder)
        return found

    def parts(self, config: Settings) -> Parts:
        """All three."""
        thinker, text = config.section("thinker_config"), self.text(config)
        yield from under("thinker.model.audio_tower", omni_hearing(thinker.section("audio_config")))
        seen = qwen2_5_vl_vision(thinker.section("vision_config"), joined=False)
        yield from under("thinker.model.visual", seen)
        yield from under("thinker.model.language_model", self.decoder().body(text))
        if not thinker.flag("tie_word_embeddings"):
            yield from linear("thinker.lm_head", text.vocab, text.hidden)
        if config.flag("enable_audio_output", True):
            yield from self.talker(config.section("talker_config"), text)
            speech = config.section("token2wav_config")
            yield from under("token2wav.code2wav_dit_model", diffusion(speech.section("dit_config")))
            yield from under("token2wav.code2wav_bigvgan_model", vocoder(speech.section("bigvgan_config")))

    def talker(self, c: Settings, text: Settings) -> Parts:
        """A decoder over sound codes, told by the thinker."""
        width = c.size("embedding_size")
        yield from linear("talker.thinker_to_talker_proj", c.hidden, width, True)
        for part in self.decoder().body(c):
            narrow = part.name == "embed_tokens.weight"
            yield from under("talker.model", [Part(part.name, (c.vocab, width)) if narrow else part])
        yield from linear("talker.codec_head", c.vocab, c.hidden)


def omni_hearing(a: Settings) -> Parts:
    """Whisper's encoder without positions, with a projection and marks for begin and end."""
    width, out = a.size("d_model"), a.size("output_dim")
    yield from conv("conv1", width, a.size("num_mel_bins"), 3, bias=True)
    yield from conv("conv2", width, width, 3, bias=True)
    yield from table("audio_bos_eos_token", 2, out)
    yield from sound_stack(a)
    yield from norm("ln_post", width, True)
    yield from linear("proj", out, width, True)


def diffusion(d: Settings) -> Parts:
    """A diffusion transformer from codes to spectra (fixed sizes outside its layers: 256 steps, 12 more inputs)."""
    hidden, mel, inner = d.hidden, d.size("mel_dim"), d.heads * d.size("head_dim")
    steps, speaker = 256, d.size("enc_dim")
    yield from linear("time_embed.time_mlp.0", hidden, steps, True)
    yield from linear("time_embed.time_mlp.2", hidden, hidden, True)
    yield from table("text_embed.codec_embed", d.size("num_embeds") + 1, d.size("emb_dim"))
    known = mel + speaker + d.size("enc_emb_dim") + d.size("emb_dim")
    yield from linear("input_embed.proj", hidden, known, True)
    yield from under("input_embed.spk_encoder", speaker_encoder(d))
    feed = hidden * d.size("ff_mult")
    layer = (
        *linear("attn_norm.linear", 6 * hidden, hidden, True),
        *(part for name in ("to_q", "to_k", "to_v") for part in linear(f"attn.{name}", inner, hidden, True)),
        *linear("attn.to_out.0", hidden, inner, True),
        *linear("ff.ff.0", feed, hidden, True),
        *linear("ff.ff.3", hidden, feed, True),
    )
    yield from on_layers("transformer_blocks", range(d.layers), layer)
    yield from linear("norm_out.linear", 2 * hidden, hidden, True)
    yield from linear("proj_out", mel, hidden, True)


def speaker_encoder(d: Settings) -> Parts:
    """An ECAPA time-delay network over the spectrum of a voice (arXiv:2005.07143)."""
    channels, kernels = d.sizes("enc_channels"), d.sizes("enc_kernel_sizes")
    if len(channels) < 3 or len(kernels) != len(channels):
        raise NotKnown("enc_channels and enc_kernel_sizes do not agree")
    parts, squeezed = d.size("enc_res2net_scale"), d.size("enc_se_channels")
    yield from conv("blocks.0.conv", channels[0], d.size("mel_dim"), kernels[0], bias=True)
    for before, width, kernel in zip(channels[:-2], channels[1:-1], kernels[1:-1], strict=True):
        yield from conv("blocks.tdnn1.conv", width, before, 1, bias=True)
        part = width // parts
        yield from times(parts - 1, conv("blocks.res2net_block.conv", part, part, kernel, bias=True))
        yield from conv("blocks.tdnn2.conv", width, width, 1, bias=True)
        yield from conv("blocks.se_block.conv1", squeezed, width, 1, bias=True)
        yield from conv("blocks.se_block.conv2", width, squeezed, 1, bias=True)
    joined, attended = sum(channels[1:-1]), d.size("enc_attention_channels")
    yield from conv("mfa.conv", channels[-1], joined, kernels[-1], bias=True)
    yield from conv("asp.tdnn.conv", attended, 3 * channels[-1], 1, bias=True)
    yield from conv("asp.conv", channels[-1], attended, 1, bias=True)
    yield from conv("fc", d.size("enc_dim"), 2 * channels[-1], 1, bias=True)


def vocoder(b: Settings) -> Parts:
    """BigVGAN from spectra to samples: each step halves the channels (arXiv:2206.04658)."""
    channels = b.size("upsample_initial_channel")
    yield from conv("conv_pre", channels, b.size("mel_dim"), 7, bias=True)
    for kernel in b.sizes("upsample_kernel_sizes"):
        yield Part("ups.weight", (channels, channels // 2, kernel))
        yield Part("ups.bias", (channels // 2,))
        channels //= 2
        for size, dilations in zip(
            b.sizes("resblock_kernel_sizes"), b.sequence("resblock_dilation_sizes"), strict=False
        ):
            rounds = len(dilations) if isinstance(dilations, list) else 1
            yield from times(2 * rounds, conv("resblocks.convs", channels, channels, size, bias=True))
            yield Part("resblocks.activations.act.alpha", (channels,), copies=2 * rounds)
            yield Part("resblocks.activations.act.beta", (channels,), copies=2 * rounds)
    yield Part("activation_post.act.alpha", (channels,))
    yield Part("activation_post.act.beta", (channels,))
    yield from conv("conv_post", 1, channels, 7)


@dataclass(frozen=True, kw_only=True)
class Git:
    """GIT: BERT layers as a decoder behind a CLIP tower."""

    def text(self, config: Settings) -> Settings:
        """The configuration itself."""
        return config

    def caches(self, config: Settings) -> Sequence[LayerCache]:
        """Every layer keeps its tokens."""
        return [attention_cache("full_attention", config.kv_heads, config.head_dim)] * config.layers

    def parts(self, config: Settings) -> Parts:
        """Words, tower, layers, projection, head."""
        c = config
        v = c.section("vision_config")
        yield from table("git.embeddings.word_embeddings", c.vocab, c.hidden)
        yield from table("git.embeddings.position_embeddings", c.size("positions"), c.hidden)
        yield from norm("git.embeddings.LayerNorm", c.hidden, True)
        yield from under("git.image_encoder.vision_model", CLIP.parts(v))
        yield from on_layers("git.encoder.layer", range(c.layers), encoder_layer(c))
        yield from linear("git.visual_projection.0", c.hidden, v.size("hidden_size"), True)
        yield from norm("git.visual_projection.1", c.hidden, True)
        if purpose_of(c) == "none":
            return
        yield Part("output.bias", (c.vocab,))
        if not c.tied:
            yield Part("output.weight", (c.vocab, c.hidden))


FAMILIES: dict[str, Family] = {
    "qwen2_audio": Joined(
        towers=qwen2_audio_tower, module="language_model.model", head="language_model.lm_head", tied_by=""
    ),
    "qwen3_asr": Joined(towers=qwen3_asr_tower, language="qwen3"),
    "qwen2_5_omni": Omni(),
    "git": Git(),
}
