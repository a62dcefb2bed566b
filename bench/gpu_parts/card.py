"""The card itself: what NVML says of it, and the most it copies and multiplies."""

from __future__ import annotations

from typing import Any

from gpu_parts.setup import Setup, reasons, slim
from hfbench.codec import encode
from hfbench.errors import HfbenchError


def telemetry(setup: Setup) -> dict[str, Any]:
    """One sample of every field, and which are missing; in a dry run of the two cards hfbench makes up."""
    from hfbench.gpu.telemetry.sampler import Sampler

    sampler = Sampler(demo=2 if setup.dry else 0)
    try:
        snapshot = encode(sampler.sample())
    finally:
        sampler.close()
    if not snapshot["devices"]:
        raise HfbenchError(f"no GPU was read: {snapshot['reason']}")
    missing = [{"field": field, "reason": reason} for field, reason in reasons(snapshot["devices"], "devices")]
    return {"snapshot": snapshot, "missing": missing}


def ceilings(setup: Setup) -> dict[str, Any]:
    """Bytes a second of a copy of 1 GiB and operations a second of a product of 8192 x 8192, cold and warm."""
    from hfbench.gpu.kernels.loading import find, load
    from hfbench.gpu.kernels.timing_child import perform as time_one

    file = find("softmax")  # any kernel: a ceiling has none
    kernel, _ = load(file.path)
    budget = 0.02 if setup.dry else 1.0
    told: dict[str, Any] = {"on": encode(time_one(kernel, file.path, what="device", device=setup.device))}
    for what, figure in (("copy", "bytes_moved"), ("matmul", "flops")):
        answer = encode(time_one(kernel, file.path, what=what, device=setup.device, budget=budget))
        if answer["verdict"] != "ok":
            raise HfbenchError(answer["reason"], where=what)
        times = [each["time"]["p50"] for each in answer["timed"] if each["time"]]
        told[what] = {"per_second": answer[figure] / min(times), "rows": slim(answer)}
    return {"copy_bytes_per_second": told["copy"]["per_second"], "matmul_flops": told["matmul"]["per_second"], **told}
