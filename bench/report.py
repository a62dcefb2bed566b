"""The latest record of every claim as a Markdown table; `--write` puts it into README.md."""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path
from typing import Any

from claims import RESULTS

README = Path(__file__).parent / "README.md"
BEGIN, END = "<!-- figures -->\n", "<!-- end of figures -->"


def table(records: list[dict[str, Any]]) -> list[str]:
    """A row a claim: what is claimed, bound, value, and the medians it comes from."""
    lines = ["| claim | bound | value | medians | load |", "|---|---|---|---|---|"]
    for record in records:
        claim, peer = record["claim"], record["peer"]
        unit = claim["unit"]
        medians = figure(statistics.median(record["subject"]), unit)
        if peer:
            medians += f" : {figure(statistics.median(peer), unit)}"
        value = f"{record['value']:.2f}x" if peer else medians
        verdict = value if record["holds"] else f"**{value}**"
        load = record["machine"]["load_1m"]
        bound = f"{claim['bound']:g}x" if peer else figure(claim["bound"], unit)
        lines.append(f"| {claim['sentence']} | {bound} | {verdict} | {medians} | {load} |")
    return lines


def figure(value: float, unit: str) -> str:
    """A median with a unit that can be read."""
    if unit.startswith("s"):
        return f"{value * 1e3:.3g} ms{unit[1:]}" if value < 1 else f"{value:.3g} {unit}"
    if value > 2**20:
        return f"{value / 2**20:.1f} MiB"
    return f"{value:,.0f} {unit}" if value >= 10 or value == int(value) else f"{value:.3g} {unit}"


def latest() -> list[dict[str, Any]]:
    """The newest record of each claim, by name; what gpu.py writes of a whole card is no record of one claim."""
    read = [json.loads(path.read_text()) for path in sorted(RESULTS.glob("*.json"))]
    return [records[-1] for records in read if isinstance(records, list)]


def main() -> None:
    """Print, or write."""
    records = latest()
    machine = records[-1]["machine"]
    told = [
        f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_bytes'] / 2**30:.0f} GiB, "
        f"Linux {machine['kernel'].partition('-')[0]}, Python {machine['python']}. **Bold** values miss their bound.",
        "",
        *table(records),
    ]
    text = "\n".join(told) + "\n"
    if sys.argv[1:] != ["--write"]:
        print(text, end="")
        return
    head, _, rest = README.read_text().partition(BEGIN)
    README.write_text(head + BEGIN + "\n" + text + "\n" + END + rest.partition(END)[2])


if __name__ == "__main__":
    main()
