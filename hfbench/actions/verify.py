"""verify: whether a converted checkpoint is the model it was made from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hfbench.actions.base import action, spec_of
from hfbench.actions.params import param
from hfbench.convert.walls.results import Walls
from hfbench.line_width import cut
from hfbench.text import printable

if TYPE_CHECKING:
    from hfbench.jobs.run import Run

WALLS = ("weights", "forward", "task")
EXITS = {"proven": 0, "differs": 1}
"""Any other verdict is 2: it could not be told."""


@dataclass(frozen=True, kw_only=True)
class VerifyResult:
    """The verdict, the three walls, and what was compared."""

    verdict: str
    """`proven`, `differs` or `could not`."""
    walls: Walls
    reference: str
    """The Hugging Face folder."""
    converted: str
    format: str
    """`torch` or `torch_dist` of Megatron, or `hf`."""
    layout: str
    """`TP 2, PP 2, EP 1`, empty for a Hugging Face folder."""
    family: str
    """Of what was converted, and of the reference where that is another one."""
    seconds: float
    reports: tuple[str, ...] = ()

    @property
    def failed(self) -> bool:
        """True unless every wall that was asked for stands."""
        return self.verdict != "proven"

    @property
    def exit(self) -> int:
        """0 proven, 1 differs, 2 could not be told."""
        return EXITS.get(self.verdict, 2)

    @property
    def headline(self) -> str:
        """`differs: weights`, or `proven by weights, forward, task`."""
        each = {name: getattr(self.walls, name).verdict for name in WALLS}
        if self.failed:
            return f"{self.verdict}: {', '.join(name for name in WALLS if each[name] == self.verdict)}"
        return f"proven by {', '.join(name for name in WALLS if each[name] == 'proven')}"

    def lines(self) -> list[str]:
        """The verdict, then a line a wall with what is wrong below it."""
        from hfbench.convert.walls.report import wall_lines

        head = [self.headline, f"reference  {cut(self.reference, 11)}", f"converted  {cut(self.converted, 11)}"]
        lay = ", ".join(filter(None, (self.format, self.layout, self.family)))
        reports = [f"report     {printable(each)}" for each in self.reports[:1]]
        return [*head, f"{'':11}{lay}", *reports, "", *wall_lines(self.walls)]


@action("verify", result=VerifyResult)
@dataclass(frozen=True, kw_only=True)
class Verify:
    """Prove that a converted checkpoint is the model it was made from.

    Weights bit by bit, logits against transformers, then tokens, perplexity, generated text and answers. One of the two
    is a Hugging Face folder; the other a Megatron checkpoint or a Hugging Face folder too.
    """

    model: str = param("Folder, HF cache entry or Hub reference", kind="model", positional=True)
    converted: Path = param("What was converted from it or into it; cached too", kind="path", positional=True)
    walls: tuple[str, ...] = param("Walls to look at", default=WALLS, choices=WALLS)
    environment: str = param(
        "Python that has megatron-core, which then runs the checkpoint too: a path or a name of [environments]",
        default="",
    )
    text: Path | None = param(
        "UTF-8 text for perplexity and generation; default a short passage", default=None, kind="path"
    )
    questions: Path | None = param(
        'JSONL file of multiple-choice questions: {"question": "...", "choices": ["..."], "answer": 0}',
        default=None,
        kind="path",
    )
    new_tokens: int = param("Tokens to generate greedily", default=32, ge=1, le=4096, unit="token")

    def perform(self, run: Run) -> VerifyResult:
        """Look at the walls and write the report; torch enters in processes of its own."""
        from hfbench.convert.walls.task import Asked
        from hfbench.convert.walls.verify import prove
        from hfbench.convert.walls.write_report import write_reports

        asked = Asked(text=self.text, questions=self.questions, new_tokens=self.new_tokens)
        proof = prove(self.model, self.converted, run, walls=self.walls, environment=self.environment, asked=asked)
        fields = {each.name: getattr(self, each.name) for each in spec_of(self).params}
        return VerifyResult(
            verdict=proof.verdict,
            walls=proof.walls,
            reference=proof.reference,
            converted=proof.converted,
            format=proof.format,
            layout=proof.layout,
            family=proof.family,
            seconds=proof.seconds,
            reports=write_reports(proof, fields, run),
        )
