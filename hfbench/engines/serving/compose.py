"""A serve command in the words of its server, and whether it can work."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hfbench.engines.runtimes.cards import Cards
from hfbench.engines.runtimes.subject import ServedModel
from hfbench.engines.serving.asked import ServeFinding, Wanted
from hfbench.engines.serving.checks import check_all
from hfbench.engines.serving.flags import Server, server
from hfbench.text import shell_line

ORDER = (
    "tp", "pp", "ep", "max_len", "dtype", "quantization", "kv_dtype", "memory_fraction", "max_seqs",
    "trust_remote_code", "host", "port",
)  # fmt: skip
"""Options in the order they are written."""
DEFAULTS = {"tp": 1, "pp": 1, "ep": 1}


@dataclass(frozen=True, kw_only=True)
class Served:
    """The words of the command and what was found. `works` is False when a finding refuses it."""

    server: Server
    argv: tuple[str, ...]
    findings: tuple[ServeFinding, ...]

    @property
    def works(self) -> bool:
        """False when a finding refuses the command."""
        return all(each.severity != "error" for each in self.findings)

    @property
    def command(self) -> str:
        """The command to copy, quoted for a shell; empty when it is refused."""
        return shell_line(self.argv) if self.works else ""


def compose(name: str, model: ServedModel, wanted: Wanted, cards: Cards) -> Served:
    """The command that serves a model with one of SERVERS, every option checked."""
    table = server(name)
    findings = tuple(check_all(table, model, wanted, cards))
    return Served(server=table, argv=tuple(_words(table, model, wanted)), findings=findings)


def _words(table: Server, model: ServedModel, wanted: Wanted) -> Iterator[str]:
    yield from table.program
    if table.model:
        yield table.model
    yield model.name
    if model.revision:
        yield from (table.flags["revision"].flag, model.revision)
    for key in ORDER:
        option, value = table.flags.get(key), getattr(wanted, key)
        if option is None or not option.flag or value in ("", None, False) or value == DEFAULTS.get(key):
            continue
        yield option.flag
        if not option.switch:
            yield f"{value:g}" if isinstance(value, float) else str(value)
