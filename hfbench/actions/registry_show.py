"""registry.show: what the Registry screen shows of a hub on this machine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hfbench.actions.base import action
from hfbench.actions.params import param
from hfbench.models.problem import counted
from hfbench.registry.accounts import Token, User
from hfbench.registry.needs import NEEDS
from hfbench.registry.upkeep.facts import Use
from hfbench.text import printable
from hfbench.units import show_bytes

if TYPE_CHECKING:
    from hfbench.jobs.run import Run

MOST_REPOS = 10_000
NOT_OFFERED = 501


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """What the workers of a hub counted, those of earlier servers too. `answers` are by the first digit of their
    status; 501, which a hub gives for what it does not offer, stands for itself."""

    workers: int
    running: int
    sent_bytes: int
    received_bytes: int
    answers: dict[str, int]


@dataclass(frozen=True, kw_only=True)
class RegistryView:
    """A hub; with `--only-traffic` its traffic alone."""

    folder: str
    url: str
    traffic: Traffic
    use: Use | None = None
    tokens: tuple[Token, ...] = ()
    users: tuple[User, ...] = ()

    @property
    def headline(self) -> str:
        """`2 requests running, 1.2 GiB sent, 3.4 GiB received`."""
        now = self.traffic
        running = f"{counted(now.running, 'request')} running"
        return f"{running}, {show_bytes(now.sent_bytes)} sent, {show_bytes(now.received_bytes)} received"

    def lines(self) -> list[str]:
        """Address, repositories, users, tokens, traffic."""
        repos = [f"{each.kind}  {printable(each.name)}" for each in (self.use.largest if self.use else ())]
        users = [f"user   {printable(each.name)}" for each in self.users]
        tokens = [f"token  {each.id}  {each.prefix}  {each.scope}  {printable(each.user)}" for each in self.tokens]
        return [f"{self.url}  {printable(self.folder)}", *repos, *users, *tokens, self.headline]


@action("registry.show", result=RegistryView, inline=True, needs=NEEDS, extra="registry")
@dataclass(frozen=True, kw_only=True)
class RegistryShow:
    """Show a private hub of this machine: repositories, users, tokens without secrets, and traffic."""

    folder: Path | None = param("Where the hub is kept; default this user's own", default=None, kind="path")
    only_traffic: bool = param("Only what its server counts, without a look into the database", default=False)

    def perform(self, run: Run) -> RegistryView:
        """Read the database and the counters that workers left; MissingError when there is no hub."""
        from hfbench.registry.metrics import Metrics
        from hfbench.registry.upkeep.session import settings_of

        settings = settings_of(self.folder)
        found = Metrics.left_in(settings.layout.counters)
        answers: dict[str, int] = {}
        for (_, status), count in found.requests.items():
            name = str(status) if status == NOT_OFFERED else f"{status // 100}xx"
            answers[name] = answers.get(name, 0) + count
        traffic = Traffic(
            workers=found.workers,
            running=found.running,
            sent_bytes=found.sent_bytes,
            received_bytes=found.received_bytes,
            answers=dict(sorted(answers.items())),
        )
        if self.only_traffic:
            return RegistryView(folder=settings.folder, url=settings.base_url, traffic=traffic)
        from hfbench.registry.administration import list_tokens, list_users
        from hfbench.registry.upkeep.session import on_hub
        from hfbench.registry.upkeep.use import measure

        return RegistryView(
            folder=settings.folder,
            url=settings.base_url,
            traffic=traffic,
            use=on_hub(settings, lambda hub: measure(hub, MOST_REPOS)),
            tokens=tuple(list_tokens(settings)),
            users=tuple(list_users(settings)),
        )
