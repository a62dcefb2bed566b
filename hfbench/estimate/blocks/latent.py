"""Multi-head latent attention: keys and values from one small vector a token (DeepSeek-V2, arXiv:2405.04434)."""

from __future__ import annotations

from dataclasses import dataclass

from hfbench.estimate.blocks.attention import Switch, on
from hfbench.estimate.caches import LayerCache
from hfbench.estimate.parts import Parts, linear, norm, under
from hfbench.estimate.settings import Settings


@dataclass(frozen=True, kw_only=True)
class Latent:
    """Latent attention, perhaps with an indexer that chooses tokens (DeepSeek-V3.2)."""

    bias: Switch = "attention_bias"
    indexer: bool = False

    def parts(self, c: Settings) -> Parts:
        """The tensors of one layer."""
        return under("self_attn", self._inside(c))

    def cache(self, c: Settings, kind: str) -> LayerCache:
        """kv_lora_rank + qk_rope_head_dim elements a token, on every rank; the runtime may expand them."""
        nope, rope, value = _sizes(c)
        return LayerCache(
            "latent_attention",
            shared=c.size("kv_lora_rank") + rope,
            index=c.size("index_head_dim") if self.indexer else 0,
            expanded=(c.heads, nope + rope + value),
        )

    def _inside(self, c: Settings) -> Parts:
        nope, rope, value = _sizes(c)
        bias, rank, queries = on(self.bias, c), c.size("kv_lora_rank"), c.optional("q_lora_rank")
        if queries:
            yield from linear("q_a_proj", queries, c.hidden, bias)
            yield from norm("q_a_layernorm", queries)
            yield from linear("q_b_proj", c.heads * (nope + rope), queries)
        else:
            yield from linear("q_proj", c.heads * (nope + rope), c.hidden)
        yield from linear("kv_a_proj_with_mqa", rank + rope, c.hidden, bias)
        yield from norm("kv_a_layernorm", rank)
        yield from linear("kv_b_proj", c.heads * (nope + value), rank)
        yield from linear("o_proj", c.hidden, c.heads * value, bias)

    def index_parts(self, c: Settings) -> Parts:
        """The tensors of the indexer of one layer."""
        size, heads = c.size("index_head_dim"), c.size("index_n_heads")
        inside = (
            *linear("wq_b", heads * size, c.size("q_lora_rank")),
            *linear("wk", size, c.hidden),
            *norm("k_norm", size, bias=True),
            *linear("weights_proj", heads, c.hidden),
        )
        return under("self_attn.indexer", inside)


def _sizes(c: Settings) -> tuple[int, int, int]:
    """Elements of a head: without position, with position, of the value."""
    nope = c.size("qk_nope_head_dim")
    return nope, c.number("qk_rope_head_dim"), c.size("v_head_dim", default=max(1, c.hidden // c.heads))
