"""Asks the places a form names whether they could ever run its job, beside the screen, before anything is started."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from textual.message import Message

from hfbench.actions.asking import ask, gpus_of
from hfbench.actions.base import Action, Spec
from hfbench.errors import HfbenchError
from hfbench.jobs.executors.spec import LOCAL
from hfbench.screens.background import Background, Stopped
from hfbench.widgets.facts_lines import Fact

if TYPE_CHECKING:
    from textual.message_pump import MessagePump


@dataclass(frozen=True)
class Question:
    """What the answer of a place depends on."""

    places: tuple[str, ...]
    runs_in: str
    gpus: int
    needs: tuple[str, ...]


@dataclass
class PlacesAnswered(Message):
    """What places said to a question: a sentence for each that refuses."""

    question: Question
    refusals: Mapping[str, str]


class PlaceDesk:
    """Asks each question once, and knows the answer to the one that was asked last."""

    def __init__(self, screen: MessagePump) -> None:
        self._asking = Background(screen, lambda error: PlacesAnswered(self._question or Question((), "", 0, ()), {}))
        self._answers: dict[Question, Mapping[str, str]] = {}
        self._question: Question | None = None

    def look(self, spec: Spec, request: Action | None, *, runs_in: str, on: tuple[str, ...]) -> None:
        """Ask about this request, unless it runs here or that is known; `PlacesAnswered` follows."""
        places = tuple(place for place in on if place != LOCAL)
        if request is None or not places:
            self._question = None
            return
        needs = spec.needing(spec.values(request)).needs
        before, self._question = self._question, Question(places, runs_in, gpus_of(spec, request), needs)
        if self._question not in self._answers and self._question != before:
            self._asking.start(partial(_ask, self._question, spec, request))

    def answered(self, message: PlacesAnswered) -> None:
        """Keep an answer."""
        self._answers[message.question] = message.refusals

    def stop(self) -> None:
        """Nobody wants to know any more."""
        self._asking.stop()

    @property
    def refusal(self) -> str:
        """Why a place would not take the job; empty where none refuses, or has not answered yet."""
        answer = self._answers.get(self._question, {}) if self._question else {}
        return "; ".join(answer.values())

    @property
    def fact(self) -> Fact | None:
        """What is known of the places; None where there is nothing to say."""
        if self._question is None:
            return None
        if self._question not in self._answers:
            return Fact("on", f"asking {', '.join(self._question.places)} whether it takes this ...", "muted")
        return Fact("on", self.refusal, "error") if self.refusal else None


def _ask(question: Question, spec: Spec, request: Action, stopped: Stopped, post: Callable[[Message], None]) -> None:
    from hfbench.jobs.executors.base import Need
    from hfbench.jobs.executors.known import executor_of
    from hfbench.jobs.executors.spec import parse_on

    refusals = {}
    for place in question.places:
        try:
            asked = ask(spec, request, runs_in=question.runs_in, on=place)
            executor_of(parse_on(place)).refuse([Need(gpus=asked.gpus, command=tuple(asked.command))])
        except HfbenchError as error:
            refusals[place] = str(error)
    post(PlacesAnswered(question, refusals))
