"""Endpoints: hubs by name or address, and where the token of each is found. Imports no client."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from hfbench.config import Config, EndpointConfig, read_config
from hfbench.errors import HfbenchError, MissingError, UsageError
from hfbench.models.resolution.location import offline_by_environment
from hfbench.paths import config_file, expand
from hfbench.text import did_you_mean

HUB, HUB_URL = "hub", "https://huggingface.co"
ENVIRONMENT = "env"
"""The endpoint that HF_ENDPOINT names, where it is another than the Hub."""

LONGEST_TOKEN = 4096
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")
_TOKEN = re.compile(r"[!-~]+")
_WITH_PASSWORD = re.compile(r"://[^/?#\s]*@")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

Kind = Literal["", "env", "file", "keyring"]


class Secret(str):
    """A token that shows itself nowhere by accident."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<a token>"


@dataclass(frozen=True, slots=True)
class TokenSource:
    """Where a token is found: an environment variable, a file, or `SERVICE/USER` of the keyring."""

    kind: Kind = ""
    reference: str = ""

    @property
    def said(self) -> str:
        """The place in words, for sentences; empty where there is none."""
        words = {"": "", "env": "the variable ", "file": "the file ", "keyring": "the keyring's entry "}
        return words[self.kind] + self.reference

    def for_shell(self) -> str:
        """A word of a POSIX shell that stands for the token without showing it; empty where there is none."""
        if not self.kind:
            return ""
        if self.kind == "env":
            return f'"${{{self.reference}}}"'
        if self.kind == "file":
            return f'"$(cat -- {shlex.quote(str(expand(os.path.expandvars(self.reference))))})"'
        service, _, user = self.reference.rpartition("/")
        return f'"$(keyring get {shlex.quote(service)} {shlex.quote(user)})"'

    def read(self) -> Secret | None:
        """The token, None where its place is empty. UsageError for what is no token, MissingError without keyring."""
        if not self.kind:
            return None
        read = {"env": _from_environment, "file": _from_file, "keyring": _from_keyring}[self.kind]
        text = (read(self.reference) or "").strip()
        if not text:
            return None
        if not _TOKEN.fullmatch(text) or len(text) > LONGEST_TOKEN:
            raise UsageError("holds something that is no token", where=self.said, remedy="it is one word of ASCII")
        return Secret(text)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One hub. `url` has no slash at its end; the token is read when it is needed and kept nowhere."""

    name: str
    url: str
    source: TokenSource = TokenSource()

    @property
    def token(self) -> Secret | None:
        """The token to send to this hub and to no other."""
        return self.source.read()

    @property
    def origin(self) -> tuple[str, str, int]:
        """Scheme, host and port: what a token may be sent to."""
        return origin_of(self.url)

    def page(self, repo: str) -> str:
        """Where people look at a model."""
        return f"{self.url}/{repo}"

    def reference(self, repo: str, revision: str = "") -> str:
        """How a model of this hub is written where hfbench takes one."""
        return f"{self.name}:{repo}" + (f"@{revision}" if revision and revision != "main" else "")


def endpoints(config: Config | None = None, environment: Mapping[str, str] | None = None) -> dict[str, Endpoint]:
    """All endpoints by name: those of the configuration, HF_ENDPOINT's, and the Hub. ConfigError, UsageError for a bad
    one."""
    env = os.environ if environment is None else environment
    found = {HUB: Endpoint(HUB, HUB_URL, _hub_source(env))}
    given = env.get("HF_ENDPOINT", "").strip()
    if given and (url := checked_url(given, "HF_ENDPOINT")) != HUB_URL:
        source = TokenSource("env", "HF_TOKEN") if env.get("HF_TOKEN") else TokenSource()
        found[ENVIRONMENT] = Endpoint(ENVIRONMENT, url, source)
    for name, told in (config or read_config()).endpoints.items():
        found[name] = _configured(name, told)
    return found


def endpoint(given: str = "", config: Config | None = None) -> Endpoint:
    """The endpoint of a name or an address; without either, HF_ENDPOINT's, else the configured one, else the Hub.

    An address that the configuration does not know gets no token. UsageError for an unknown name.
    """
    config = config or read_config()
    known = endpoints(config)
    name = given.strip() or (ENVIRONMENT if ENVIRONMENT in known else config.hub.endpoint) or HUB
    if "://" in name:
        url = checked_url(name, "--endpoint")
        same = [each for each in known.values() if each.url == url]
        return same[0] if same else Endpoint(name_of(url), url)
    if name in known:
        return known[name]
    near = did_you_mean(name, known) or f"known are {', '.join(known)}; add [endpoints.{name}] to {config_file()}"
    raise UsageError(f"there is no endpoint {name!r}", remedy=near)


def offline_reason(config: Config | None = None) -> str:
    """What forbids the network, in words; empty when nothing does."""
    if variable := offline_by_environment():
        return variable
    return f"hub.offline in {config_file()}" if (config or read_config()).hub.offline else ""


def checked_url(text: str, where: str) -> str:
    """An address of a hub without the slash at its end. UsageError for what is none, or holds a password."""
    url = text.strip().rstrip("/")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise UsageError("is not an address", where=where, remedy="write http://host:port") from None
    if parts.username is not None or parts.password is not None:
        raise UsageError("holds a name or a password", where=where, remedy="use token_env, token_file or token_keyring")
    odd = parts.query or parts.fragment or re.search(r"[\s\x00-\x1f\x7f\\]", url)
    if parts.scheme not in ("http", "https") or not parts.hostname or odd or port == 0:
        raise UsageError(f"{url[:80]!r} is not the address of a hub", where=where, remedy="write http://host:port")
    return url


def refuse_passwords(*given: str) -> None:
    """UsageError when one of these has an address with a name or a password in it, before a job keeps it in its files.
    It is not repeated."""
    if any(_WITH_PASSWORD.search(each) for each in given):
        remedy = (
            "leave it out of the address: token_env, token_file or token_keyring of [endpoints.NAME] name its place"
        )
        raise UsageError("an address holds a name or a password", remedy=remedy)


def origin_of(url: str) -> tuple[str, str, int]:
    """Scheme, host and port of an address, the port filled in."""
    parts = urlsplit(url)
    return parts.scheme, (parts.hostname or "").lower(), parts.port or (443 if parts.scheme == "https" else 80)


def name_of(url: str) -> str:
    """A name for an address nobody named: its host and port."""
    _, host, _ = origin_of(url)
    port = urlsplit(url).port
    return re.sub(r"[^A-Za-z0-9_.-]", "_", f"{host}-{port}" if port else host).lstrip("_.-")[:62] or "endpoint"


def _configured(name: str, told: EndpointConfig) -> Endpoint:
    where = f"endpoints.{name}"
    if not NAME.fullmatch(name):
        raise UsageError(
            f"{name[:60]!r} cannot be the name of an endpoint", where=config_file(), remedy="letters, digits, - and _"
        )
    if not told.url:
        raise UsageError("has no url", where=where, remedy=f'write url = "http://host:port" in {config_file()}')
    sources = {"env": told.token_env, "file": told.token_file, "keyring": told.token_keyring}
    chosen = [TokenSource(kind, reference) for kind, reference in sources.items() if reference]  # type: ignore[arg-type]
    if told.token_env and not _VARIABLE.fullmatch(told.token_env):
        raise UsageError("names no environment variable", where=f"{where}.token_env", remedy='write "LAB_TOKEN"')
    if len(chosen) > 1:
        raise UsageError("names more than one place of its token", where=where, remedy="keep one of them")
    return Endpoint(name, checked_url(told.url, f"{where}.url"), chosen[0] if chosen else TokenSource())


def _hub_source(env: Mapping[str, str]) -> TokenSource:
    """HF_TOKEN, unless HF_ENDPOINT says that it belongs to another hub; else the file of `hf auth login`."""
    elsewhere = env.get("HF_ENDPOINT", "").strip().rstrip("/") not in ("", HUB_URL)
    if env.get("HF_TOKEN") and not elsewhere:
        return TokenSource("env", "HF_TOKEN")
    home = env.get("HF_HOME") or str(Path(env.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface")
    return TokenSource("file", env.get("HF_TOKEN_PATH") or str(Path(os.path.expandvars(home)) / "token"))


def _from_environment(name: str) -> str:
    return os.environ.get(name, "")


def _from_file(name: str) -> str:
    path = expand(os.path.expandvars(name))
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            return file.read(LONGEST_TOKEN + 2).decode("ascii", "replace")
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise HfbenchError(f"the file of a token cannot be read: {error.strerror}", where=path) from None


def _from_keyring(entry: str) -> str:
    service, _, user = entry.rpartition("/")
    if not service or not user:
        raise UsageError(f"{entry!r} names no entry", where="token_keyring", remedy="write SERVICE/USER")
    try:
        import keyring
    except ImportError:
        raise MissingError(
            "needs keyring, which this Python lacks",
            where="token_keyring",
            remedy="install it with pip install keyring, or use token_env or token_file",
        ) from None
    try:
        return keyring.get_password(service, user) or ""
    except Exception as error:  # each back end raises its own
        found = f"the keyring did not answer ({type(error).__name__})"
        raise HfbenchError(found, where=entry, remedy="unlock it, or use token_env or token_file") from None
