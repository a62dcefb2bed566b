"""What can be used without a network: models in the cache, and those that were opened without their weights."""

from __future__ import annotations

from hfbench.models.catalog import list_cache
from hfbench.models.problem import listed
from hfbench.models.remote_mark import RemoteMark, read_mark
from hfbench.paths import remote_root

SHOWN = 5


def opened() -> list[RemoteMark]:
    """Every model that was opened and the revisions it was opened at, by endpoint and name."""
    found: dict[str, RemoteMark] = {}
    for home in sorted(remote_root().glob("*/models--*")):
        for ref in sorted((home / "refs").rglob("*")):
            mark = read_mark(home / "snapshots" / ref.read_text("utf-8", "replace")[:40]) if ref.is_file() else None
            if mark is not None:
                found[mark.reference] = mark
    return list(found.values())


def at_hand(repo: str = "") -> str:
    """What to use in place of a hub, in a sentence: the repository where it is here, else what there is."""
    cached = [entry.reference for entry in list_cache() if not entry.problem]
    seen = [mark.reference for mark in opened()]
    same = [each for each in cached if repo and each.partition("@")[0] == repo]
    same += [mark.reference for mark in opened() if repo and mark.repo == repo]
    if same:
        return f"here is {listed(same, SHOWN)}: hfbench inspect {same[0]}"
    if cached or seen:
        return f"here are {listed([*cached, *seen], SHOWN)}"
    return "nothing is in the cache here, so allow the network and fetch it"
