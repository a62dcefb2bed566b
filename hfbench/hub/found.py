"""The records of a search; light to import, for declarations and screens."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class FoundModel:
    """A model of a list. What the hub did not tell is None or empty."""

    id: str
    reference: str
    private: bool = False
    gated: str = ""
    """Empty, `auto` or `manual`."""
    downloads: int | None = None
    likes: int | None = None
    parameters: int | None = None
    """Elements of its safetensors files."""
    modified: str = ""
    created: str = ""
    task: str = ""
    library: str = ""
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Page:
    """Models in the order asked for, and the cursor of the next page, empty on the last."""

    models: tuple[FoundModel, ...]
    cursor: str
