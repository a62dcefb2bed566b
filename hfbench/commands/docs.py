"""`hfbench docs`: read the pages that come with hfbench; write, check or print those made from declarations."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from hfbench.actions.base import Spec
from hfbench.actions.params import Param
from hfbench.checks.pages import check_pages
from hfbench.commands.known import known_actions
from hfbench.commands.parser import Parser
from hfbench.errors import HfbenchError, MissingError, UsageError
from hfbench.exits import Exit
from hfbench.line_width import cut
from hfbench.models.problem import counted
from hfbench.text import did_you_mean

RULE = re.compile(r"checks/HB\d+")
PAGES: dict[str, Callable[[], str]] = {"actions.md": lambda: actions_page(list(known_actions().values()))}
"""Generated pages of `docs/` and what makes each; those of the check rules come from their room."""


def main(words: Sequence[str]) -> int:
    """Read a page, list them, or write, check or print the generated ones."""
    given = parser().parse_args(words)
    if given.what == "read":
        return read_page(given.page)
    if given.page:
        raise UsageError(f"{given.what} takes no page", where="docs", remedy="leave it out")
    if given.what == "list":
        print(*list_of_pages(packaged_docs()), sep="\n")
        return Exit.OK
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


def parser() -> Parser:
    """What it takes."""
    made = Parser(prog="hfbench docs", description="The pages of the documentation.")
    made.add_argument(
        "what",
        choices=("list", "read", "write", "check", "print"),
        help="list the pages, read one; write, check or print those made from the declarations",
    )
    made.add_argument("page", nargs="?", default="", help="the page to read, such as engines or recipes/nightly")
    made.add_argument("--folder", type=Path, default=Path("docs"), help="where generated pages lie; default docs")
    return made


def read_page(name: str) -> int:
    """Print a page: laid out on a terminal, as Markdown elsewhere; UsageError when there is none of that name."""
    folder = packaged_docs()
    known = page_names(folder)
    if (page := _page_meant(name.removesuffix(".md"), known)) is None:
        remedy = did_you_mean(name, known) or "hfbench docs list names all"
        raise UsageError(f"there is no page {name!r}" if name else "which page?", where="docs read", remedy=remedy)
    text = (folder / f"{page}.md").read_text(encoding="utf-8")
    if sys.stdout.isatty():
        from hfbench.widgets.page_text import print_page

        print_page(text)
    else:
        print(text)
    return Exit.OK


def _page_meant(name: str, known: Sequence[str]) -> str | None:
    """The page of that name, else the only one that ends with it: `HB142` is checks/HB142."""
    if name in known:
        return name
    found = [page for page in known if page.rpartition("/")[2].lower() == name.lower()]
    return found[0] if len(found) == 1 else None


def packaged_docs() -> Path:
    """The folder of the pages: inside the wheel, or beside the package in a checkout."""
    here = Path(__file__).resolve().parents[1]
    for folder in (here / "docs", here.parent / "docs"):
        if (folder / "index.md").is_file():
            return folder
    raise MissingError("the pages of hfbench are missing", where=here / "docs", remedy="install hfbench again")


def page_names(folder: Path) -> list[str]:
    """Every page by its path without the ending."""
    return sorted(path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.md"))


def list_of_pages(folder: Path) -> list[str]:
    """A line a page with its title; those of the check rules, which are many and alike, share one."""
    names = page_names(folder)
    rules = [name for name in names if RULE.fullmatch(name)]
    shown = {name: _title(folder / f"{name}.md") for name in names if name not in rules}
    if rules:
        shown["checks/HB..."] = f"{counted(len(rules), 'check')} from {rules[0][7:]} to {rules[-1][7:]}, a page each"
    wide = max(map(len, shown), default=0)
    return [cut(f"{name:<{wide}}  {shown[name]}".rstrip()) for name in sorted(shown)]


def _title(page: Path) -> str:
    """The first heading of a page."""
    lines = page.read_text(encoding="utf-8").splitlines()
    return next((line.removeprefix("# ") for line in lines if line.startswith("# ")), "")


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
