"""Kernels on the card: are they right, how near the copy's bandwidth do they come, and is the timer to be believed?"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from claims import Claim

from gpu_parts.setup import Setup, perform, slim
from hfbench.errors import HfbenchError

CEILING = Claim(
    name="gpu-kernels-ceiling",
    sentence="copying takes at least 0.9 of the time of each of rmsnorm, softmax, rope and silu-mul for the same bytes",
    bound=1 / 0.9,
)
TIMER = Claim(
    name="gpu-timer",
    sentence="the timer and triton.testing.do_bench differ by at most 3 %",
    bound=0.03,
)

LARGE: dict[str, tuple[dict[str, int], ...]] = {
    "rmsnorm": ({"R": 4096, "C": 8192}, {"R": 16384, "C": 8192}),
    "softmax": ({"R": 4096, "C": 8192}, {"R": 16384, "C": 8192}),
    "rope": ({"T": 8192, "H": 32, "D": 128, "ROT": 128, "I": 0}, {"T": 32768, "H": 32, "D": 128, "ROT": 128, "I": 0}),
    "silu_mul": ({"R": 4096, "C": 8192}, {"R": 16384, "C": 8192}),
}
"""Inputs of 64 and 256 MiB in bf16."""
SMALL = ({"R": 8, "C": 64},)
"""What a dry run has in their place."""
SPARE = 20.0
"""Seconds before its limit at which a part stops by itself and gives what it has."""
ROUNDS = 5


def check(setup: Setup) -> dict[str, Any]:
    """Every kernel, configuration, shape and element type once on the card, beside its reference; not interpreted.

    The dry run checks one configuration in the interpreter.
    """
    if setup.dry:
        return {"interpreted": slim(perform("kernel.check", kernel="softmax", config="BLOCK=1024", dtype=["fp32"]))}
    from hfbench.gpu.kernels.loading import find, load, shipped
    from hfbench.gpu.kernels.timing_child import run_once

    until, rows, left = time.monotonic() + setup.seconds - SPARE, [], 0
    for kernel, where, config, case in _cases([load(find(name).path)[0] for name in shipped()], setup.device):
        if time.monotonic() > until:
            left += 1
            continue
        try:
            answer, _ = run_once(kernel, config, case, dict(kernel.inputs(case)))
            rows.append({**where, "verdict": answer.verdict, "worst": answer.worst, "reason": answer.reason})
        except Exception as error:
            first = (str(error).strip() or "no message").splitlines()[0]
            rows.append({**where, "verdict": "failed", "reason": f"{type(error).__name__}: {first}"[:300]})
    counts = {verdict: sum(row["verdict"] == verdict for row in rows) for verdict in {row["verdict"] for row in rows}}
    wrong = [row for row in rows if row["verdict"] not in ("ok", "inapplicable")]
    return {"counts": counts, "not_reached": left, "wrong": wrong, "kernels": list(shipped())}


def ceiling(setup: Setup) -> dict[str, Any]:
    """The best configuration of four kernels that only move bytes, beside a copy that moves as many, in turns."""
    told: dict[str, Any] = {}
    for name, sizes in LARGE.items():
        try:
            told[name] = [_beside_copy(setup, name, size) for size in (SMALL if setup.dry else sizes)]
        except HfbenchError as error:
            told[name] = {"reason": str(error)}
        except Exception as error:
            told[name] = {"reason": f"{type(error).__name__}: {str(error)[:300]}"}
        if setup.dry:
            break
    rows = [row for each in told.values() if isinstance(each, list) for row in each]
    shares = [row["of_copy"] for row in rows]
    value = 1 / min(shares) if shares and not setup.dry else None
    holds = value <= CEILING.bound and len(rows) == sum(map(len, LARGE.values())) if value else None
    return {"claim": asdict(CEILING), "value": value, "holds": holds, "kernels": told}


def timer(setup: Setup) -> dict[str, Any]:
    """Our median with a cold cache beside do_bench's, in turns; on the CPU beside torch's own timer, warm."""
    peer_name, peer = (
        ("torch.utils.benchmark, in CPU time", _torch_timer) if setup.dry else ("triton.testing.do_bench", _do_bench)
    )
    rows = []
    for name, work in _works(setup):
        ours, theirs = [], []
        for _ in range(1 if setup.dry else ROUNDS):
            ours.append(_median(setup, work, cold=not setup.dry))
            theirs.append(peer(work))
        apart = statistics.median(ours) / statistics.median(theirs) - 1
        rows.append({"work": name, "ours": ours, "theirs": theirs, "apart": apart})
    value = max(abs(row["apart"]) for row in rows)
    holds = None if setup.dry else value <= TIMER.bound
    return {"claim": asdict(TIMER), "peer": peer_name, "value": value, "holds": holds, "rows": rows}


def time_action(setup: Setup) -> dict[str, Any]:
    """kernel.time as a user would call it, with torch.compile and graphs."""
    if setup.dry:
        words = {"device": "cpu", "size": ["R=8 C=64"], "budget": 0.01}
    else:
        words = {"device": setup.device, "size": ["R=4096 C=8192"], "dtype": ["bf16"], "config": "BLOCK=8192"}
    return {"result": slim(perform("kernel.time", kernel="softmax", **words))}


def tune_action(setup: Setup) -> dict[str, Any]:
    """kernel.tune twice into one file: the second time must keep every row."""
    table = str(setup.scratch / "tuned.json")
    if setup.dry:
        words = {"device": "cpu", "size": ["R=8 C=64"], "budget": 0.01, "config": "BLOCK=4096"}
    else:
        words = {"device": setup.device, "size": ["R=4096 C=8192"], "dtype": ["bf16"], "budget": 0.1}
    first, second = (perform("kernel.tune", kernel="softmax", out=table, **words) for _ in range(2))
    kept = sum(each["kept"] for each in second["tuned"])
    if kept != sum(len(each["rows"]) for each in first["tuned"]):
        raise HfbenchError("a second run of kernel.tune did not keep every row of the first")
    return {"result": slim(first), "kept": kept}


def _cases(kernels: Sequence[Any], device: str) -> Iterator[tuple[Any, dict[str, Any], Any, Any]]:
    """Every kernel in its usual element type first, then in the others: where time ends, each was looked at."""
    from hfbench.gpu.kernels.declaration import Case

    for turn in range(max(len(kernel.dtypes) for kernel in kernels)):
        for kernel in kernels:
            for dtype in kernel.dtypes[turn : turn + 1]:
                for config in kernel.configs:
                    for shape in kernel.shapes:
                        where = {"kernel": kernel.name, "config": config.label, "dtype": dtype, "shape": dict(shape)}
                        yield kernel, where, config, Case(shape=shape, dtype=dtype, device=device)


def _beside_copy(setup: Setup, name: str, size: dict[str, int]) -> dict[str, Any]:
    """The quickest configuration that is right, and the copy of half as many bytes in and half out."""
    import torch

    from hfbench.gpu.kernels.declaration import Case
    from hfbench.gpu.kernels.loading import find, load
    from hfbench.gpu.kernels.timing_child import run_once

    kernel, _ = load(find(name).path)
    case = Case(shape=size, dtype="fp32" if setup.dry else "bf16", device=setup.device)
    torch.manual_seed(0)
    inputs = dict(kernel.inputs(case))
    half = kernel.bytes_moved(case) // 2
    source = torch.ones(half // 4, dtype=torch.int32, device=setup.device)
    target = torch.empty_like(source)
    works: dict[str, Callable[[], object]] = {}
    wrong = []
    if setup.dry:
        called = kernel.eager or kernel.reference
        works["reference"] = lambda: called(**inputs)
    for config in () if setup.dry else kernel.configs:
        answer, given = run_once(kernel, config, case, inputs)
        if answer.verdict == "ok":
            works[config.label] = lambda given=given, config=config: kernel.launch(given, config)
        elif answer.verdict != "inapplicable":
            wrong.append({"config": config.label, "reason": answer.reason})
    if not works:
        raise HfbenchError("no configuration is right", where=name)
    cold = not setup.dry  # emptying the caches of a CPU takes longer than all else here
    first = {label: _median(setup, work, cold=cold) for label, work in works.items()}
    best = min(first, key=lambda label: first[label])
    kernel_s, copy_s = [], []
    for _ in range(1 if setup.dry else ROUNDS):
        copy_s.append(_median(setup, lambda: target.copy_(source), cold=cold))
        kernel_s.append(_median(setup, works[best], cold=cold))
    share = statistics.median(copy_s) / statistics.median(kernel_s)
    return {
        "size": size,
        "bytes_moved": 2 * half,
        "config": best,
        "kernel_seconds": kernel_s,
        "copy_seconds": copy_s,
        "bytes_per_second": 2 * half / statistics.median(kernel_s),
        "of_copy": share,
        "configs": first,
        "wrong": wrong,
    }


def _works(setup: Setup) -> Iterator[tuple[str, Callable[[], object]]]:
    """What both timers time: a copy, a product, and Triton's softmax where there is a card."""
    import torch

    from hfbench.gpu.kernels.declaration import Case
    from hfbench.gpu.kernels.loading import find, load

    rows = 64 if setup.dry else 8192
    source = torch.randn(rows, 8 * rows if setup.dry else 8192, device=setup.device)
    target = torch.empty_like(source)
    yield "copy", lambda: target.copy_(source)
    square = torch.randn(128 if setup.dry else 4096, 128 if setup.dry else 4096, device=setup.device)
    if not setup.dry:
        square = square.bfloat16()
    yield "matmul", lambda: square @ square
    if setup.dry:
        return
    kernel, _ = load(find("softmax").path)
    inputs = dict(kernel.inputs(Case(shape={"R": 4096, "C": 8192}, dtype="bf16", device=setup.device)))
    given = dict(kernel.arguments(**inputs))
    config = next(each for each in kernel.configs if kernel.applies(given, each.constants))
    yield "softmax", lambda: kernel.launch(given, config)


_STREAMS: dict[str, Any] = {}


def _median(setup: Setup, work: Callable[[], object], *, cold: bool) -> float:
    from hfbench.gpu.kernels.timing import measure
    from hfbench.gpu.kernels.timing_streams import stream_for
    from hfbench.gpu.timing.stopping import MedianInterval

    if setup.device not in _STREAMS:  # its buffer is large: one is enough
        _STREAMS[setup.device] = stream_for(setup.device)
    rule = MedianInterval(width=0.005, budget=0.02 if setup.dry else 0.2, most=2000, least=20)
    return measure(_STREAMS[setup.device], work, cold=cold, graph=False, rule=rule).seconds


def _do_bench(work: Callable[[], object]) -> float:
    from triton.testing import do_bench

    return float(do_bench(work, quantiles=[0.5])) / 1e3


def _torch_timer(work: Callable[[], object]) -> float:
    from torch.utils.benchmark import Timer

    return float(
        Timer("work()", globals={"work": work}, timer=time.process_time).blocked_autorange(min_run_time=0.02).median
    )
