"""What a hub, or the way to it, refuses: each a sentence that says what to do."""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from hfbench.errors import HfbenchError
from hfbench.exits import Exit
from hfbench.hub.at_hand import at_hand
from hfbench.hub.endpoints import Endpoint
from hfbench.text import clip

LONGEST = 300
"""Characters kept of what a hub says itself."""
DISABLED = "Access to this resource is disabled."
BAD_TOKEN = "invalid credentials"


class HubError(HfbenchError):
    """A hub did not do what was asked."""


class Offline(HubError):
    """The network is forbidden here."""

    exit = Exit.ENVIRONMENT


class Unreachable(HubError):
    """Nothing answers at the address, or not in time. `passing` says that another try at once may help."""

    exit = Exit.ENVIRONMENT
    passing = False


class NotAHub(HubError):
    """Something answers, and it does not speak the protocol."""


class NotVisible(HubError):
    """The repository does not exist, or not for this caller: hubs do not tell the two apart."""

    exit = Exit.USAGE


class Gated(HubError):
    """The repository is there and its files are for those who were let in."""

    exit = Exit.ENVIRONMENT


class WrongToken(HubError):
    """The token is unknown, expired or revoked, or may not do this."""

    exit = Exit.ENVIRONMENT


class NoSuchRevision(HubError):
    """No branch, tag or commit has that name."""

    exit = Exit.USAGE


class NoSuchFile(HubError):
    """The revision has no such file."""

    exit = Exit.USAGE


