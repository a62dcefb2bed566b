"""NVLink, and values that NVML gives by number (nvmlDeviceGetFieldValues)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hfbench.gpu.nvml import REASONS, Nvml
from hfbench.gpu.reading import Unavailable, Value
from hfbench.gpu.telemetry.readings import NvLinks

# NVML_FI_DEV_* of nvml.h.
CRC_FLIT_ERRORS, CRC_DATA_ERRORS, REPLAY_ERRORS, RECOVERY_ERRORS = 38, 45, 52, 59
LINK_COUNT = 91
DATA_TX, DATA_RX = 138, 139
ALL_LINKS = 0xFFFFFFFF
"""The scope that means the sum over links."""
MOST_LINKS = 36
"""NVML_NVLINK_MAX_LINKS."""
KIB = 1024
KINDS = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")
"""Members of the union nvmlValue_t in the order of nvmlValueType_t."""

NO_LINKS = Unavailable("this GPU has no NVLink")


def field_values(nvml: Nvml, handle: Any, wanted: Sequence[int | tuple[int, int]]) -> list[Value]:
    """Numbers by their field id, or by (field id, scope); one call, and each has its own reason."""
    answers = nvml.read("nvmlDeviceGetFieldValues", handle, list(wanted))
    if isinstance(answers, Unavailable):
        return [answers] * len(wanted)
    return [_number(answer) for answer in answers]


def read_nvlink(nvml: Nvml, handle: Any) -> NvLinks | Unavailable:
    """The state of each link, and sums over all; Unavailable where there is none."""
    numbers = field_values(
        nvml,
        handle,
        [
            LINK_COUNT,
            CRC_FLIT_ERRORS,
            CRC_DATA_ERRORS,
            REPLAY_ERRORS,
            RECOVERY_ERRORS,
            (DATA_RX, ALL_LINKS),
            (DATA_TX, ALL_LINKS),
        ],
    )
    count, flit, data, replay, recovery, received, sent = numbers
    most = MOST_LINKS if isinstance(count, Unavailable) else min(int(count), MOST_LINKS)
    active: list[bool | Unavailable] = []
    for link in range(most):
        state = nvml.read("nvmlDeviceGetNvLinkState", handle, link)
        if isinstance(count, Unavailable) and isinstance(state, Unavailable):
            if not active:
                return NO_LINKS if state.reason in (REASONS[2], REASONS[3]) else state
            break  # the one behind the last
        active.append(state if isinstance(state, Unavailable) else bool(state))
    if not active:
        return NO_LINKS
    return NvLinks(
        active=tuple(active),
        crc_errors=_sum(flit, data),
        replay_errors=replay,
        recovery_errors=recovery,
        rx_bytes=_sum(received, scale=KIB),
        tx_bytes=_sum(sent, scale=KIB),
    )


def _number(answer: Any) -> Value:
    """One nvmlFieldValue_t: a union, a tag and a return code of its own."""
    if answer.nvmlReturn:
        return Unavailable(REASONS.get(answer.nvmlReturn, f"NVML error {answer.nvmlReturn}"))
    if not 0 <= answer.valueType < len(KINDS):
        return Unavailable("the driver's answer is of an unknown kind")
    number: float = getattr(answer.value, KINDS[answer.valueType])
    return number


def _sum(*parts: Value, scale: int = 1) -> Value:
    """The sum, or the first reason why there is none."""
    total = 0.0
    for part in parts:
        if isinstance(part, Unavailable):
            return part
        total += part
    return int(total * scale)
