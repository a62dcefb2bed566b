"""One hub asked over HTTP: every answer is bounded and checked, every refusal is a sentence.

For workers and children: huggingface_hub is imported by the first request.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar
from urllib.parse import quote, urlencode, urljoin, urlsplit

from hfbench import __version__
from hfbench.config import read_config
from hfbench.errors import HfbenchError
from hfbench.hub.endpoints import Endpoint, endpoint, offline_reason, origin_of
from hfbench.hub.facts import BadAnswer, HubFile, Refs, RepoInfo, read_file, read_info, read_refs
from hfbench.hub.files import FileStream, asked_range
from hfbench.hub.refusals import (
    Asked,
    Busy,
    HubError,
    NoSuchRevision,
    Unreachable,
    not_a_hub,
    offline,
    refused,
    translated,
)
from hfbench.hub.session import session, timeouts, trust, within
from hfbench.text import did_you_mean

MIB = 1 << 20
LARGEST_ANSWER = 64 * MIB
"""Bytes of one answer of the API."""
ANSWER_TIME = 60.0
"""Seconds for one answer of the API, tries included."""
MOST_FILES = 100_000
MOST_PAGES = 1000
MOST_REDIRECTS = 5
WAITS = (0.5, 2.0)
"""Seconds before the second and the third try."""
LONGEST_WAIT = 20.0
REDIRECTS = (301, 302, 303, 307, 308)

_LINK = re.compile(r"<([^>]*)>([^<]*)")
_NEXT = re.compile(r"""\brel\s*=\s*["']?[^"']*\bnext\b""", re.IGNORECASE)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Answer:
    """JSON of the API with the headers it came with; `next` is the address of the next page, empty on the last."""

    data: Any
    headers: Mapping[str, str]
    next: str = ""


class HubClient:
    """What one endpoint knows. Methods raise HubError and its kinds; may be used by many threads."""

    def __init__(self, at: Endpoint | str = "", *, warn: Callable[[str], None] = lambda text: None) -> None:
        self.endpoint = at if isinstance(at, Endpoint) else endpoint(at)
        self._warn, self._warned = warn, set[str]()

    @cached_property
    def _authorization(self) -> dict[str, str]:
        token = self.endpoint.token
        return {"authorization": trust(self.endpoint, token)} if token else {}

    def asked(self, repo: str = "", revision: str = "", path: str = "") -> Asked:
        """What is being asked, for sentences."""
        return Asked(self.endpoint, repo, revision, path, with_token=bool(self._authorization))

    def whoami(self) -> str:
        """The account of the token."""
        data = self.get("/api/whoami-v2", self.asked()).data
        return str(data.get("name", "")) if isinstance(data, dict) else ""

    def info(self, repo: str, revision: str = "main") -> RepoInfo:
        """A model at a branch, tag or commit, with the commit it means."""
        asked = self.asked(repo, revision)
        try:
            data = self.get(f"/api/models/{quote(repo)}/revision/{quote(revision, safe='')}", asked).data
        except NoSuchRevision as error:
            raise self._named_revisions(error, repo, revision) from None
        with _checked(asked):
            return read_info(data)

    def _named_revisions(self, error: NoSuchRevision, repo: str, revision: str) -> NoSuchRevision:
        """The error with the revisions there are, where the hub tells them."""
        try:
            refs = self.refs(repo)
        except HubError:
            return error
        names = [*refs.branches, *refs.tags]
        remedy = did_you_mean(revision, names) or f"there are {', '.join(names[:8]) or 'none'}"
        return NoSuchRevision(error.found, where=error.where, remedy=remedy)

    def refs(self, repo: str) -> Refs:
        """Branches and tags."""
        asked = self.asked(repo)
        data = self.get(f"/api/models/{quote(repo)}/refs", asked).data
        with _checked(asked):
            return read_refs(data)

    def files(self, repo: str, commit: str) -> list[HubFile]:
        """Every file of a revision. Paths are safe to join to a folder, and no two are the same."""
        asked, found = self.asked(repo, commit), dict[str, HubFile]()
        path = f"/api/models/{quote(repo)}/tree/{quote(commit, safe='')}"
        for page in self.pages(path, asked, {"recursive": "true"}):
            with _checked(asked):
                for entry in page:
                    if (file := read_file(entry)) is not None:
                        found[file.path] = file
            if len(found) > MOST_FILES:
                raise HubError(f"has more than {MOST_FILES:,} files", where=asked.where)
        return sorted(found.values(), key=lambda file: file.path)

    def pages(self, path: str, asked: Asked, params: Mapping[str, Any] | None = None) -> Iterator[list[Any]]:
        """The pages of a list, one after the other."""
        answer = self.get(path, asked, params)
        for _ in range(MOST_PAGES):
            if not isinstance(answer.data, list):
                raise not_a_hub("where a list belongs it sends something else", asked)
            yield answer.data
            if not answer.next:
                return
            answer = self.get(answer.next, asked)
        raise not_a_hub(f"a list has more than {MOST_PAGES} pages", asked)

    def get(self, path: str, asked: Asked, params: Mapping[str, Any] | None = None) -> Answer:
        """The JSON at a path of the API, or at an address on the same hub. Tried again where that may help."""
        url = self.url(path, params)
        return within(ANSWER_TIME, lambda: self.tried(lambda: self._answer(url, asked)), asked)

    def read_file(self, repo: str, commit: str, file: str, *, start: int = 0, end: int | None = None) -> FileStream:
        """A file of a revision from byte `start` up to `end`, exclusive, or to its last: a context manager.

        The hub may answer from an earlier byte, as one without ranges does: look at `start` of the stream.
        """
        asked = self.asked(repo, commit, file)
        url = self.url(f"/{quote(repo)}/resolve/{quote(commit, safe='')}/{quote(file)}")
        headers = asked_range(start, end)
        return FileStream(asked, lambda: self._stream(url, asked, headers=headers, files=True), headers)

    def url(self, path: str, params: Mapping[str, Any] | None = None) -> str:
        """The address of a path of this hub; lists in `params` are repeated."""
        query = f"?{urlencode(params, doseq=True)}" if params else ""
        return path + query if "://" in path else self.endpoint.url + path + query

    def api(self) -> Any:
        """huggingface_hub's own client of this hub, for what is not done here; wrap its calls in `errors_of`."""
        self._refuse_offline(self.asked())
        session()
        from huggingface_hub import HfApi

        return HfApi(endpoint=self.endpoint.url, token=self._token_or_none())

    @contextmanager
    def errors_of(self, repo: str = "", revision: str = "", path: str = "") -> Iterator[None]:
        """Turns what huggingface_hub raises inside into sentences."""
        asked = self.asked(repo, revision, path)
        try:
            yield
        except HfbenchError:
            raise
        except Exception as error:
            raise translated(error, asked) from error

    def _token_or_none(self) -> str | bool:
        """For huggingface_hub, whose None means the token of another hub."""
        header = self._authorization.get("authorization", "")
        return header.removeprefix("Bearer ") or False

    def _refuse_offline(self, asked: Asked) -> None:
        if reason := offline_reason(read_config()):
            raise offline(reason, asked)

    def tried(self, work: Callable[[], T]) -> T:
        """What `work` returns; a fault that may pass is met with two more tries."""
        for wait in WAITS:
            try:
                return work()
            except Busy as error:
                if error.after is not None and error.after > LONGEST_WAIT:
                    raise
                time.sleep(max(wait, error.after or 0.0))
            except Unreachable as error:
                if not error.passing:
                    raise
                time.sleep(wait)
        return work()

    def _answer(self, url: str, asked: Asked) -> Answer:
        with self._stream(url, asked) as (response, _):
            body = _whole(response, asked)
            headers = dict(response.headers)
        try:
            data = json.loads(body)
        except (ValueError, RecursionError):
            raise not_a_hub("where JSON belongs it sends something else", asked) from None
        return Answer(data, headers, self._next_page(headers.get("link", ""), url, asked))

    def _next_page(self, link: str, url: str, asked: Asked) -> str:
        """The address after `rel="next"`, always on this hub. A hub behind a proxy may call itself otherwise: the same
        list on another host is asked for here; NotAHub for anything else, since a list cut short looks whole."""
        for address, rest in _links(link):
            if not _NEXT.search(rest):
                continue
            found = urljoin(url, address)
            if origin_of(found) == self.endpoint.origin:
                return found
            there, here = urlsplit(found), urlsplit(url)
            if there.scheme in ("http", "https") and len(there.path) > 1 and here.path.endswith(there.path):
                return here._replace(query=there.query).geturl()
            raise not_a_hub(
                f"the next page of a list lies on another host, {there.hostname or 'which has no name'}", asked
            )
        return ""

    @contextmanager
    def _stream(
        self, url: str, asked: Asked, *, headers: Mapping[str, str] | None = None, files: bool = False
    ) -> Iterator[tuple[Any, Mapping[str, str]]]:
        """An answer of less than 400 whose body is still to be read, redirects followed as far as they may be, and the
        headers of the first answer, which is the hub's own."""
        self._refuse_offline(asked)
        sent = {
            "accept-encoding": "identity",
            "user-agent": f"hfbench/{__version__}",
            **(headers or {}),
            **self._authorization,
        }
        try:
            first: Mapping[str, str] = {}
            for _ in range(MOST_REDIRECTS + 1):
                options = {"headers": sent, "follow_redirects": False, "timeout": timeouts()}
                with session().stream("GET", url, **options) as response:
                    first = first or dict(response.headers)
                    self._tell(response.headers)
                    if response.status_code in REDIRECTS and "location" in response.headers:
                        url = self._followed(url, response.headers["location"], asked, files=files)
                        continue
                    if response.status_code >= 400:
                        raise refused(response.status_code, response.headers, _start(response), asked)
                    yield response, first
                    return
            raise not_a_hub("it redirects without end", asked)
        except HfbenchError:
            raise
        except Exception as error:
            raise translated(error, asked) from error

    def _followed(self, url: str, location: str, asked: Asked, *, files: bool) -> str:
        """Where a redirect leads. Files may lie on another host, which gets no token; the API may not."""
        found = urljoin(url, location)
        scheme, host, _ = origin_of(found)
        if origin_of(found) == origin_of(url):
            return found
        upgraded = host == origin_of(url)[1] and (urlsplit(url).scheme, scheme) == ("http", "https")
        if scheme not in ("http", "https") or (urlsplit(url).scheme, scheme) == ("https", "http"):
            raise not_a_hub(f"it redirects to {scheme}://{host}", asked)
        if not files and not upgraded:
            raise not_a_hub(f"it redirects to another host, {host}, which was not followed", asked)
        return found

    def _tell(self, headers: Mapping[str, str]) -> None:
        """Pass on what the hub warns of, once."""
        _, _, text = headers.get("x-hf-warning", "").rpartition(";")
        if (text := text.strip()[:1000]) and text not in self._warned:
            self._warned.add(text)
            self._warn(f"{self.endpoint.name} says: {text}")


def _links(header: str) -> list[tuple[str, str]]:
    """Each address of a Link header with what is said of it."""
    return [(str(address), str(rest)) for address, rest in _LINK.findall(header)]


@contextmanager
def _checked(asked: Asked) -> Iterator[None]:
    try:
        yield
    except BadAnswer as error:
        raise not_a_hub(str(error), asked) from None


def _whole(response: Any, asked: Asked) -> bytes:
    parts, size = list[bytes](), 0
    for part in response.iter_bytes():
        parts.append(part)
        size += len(part)
        if size > LARGEST_ANSWER:
            raise not_a_hub(f"an answer is larger than {LARGEST_ANSWER // MIB} MiB", asked)
    return b"".join(parts)


def _start(response: Any, most: int = 65536) -> bytes:
    """The beginning of a refusal's body."""
    found = b""
    for part in response.iter_bytes():
        found += part
        if len(found) >= most:
            break
    return found[:most]
