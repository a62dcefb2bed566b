"""Which number formats run on which compute capability in which runtime, by `data/precision.toml` and its sources."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from typing import Any, Literal

from hfbench.models.resolution.quantization import Quantization

Status = Literal["native", "slower", "no", "unknown"]


@dataclass(frozen=True, kw_only=True)
class Support:
    """What one runtime does with a scheme. `least` is the compute capability it needs, `never` why none will do."""

    least: str = ""
    fast: str = ""
    """From where its quick kernels run, where that is not where tensor cores know the format."""
    how: str = ""
    never: str = ""
    source: str = ""
    unverified: bool = False


@dataclass(frozen=True, kw_only=True)
class Scheme:
    """One way of packing weights. `native` is empty where no tensor core multiplies in it."""

    name: str
    title: str
    native: str
    methods: frozenset[str]
    formats: frozenset[str]
    algorithms: frozenset[str]
    runtimes: Mapping[str, Support] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Ran:
    """Whether a scheme runs on a card in a runtime, and the sentence that says so with its source."""

    status: Status
    why: str
    source: str = ""
    unverified: bool = False


@dataclass(frozen=True, kw_only=True)
class Dtype:
    """A type of numbers without quantisation and the capability from which cards compute in it."""

    name: str
    native: str
    refuse: frozenset[str]
    instead: str
    unverified: bool


@lru_cache(maxsize=1)
def table() -> dict[str, Any]:
    """The file as it stands."""
    return tomllib.loads((files("hfbench.engines.runtimes") / "data" / "precision.toml").read_text("utf-8"))


@lru_cache(maxsize=1)
def schemes() -> tuple[Scheme, ...]:
    """Every scheme of the table."""
    return tuple(
        Scheme(
            name=row["name"],
            title=row["title"],
            native=row["native"],
            methods=frozenset(row["methods"]),
            formats=frozenset(row["formats"]),
            algorithms=frozenset(row["algorithms"]),
            runtimes={name: _support(told) for name, told in row["runtimes"].items()},
        )
        for row in table()["scheme"]
    )


@lru_cache(maxsize=1)
def dtypes() -> dict[str, Dtype]:
    """The types of the table by name."""
    return {
        row["name"]: Dtype(
            name=row["name"],
            native=row["native"],
            refuse=frozenset(row["refuse"]),
            instead=row["instead"],
            unverified=row.get("unverified", False),
        )
        for row in table()["dtype"]
    }


def scheme_of(quantization: Quantization | None) -> Scheme | None:
    """The scheme a checkpoint is packed in, by algorithm, format or method; None for none and for those not listed."""
    if quantization is None:
        return None
    algorithm, told = _told(quantization.given)
    for scheme in schemes():
        if algorithm and algorithm in scheme.algorithms:
            return scheme
    for scheme in schemes():
        if told and told in scheme.formats:
            return scheme
    if quantization.method == "compressed-tensors":
        return None  # its format decides, and this one is not listed
    return next((scheme for scheme in schemes() if quantization.method in scheme.methods), None)


def scheme_named(name: str) -> Scheme | None:
    """The scheme a person means by its name or by the method a runtime calls it by."""
    word = name.strip().lower()
    return next((each for each in schemes() if word == each.name or word in each.methods), None)


def judge(scheme: Scheme, runtime: str, capability: str) -> Ran:
    """Whether a runtime takes the scheme on a card of that compute capability, such as `8.9`; `` is not known."""
    support = scheme.runtimes.get(runtime)
    if support is None:
        return Ran(status="unknown", why=f"the table does not say from which card on {scheme.title} runs there")
    told = {"source": support.source, "unverified": support.unverified}
    if support.never:
        return Ran(status="no", why=support.never, **told)  # type: ignore[arg-type]
    from_on = f"{scheme.title} from compute capability {support.least}"
    if not capability:
        return Ran(status="unknown", why=from_on, **told)  # type: ignore[arg-type]
    if below(capability, support.least):
        return Ran(status="no", why=f"{from_on}, this card is {capability}", **told)  # type: ignore[arg-type]
    native = support.fast or scheme.native
    if native and below(capability, native):
        how = support.how or f"tensor cores know it from {native}"
        return Ran(status="slower", why=f"{scheme.title} on {capability}: {how}", **told)  # type: ignore[arg-type]
    return Ran(status="native", why=f"{scheme.title} runs on {capability}", **told)  # type: ignore[arg-type]


def below(capability: str, other: str) -> bool:
    """True when one compute capability, such as `8.6`, is lower than another."""
    return _pair(capability) < _pair(other)


def _pair(capability: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d{1,3})\.(\d{1,2})", capability)
    if match is None:
        raise ValueError(f"{capability!r} is no compute capability")
    return int(match[1]), int(match[2])


def _told(given: Mapping[str, Any]) -> tuple[str, str]:
    """(ModelOpt's algorithm, compressed-tensors' format), each empty when it is not told."""
    nested = given.get("quantization")
    inner = nested if isinstance(nested, dict) else {}
    algorithm = given.get("quant_algo", inner.get("quant_algo"))
    told = given.get("format")
    if not isinstance(told, str):
        groups = given.get("config_groups")
        values = list(groups.values()) if isinstance(groups, dict) else []
        told = next((each["format"] for each in values if isinstance(each, dict) and "format" in each), "")
    return (algorithm.upper() if isinstance(algorithm, str) else "", told if isinstance(told, str) else "")


def _support(told: Mapping[str, Any]) -> Support:
    sources = table()["sources"]
    return Support(
        least=told.get("least", ""),
        fast=told.get("fast", ""),
        how=told.get("how", ""),
        never=told.get("never", ""),
        source=sources[told["from"]],
        unverified=told.get("unverified", False),
    )
