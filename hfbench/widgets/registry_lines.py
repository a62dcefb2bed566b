"""What a hub does and how it fares, as lines: traffic with rates, and health with what to do; nothing is read here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hfbench.models.problem import counted
from hfbench.units import GIB, show_ago, show_bytes
from hfbench.widgets.cells import Span
from hfbench.widgets.facts_lines import Fact, facts_lines
from hfbench.widgets.glyphs import Glyphs, State

if TYPE_CHECKING:
    from hfbench.actions.registry_show import RegistryView, Traffic
    from hfbench.registry.upkeep.facts import Use

LITTLE = 10 * GIB
"""Free bytes below which the disk is warned of."""
OLD_CHECK = 30 * 86400.0
"""Seconds after which a check says little."""


@dataclass(frozen=True, kw_only=True)
class Upkeep:
    """The latest job of one kind on a hub: what it came to, and when; `fine` None while it runs."""

    job: str
    text: str
    at: float
    fine: bool | None


@dataclass(frozen=True, kw_only=True)
class Sampled:
    """Traffic and when it was read, in seconds of a clock that never goes back."""

    traffic: Traffic
    at: float


def summary(view: RegistryView, glyphs: Glyphs) -> str:
    """Totals for the head of the screen."""
    use = view.use
    if use is None:
        return view.url
    saved = f" ({use.saved:.1f}{glyphs.times})" if use.kept_bytes else ""
    told = [
        f"{use.repos:,} {'repository' if use.repos == 1 else 'repositories'}",
        f"{show_bytes(use.told_bytes)} in {show_bytes(use.kept_bytes)}{saved}",
        f"{show_bytes(use.free_bytes)} free",
        view.url if use.serving else "not served",
    ]
    return f" {glyphs.dot} ".join(told)


def live_lines(samples: Sequence[Sampled], use: Use | None, width: int, glyphs: Glyphs) -> list[list[Span]]:
    """What goes on now, with rates over the samples, and what was counted in all."""
    return facts_lines([*_live_facts(samples, use)], width, glyphs)


def health_lines(
    view: RegistryView, upkeep: dict[str, Upkeep], now: float, width: int, glyphs: Glyphs
) -> list[list[Span]]:
    """Server, disk, the last check and the last collection, the store, and the namespaces with their quotas."""
    use = view.use
    if use is None:
        return []
    facts = [_served(view, use), _disk(use), *_damage(use), *_checked(upkeep.get("registry.fsck"), now)]
    if swept := upkeep.get("registry.gc"):
        facts.append(Fact("last gc", f"{swept.text}, {show_ago(now - swept.at)}, job {swept.job}", _state(swept)))
    else:
        facts.append(Fact("last gc", "none here: g frees what no repository needs any more", "muted"))
    lines = facts_lines(facts, width, glyphs)
    lines += [[], [("store", "title")], *facts_lines([*_store_facts(view, use)], width, glyphs)]
    if use.namespaces:
        spaces = [*_namespace_facts(use)]
        lines += [[], [("namespaces", "title")], *facts_lines(spaces, width, glyphs)]
    return lines


def env_lines(url: str) -> list[list[Span]]:
    """How clients are led to a hub."""
    return [[("clients: ", "muted"), (f"HF_ENDPOINT={url}", ""), ("  e copies the lines", "muted")]]


def start_lines(folder: str, width: int, glyphs: Glyphs) -> list[list[Span]]:
    """The two commands that start a hub and fill it."""
    told = [
        Fact("", f"no hub in {folder} yet. Two commands, in another terminal, start one and push a model to it:"),
        Fact("", ""),
        Fact("1", "hfbench registry serve"),
        Fact("", "makes the hub the first time, serves it, and prints HF_ENDPOINT and HF_TOKEN to export"),
        Fact("2", "hf upload my-name/my-model ./my-model"),
        Fact("", "any unmodified client does, once the two variables are set"),
        Fact("", ""),
        Fact("", "y copies the first command, u looks again, F shows a hub that is kept in another folder", "muted"),
        Fact(
            "", "a hub on another machine: its models are among the sources of 1, and it is looked after there", "muted"
        ),
    ]
    return facts_lines(told, width, glyphs)


def _live_facts(samples: Sequence[Sampled], use: Use | None) -> Iterator[Fact]:
    if not samples:
        yield Fact("traffic", "reading ...", "muted")
        return
    last = samples[-1].traffic
    if not last.workers:
        yield Fact("server", "no worker has counted anything lately: hfbench registry serve starts one", "unknown")
    else:
        yield Fact("server", counted(last.workers, "worker"), "ok")
    yield Fact("now", f"{counted(last.running, 'request')} being answered")
    for label, name in (("sent", "sent_bytes"), ("received", "received_bytes")):
        rate = _rate(samples, name)
        told = f", {show_bytes(rate)}/s now" if rate else ""
        yield Fact(label, f"{show_bytes(getattr(last, name))} in all{told}")
    if use is not None:
        yield Fact("on the way", f"{show_bytes(use.upload_bytes)} of uploads that are not committed")
    answers = ", ".join(f"{count:,} of {status}" for status, count in last.answers.items())
    yield Fact("answers", answers or "none yet")
    if wrong := last.answers.get("5xx", 0):
        yield Fact("", f"{counted(wrong, 'answer')} of 5xx: the server's log tells why", "warn")
    yield Fact("", "workers write their counters every few seconds", "muted")


def _rate(samples: Sequence[Sampled], name: str) -> float:
    """Bytes a second over the samples there are; 0 when nothing moved."""
    first, last = samples[0], samples[-1]
    moved = getattr(last.traffic, name) - getattr(first.traffic, name)
    return float(moved) / (last.at - first.at) if last.at > first.at else 0.0


def _served(view: RegistryView, use: Use) -> Fact:
    if use.serving:
        return Fact("server", f"serves {view.url}", "ok")
    return Fact("server", "not served on this machine: hfbench registry serve starts it", "unknown")


def _disk(use: Use) -> Fact:
    little = use.free_bytes < LITTLE
    do = ": g frees what no repository needs, uploads are refused once it is full" if little else ""
    return Fact("disk", f"{show_bytes(use.free_bytes)} free{do}", "warn" if little else "ok")


def _damage(use: Use) -> Iterator[Fact]:
    if use.damaged_bytes:
        yield Fact("damaged", f"{show_bytes(use.damaged_bytes)} set aside by fsck, in {use.folder}/damaged", "warn")


def _checked(last: Upkeep | None, now: float) -> Iterator[Fact]:
    if last is None:
        yield Fact("last fsck", "never here: f checks every stored byte against its hash", "unknown")
        return
    old = now - last.at > OLD_CHECK
    again = "; f checks again" if old else ""
    state: State = "unknown" if last.fine and old else _state(last)
    yield Fact("last fsck", f"{last.text}, {show_ago(now - last.at)}, job {last.job}{again}", state)
    if last.fine is False:
        yield Fact("do", f"hfbench registry fsck --repair restores what it can; job {last.job} names each file")


def _state(last: Upkeep) -> State:
    return "muted" if last.fine is None else "ok" if last.fine else "error"


def _store_facts(view: RegistryView, use: Use) -> Iterator[Fact]:
    yield Fact("folder", f"{view.folder}, {use.database}, storage {use.storage}", "muted")
    saved = f": {use.saved:.2f} bytes of repositories a stored byte" if use.kept_bytes else ""
    yield Fact("kept", f"{show_bytes(use.told_bytes)} in {show_bytes(use.kept_bytes)}{saved}")
    yield Fact("xorbs", show_bytes(use.xorb_bytes))
    yield Fact("whole files", show_bytes(use.blob_bytes))
    yield Fact("cache", f"{show_bytes(use.cache_bytes)} rebuilt, may be deleted while no server runs")
    yield Fact("history", f"{counted(use.commits, 'commit')}, {counted(use.blobs, 'content')}")


def _namespace_facts(use: Use) -> Iterator[Fact]:
    for each in use.namespaces:
        repos = f"{each.repos:,} {'repository' if each.repos == 1 else 'repositories'}"
        if not each.quota:
            yield Fact(each.name, f"{show_bytes(each.bytes)}, {repos}, no quota")
            continue
        full = each.bytes >= 0.9 * each.quota
        told = f"{show_bytes(each.bytes)} of {show_bytes(each.quota)}, {repos}"
        yield Fact(each.name, told, "warn" if full else "")
