"""The words and numbers of a fit, the same on the command line and in the workbench."""

from __future__ import annotations

from collections.abc import Iterator

from hfbench.estimate.facts import LONGEST, MOST_SEQUENCES, CacheShare, FitCell, FitReport
from hfbench.line_width import USUAL, cut, paragraph
from hfbench.text import printable
from hfbench.units import GIB, KIB, MIB, TIB, show_bytes, show_count

LABEL = 12
SHOWN_KINDS = 4
SHOWN_WARNINGS, SHOWN_GUESSES = 3, 2

FIRST_COLUMN, COLUMN = 8, 14
"""Cells of the grid's columns: of the context, and of one batch."""

WEIGHED = {
    "headers": "from headers",
    "architecture": "by architecture",
    "files": "sizes of files",
}
SHORT = {
    "weights": "weight",
    "kv_cache": "kv",
    "index_keys": "index",
    "cross_attention": "cross",
    "recurrent_state": "state",
    "activations": "acts",
    "cuda_context": "driver",
    "graph_pools": "graphs",
}
"""Terms that a cell of the grid names in fewer letters."""

Row = tuple[str, str]
"""A label and what it tells."""


def text_lines(result: FitReport) -> list[str]:
    """All of it, as wide as the terminal."""
    rows = [*model_rows(result), *term_rows(result), *verdict_rows(result)]
    return [*map(_line, rows), *grid_lines(result), *map(_line, note_rows(result))]


def model_rows(result: FitReport) -> Iterator[Row]:
    """What was asked of which model, and what its cache keeps."""
    yield "model", printable(result.model)
    if result.weight_bytes is None:
        yield "weights", "not known"
    else:
        counted = f", {show_count(result.parameters)} parameters ({result.parameters:,})" if result.parameters else ""
        yield "weights", printable(f"{show_bytes(result.weight_bytes)}, {WEIGHED[result.source]}{counted}")
    ranks = "".join(f", {name} {value}" for name, value in _ranks(result) if value > 1)
    limit = f" of {result.context_limit:,}" if result.context_limit else ""
    yield "asked", f"context {result.context:,}{limit}, batch {result.batch:,}{ranks}"
    yield "", f"{result.dtype}, KV cache {result.kv_dtype}, {result.runtime}"
    if result.kv_bytes_per_token is None:
        yield "KV cache", "not known"
        return
    next_token = f", {result.kv_bytes_of_next_token:,} for the next" if _windowed(result) else ""
    yield "KV cache", f"{result.kv_bytes_per_token:,} bytes a token{next_token}"
    for share in result.cache[:SHOWN_KINDS]:
        yield "", printable(_kind(share))
    if len(result.cache) > SHOWN_KINDS:
        yield "", f"and {len(result.cache) - SHOWN_KINDS} more kinds of layers"


def term_rows(result: FitReport) -> Iterator[Row]:
    """Two terms a line, the largest first, and their sum."""
    cells = [f"{term_title(name):<16}{show_bytes(size):>10}" for name, size in terms_by_size(result)]
    for place in range(0, len(cells), 2):
        yield "" if place else "on a GPU", "    ".join(cells[place : place + 2])
    if result.total_bytes is not None:
        yield "total", show_bytes(result.total_bytes)


def terms_by_size(result: FitReport) -> list[tuple[str, int]]:
    """The terms, the largest first."""
    return sorted(result.terms.items(), key=lambda item: -item[1])


def term_title(name: str) -> str:
    """`kv cache` for `kv_cache`."""
    return name.replace("_", " ")


def verdict_rows(result: FitReport) -> Iterator[Row]:
    """The GPU, whether it fits, and the most that does."""
    device = result.device
    if device is None:
        return
    yield "GPU", printable(f"{device.needed} x {device.name}, {show_bytes(device.usable_bytes)} usable each")
    yield "verdict", " ".join(verdict(result))
    yield from most_rows(result)


def most_rows(result: FitReport) -> Iterator[Row]:
    """The most context and the most sequences that fit, in one row where that is short."""
    if result.largest_context is None or result.largest_batch is None:
        return
    told = "" if result.context_limit else ", no limit told"
    bound = LONGEST if result.context_limit is None else None
    context = f"context {_at_least(result.largest_context, bound)} at batch {result.batch:,}{told}"
    batch = f"batch {_at_least(result.largest_batch, MOST_SEQUENCES)} at context {result.context:,}"
    whole = f"{context}; {batch}"
    if LABEL + len(whole) <= USUAL:
        yield "at most", whole
    else:
        yield "at most", context
        yield "", batch


