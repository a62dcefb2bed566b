"""Where cursors were left on the main screens, which are made anew when somebody comes back to them."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Places:
    """The card, and the row of the matrix with the kernels that are folded there; an empty kernel is the first row."""

    card: int = 0
    kernel: str = ""
    config: str = ""
    folded: set[str] = field(default_factory=set)
