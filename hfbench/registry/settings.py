"""What can be set of a hub: a TOML file in its folder, read once and handed down."""

from __future__ import annotations

import importlib.util
import json
import os
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from hfbench.errors import MissingError, UsageError
from hfbench.registry.storage.layout import Layout
from hfbench.text import did_you_mean
from hfbench.units import GIB, MIB

PASSED_ON = "HFBENCH_REGISTRY_SETTINGS"
"""The variable by which a server hands its settings to its worker processes."""
STORAGES = ("xorbs", "simple")
EIB = 1 << 60
BOUNDS = {
    "workers": (1, 1024),
    "part_bytes": (1, EIB),
    "multipart_bytes": (0, EIB),
    "cache_bytes": (0, EIB),
    "default_quota": (0, EIB),
    "link_seconds": (1, 366 * 86400),
    "slow_seconds": (1, 86400),
}
"""The least and the most that can be meant."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """One hub. Sizes are bytes, times are seconds."""

    folder: str
    database: str = ""
    """A URL such as `postgresql://user@host/name`; empty is SQLite in the folder."""
    storage: str = "xorbs"
    """`xorbs`: content is kept once by chunks and rebuilt into a cache; `simple`: whole files only."""
    cache_bytes: int = 64 * GIB
    host: str = "127.0.0.1"
    port: int = 8080
    workers: int = 1
    public_url: str = ""
    """What clients call this hub, behind a proxy; empty is the address it listens on."""
    tls_certificate: str = ""
    tls_key: str = ""
    accel_prefix: str = ""
    """The internal location of nginx for X-Accel-Redirect; empty lets this server send the bytes."""
    verify: bool = True
    """Whether a stored file is hashed when a worker first hands it out, so that a damaged one is never sent whole."""
    slow_seconds: int = 30
    """How long a client may take for the head of a request, be silent in its body, or send hardly anything of it."""
    link_seconds: int = 3600
    """How long signed upload links and Xet tokens hold."""
    multipart_bytes: int = GIB
    """Files from this size on are sent in parts."""
    part_bytes: int = 256 * MIB
    default_quota: int = 0
    """Bytes a namespace may hold unless it has a quota of its own; 0 is no limit."""

    @property
    def layout(self) -> Layout:
        """The paths of its folder."""
        return Layout(Path(self.folder))

    @property
    def database_url(self) -> str:
        """The URL as SQLAlchemy wants it, with the driver."""
        if not self.database:
            return f"sqlite+aiosqlite:///{self.layout.database}"
        scheme, _, rest = self.database.partition("://")
        return f"postgresql+psycopg://{rest}" if scheme in ("postgres", "postgresql") else self.database

    @property
    def base_url(self) -> str:
        """The URL that every answer is on, without a slash at its end."""
        if self.public_url:
            return self.public_url.rstrip("/")
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls_certificate else 'http'}://{host}:{self.port}"

    def changed(self, **given: Any) -> Settings:
        """With those of the given settings that are not None."""
        return checked(replace(self, **{name: value for name, value in given.items() if value is not None}))

    def toml(self) -> str:
        """As the file in the folder; the folder itself is where the file lies."""
        told = {name: value for name, value in asdict(self).items() if name != "folder"}
        return "".join(f"{name} = {json.dumps(value)}\n" for name, value in told.items())

    def passed_on(self) -> dict[str, str]:
        """The environment by which workers get it."""
        return {PASSED_ON: json.dumps(asdict(self))}


def read_settings(folder: Path) -> Settings:
    """The settings of a hub's folder; MissingError when there is no hub, UsageError when the file is wrong."""
    path = Layout(folder).settings
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise MissingError("there is no hub", where=folder, remedy="hfbench registry init makes one") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"the settings cannot be read: {error}", where=path) from error
    return checked(_settings(folder, found, path))


def passed_settings() -> Settings:
    """The settings a server handed to this worker."""
    return Settings(**json.loads(os.environ[PASSED_ON]))


def _settings(folder: Path, found: Mapping[str, Any], path: Path) -> Settings:
    known = {each.name: type(each.default) for each in fields(Settings) if each.name != "folder"}
    for name, value in found.items():
        if name not in known:
            raise UsageError(f"unknown setting {name!r}", where=path, remedy=did_you_mean(name, known))
        if type(value) is not known[name]:
            raise UsageError(f"{name} is {value!r}", where=path, remedy=f"give a value of type {known[name].__name__}")
    return Settings(folder=str(folder.absolute()), **found)


def checked(settings: Settings) -> Settings:
    """The settings; UsageError when they cannot be meant."""
    if settings.storage not in STORAGES:
        raise UsageError(f"unknown storage {settings.storage!r}", remedy=f"one of {', '.join(STORAGES)}")
    if bool(settings.tls_certificate) != bool(settings.tls_key):
        raise UsageError("TLS needs both a certificate and a key", remedy="set tls_certificate and tls_key")
    if not 0 < settings.port < 65536:
        raise UsageError(f"{settings.port} is no port", remedy="give a number from 1 to 65535")
    if settings.public_url and not settings.public_url.startswith(("http://", "https://")):
        raise UsageError(f"{settings.public_url!r} is no URL", remedy="begin it with http:// or https://")
    for name, (least, most) in BOUNDS.items():
        if not least <= (value := getattr(settings, name)) <= most:
            raise UsageError(f"{name} is {value}", remedy=f"give a number from {least:,} to {most:,}")
    _check_database(settings.database)
    return settings


def _check_database(url: str) -> None:
    """UsageError for what is no URL of a PostgreSQL database; the URL is not shown, since it may hold a password."""
    if not url:
        return
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    remedy = "write postgresql://user:password@host/name, or leave it out for SQLite in the folder"
    try:
        driver = make_url(url).drivername
    except (ArgumentError, ValueError) as error:
        raise UsageError("the database is no URL", where="database", remedy=remedy) from error
    if driver.partition("+")[0] not in ("postgres", "postgresql"):
        raise UsageError(f"a hub keeps nothing in {driver[:40]!r}", where="database", remedy=remedy)
    if importlib.util.find_spec("psycopg") is None:
        raise MissingError("PostgreSQL needs psycopg, which this Python lacks", remedy="pip install 'psycopg[binary]'")