def verdict(result: FitReport) -> tuple[str, str]:
    """A sign (`ok`, `x` or `~`) and the sentence."""
    device = result.device
    if device is None:
        return "~", "no GPU to fit it to"
    if result.fits is not False and result.failed:
        return "x", "what can be read fits, but the weights are incomplete"
    if result.fits and result.total_bytes is not None:
        return "ok", f"fits, {show_bytes(device.usable_bytes - result.total_bytes)} to spare"
    if result.fits is False and result.limiting == "gpus":
        return "x", f"needs {device.needed} GPUs, this machine has {device.present}"
    if result.fits is False:
        term = term_title(str(result.limiting))
        return "x", f"does not fit: {term} {'pass' if term.endswith('s') else 'passes'} the memory"
    return "~", "what is known fits, but not everything is known"


def note_rows(result: FitReport) -> Iterator[Row]:
    """Warnings and guesses, the first of each."""
    for sign, notes, most in (("!", result.warnings, SHOWN_WARNINGS), ("~", result.guesses, SHOWN_GUESSES)):
        label = "warnings" if sign == "!" else "guesses"
        for place, note in enumerate(notes[:most]):
            for number, line in enumerate(paragraph(printable(note), LABEL + 2, most=2)):
                yield "" if place or number else label, f"{'  ' if number else sign + ' '}{line}"
        if len(notes) > most:
            yield "", f"and {len(notes) - most} more (--json lists all)"


def grid_lines(result: FitReport) -> Iterator[str]:
    """The grid as text: a line a context, a column a batch, GiB on the fullest GPU."""
    if not result.grid:
        return
    yield "GiB on a GPU by context and batch:"
    yield "".join([f"{'batch':<{FIRST_COLUMN}}", *(f"{cell.batch:<{COLUMN},}" for cell in result.grid[0])]).rstrip()
    for row in result.grid:
        label = context_label(row[0].context, result.context_limit)
        yield "".join([f"{label:<{FIRST_COLUMN}}", *(f"{cell_text(cell):<{COLUMN}}" for cell in row)]).rstrip()


def context_label(context: int, limit: int | None) -> str:
    """`128k` for 131,072; one beyond the limit is marked. Seven letters at most: millions that are odd are rounded."""
    for unit, size in (("M", MIB), ("k", KIB)):
        if context >= size and context % size == 0:
            text = f"{context // size}{unit}"
            break
    else:
        text = f"{context}" if context < 1_000_000 else f"{context / MIB:.{1 if context < 100 * MIB else 0}f}M"
    return f"{text}!" if limit and context > limit else text


def cell_text(cell: FitCell) -> str:
    """`ok 17.2`, or `x 322 kv`: GiB, and the term that does not fit."""
    if cell.fits:
        return f"ok {gib(cell.total_bytes)}"
    return f"x {gib(cell.total_bytes)} {SHORT.get(cell.limiting or '', cell.limiting or '')}"


def gib(size: float) -> str:
    """Bytes in GiB with three figures, in TiB where that takes more, four letters at most: `0.52`, `322`, `1.2T`."""
    if size >= 999.5 * TIB:
        return ">1P"
    if size >= 999.5 * GIB:
        tebi = size / TIB
        return f"{tebi:.1f}T" if tebi < 9.95 else f"{tebi:.0f}T"
    value = size / GIB
    return f"{value:.2f}" if value < 9.995 else f"{value:.1f}" if value < 99.95 else f"{value:.0f}"


def _at_least(number: int, bound: int | None) -> str:
    """The bound of a search is no fact of the model: what reached it may be more."""
    return f"{number:,} or more" if number == bound else f"{number:,}"


def _ranks(result: FitReport) -> tuple[tuple[str, int], ...]:
    return ("tp", result.tp), ("pp", result.pp), ("ep", result.ep)


def _windowed(result: FitReport) -> bool:
    return result.kv_bytes_of_next_token != result.kv_bytes_per_token


def _kind(share: CacheShare) -> str:
    """`12 sliding_attention: 2,048 a token, 128 tokens at most`."""
    told = [f"{share.bytes_per_token:,} a token" if share.bytes_per_token else ""]
    told += [f"{share.window:,} tokens at most" if share.window else ""]
    told += [f"one entry in {share.every}" if share.every > 1 else ""]
    told += [f"{share.fixed_tokens:,} tokens always" if share.fixed_tokens else ""]
    told += [f"a state of {show_bytes(share.state_bytes)}" if share.state_bytes else ""]
    return f"{share.layers} {share.kind}: {', '.join(filter(None, told)) or 'nothing kept'}"


def _line(row: Row) -> str:
    return f"{row[0]:<{LABEL}}{cut(row[1], LABEL)}".rstrip()
