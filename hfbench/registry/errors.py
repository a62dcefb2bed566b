"""What the hub refuses, in the words and codes that stock clients understand."""

from __future__ import annotations

from collections.abc import Mapping

from hfbench.text import printable

LONGEST_HEADER = 2000
DAMAGED = "The hub's database is damaged: its administrator has to put back a backup."


def header_text(text: str) -> str:
    """A sentence as the value of a header: one line of latin-1 without control characters, not too long."""
    return printable(" ".join(text.split()))[:LONGEST_HEADER].encode("latin-1", "replace").decode("latin-1")


class Refusal(Exception):
    """An answer that is not what was asked for: a status, a code of the protocol and one sentence."""

    def __init__(self, status: int, found: str, *, code: str = "", headers: Mapping[str, str] | None = None) -> None:
        self.status, self.found, self.code = status, found, code
        self.headers = dict(headers or {})
        super().__init__(found)


class RepoNotFound(Refusal):
    """There is no such repository, or none for this caller: the two look the same."""

    def __init__(self, *, anonymous: bool) -> None:
        found = "Repository not found" + (", or it needs a token." if anonymous else ".")
        super().__init__(401 if anonymous else 404, found, code="RepoNotFound")


class RevisionNotFound(Refusal):
    """No branch, tag or commit has that name."""

    def __init__(self, revision: str) -> None:
        super().__init__(404, f"Invalid rev id: {revision}", code="RevisionNotFound")


class EntryNotFound(Refusal):
    """The revision has no such path; the commit is told, so that clients remember the absence."""

    def __init__(self, path: str, commit: str) -> None:
        headers = {"X-Repo-Commit": commit}
        super().__init__(404, f"{path} does not exist in this revision.", code="EntryNotFound", headers=headers)


class Gated(Refusal):
    """The repository is visible, its files are not open to this caller."""

    def __init__(self, repo: str, *, anonymous: bool) -> None:
        remedy = "send a token of somebody who has access" if anonymous else "ask its owner for access"
        super().__init__(401 if anonymous else 403, f"Access to {repo} is restricted: {remedy}.", code="GatedRepo")


class BadToken(Refusal):
    """A token that is unknown, expired or revoked."""

    def __init__(self) -> None:
        super().__init__(401, "Invalid credentials in Authorization header")


class NeedsToken(Refusal):
    """The request needs somebody."""

    def __init__(self) -> None:
        super().__init__(401, "This needs a token: log in with hf auth login, or set HF_TOKEN.")


class Forbidden(Refusal):
    """The caller may not do this."""

    def __init__(self, found: str) -> None:
        super().__init__(403, found)


class BadRequest(Refusal):
    """The request is wrong; the sentence is shown to the user by stock clients."""

    def __init__(self, found: str) -> None:
        super().__init__(400, found)


class Conflict(Refusal):
    """What was to be made is there already."""

    def __init__(self, found: str) -> None:
        super().__init__(409, found)


class StaleParent(Refusal):
    """Another commit came first."""

    def __init__(self) -> None:
        super().__init__(412, "A commit has happened since. Please refresh and try again.")


class TooLarge(Refusal):
    """More than this hub takes."""

    def __init__(self, found: str) -> None:
        super().__init__(413, found)


class TooSlow(Refusal):
    """A body that hardly comes."""

    def __init__(self) -> None:
        super().__init__(408, "The body came too slowly: send it again.", headers={"Connection": "close"})


class NotImplementedHere(Refusal):
    """Part of the protocol, and not of this hub."""

    def __init__(self, what: str) -> None:
        super().__init__(501, f"This hub does not offer {what}.", code="NotImplemented")
