"""How often a comparison says what is not so, and whether it finds five percent: real work, timed by real processes.

    python bench/compare.py [--pairs 200]

The work is SHA-256 over a buffer, so that 1.05x of the work is 5 % more bytes. A run is a process of its own with its
own samples, intervals and verdicts, as a job is; runs in turns are rounds of one process. Nothing is thrown away.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from claims import Claim, Record, finish, run
from compare_run import timed

from hfbench.codec import encode
from hfbench.compare.judging import judge_metric, spoils_of_run
from hfbench.compare.metrics import metrics_of
from hfbench.compare.result import MetricVerdict, Word
from hfbench.gpu.timing.formulas import CALL
from hfbench.gpu.timing.machine import Company
from hfbench.gpu.timing.samples import Samples
from hfbench.gpu.timing.stopping import MedianInterval, Stop
from hfbench.gpu.timing.verdicts import judge

BYTES = 2_000_000
"""Of one call: about a millisecond."""
MORE = 1.05
SAMPLES = 100
RUN = Path(__file__).with_name("compare_run.py")
LOTS = random.Random(1)
"""Draws who begins each round."""
CALLED = (Word.FASTER, Word.SLOWER)

SAME_APART = Claim(
    name="compare-same-apart",
    sentence="a thing against itself, measured apart, is called faster or slower in at most 5 of 100",
    bound=0.05,
    unit="",
)
SAME_TURNS = Claim(
    name="compare-same-turns",
    sentence="a thing against itself, measured in turns, is called faster or slower in at most 5 of 100",
    bound=0.05,
    unit="",
)
MORE_APART = Claim(
    name="compare-more-apart",
    sentence="1.05x of the work, measured apart, is missed by at most 10 of 100 intervals that are narrower",
    bound=0.10,
    unit="",
)
MORE_TURNS = Claim(
    name="compare-more-turns",
    sentence="1.05x of the work, measured in turns, is missed by at most 10 of 100 verdicts whose interval is narrower",
    bound=0.10,
    unit="",
)


def main() -> None:
    """Measure both kinds of runs; each claims as soon as it is done."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=200)
    pairs = parser.parse_args().pairs
    records = []
    for kind, compared in (("apart", apart), ("turns", in_turns)):
        records.append(wrong(kind, [compared(1.0) for _ in range(pairs)]))
        records.append(found_it(kind, [compared(MORE) for _ in range(pairs // 4)]))
    finish(*records)


def apart(share: float) -> MetricVerdict:
    """Two processes, one after the other; B has `share` of A's work."""
    a, b = (one_run(size) for size in (BYTES, round(BYTES * share)))
    spoils = [*spoils_of_run(a, "A"), *spoils_of_run(b, "B")]
    return judge_metric(metrics_of(a)["work"], metrics_of(b)["work"], spoils=spoils)


def one_run(size: int) -> dict[str, Any]:
    """What a job keeps of a process of its own: a summary with its samples, and what speaks against the run."""
    words = [sys.executable, RUN, str(size), str(SAMPLES)]
    told = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
    samples = Samples("work", CALL, told["values"])
    company = Company(**told["company"])
    verdicts = judge([samples], rule=MedianInterval(), stop=Stop.INTERVAL_REACHED, company=company)
    return {"metrics": {"work": encode(samples.summary())}, "verdicts": encode(verdicts), "machine": told["company"]}


def in_turns(share: float) -> MetricVerdict:
    """Rounds of one process in which both have their turn."""
    buffers = bytes(BYTES), bytes(round(BYTES * share))
    taken = Samples("work", CALL), Samples("work", CALL)
    for _ in range(SAMPLES):
        for side in LOTS.sample((0, 1), 2):
            taken[side].add(timed(buffers[side]))
    a, b = ({"metrics": {"work": encode(each.summary())}} for each in taken)
    return judge_metric(metrics_of(a)["work"], metrics_of(b)["work"], paired=True)


def wrong(kind: str, found: list[MetricVerdict]) -> Record:
    """The share of comparisons of a thing with itself that call one of them faster.

    The notes tell how many verdicts were withheld, and what they would have been.
    """
    called = [each.word in CALLED for each in found]
    before = sum(each.word in CALLED or each.would_be in CALLED for each in found)
    return run(
        SAME_APART if kind == "apart" else SAME_TURNS,
        lambda: sum(called) / len(called),
        rounds=1,
        warmup=0,
        notes={**notes(found), "wrong_before_withholding": before},
    )


def found_it(kind: str, found: list[MetricVerdict]) -> Record:
    """Of comparisons with 1.05x of the work, and an interval no wider than that: the share that misses it.

    Of runs apart on a busy machine the interval is asked, as their verdict is withheld there.
    """
    able = [each for each in found if each.low and each.high and each.high / each.low <= MORE]
    seen = [(each.word, each.would_be) if kind == "apart" else (each.word,) for each in able]
    missed = sum(Word.SLOWER not in words for words in seen)
    claim = MORE_APART if kind == "apart" else MORE_TURNS
    share = missed / len(able) if able else 1.0
    return run(claim, lambda: share, rounds=1, warmup=0, notes={**notes(found), "narrow": len(able), "missed": missed})


def notes(found: list[MetricVerdict]) -> dict[str, str | int | float]:
    """How the verdicts fell, and how far the ratios lay from each other."""
    ratios = [each.ratio for each in found if each.ratio]
    words = Counter(str(each.word) for each in found)
    would = Counter(f"{each.word}, would be {each.would_be}" for each in found if each.would_be)
    ends = statistics.quantiles(ratios, n=20) if len(ratios) > 1 else ratios
    return {**words, **would, "ratio_p5": ends[0], "ratio_p50": statistics.median(ratios), "ratio_p95": ends[-1]}


if __name__ == "__main__":
    main()
