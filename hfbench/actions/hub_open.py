"""hub.open: a model on a hub without its weights, so that everything that reads headers works on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hfbench.actions.base import action
from hfbench.actions.params import param
from hfbench.errors import UsageError
from hfbench.line_width import cut, paragraph
from hfbench.models.problem import counted, listed
from hfbench.text import printable
from hfbench.units import show_bytes

if TYPE_CHECKING:
    from hfbench.jobs.run import Run

LABEL = 11
SHOWN_REVISIONS = 8


@dataclass(frozen=True, kw_only=True)
class HubOpenResult:
    """What was opened. `reference` is what every command that takes a model takes for it."""

    reference: str
    endpoint: str
    url: str
    repo: str
    revision: str
    commit: str
    folder: str
    private: bool
    gated: str
    """Empty, `auto` or `manual`."""
    whole: int
    """Files that are here with all their bytes."""
    headers: int
    """Files of weights whose headers are here."""
    left: int
    left_bytes: int
    """Bytes of all files that are not here as a whole."""
    fetched_bytes: int
    fetched: int
    """Files this run asked for; those of a commit that was open already are not asked for again."""
    reused: int
    branches: Mapping[str, str]
    tags: Mapping[str, str]
    notes: tuple[str, ...]

    @property
    def headline(self) -> str:
        """`lab:org/name at 0123456789ab: 12 files, headers of 4`."""
        what = f"{counted(self.whole, 'file')}, headers of {self.headers}"
        return f"{printable(self.reference)} at {self.commit[:12]}: {what}"

    def lines(self) -> list[str]:
        """The facts, and what can be done now."""
        state = ", ".join(filter(None, ["private" if self.private else "public", "gated" if self.gated else ""]))
        here = f"{counted(self.whole, 'file')}, and the headers of {counted(self.headers, 'file')} of weights"
        cost = f"{counted(self.fetched, 'file')}, {show_bytes(self.fetched_bytes)}" if self.fetched else "nothing"
        reused = f", {self.reused} kept from another commit" if self.reused else ""
        names = [*self.branches, *self.tags]
        rows = [
            ("model", self.reference),
            ("hub", f"{self.url}, {state}"),
            ("commit", f"{self.commit} ({self.revision})"),
            ("revisions", listed(names, SHOWN_REVISIONS) if names else ""),
            ("here", here),
            ("on the hub", f"{counted(self.left + self.headers, 'file')} not here, {show_bytes(self.left_bytes)}"),
            ("fetched", f"{cost}{reused}"),
            ("folder", self.folder),
        ]
        told = [f"{label:<{LABEL}}{cut(printable(text), LABEL)}" for label, text in rows if text]
        told += [line for note in self.notes for line in paragraph(f"~ {printable(note)}")]
        return [*told, "", f"hfbench inspect {printable(self.reference)}; check, resolve and fit take it too"]


@action("hub.open", result=HubOpenResult, needs=("huggingface_hub",), extra="hub")
@dataclass(frozen=True, kw_only=True)
class HubOpen:
    """Open a model on a hub without its weights: inspect, check, resolve, fit and explain then work on it.

    Configuration, tokenizer and README come whole, of the weights the headers. Opened again, a branch is looked up and
    only what changed is fetched.
    """

    model: str = param("ENDPOINT:org/name[@revision], or org/name with --endpoint", positional=True)
    endpoint: str = param("Hub: a name of [endpoints] or an address; default HF_ENDPOINT, else the Hub", default="")

    def __post_init__(self) -> None:
        from hfbench.hub.endpoints import refuse_passwords

        refuse_passwords(self.model, self.endpoint)

    def perform(self, run: Run) -> HubOpenResult:
        """Fetch what is small; HubError and its kinds."""
        from hfbench.hub.client import HubClient
        from hfbench.hub.facts import Refs
        from hfbench.hub.refusals import HubError
        from hfbench.hub.remote import open_remote
        from hfbench.models.reference import hub_reference

        named = hub_reference(self.model)
        if named is None:
            raise UsageError("names no repository", where=self.model, remedy="write ENDPOINT:org/name@revision")
        if named.endpoint and self.endpoint and named.endpoint != self.endpoint:
            raise UsageError(f"names another endpoint than --endpoint {self.endpoint}", where=self.model)
        client = HubClient(named.endpoint or self.endpoint, warn=lambda text: run.log(text, level="warning"))
        found = open_remote(
            client, named.repo, named.revision, tell=lambda done, total: run.progress("files", done, total)
        )
        refs, lost = Refs({}, {}), list[str]()
        try:
            refs = client.refs(named.repo)
        except HubError as error:  # a hub without them is of use all the same
            lost.append(f"branches and tags are not known: {error}")
        mark = found.mark
        held = Counter(file.held for file in mark.files.values())
        return HubOpenResult(
            reference=client.endpoint.reference(named.repo, named.revision),
            endpoint=mark.endpoint,
            url=mark.url,
            repo=mark.repo,
            revision=named.revision,
            commit=mark.commit,
            folder=str(found.folder),
            private=found.info.private,
            gated=found.info.gated,
            whole=held["whole"],
            headers=held["header"],
            left=held["nothing"],
            left_bytes=sum(file.size for file in mark.files.values() if file.held != "whole"),
            fetched_bytes=found.fetched,
            fetched=found.files,
            reused=found.reused,
            branches=refs.branches,
            tags=refs.tags,
            notes=(*found.notes, *lost),
        )