class Busy(HubError):
    """The hub cannot answer now; `after` is the number of seconds it asks to wait, None when it does not say."""

    after: float | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked of a hub, for the sentence that says why it was refused."""

    endpoint: Endpoint
    repo: str = ""
    revision: str = ""
    path: str = ""
    with_token: bool = False

    @property
    def where(self) -> str:
        """The model as it is written for hfbench, or the endpoint."""
        if not self.repo:
            return f"{self.endpoint.name} ({self.endpoint.url})"
        reference = self.endpoint.reference(self.repo, self.revision)
        return f"{reference}: {self.path}" if self.path else reference


def refused(status: int, headers: Mapping[str, str], body: bytes, asked: Asked) -> HubError:
    """The error an answer of 400 or more stands for."""
    code, said = headers.get("x-error-code", ""), _said(headers, body)
    if status == 407:
        return Unreachable(
            "the proxy wants a name and a password", where=asked.where, remedy=f"put them into {_proxy_name(asked)}"
        )
    if code == "GatedRepo":
        return _gated(asked)
    if code == "RevisionNotFound":
        found = f"there is no revision {asked.revision!r}" if asked.revision else "there is no such revision"
        remedy = f"its branches and tags: {asked.endpoint.page(asked.repo)}/tree/main"
        return NoSuchRevision(found, where=asked.where, remedy=remedy)
    if code == "EntryNotFound":
        return NoSuchFile("the revision has no such file", where=asked.where)
    if DISABLED in said:
        return NotVisible("its hub has disabled this repository", where=asked.where)
    if BAD_TOKEN in said.lower():
        return _wrong_token(asked)
    if code == "RepoNotFound" or (status in (401, 404) and asked.repo and not code and _looks_like_hub(headers, body)):
        return _not_visible(asked)
    if status == 401:
        return _wrong_token(asked) if asked.with_token else _needs_token(asked, said)
    if status == 403:
        return WrongToken(f"is refused: {said or 'no reason is given'}", where=asked.where, remedy=_token_remedy(asked))
    if status == 429 or status >= 500:
        return _busy(status, headers, said, asked)
    if status == 404:
        return not_a_hub("it answers 404, not found", asked)
    return HubError(f"the hub answers {status}: {said or 'no reason is given'}", where=asked.where)


def translated(error: BaseException, asked: Asked) -> HfbenchError:
    """The sentence for what huggingface_hub or its HTTP client raised; an HfbenchError as it is."""
    if (own := _own(error)) is not None:
        return own
    response = getattr(error, "response", None)
    if response is not None and getattr(response, "status_code", 0) >= 400:
        return refused(response.status_code, response.headers, _body_of(response), asked)
    kind, text = type(error).__name__, _deepest(error)
    if kind == "OfflineModeIsEnabled":
        return offline("HF_HUB_OFFLINE", asked)
    if kind == "ProxyError":
        return Unreachable(f"the proxy refuses: {text}", where=asked.where, remedy=f"look at {_proxy_name(asked)}")
    if "Timeout" in kind or isinstance(error, TimeoutError):
        return Unreachable(f"no answer in time{_through(asked)}", where=asked.where, remedy=_reach_remedy(asked))
    if any(isinstance(each, ssl.SSLError) for each in _chain(error)) or "SSL" in text or "certificate" in text.lower():
        remedy = "name the certificate of its authority in SSL_CERT_FILE, or use http:// where that is what it speaks"
        return Unreachable(f"its certificate is not accepted: {text}", where=asked.where, remedy=remedy)
    if kind in ("ConnectError", "ConnectionError"):
        return Unreachable(
            f"cannot be reached{_through(asked)}: {text}", where=asked.where, remedy=_reach_remedy(asked)
        )
    if kind in ("ReadError", "WriteError", "CloseError", "RemoteProtocolError", "LocalProtocolError", "DecodingError"):
        found = f"breaks off, or does not speak HTTP: {text}"
        broken = Unreachable(found, where=asked.where, remedy=_reach_remedy(asked))
        broken.passing = True
        return broken
    if kind == "TooManyRedirects":
        return not_a_hub("it redirects without end", asked)
    return HubError(f"{kind}: {clip(str(error).strip(), LONGEST, ellipsis='...')}", where=asked.where)


def offline(reason: str, asked: Asked) -> Offline:
    """The network was needed and is forbidden."""
    return Offline(f"cannot be asked: {reason} forbids the network", where=asked.where, remedy=at_hand(asked.repo))


def not_a_hub(found: str, asked: Asked) -> NotAHub:
    """What answers does not speak the protocol."""
    remedy = f"look at the address of {asked.endpoint.name}: it is {asked.endpoint.url}"
    return NotAHub(f"what answers is not a hub: {found}", where=asked.where, remedy=remedy)


def too_slow(found: str, asked: Asked) -> Unreachable:
    """It answers, and would take for ever."""
    return Unreachable(found, where=asked.where, remedy="try again later, or ask another endpoint")


def _gated(asked: Asked) -> Gated:
    page, source = asked.endpoint.page(asked.repo), asked.endpoint.source.said
    if not asked.with_token:
        found = "is gated: it opens only to people whom its owner lets in, and no token was sent"
        return Gated(found, where=asked.where, remedy=f"ask for access at {page}, then {_give_token(asked)}")
    found = f"is gated, and the account of the token in {source} was not let in"
    return Gated(found, where=asked.where, remedy=f"ask for access at {page}")


def _not_visible(asked: Asked) -> NotVisible:
    found = "does not exist, or is private"
    if asked.with_token:
        found += f" and the token in {asked.endpoint.source.said} does not show it"
        return NotVisible(found, where=asked.where, remedy="check the name, or use a token of somebody who has access")
    return NotVisible(
        f"{found}: no token was sent", where=asked.where, remedy=f"check the name, or {_give_token(asked)}"
    )


def _wrong_token(asked: Asked) -> WrongToken:
    source = asked.endpoint.source.said or "the request"
    found = f"the token in {source} is unknown, expired or revoked"
    return WrongToken(found, where=asked.where, remedy=f"make a new one on {asked.endpoint.url}")


def _needs_token(asked: Asked, said: str) -> WrongToken:
    return WrongToken(
        f"needs a token, and none was sent{f' ({said})' if said else ''}", where=asked.where, remedy=_give_token(asked)
    )


def _busy(status: int, headers: Mapping[str, str], said: str, asked: Asked) -> Busy:
    after = headers.get("retry-after", "").strip()
    wait = f"in {after} s" if after.isdecimal() else "later"
    found = "too many requests" if status == 429 else f"the hub has a fault of its own ({status})"
    error = Busy(f"{found}{f': {said}' if said else ''}", where=asked.where, remedy=f"try again {wait}")
    error.after = float(after) if after.isdecimal() and len(after) < 6 else None
    return error


def _token_remedy(asked: Asked) -> str:
    source = asked.endpoint.source.said
    return f"use a token that may: it is taken from {source}" if asked.with_token else _give_token(asked)


def _give_token(asked: Asked) -> str:
    """What to do so that a token is sent next time."""
    endpoint, source = asked.endpoint, asked.endpoint.source
    if source.kind == "env":
        return f"set {source.reference}, which holds nothing"
    if source.kind:
        return f"put a token into {source.said}"
    if endpoint.name == "env":
        return "set HF_TOKEN"
    return f"name its place under [endpoints.{endpoint.name}]: token_env, token_file or token_keyring"


def _said(headers: Mapping[str, str], body: bytes) -> str:
    """The hub's own words, on one line."""
    said = headers.get("x-error-message", "")
    if not said and "json" in headers.get("content-type", ""):
        import json

        try:
            told = json.loads(body)
            found = told.get("error") if isinstance(told, dict) else None
            said = ", ".join(map(str, found)) if isinstance(found, list) else found if isinstance(found, str) else ""
        except (ValueError, RecursionError):
            pass
    elif not said and headers.get("content-type", "").startswith("text/plain"):
        said = body.decode("utf-8", "replace")
    return clip(" ".join(said.split()), LONGEST, ellipsis="...").rstrip(".")


