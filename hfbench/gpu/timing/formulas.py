"""The formulas behind every derived number: a value is stored with the id of the one that made it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Formula:
    """One way to derive a number. `id` is what results carry; `meaning` says where its parts come from."""

    id: str
    unit: str
    meaning: str


TTFT = Formula(
    id="ttft=t[1]-t[0]",
    unit="s",
    meaning="Time to first token: from handing the prompt over (t[0]) to the first token id being known (t[1]).",
)
ITL = Formula(
    id="itl=t[i+1]-t[i], i>=1",
    unit="s",
    meaning="Inter-token latency: the gap between two tokens of one sequence; the first token is never counted.",
)
E2E = Formula(
    id="e2e=t[n_out]-t[0]",
    unit="s",
    meaning="End to end: from handing the prompt over to the last token id being known.",
)
TPOT = Formula(
    id="tpot=(e2e-ttft)/(n_out-1)",
    unit="s",
    meaning="Time per output token: the mean gap of one iteration; n_out counts the tokens of one sequence.",
)
THROUGHPUT = Formula(
    id="throughput=batch*n_out/e2e",
    unit="tok/s",
    meaning="Output tokens of all sequences in the batch for each second, prefill time included.",
)
PREFILL_RATE = Formula(
    id="prefill_rate=batch*n_prompt/ttft",
    unit="tok/s",
    meaning="Prompt tokens of all sequences in the batch for each second of prefill.",
)
CALL = Formula(
    id="t=(end-begin)/calls",
    unit="s",
    meaning="Time of one call: between two marks on the device's stream, with `calls` calls between them.",
)

RATIO = Formula(
    id="ratio=tpot/tpot_eager",
    unit="x",
    meaning="Time per output token of a mode as a share of eager's in the same round of one run.",
)
TURNS = Formula(
    id="ratio=b/a of one round",
    unit="x",
    meaning="A time of B as a share of A's in the same round of one run.",
)

FORMULAS: dict[str, Formula] = {
    each.id: each for each in (TTFT, ITL, E2E, TPOT, THROUGHPUT, PREFILL_RATE, CALL, RATIO, TURNS)
}
"""Every formula by its id."""
