"""The keys of the Registry screen: tokens, jobs that look after the hub, and the lines for a shell."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual import on, work
from textual.binding import Binding, BindingType

from hfbench.actions.registry import find
from hfbench.errors import HfbenchError, UsageError
from hfbench.paths import expand
from hfbench.screens.background import Background
from hfbench.screens.base import BenchScreen
from hfbench.screens.confirm import AskText, Confirm
from hfbench.screens.registry_asks import EnvTold, TokenMade, TokenRevoked, make_token, revoke_token, tell_env
from hfbench.screens.registry_jobs import FSCK, GC, STATS
from hfbench.screens.registry_token import ASKED, ShowOnce, parsed

if TYPE_CHECKING:
    from hfbench.actions.registry_show import RegistryView
    from hfbench.widgets.record_table import RecordTable


class RegistryKeys(BenchScreen):
    """A screen with a hub at hand. Subclasses give `tab`, `table`, `action_update` and `folder_changed`."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n", "new_token", "new token", id="registry.token"),
        Binding("x", "revoke", "revoke", id="registry.revoke"),
        Binding("f", "fsck", "fsck", id="registry.fsck"),
        Binding("g", "gc", "gc", id="registry.gc"),
        Binding("s", "stats", "stats", id="registry.stats"),
        Binding("e", "env", "env", id="registry.env"),
        Binding("slash", "filter", "filter", show=False, id="screen.filter"),
        Binding("u", "update", "update", show=False, id="registry.update"),
        Binding("F", "folder", "folder", show=False, id="registry.folder"),
        Binding("y", "copy_name", "copy name", show=False, id="registry.copy"),
    ]

    tab: str

    def __init__(self, folder: str) -> None:
        super().__init__()
        self.folder = folder
        self.view: RegistryView | None = None
        self._typed = ""
        """What the last token was asked for by."""
        self._changing = Background(self, lambda error: TokenMade("", error=error))
        self._telling = Background(self, lambda error: EnvTold(error=error))

    @property
    def table(self) -> RecordTable | None:
        """The table in front."""
        raise NotImplementedError

    def action_update(self) -> None:
        """Look again."""
        raise NotImplementedError

    def folder_changed(self) -> None:
        """Another hub is to be shown."""
        raise NotImplementedError

    # -- tokens ---------------------------------------------------------------

    @work
    async def action_new_token(self) -> None:
        """Ask for whom, then make a token and show it once."""
        await self._ask_token(f"{self._user} write" if self._user else "")

    async def _ask_token(self, text: str, trouble: str = "") -> None:
        """Ask until it can be read or is given up; what was typed stays."""
        answer = await self.app.push_screen_wait(AskText(ASKED, text, check=parsed, trouble=trouble))
        self._typed = answer or ""
        if answer:
            user, scope, lasts = parsed(answer)
            self._changing.start(partial(make_token, self.folder, user, scope, lasts))

    @work
    async def _ask_again(self, error: HfbenchError) -> None:
        await self._ask_token(self._typed, str(error))

    @property
    def _user(self) -> str:
        """The user of the row under the cursor, else the first that may not everything."""
        if self.view is None:
            return ""
        key = self.table.current if self.table else None
        if self.tab == "Users" and key:
            return key
        if self.tab == "Tokens":
            return next((each.user for each in self.view.tokens if str(each.id) == key), "")
        return next((each.name for each in self.view.users if not each.is_admin), "")

    @on(TokenMade)
    def _made(self, message: TokenMade) -> None:
        if message.error is not None:
            self._ask_again(message.error) if self._typed else self.bench.complain(message.error)
            return
        self._typed = ""
        self.action_update()
        self.app.push_screen(ShowOnce(message.user, message.secret))

    @work
    async def action_revoke(self) -> None:
        """Ask, then let the token under the cursor in no longer."""
        key = self.table.current if self.table and self.tab == "Tokens" else None
        found = next((each for each in self.view.tokens if str(each.id) == key), None) if self.view else None
        if found is None:
            return
        what = f"revoke token {found.id} of {found.user} ({found.prefix}...), at once and for good?"
        if await self.app.push_screen_wait(Confirm(what)):
            self._changing.start(partial(revoke_token, self.folder, found.id))

    @on(TokenRevoked)
    def _revoked(self, message: TokenRevoked) -> None:
        self.notify(f"token {message.id} lets nobody in any more")
        self.action_update()

    # -- jobs -----------------------------------------------------------------

    def action_fsck(self) -> None:
        """Check every stored byte in a job."""
        self._start(FSCK)

    def action_stats(self) -> None:
        """Count in a job."""
        self._start(STATS)

    def action_gc(self) -> None:
        """The form of a collection: it removes things, and can be asked for what it would remove."""
        if self.view is not None:
            self.bench.open_form(GC, {"folder": self.view.folder, "dry_run": True})

    def _start(self, action: str) -> None:
        if self.view is not None:
            self.bench.start_job(find(action).build({"folder": self.view.folder}))

    # -- copying --------------------------------------------------------------

    def action_env(self) -> None:
        """Copy the lines that lead stock clients to the hub."""
        if self.view is not None:
            endpoints = self.bench.config.endpoints.items()
            url = self.view.url
            name = next((name for name, each in endpoints if each.url.rstrip("/") == url), url)
            self._telling.start(partial(tell_env, name))

    @on(EnvTold)
    async def _env_told(self, message: EnvTold) -> None:
        if message.error is not None:
            self.bench.complain(message.error)
        else:
            await self.copy("\n".join(message.lines))

    async def action_copy_name(self) -> None:
        """The name of the row under the cursor; without a hub the command that starts one."""
        if self.view is None:
            await self.copy("hfbench registry serve")
        elif self.table is not None and self.table.current:
            await self.copy(self.table.current.rpartition(" ")[2])

    @work
    async def action_folder(self) -> None:
        """Ask where another hub is kept, and show it."""
        answer = await self.app.push_screen_wait(AskText("folder of the hub", self.folder))
        if answer and "://" in answer:
            self.bench.complain(_elsewhere(answer))
        elif answer:
            self.folder = str(expand(answer).absolute())
            self.folder_changed()


def _elsewhere(url: str) -> UsageError:
    """A hub is looked after where its folder is; what a token may see of it is what the Models screen shows."""
    remedy = "name it under [endpoints] and find its models under 1, or run hfbench there: hfbench registry stats"
    return UsageError(
        "this is an address, and a hub is looked after on the machine of its folder", where=url, remedy=remedy
    )
