"""The fields of a form that say how its job runs: in which environment, and at which place."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hfbench.actions.params import Param
from hfbench.config import HERE, ExecutorConfig
from hfbench.jobs.executors.spec import LOCAL, BadPlace, parse_on
from hfbench.widgets.form_state import FormState

RUNS_IN, RUNS_ON = "in", "on"
PLACE_FORMS = ("slurm:PARTITION", "ray:HOST:PORT", "ssh:HOST")
"""How a place is written that no configuration names; what stands in capitals is to be replaced."""

_SETTING = re.compile(r"\s*\w+=")
_ANY_TEXT: Mapping[str, Any] = {
    "type": str,
    "optional": False,
    "ge": None,
    "le": None,
    "unit": "",
    "kind": "",
    "positional": False,
    "secret": False,
}


@dataclass(frozen=True, kw_only=True)
class PlacesParam(Param):
    """Places as `--on` takes them, commas between them. Choices are offered; any other place is taken as well."""

    named: Mapping[str, ExecutorConfig] = field(default_factory=dict, compare=False)

    def opened(self, value: object) -> bool:
        """Every text that is no choice is read as a place."""
        return bool(str(value).strip()) and value not in self.choices

    def split(self, text: str) -> list[str]:
        """The places; settings such as `,time=30m` belong to the one before them."""
        places: list[str] = []
        for part in text.split(","):
            if places and _SETTING.match(part):
                places[-1] += f",{part.strip()}"
            else:
                places.append(part.strip())
        return places

    def text(self, value: Any) -> str:
        """As they are typed: no quotation marks stand around the commas of settings."""
        return ",".join(map(str, value)) if isinstance(value, (tuple, list)) else super().text(value)

    def _one(self, value: object) -> Any:
        place = str(value)
        if not place.strip():
            raise self._problem("has nothing between two commas")
        if place in PLACE_FORMS:
            blank = place.partition(":")[2]
            raise self._problem(f"{place} is how it is written: type what is meant in place of {blank}")
        try:
            parse_on(place, self.named)
        except BadPlace as error:
            raise self._problem(error.found, error.remedy) from None
        return place


def environment_field(environments: Sequence[str], asked: str) -> Param | None:
    """The field of the environment; None where there is nothing to choose."""
    choices = tuple(dict.fromkeys([HERE, *environments, *filter(None, [asked])]))
    if len(choices) < 2:
        return None
    about = "Environment the job runs in; empty is this Python, or the first that has what it needs"
    return Param(name=RUNS_IN, help=about, default="", many=False, choices=choices, **_ANY_TEXT)


def places_field(executors: Mapping[str, ExecutorConfig], asked: str) -> Param:
    """The field of the places: those of config.toml and the forms of others are offered."""
    choices = tuple(dict.fromkeys([LOCAL, *executors, *filter(None, [asked]), *PLACE_FORMS]))
    about = "Where it runs; a sweep may spread over several"
    return PlacesParam(
        name=RUNS_ON, help=about, default=(LOCAL,), many=True, choices=choices, named=executors, **_ANY_TEXT
    )


def asked_in(state: FormState) -> str:
    """The environment the form names; empty leaves it to hfbench."""
    return str(state.running.get(RUNS_IN, ""))


def asked_on(state: FormState) -> tuple[str, ...]:
    """The places the form names; this machine where it names none."""
    places = state.running.get(RUNS_ON)
    return tuple(map(str, places)) if isinstance(places, tuple) and places else (LOCAL,)
