"""The regions of the Convert screen that hold nothing of their own."""

from __future__ import annotations

from collections.abc import Sequence

from textual.containers import Horizontal, Vertical

from hfbench.widgets.help import Help
from hfbench.widgets.see_through import SeeThrough
from hfbench.widgets.span_view import SpanView

LEAST_WALLS = 5
"""Lines of the folder, the conversion and three walls."""


class Halves(SeeThrough, Horizontal):
    """The chooser beside the plan."""

    DEFAULT_CSS = "Halves { height: 1fr; }"


class PlanSide(SeeThrough, Vertical):
    """The plan, or why there is none."""

    DEFAULT_CSS = "PlanSide { width: 1fr; }"


class RowDetail(SpanView):
    """The row under the cursor in full."""

    help = Help("Row of the plan", "What becomes of tensors of one kind. Arrows scroll; `escape` closes it.")

    DEFAULT_CSS = "RowDetail { display: none; height: 60%; margin-top: 1; }"


class Walls(SpanView):
    """Where it goes, how far it is, and the walls."""

    help = Help(
        "Walls",
        "`weights`: every tensor is put together again and compared bit by bit. `forward`: the logits of both in "
        "float32. `task`: tokens, perplexity, generated text. `ok proven`, `x differs`, `~ could not`: it could not be "
        "judged here. Arrows scroll; `J` opens the job with all it found.",
    )

    DEFAULT_CSS = "Walls { height: 5; margin-top: 1; }"

    def fit(self, lines: Sequence[object], height: int) -> None:
        """Take as many lines as there are to tell, up to two fifths of the terminal's `height`."""
        wanted = max(LEAST_WALLS, min(len(lines), height * 2 // 5))
        if self.styles.height is None or self.styles.height.value != wanted:
            self.styles.height = wanted
