"""Encoders of text: BERT, RoBERTa and ALBERT, with the head that the architecture names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hfbench.estimate.blocks.encoder_layer import EncoderLayer
from hfbench.estimate.caches import LayerCache, attention_cache
from hfbench.estimate.family import FULL, Family, labels
from hfbench.estimate.parts import Part, Parts, linear, norm, on_layers, table, under
from hfbench.estimate.settings import NotKnown, Settings

ENCODER_ATTENTION = "encoder_attention"
HEADS = {
    "ForMaskedLM": "words",
    "LMHeadModel": "words",
    "ForCausalLM": "words",
    "ForPreTraining": "pretraining",
    "ForNextSentencePrediction": "pairs",
    "ForSequenceClassification": "sequences",
    "ForMultipleChoice": "choices",
    "ForTokenClassification": "tokens",
    "ForQuestionAnswering": "spans",
    "Model": "none",
}
"""Endings of architectures, the first that fits, and what their heads give."""


def encoder_layer(c: Settings) -> Parts:
    """A BERT layer, by its own names."""
    inside = EncoderLayer(
        hidden=c.hidden,
        width=c.width,
        attention="attention.self",
        names=("query", "key", "value"),
        out="",
        mlp="",
        up="intermediate.dense",
        down="output.dense",
        norms=("attention.output.LayerNorm", "output.LayerNorm"),
    )
    yield from inside.parts()
    yield from linear("attention.output.dense", c.hidden, c.hidden, True)
    if c.flag("add_cross_attention"):
        for name in ("self.query", "self.key", "self.value", "output.dense"):
            yield from linear(f"crossattention.{name}", c.hidden, c.hidden, True)
        yield from norm("crossattention.output.LayerNorm", c.hidden, True)


def encoder_caches(c: Settings) -> Sequence[LayerCache]:
    """Keys and values are made for every token and dropped with the pass, unless the encoder is made a decoder."""
    if c.flag("is_decoder"):
        return [attention_cache(FULL, c.kv_heads, c.head_dim)] * c.layers
    made = attention_cache(ENCODER_ATTENTION, c.kv_heads, c.head_dim)
    return [replace(made, kept=False)] * c.layers


def embeddings(c: Settings, width: int) -> Parts:
    """Words, positions, token types and their norm."""
    yield from table("embeddings.word_embeddings", c.vocab, width)
    yield from table("embeddings.position_embeddings", c.size("positions"), width)
    yield from table("embeddings.token_type_embeddings", c.size("type_vocab_size", default=2), width)
    yield from norm("embeddings.LayerNorm", width, True)


@dataclass(frozen=True, kw_only=True)
class TextEncoder:
    """An encoder with one of the usual heads, chosen by the ending of the architecture's name."""

    module: str

    def text(self, config: Settings) -> Settings:
        """The encoder itself."""
        return config

    def caches(self, config: Settings) -> Sequence[LayerCache]:
        """Nothing is kept."""
        return encoder_caches(config)

    def parts(self, config: Settings) -> Parts:
        """Embeddings, layers, and the head."""
        named = config.sequence("architectures")
        architecture = str(named[0]) if named else "Model"
        yield from under(self.module, self.body(config))
        yield from self.head(config, architecture)

    def body(self, c: Settings) -> Parts:
        """Embeddings and layers."""
        yield from embeddings(c, c.hidden)
        yield from on_layers("encoder.layer", range(c.layers), encoder_layer(c))

    def head(self, c: Settings, architecture: str) -> Parts:
        """The tensors after the last layer."""
        purpose = next((purpose for ending, purpose in HEADS.items() if architecture.endswith(ending)), "")
        if purpose in ("none", "pretraining", "pairs", "choices"):
            yield from linear(f"{self.module}.pooler.dense", c.hidden, c.hidden, True)
        if purpose in ("words", "pretraining"):
            yield from self.words(c)
        if purpose in ("pretraining", "pairs"):
            yield from linear("cls.seq_relationship", 2, c.hidden, True)
        if purpose == "sequences":
            yield from self.classifier(c)
        if purpose in ("choices", "tokens", "spans"):
            yield from linear("classifier", 1 if purpose == "choices" else labels(c), c.hidden, True)
        if not purpose:
            raise NotKnown(f"the head of {architecture[:60]} is not known")

    def words(self, c: Settings) -> Parts:
        """A dense layer, and the embedding once more unless it is tied."""
        yield from linear("cls.predictions.transform.dense", c.hidden, c.hidden, True)
        yield from norm("cls.predictions.transform.LayerNorm", c.hidden, True)
        yield from word_scores(c, c.hidden)

    def classifier(self, c: Settings) -> Parts:
        """BERT classifies what the pooler gives."""
        yield from linear(f"{self.module}.pooler.dense", c.hidden, c.hidden, True)
        yield from linear("classifier", labels(c), c.hidden, True)


@dataclass(frozen=True, kw_only=True)
class Roberta(TextEncoder):
    """RoBERTa has a two-layer classifier instead of a pooler."""

    def classifier(self, c: Settings) -> Parts:
        """Dense and out."""
        yield from linear("classifier.dense", c.hidden, c.hidden, True)
        yield from linear("classifier.out_proj", labels(c), c.hidden, True)


def word_scores(c: Settings, width: int) -> Parts:
    """A score for each word; weight and second bias only of a head that is not tied."""
    yield Part("cls.predictions.bias", (c.vocab,))
    if not c.tied:
        yield from linear("cls.predictions.decoder", c.vocab, width, True)


@dataclass(frozen=True, kw_only=True)
class Albert(TextEncoder):
    """ALBERT repeats a few layers, and widens a narrow embedding."""

    def body(self, c: Settings) -> Parts:
        """Embeddings, widening, and one set of layers a group."""
        narrow = c.size("embedding_size")
        yield from embeddings(c, narrow)
        yield from linear("encoder.embedding_hidden_mapping_in", c.hidden, narrow, True)
        groups, inner = c.size("num_hidden_groups", default=1), c.size("inner_group_num", default=1)
        yield from on_layers("encoder.layer", range(groups * inner), encoder_layer(c))

    def head(self, c: Settings, architecture: str) -> Parts:
        """As BERT's, but what tells two sentences apart has as many classes as there are labels."""
        if architecture.endswith("ForPreTraining"):
            yield from linear(f"{self.module}.pooler", c.hidden, c.hidden, True)
            yield from self.words(c)
            yield from linear("sop_classifier.classifier", labels(c), c.hidden, True)
        else:
            yield from super().head(c, architecture)

    def words(self, c: Settings) -> Parts:
        """The head works on the narrow embedding."""
        narrow = c.size("embedding_size")
        yield from linear("predictions.dense", narrow, c.hidden, True)
        yield from norm("predictions.LayerNorm", narrow, True)
        yield from word_scores(c, narrow)


FAMILIES: dict[str, Family] = {
    "bert": TextEncoder(module="bert"),
    "roberta": Roberta(module="roberta"),
    "xlm-roberta": Roberta(module="roberta"),
    "camembert": Roberta(module="roberta"),
    "albert": Albert(module="albert"),
}
