"""Where cursors were left on the main screens, which are made anew when somebody comes back to them."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Places:
    """The card, the row of the matrix with the kernels that are folded there, the engine by its path, the check by its
    id, whether only trouble was shown, the sweep by its name, and the jobs that are marked; an empty one is the first
    row."""

    card: int = 0
    kernel: str = ""
    config: str = ""
    folded: set[str] = field(default_factory=set)
    engine: str = ""
    check: str = ""
    only_trouble: bool = False
    sweep: str = ""
    marked_jobs: list[str] = field(default_factory=list)
