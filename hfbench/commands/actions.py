"""`hfbench actions`: every action with its fields, or their JSON Schema."""

from __future__ import annotations

import json
from collections.abc import Sequence

from hfbench.actions.registry import find
from hfbench.actions.schema import action_schema, catalogue_schema
from hfbench.commands.known import known_actions
from hfbench.commands.parser import Parser
from hfbench.exits import Exit


def main(words: Sequence[str]) -> int:
    """List the actions, or print the schema of all or one."""
    given = parser().parse_args(words)
    chosen = {given.name: find(given.name)} if given.name else known_actions()
    if given.schema:
        print(json.dumps(action_schema(chosen[given.name]) if given.name else catalogue_schema(chosen), indent=1))
    elif given.json:
        print(json.dumps([{"name": s.name, "summary": s.summary, "inline": s.inline} for s in chosen.values()]))
    else:
        width = max(map(len, chosen))
        for spec in chosen.values():
            print(f"{spec.name:<{width}}  {spec.summary}")
            if given.name:
                told = [(p.name, "; ".join(filter(None, [p.help, ", ".join(p.listed), p.bounds]))) for p in spec.params]
                print(*(f"  {name:<{width}}  {help}" for name, help in told), sep="\n")
    return Exit.OK


def parser() -> Parser:
    """What it takes."""
    made = Parser(prog="hfbench actions", description="What hfbench can do, as declared.")
    made.add_argument("name", nargs="?", metavar="ACTION", help="one action, such as bench.generate")
    made.add_argument("--schema", action="store_true", help="print the JSON Schema")
    made.add_argument("--json", action="store_true", help="print JSON")
    return made
