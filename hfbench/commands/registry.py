"""`hfbench registry`: make a private hub, serve it, and look after its users and tokens."""

from __future__ import annotations

import argparse
import importlib.util
import json
from collections.abc import Callable, Sequence
from pathlib import Path

from hfbench.commands.parser import Parser
from hfbench.errors import MissingError
from hfbench.exits import Exit
from hfbench.paths import expand, registry_root
from hfbench.registry.needs import NEEDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hfbench.registry.settings import Settings

Verb = Callable[[argparse.Namespace], int]


def main(words: Sequence[str]) -> int:
    """Run one `hfbench registry` command; those that are actions run as any action does."""
    if words and (found := _action(words)) is not None:
        return found
    given = parser().parse_args(words)
    if lacking := [name for name in NEEDS if importlib.util.find_spec(name) is None]:
        raise MissingError(
            f"needs {', '.join(lacking)}, which this Python lacks",
            where="registry",
            remedy="install it with: pip install 'hfbench[registry]'",
        )
    verb: Verb = given.verb
    return verb(given)


def _actions() -> dict[str, str]:
    """The summaries of the commands that are actions, `registry.NAME` by their NAME."""
    from hfbench.commands.known import summaries

    prefix = "registry."
    return {name.removeprefix(prefix): told for name, told in summaries().items() if name.startswith(prefix)}


def _action(words: Sequence[str]) -> int | None:
    """Run `registry.NAME` where an action of that name is declared."""
    if words[0] not in _actions():
        return None
    from hfbench.actions.registry import find
    from hfbench.commands import perform

    return perform.main(find(f"registry.{words[0]}"), words[1:])


def parser() -> argparse.ArgumentParser:
    """What it takes."""
    made = Parser(prog="hfbench registry", description="A private hub for unmodified Hugging Face clients.")
    verbs = made.add_subparsers(required=True, metavar="COMMAND")
    init = _add(verbs, "init", _init, "Make a hub and its first administrator")
    init.add_argument("--admin", default="", metavar="NAME", help="default: your login name")
    _add_settings(init, lasting=True)
    serve = _add(verbs, "serve", _serve, "Serve a hub until Ctrl-C; makes it first where there is none")
    _add_settings(serve, lasting=False)
    from hfbench.commands.registry_people import add_people

    add_people(verbs, _add)
    for name, summary in _actions().items():  # listed here, and run as actions before words come to this parser
        verbs.add_parser(name, help=summary)
    return made


def _add(verbs: argparse._SubParsersAction[Parser], name: str, verb: Verb, help: str) -> argparse.ArgumentParser:
    sub = verbs.add_parser(name, help=help, description=f"{help}.")
    sub.set_defaults(verb=verb)
    sub.add_argument(
        "--folder", type=expand, default=registry_root(), help="where the hub is kept; default %(default)s"
    )
    sub.add_argument("--json", action="store_true", help="print JSON")
    return sub


def _add_settings(sub: argparse.ArgumentParser, *, lasting: bool) -> None:
    """The settings of a hub: with `init` they are written down, with `serve` they hold for this time."""
    if lasting:
        sub.add_argument("--database", metavar="URL", help="postgresql://...; default SQLite in the folder")
        sub.add_argument(
            "--storage",
            choices=("xorbs", "simple"),
            help="xorbs keeps shared content once and rebuilds files into a cache; simple keeps whole files",
        )
        sub.add_argument("--cache-bytes", type=_size, metavar="SIZE", help="of rebuilt files, such as 200GiB")
    sub.add_argument("--host", help="address to listen on; default 127.0.0.1, this machine alone")
    sub.add_argument("--port", type=int, help="default 8080")
    sub.add_argument("--public-url", metavar="URL", help="what clients call this hub, behind a proxy")
    sub.add_argument("--workers", type=int, metavar="N", help="processes; default 1")
    sub.add_argument("--tls-certificate", metavar="FILE", help="PEM file; with --tls-key the hub speaks https")
    sub.add_argument("--tls-key", metavar="FILE", help="PEM file")
    sub.add_argument("--accel-prefix", metavar="PATH", help="internal location of nginx that sends the files")


def _size(text: str) -> int:
    from hfbench.units import convert, parse_quantity

    number, unit = parse_quantity(text)
    return int(convert(number, unit or "B", "B"))


def _settings_of(given: argparse.Namespace) -> Settings:
    from hfbench.registry.settings import read_settings

    return read_settings(given.folder)


def _init(given: argparse.Namespace) -> int:
    settings, secret = _made(given, _given_settings(given))
    if given.json:
        print(json.dumps({"folder": settings.folder, "token": secret}))
    else:
        print(f"a hub in {settings.folder}; its administrator's token, shown only now:\n{secret}")
        print("hfbench registry serve starts it")
    return Exit.OK


def _made(given: argparse.Namespace, lasting: dict[str, object]) -> tuple[Settings, str]:
    """A new hub with the settings that are to be written down, and its first token."""
    from hfbench.registry.founding import found, login_name
    from hfbench.registry.settings import Settings

    folder = str(Path(given.folder).absolute())
    settings = Settings(folder=folder).changed(**lasting)
    return settings, found(settings, getattr(given, "admin", "") or login_name())


def _given_settings(given: argparse.Namespace) -> dict[str, object]:
    from dataclasses import fields

    from hfbench.registry.settings import Settings

    names = {each.name for each in fields(Settings)} - {"folder"}
    return {name: getattr(given, name) for name in names if getattr(given, name, None) is not None}


def _serve(given: argparse.Namespace) -> int:
    from hfbench.registry.serve import listening, require_free, serve
    from hfbench.registry.settings import Settings
    from hfbench.registry.storage.layout import Layout

    secret, told_already = "", False
    if not Layout(given.folder).settings.exists():
        require_free(Settings(folder=str(given.folder)).changed(**_given_settings(given)))
        _, secret = _made(given, {})
    settings = _settings_of(given).changed(**_given_settings(given))

    def announce() -> None:
        nonlocal told_already
        told_already = True
        if given.json:
            told = {"url": settings.base_url, "folder": settings.folder}
            print(json.dumps(told | ({"token": secret} if secret else {})), flush=True)
        else:
            token = [f"export HF_TOKEN={secret}  # the administrator's token, shown only now"] if secret else []
            print(*listening(settings), *token, sep="\n", flush=True)

    try:
        serve(settings, announce)
    finally:
        if secret and not told_already:  # nobody could ever log in
            hint = f"export HF_TOKEN={secret}  # the administrator's token of the hub that was made, shown only now"
            print(json.dumps({"folder": settings.folder, "token": secret}) if given.json else hint, flush=True)
    return Exit.OK
