"""registry.audit: who did what to a private hub."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from hfbench.actions.base import action
from hfbench.actions.params import param
from hfbench.line_width import cut
from hfbench.registry.needs import NEEDS
from hfbench.registry.upkeep.facts import Deed
from hfbench.text import printable

if TYPE_CHECKING:
    from hfbench.jobs.run import Run


@dataclass(frozen=True, kw_only=True)
class AuditResult:
    """What was done, the newest last."""

    deeds: tuple[Deed, ...]

    @property
    def headline(self) -> str:
        """`12 entries`."""
        return f"{len(self.deeds):,} {'entry' if len(self.deeds) == 1 else 'entries'}"

    def lines(self) -> list[str]:
        """When, who, what, to what."""
        return [
            cut(
                f"{datetime.fromtimestamp(deed.at, UTC):%Y-%m-%d %H:%M:%S}  {printable(deed.account)}  {deed.action}  "
                f"{printable(deed.subject)}  {printable(json.dumps(deed.detail)) if deed.detail else ''}".rstrip()
            )
            for deed in self.deeds
        ]


@action("registry.audit", result=AuditResult, inline=True, needs=NEEDS, extra="registry")
@dataclass(frozen=True, kw_only=True)
class RegistryAudit:
    """Tell who made, moved, set and deleted repositories, users and tokens of a private hub. Times are UTC."""

    last: int = param("How many entries", default=50, ge=1, le=100_000)
    account: str = param("Of this user alone", default="")
    folder: Path | None = param("Where the hub is kept; default this user's own", default=None, kind="path")

    def perform(self, run: Run) -> AuditResult:
        """Read the table; MissingError when there is no hub."""
        from hfbench.registry.founding import with_database
        from hfbench.registry.upkeep.deeds import last_deeds
        from hfbench.registry.upkeep.session import settings_of

        deeds = with_database(settings_of(self.folder), lambda db: last_deeds(db, self.last, self.account))
        return AuditResult(deeds=tuple(deeds))