def _looks_like_hub(headers: Mapping[str, str], body: bytes) -> bool:
    """Hubs explain a refusal in a header or in JSON; a web server answers with a page."""
    return "x-error-message" in headers or "x-request-id" in headers or body.lstrip()[:1] == b"{"


def _body_of(response: Any) -> bytes:
    try:
        return bytes(response.content[:65536])
    except Exception:  # a streamed answer that nobody has read
        return b""


def _own(error: BaseException) -> HfbenchError | None:
    return next((each for each in _chain(error) if isinstance(each, HfbenchError)), None)


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: BaseException | None = error
    for _ in range(10):
        if seen is None:
            return
        yield seen
        seen = seen.__cause__ or seen.__context__


def _deepest(error: BaseException) -> str:
    """What the system said first: `Connection refused`, in place of the words of four libraries around it."""
    texts = [(each.strerror if isinstance(each, OSError) else None) or str(each).strip() for each in _chain(error)]
    told = next((text for text in reversed(texts) if text), type(error).__name__)
    return clip(told.splitlines()[0].rstrip("."), LONGEST, ellipsis="...")


def _reach_remedy(asked: Asked) -> str:
    if _proxy(asked):
        return f"is that proxy right? {_proxy_name(asked)} names it, and NO_PROXY leaves hosts out"
    if asked.endpoint.name == "hub":
        return "without a network set HF_HUB_OFFLINE=1, or name another hub with --endpoint"
    return f"is the hub running at {asked.endpoint.url}?"


def _through(asked: Asked) -> str:
    proxy = _proxy(asked)
    return f" through the proxy {proxy}" if proxy else ""


def _proxy(asked: Asked) -> str:
    """The proxy on the way, without its password."""
    from urllib.request import getproxies, proxy_bypass

    parts = urlsplit(asked.endpoint.url)
    proxies = getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if not proxy or proxy_bypass(parts.hostname or ""):
        return ""
    scheme, mark, rest = proxy.rpartition("://")
    return f"{scheme}{mark}{rest.rpartition('@')[2]}"


def _proxy_name(asked: Asked) -> str:
    scheme = urlsplit(asked.endpoint.url).scheme
    names = (f"{scheme}_proxy", f"{scheme.upper()}_PROXY", "all_proxy", "ALL_PROXY")
    return next((name for name in names if os.environ.get(name)), f"{scheme.upper()}_PROXY")
