"""What a layer keeps of the tokens it has seen: elements a token, a window, or a state of fixed size."""

from __future__ import annotations

from dataclasses import dataclass, replace

KEYS_AND_VALUES = 2


@dataclass(frozen=True, slots=True)
class LayerCache:
    """The cache of one layer for one sequence, in elements.

    `heads` KV heads of `per_head` elements a token are divided among tensor-parallel ranks, `shared` elements a
    token are on all of them. A `window` bounds the tokens kept; `every` keeps one entry for so many tokens.
    `index` elements a token help to choose tokens. `state` (16 bit) and `state32` (32 bit) do not grow.
    `fixed` tokens are kept whatever the context: those of an image or of an encoder.
    """

    kind: str
    heads: int = 0
    per_head: int = 0
    shared: int = 0
    window: int | None = None
    every: int = 1
    index: int = 0
    state: int = 0
    state32: int = 0
    fixed: int | None = None
    kept: bool = True
    """False where keys and values are made and dropped: an encoder."""
    expanded: tuple[int, int] | None = None
    """(heads, elements a head and token) where the runtime stores keys and values instead of the latent vector."""
    told: int | None = None
    """Elements a token by the usual 2 x heads x head_dim, where what is kept differs from it."""

    @property
    def conventional(self) -> int:
        """Elements one token makes, as public tables count them."""
        return self.heads * self.per_head + self.shared if self.told is None else self.told

    def tokens(self, context: int) -> int:
        """Tokens (or entries) kept of a sequence of `context` tokens."""
        if self.fixed is not None:
            return self.fixed
        kept = context if self.window is None else min(context, self.window)
        return -(-kept // self.every) if self.kept else 0


def as_expanded(cache: LayerCache) -> LayerCache:
    """The cache of a runtime that does not keep latent vectors; any other cache as it is."""
    if cache.expanded is None:
        return cache
    heads, per_head = cache.expanded
    return replace(cache, kind="expanded_attention", heads=heads, per_head=per_head, shared=0)


def attention_cache(kind: str, heads: int, head_dim: int, window: int | None = None) -> LayerCache:
    """Keys and values of grouped heads: 2 x kv_heads x head_dim elements a token (Shazeer 2019, arXiv:1911.02150)."""
    return LayerCache(kind, heads=heads, per_head=KEYS_AND_VALUES * head_dim, window=window)
