"""Encoders of text: BERT, RoBERTa and ALBERT, with the head that the architecture names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hfbench.estimate.blocks.encoder_layer import EncoderLayer
from hfbench.estimate.caches import LayerCache, attention_cache
from hfbench.estimate.family import Family, labels
from hfbench.estimate.parts import Part, Parts, linear, norm, on_layers, table, under
from hfbench.estimate.settings import NotKnown, Settings

ENCODER_ATTENTION = "encoder_attention"
WORD_HEADS = ("ForMaskedLM", "LMHeadModel", "ForCausalLM")


def encoder_layer(c: Settings) -> Parts:
    """A BERT layer, by its own names."""
    inside = EncoderLayer(
        hidden=c.hidden,
        width=c.width,
        attention="attention.self",
        names=("query", "key", "value"),
        out="dense",
        mlp="",
        up="intermediate.dense",
        down="output.dense",
        norms=("attention.output.LayerNorm", "output.LayerNorm"),
    )
    return inside.parts()


def encoder_caches(c: Settings) -> Sequence[LayerCache]:
    """Keys and values are made for every token and dropped with the pass."""
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
        if architecture.endswith("Model") and not architecture.endswith("LMHeadModel"):
            yield from linear(f"{self.module}.pooler.dense", c.hidden, c.hidden, True)
        elif architecture.endswith(WORD_HEADS):
            yield from linear("cls.dense", c.hidden, c.hidden, True)
            yield from norm("cls.LayerNorm", c.hidden, True)
            yield Part("cls.bias", (c.vocab,))
            if not c.tied:
                yield from linear("cls.decoder", c.vocab, c.hidden)
        elif architecture.endswith("ForSequenceClassification"):
            yield from self.classifier(c)
        elif architecture.endswith("ForTokenClassification"):
            yield from linear("classifier", labels(c), c.hidden, True)
        elif architecture.endswith("ForQuestionAnswering"):
            yield from linear("qa_outputs", 2, c.hidden, True)
        else:
            raise NotKnown(f"the head of {architecture[:60]} is not known")

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
        """The masked-word head works on the narrow embedding."""
        if not architecture.endswith(("ForMaskedLM", "ForPreTraining")):
            yield from super().head(c, architecture)
            return
        narrow = c.size("embedding_size")
        yield from linear("predictions.dense", narrow, c.hidden, True)
        yield from norm("predictions.LayerNorm", narrow, True)
        yield Part("predictions.bias", (c.vocab,))


FAMILIES: dict[str, Family] = {
    "bert": TextEncoder(module="bert"),
    "roberta": Roberta(module="roberta"),
    "xlm-roberta": Roberta(module="roberta"),
    "camembert": Roberta(module="roberta"),
    "albert": Albert(module="albert"),
}
