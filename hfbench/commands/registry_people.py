"""`hfbench registry user` and `hfbench registry token`."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from hfbench.exits import Exit
from hfbench.text import printable
from hfbench.units import parse_duration, show_ago, show_elapsed

Add = Callable[[Any, str, Callable[[argparse.Namespace], int], str], argparse.ArgumentParser]


def add_people(verbs: Any, add: Add) -> None:
    """Add both commands to those of `hfbench registry`; `add` gives each the options all have."""
    users = _group(verbs, "user", "Users and their roles")
    one = add(users, "add", _add_user, "Make a user, with a namespace of that name")
    one.add_argument("name")
    one.add_argument("--fullname", default="")
    one.add_argument("--admin", action="store_true", help="may do everything, in every namespace")
    add(users, "list", _list_users, "List users with their roles")
    grant = add(users, "grant", _grant, "Give a user a role in a namespace, which is made where there is none")
    grant.add_argument("name")
    grant.add_argument("namespace")
    grant.add_argument("role", choices=("read", "write", "admin", "none"))
    for verb, disabled, help in (
        ("disable", True, "Let a user in no longer"),
        ("enable", False, "Let a user in again"),
    ):
        turn = add(users, verb, _turn, help)
        turn.add_argument("name")
        turn.set_defaults(disabled=disabled)

    tokens = _group(verbs, "token", "Tokens to log in with")
    new = add(tokens, "create", _create_token, "Make a token; it is shown only once")
    new.add_argument("user")
    new.add_argument("--name", default="token", help="what lists call it")
    new.add_argument("--scope", choices=("read", "write"), default="write")
    new.add_argument("--namespace", action="append", default=[], help="let it in nowhere else; may be given again")
    new.add_argument("--expires", type=parse_duration, metavar="DURATION", help="such as 12h or 30d; default never")
    some = add(tokens, "list", _list_tokens, "List tokens without their secrets")
    some.add_argument("user", nargs="?", default="")
    gone = add(tokens, "revoke", _revoke, "Let a token in no longer, at once")
    gone.add_argument("id", type=int, help="its number in the list")


def _group(verbs: Any, name: str, help: str) -> Any:
    return verbs.add_parser(name, help=help, description=f"{help}.").add_subparsers(required=True, metavar="COMMAND")


def _settings(given: argparse.Namespace) -> Any:
    from hfbench.registry.settings import read_settings

    return read_settings(given.folder)


def _told(given: argparse.Namespace, sentence: str, **data: object) -> int:
    print(json.dumps(data) if given.json else sentence)
    return Exit.OK


def _add_user(given: argparse.Namespace) -> int:
    from hfbench.registry.administration import add_user

    add_user(_settings(given), given.name, fullname=given.fullname, is_admin=given.admin)
    return _told(given, f"{given.name} is a user; hfbench registry token create {given.name}", user=given.name)


def _list_users(given: argparse.Namespace) -> int:
    from hfbench.registry.administration import list_users

    rows = list_users(_settings(given))
    if given.json:
        print(json.dumps([asdict(row) for row in rows]))
        return Exit.OK
    width = max((len(row.name) for row in rows), default=0)
    for row in rows:
        notes = ["administrator"] * row.is_admin + ["disabled"] * row.disabled
        roles = [f"{name}:{role}" for name, role in row.roles.items() if name != row.name]
        print(f"{printable(row.name):<{width}}  {', '.join([*notes, *roles])}".rstrip())
    return Exit.OK


def _grant(given: argparse.Namespace) -> int:
    from hfbench.registry.administration import grant_role

    role = "" if given.role == "none" else given.role
    grant_role(_settings(given), given.name, given.namespace, role)
    done = f"{given.name} has the role {role} in {given.namespace}" if role else f"{given.name} has no role there"
    return _told(given, done, user=given.name, namespace=given.namespace, role=role)


def _turn(given: argparse.Namespace) -> int:
    from hfbench.registry.administration import set_disabled

    set_disabled(_settings(given), given.name, given.disabled)
    return _told(given, f"{given.name} is {'disabled' if given.disabled else 'enabled'}", user=given.name)


def _create_token(given: argparse.Namespace) -> int:
    from hfbench.registry.administration import create_token

    secret = create_token(
        _settings(given),
        given.user,
        name=given.name,
        scope=given.scope,
        namespaces=given.namespace,
        seconds=given.expires,
    )
    return _told(given, secret, token=secret)


def _list_tokens(given: argparse.Namespace) -> int:
    from hfbench.registry.administration import list_tokens

    rows = list_tokens(_settings(given), given.user)
    if given.json:
        print(json.dumps([asdict(row) for row in rows]))
        return Exit.OK
    now = time.time()
    for row in rows:
        used = f"used {show_ago(now - row.last_used)}" if row.last_used else "never used"
        left = (row.expires or now) - now
        ends = "" if row.expires is None else f", expires in {show_elapsed(left)}" if left > 0 else ", expired"
        where = f" in {', '.join(row.namespaces)}" if row.namespaces else ""
        whose = f"{printable(row.user)}  {printable(row.name)}{where}"
        print(f"{row.id:>4}  {row.prefix}...  {row.scope:<5}  {whose}  {used}{ends}")
    return Exit.OK


def _revoke(given: argparse.Namespace) -> int:
    from hfbench.registry.administration import revoke_token

    revoke_token(_settings(given), given.id)
    return _told(given, f"token {given.id} lets nobody in any more", id=given.id)
