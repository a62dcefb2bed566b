"""The variables that say where models come from and where they are kept."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from hfbench.doctor.check import Outcome, check, error, ok, saw, warning
from hfbench.doctor.system import System

CACHES = ("HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE")
OLD = ("TRANSFORMERS_CACHE", "PYTORCH_TRANSFORMERS_CACHE", "PYTORCH_PRETRAINED_BERT_CACHE")
"""Names of former versions: transformers 5 reads none of them."""
OFFLINE = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
TRUE = {"1", "ON", "YES", "TRUE"}
"""What huggingface_hub takes for yes, in any case."""
FALSE = {"0", "OFF", "NO", "FALSE", ""}
PUBLIC = "huggingface.co"


@check("hub.caches", "cache variables")
def caches(system: System) -> Outcome:
    """Two variables that name two folders: models are fetched twice, or not found."""
    told = {name: system.variable(name) for name in (*CACHES, *OLD) if system.variable(name)}
    seen = [saw(value, name) for name, value in told.items()] + [saw(system.hub, "the cache that is used")]
    relative = [name for name, value in told.items() if not value.startswith(("/", "~", "$"))]
    if relative:
        return error(
            f"{relative[0]} is not an absolute path",
            *seen,
            remedy="write the whole path: else it depends on the folder",
        )
    for name, value in told.items():
        if system.at(system.nearest(_plain(system, value))).is_file():
            return error(f"{name} names a file", *seen, remedy="name a folder")
    new, former = told.get("HF_HUB_CACHE"), told.get("HUGGINGFACE_HUB_CACHE")
    if new and former and _plain(system, new) != _plain(system, former):
        return warning(
            "HF_HUB_CACHE and HUGGINGFACE_HUB_CACHE differ",
            *seen,
            remedy="unset HUGGINGFACE_HUB_CACHE: it is the old name",
        )
    if old := [name for name in OLD if name in told and _plain(system, told[name]) != system.hub]:
        return warning(
            f"{old[0]} names another folder and is no longer read",
            *seen,
            remedy=f"unset it and set HF_HUB_CACHE={told[old[0]]}, if your models are there",
        )
    return ok("name one folder" if told else "none is set", *seen)


@check("hub.offline", "offline")
def offline(system: System) -> Outcome:
    """With HF_HUB_OFFLINE every model that is not in the cache is not found."""
    told = {name: system.variable(name) for name in OFFLINE if system.variable(name)}
    seen = [saw(value, name) for name, value in told.items()]
    for name, value in told.items():
        if value.upper() not in TRUE | FALSE:
            return warning(f"{name} is {value!r}, which means no", *seen, remedy=f"set {name} to 1 or 0")
    on = [name for name, value in told.items() if value.upper() in TRUE]
    if on:
        return warning(
            f"{' and '.join(on)} set: nothing is fetched", *seen, remedy=f"unset {' and '.join(on)} to fetch models"
        )
    return ok("models may be fetched", *seen)


@check("hub.endpoint", "endpoint")
def endpoint(system: System) -> Outcome:
    """HF_ENDPOINT sends requests, and the token with them, to another server."""
    told = system.variable("HF_ENDPOINT")
    if not told:
        return ok(f"https://{PUBLIC}")
    seen = saw(told, "HF_ENDPOINT")
    try:
        parts = urlsplit(told)
        host, scheme = parts.hostname or "", parts.scheme
    except ValueError:
        host, scheme = "", ""
    if scheme not in ("http", "https") or not host:
        return error(
            f"{told!r} is no address of a server", seen, remedy=f"write https://HOST, or unset it for {PUBLIC}"
        )
    if scheme == "http" and host not in ("localhost", "127.0.0.1", "::1"):
        return warning(f"http://{host}: the token goes there unencrypted", seen, remedy="use https")
    if host == PUBLIC:
        return ok(told, seen)
    return warning(
        f"models come from {host}", seen, remedy="unset it, unless this is a mirror you trust with your token"
    )


def _plain(system: System, value: str) -> Path:
    """A value with the home folder and variables of the system put in."""
    for name, told in system.environ.items():
        value = value.replace(f"${{{name}}}", told)
    return system.home / value[1:].lstrip("/") if value.startswith("~") else Path(value)
