"""What is known of a conversion that is set up, as one value: its plan, its job, its proof; and what widgets show."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hfbench.convert.plan_table import Proposal
from hfbench.errors import HfbenchError
from hfbench.models.problem import counted
from hfbench.screens.convert_wish import HF, MEGATRON, SAFETENSORS, Source, Wish
from hfbench.units import show_bytes
from hfbench.widgets.convert_lines import Choice
from hfbench.widgets.plan_rows import PlanRows, files_line
from hfbench.widgets.wall_lines import WALLS, Doing, Scene

TO_WORDS = {MEGATRON: "to Megatron", HF: "back to Hugging Face", SAFETENSORS: "to safetensors"}


@dataclass(frozen=True, kw_only=True)
class ConvertView:
    """A picture of the page; `planned` is the wish that `result` is the plan of."""

    source: Source | None = None
    wish: Wish | None = None
    planned: Wish | None = None
    result: Any = None
    rows: PlanRows = field(default_factory=PlanRows)
    taken: str = ""
    """A folder that was seen to be there already."""
    refusal: HfbenchError | None = None
    conversion: Doing | None = None
    proof: Doing | None = None
    environments: tuple[str, ...] = ()
    """Names of Pythons that may have megatron-core, as the configuration tells them."""
    reach: str | None = ""
    """Which of the `reaches` a proof is to have."""
    lacking: tuple[str, ...] = ()
    """Packages without which only the weights can be compared."""

    @property
    def planning(self) -> bool:
        """True while the answer to the latest wish is on its way."""
        return self.refusal is None and (self.wish is None or self.planned != self.wish)

    @property
    def walls(self) -> tuple[str, ...]:
        """The walls that a proof is to look at."""
        return WALLS if self._reached is not None and not self.lacking else WALLS[:1]

    @property
    def reaches(self) -> tuple[str | None, ...]:
        """What `w` walks through: all walls, all with an environment's megatron-core, None for the weights alone."""
        asked = self.wish is not None and self.wish.action != SAFETENSORS
        return ("", *(self.environments if asked else ()), None)

    @property
    def environment(self) -> str:
        """The environment whose megatron-core is to be asked too."""
        return (self._reached or "") if "forward" in self.walls else ""

    @property
    def _reached(self) -> str | None:
        return self.reach if self.reach in self.reaches else ""

    @property
    def next_reach(self) -> str | None:
        """The one after it, round and round."""
        return self.reaches[(self.reaches.index(self._reached) + 1) % len(self.reaches)]

    @property
    def proposals(self) -> tuple[Proposal, ...]:
        """Layouts that the model allows, as far as they are known."""
        return getattr(self.result, "proposals", ())

    @property
    def made(self) -> Doing | None:
        """The conversion into the folder that is set up, or the one under way."""
        doing = self.conversion
        return doing if doing is not None and (self._makes_here(doing) or doing.live) else None

    @property
    def proven(self) -> Doing | None:
        """The proof of what is in that folder, or the one under way."""
        doing = self.proof
        if doing is None or self.wish is None:
            return None
        return doing if doing.live or self._proves_here(doing) else None

    def _makes_here(self, doing: Doing) -> bool:
        return self.wish is not None and doing.about == (self.wish.folder,)

    def _proves_here(self, doing: Doing) -> bool:
        compared = self.wish.proof(()) if self.wish else {}
        return doing.about == (compared.get("model"), compared.get("converted"))

    def _compared(self, doing: Doing) -> str:
        model, converted = doing.about
        return model if self.source is not None and self.source.megatron else converted

    @property
    def there(self) -> bool:
        """True when something lies where the conversion would go."""
        return self.wish is not None and self.taken == self.wish.folder

    def choice(self) -> Choice:
        """What the chooser shows."""
        if self.wish is None:
            return Choice(head="" if self.refusal else "looking at it ...")
        words = TO_WORDS[self.wish.action]
        family = getattr(self.result, "family", "") if self.refusal is None else ""
        told = next((each.reason for each in self.proposals if _layout(each) == _layout(self.wish)), "")
        fits = self.result is not None and self.refusal is None
        return Choice(
            head=f"{family} {words}".strip(),
            knobs=tuple(self.wish.knobs(self.proposals)),
            ranks=getattr(self.result, "ranks", ()) if fits else (),
            title=files_line(getattr(self.result, "ranks", ()), self.result.bytes) if fits else "",
            reason=told if self.wish.action == MEGATRON else "",
            stale=self.planning,
        )

    def scene(self) -> Scene:
        """What the lines below tell."""
        plan = ""
        if self.result is not None and self.refusal is None:
            files = counted(len(self.result.files), "file")
            plan = f"{counted(self.result.tensors, 'tensor')}, {show_bytes(self.result.bytes)} in {files}"
        made, proven = self.made, self.proven
        why = f"needs {', '.join(self.lacking)} (pip install 'hfbench[torch]')" if self.lacking else ""
        return Scene(
            folder=self.wish.folder if self.wish else "",
            taken=self.there,
            plan=plan,
            planning=self.planning,
            notes=getattr(self.result, "notes", ()) if plan else (),
            conversion=made,
            made_elsewhere=made.about[0] if made and not self._makes_here(made) else "",
            proof=proven,
            proven_elsewhere=self._compared(proven) if proven and not self._proves_here(proven) else "",
            environment=self.environment,
            walls=self.walls,
            why_not_all=why or ("" if self._reached is not None else "w asks for all walls"),
        )


def _layout(each: Proposal | Wish) -> tuple[int, int, int]:
    return each.tp, each.pp, each.ep
