"""hub.artifacts: what lies beside a model on a hub."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hfbench.actions.base import action
from hfbench.actions.params import param
from hfbench.hub.pushing.facts import Artifact
from hfbench.line_width import cut
from hfbench.models.problem import counted
from hfbench.text import printable
from hfbench.units import show_bytes

if TYPE_CHECKING:
    from hfbench.jobs.run import Run


@dataclass(frozen=True, kw_only=True)
class ArtifactsResult:
    """Engines, reports and benchmark results beside a model."""

    repo: str
    endpoint: str
    commit: str
    artifacts: tuple[Artifact, ...]

    @property
    def headline(self) -> str:
        """`2 artifacts, 3.1 GiB`."""
        return f"{counted(len(self.artifacts), 'artifact')}, {show_bytes(sum(each.bytes for each in self.artifacts))}"

    def lines(self) -> list[str]:
        """One line an artifact, with how it is fetched."""
        rows = [
            cut(
                f"{each.kind:<10} {each.path:<32} {show_bytes(each.bytes):>9}  {printable(each.name)}"
                + (f"  {each.pushed_at}" if each.pushed_at else "")
            )
            for each in self.artifacts
        ]
        fetch = f"hfbench pull {self.endpoint}:{self.repo} --include '{self.artifacts[0].path}/*'" if rows else ""
        return [f"{self.repo} of {self.endpoint}", *rows, self.headline, *([fetch] if fetch else [])]


@action("hub.artifacts", result=ArtifactsResult, inline=True, needs=("huggingface_hub",), extra="hub")
@dataclass(frozen=True, kw_only=True)
class Artifacts:
    """List the engines, reports and benchmark results that were pushed beside a model."""

    model: str = param("org/name, org/name@revision or ENDPOINT:org/name", positional=True)
    endpoint: str = param("Name of an endpoint of the configuration, or its address", default="")
    revision: str = param("Branch, tag or commit; default main", default="")

    def __post_init__(self) -> None:
        from hfbench.hub.endpoints import refuse_passwords

        refuse_passwords(self.model, self.endpoint)

    def perform(self, run: Run) -> ArtifactsResult:
        """Ask the hub; only labels are fetched."""
        from hfbench.hub.client import HubClient
        from hfbench.hub.endpoints import endpoint
        from hfbench.hub.pull import asked_for
        from hfbench.hub.pushing.artifacts import artifacts_of

        named, at, revision = asked_for(self.model, self.endpoint, self.revision)
        client = HubClient(endpoint(at), warn=lambda text: run.log(text, "warning"))
        commit, found = artifacts_of(client, named.repo, revision)
        return ArtifactsResult(repo=named.repo, endpoint=client.endpoint.name, commit=commit, artifacts=tuple(found))
