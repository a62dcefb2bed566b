"""push: send a folder, or artifacts beside a model, to a hub."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from hfbench.actions.base import action
from hfbench.actions.params import param
from hfbench.errors import UsageError
from hfbench.hub.pushing.facts import Pushed
from hfbench.line_width import cut, paragraph
from hfbench.models.problem import counted
from hfbench.paths import expand
from hfbench.text import printable
from hfbench.units import show_bytes, show_seconds

if TYPE_CHECKING:
    from hfbench.jobs.run import Run

LABEL = 10
SHOWN = 40
SHOWN_CONCERNS = 10
_SIGNS = {"new": "+", "changed": "~", "unchanged": " "}


@dataclass(frozen=True, kw_only=True)
class PushResult(Pushed):
    """The commit, what it changed, and what was noticed about the folder."""

    @property
    def headline(self) -> str:
        """`3 files, 256 MiB sent, 12 unchanged`."""
        sent = [each for each in self.files if each.state != "unchanged"]
        same = len(self.files) - len(sent)
        rest = f", {counted(same, 'file')} unchanged" if same else ""
        if self.dry_run:
            return f"{counted(len(sent), 'file')}, {show_bytes(self.changed_bytes)} to send{rest}; nothing was sent"
        if not sent:
            return f"nothing to send: all {counted(same, 'file')} are there already"
        return (
            f"{counted(len(sent), 'file')}, {show_bytes(self.changed_bytes)} pushed"
            f" in {show_seconds(self.seconds)}{rest}"
        )

    def lines(self) -> list[str]:
        """Where it went, what changed, and the warnings."""
        to = f"{self.repo} of {self.endpoint} ({self.url}), {self.revision}"
        head = [_labelled("model", to + (", made new" if self.created else ""))]
        head += [_labelled("folder", self.folder)] if self.folder else []
        head += [_labelled("beside it", each) for each in self.artifacts]
        head += [_labelled("commit", self.commit)] if self.commit_url else []
        head += [_labelled("page", self.commit_url)] if self.commit_url else []
        if self.only_there:
            head.append(_labelled("", f"{counted(self.only_there, 'file')} on the hub are not in the folder, and stay"))
        return [*head, "", *self._changes(), *self._concerns(), self.headline]

    def _changes(self) -> Iterator[str]:
        sent = [each for each in self.files if each.state != "unchanged"]
        for each in sent[:SHOWN]:
            yield cut(f"{_SIGNS[each.state]} {show_bytes(each.bytes):>9}  {printable(each.path)}")
        if len(sent) > SHOWN:
            yield f"and {len(sent) - SHOWN} more (--json lists all)"
        if sent:
            yield ""

    def _concerns(self) -> Iterator[str]:
        for each in self.concerns[:SHOWN_CONCERNS]:
            said = f"{each.file}: {each.text}" if each.file else each.text
            yield from paragraph(printable(said), first="! ", later="  ")
        if len(self.concerns) > SHOWN_CONCERNS:
            yield f"and {len(self.concerns) - SHOWN_CONCERNS} more; hfbench check {self.folder} tells all"
        if self.concerns:
            yield ""


@action("push", result=PushResult, needs=("huggingface_hub",), extra="hub")
@dataclass(frozen=True, kw_only=True)
class Push:
    """Send a model's folder to a hub: checked first, only what changed, as one commit.

    What `hfbench check` calls an error refuses the push, and so does anything that looks like a token or a key.
    """

    folder: str = param("Folder of the model; with --artifact alone, the model it belongs to", positional=True)
    model: str = param("org/name, ENDPOINT:org/name or org/name@branch to push to", default="", positional=True)
    endpoint: str = param("Name of an endpoint of the configuration, or its address", default="")
    revision: str = param("Branch to commit to; default main", default="")
    message: str = param("First line of the commit", default="")
    create: bool = param("Make the repository, where there is none", default=False)
    private: bool = param("With --create: for its owner alone", default=False)
    include: tuple[str, ...] = param("Files to push, with * and ?; default all", default=())
    exclude: tuple[str, ...] = param("Files to leave out, with * and ?", default=())
    artifact: tuple[str, ...] = param(
        "What to put beside the model: engine:PATH, report:PATH or benchmark:PATH", default=()
    )
    strict: bool = param("Let warnings refuse the push, as errors do", default=False)
    force: bool = param("Push in spite of errors of the check; secrets refuse all the same", default=False)
    dry_run: bool = param("Look at everything, and send nothing", default=False)

    def __post_init__(self) -> None:
        from hfbench.hub.endpoints import refuse_passwords

        refuse_passwords(self.folder, self.model, self.endpoint)

    def perform(self, run: Run) -> PushResult:
        """Check, compare, send, commit; huggingface_hub enters here."""
        from hfbench.hub.push import PushWish, push

        if not self.model and not self.artifact:
            raise UsageError("says what to push and not where to", remedy="hfbench push FOLDER org/name")
        found = push(
            expand(self.folder) if self.model else None,
            self.model or self.folder,
            run,
            endpoint=self.endpoint,
            revision=self.revision,
            message=self.message,
            private=self.private,
            create=self.create,
            what=PushWish(
                include=self.include,
                exclude=self.exclude,
                artifacts=self.artifact,
                force=self.force,
                strict=self.strict,
            ),
            dry_run=self.dry_run,
        )
        return PushResult(**{field.name: getattr(found, field.name) for field in fields(found)})


def _labelled(label: str, text: str) -> str:
    return f"{label:<{LABEL}}{cut(printable(text), LABEL)}"
