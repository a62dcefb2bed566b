"""`hfbench docs`: write, check or print the pages that are made from declarations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from hfbench.actions.base import Spec
from hfbench.actions.params import Param
from hfbench.checks.pages import check_pages
from hfbench.commands.known import known_actions
from hfbench.commands.parser import Parser
from hfbench.errors import HfbenchError
from hfbench.exits import Exit

PAGES: dict[str, Callable[[], str]] = {"actions.md": lambda: actions_page(list(known_actions().values()))}
"""Generated pages of `docs/` and what makes each; those of the check rules come from their room."""


def main(words: Sequence[str]) -> int:
    """Write the pages into a folder, check that it holds them, or print them."""
    parser = Parser(prog="hfbench docs", description="Pages made from the declarations.")
    parser.add_argument("what", choices=("write", "check", "print"))
    parser.add_argument("--folder", type=Path, default=Path("docs"), help="the folder of the pages; default docs")
    given = parser.parse_args(words)
    for name, page in pages().items():
        path = given.folder / name
        if given.what == "print":
            print(page)
        elif given.what == "write":
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(page, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != page:
            raise HfbenchError(
                "the page is not what the declarations say today", where=path, remedy="run: hfbench docs write"
            )
    return Exit.OK


def pages() -> dict[str, str]:
    """All generated pages by their name below `docs/`."""
    return {**{name: make() for name, make in PAGES.items()}, **check_pages()}


def actions_page(specs: Sequence[Spec]) -> str:
    """The reference of all actions in Markdown."""
    head = [
        "# Actions",
        "",
        "Made by `hfbench docs write` from the declarations in `hfbench/actions/`; do not edit.",
        "Each action is a command, a form in the workbench, a step of a script and a JSON Schema"
        " (`hfbench actions --schema`).",
        "",
    ]
    return "\n".join([*head, *(line for spec in specs for line in _section(spec))]).rstrip() + "\n"


def _section(spec: Spec) -> Iterator[str]:
    yield from (f"## {spec.name}", "", f"{spec.summary}.", "")
    command = spec.name.replace(".", " ").replace("_", "-")
    words = [f"hfbench {command}", *(p.name.upper() for p in spec.params if p.positional)]
    yield f"`{' '.join(words)}`: " + (
        "performed at once, in the calling process; `--detach` makes it a job." if spec.inline else "runs as a job."
    )
    if spec.lease:
        yield f"Holds the device named by `{spec.lease}` while it runs; `--no-lease` does not wait for it."
    if spec.needs:
        yield f"Needs {', '.join(spec.needs)}" + (f" (`pip install 'hfbench[{spec.extra}]'`)." if spec.extra else ".")
    yield from ("", "| field | type | default | meaning |", "|---|---|---|---|", *map(_field, spec.params), "")


def _field(param: Param) -> str:
    kind = param.kind or param.type.__name__.lower()
    if param.choices:
        kind = ", ".join(f"`{choice}`" for choice in param.listed)
    kind += " list" if param.many else ""
    default = (
        "required"
        if param.required
        else f"`{param.text(param.default)}`"
        if param.default not in (None, "", ())
        else ""
    )
    meaning = "; ".join(filter(None, [param.help, param.unit and f"in {param.unit}", param.bounds]))
    cells = (f"`{param.name}`", kind, default, meaning)
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |".replace("  ", " ")
