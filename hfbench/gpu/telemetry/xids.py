"""Critical errors of the driver (Xid), collected without waiting for them."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from typing import Any

from hfbench.gpu.nvml import REASONS, Nvml
from hfbench.gpu.reading import Unavailable
from hfbench.gpu.telemetry.decode import xid_meaning
from hfbench.gpu.telemetry.readings import Xid

XID_CRITICAL = 0x8
"""nvmlEventTypeXidCriticalError."""
KEPT = 16
"""Errors of one card that are remembered."""
MOST_AT_ONCE = 64
"""Events taken in one look: a card that floods must not hold the sample."""
NO_EVENT = REASONS[10]
"""What a wait of no time answers when there is nothing."""


class XidLog:
    """One event set for all cards; what it saw is kept by the index of the card."""

    def __init__(self, nvml: Nvml) -> None:
        self._nvml = nvml
        self._set: Any = nvml.read("nvmlEventSetCreate")
        self._registered: dict[int, Unavailable | None] = {}
        self._seen: dict[int, deque[Xid]] = {}
        self._trouble: Unavailable | None = None

    def register(self, index: int, handle: Any) -> None:
        """Listen to a card; asked once for each."""
        if index in self._registered or isinstance(self._set, Unavailable):
            return
        supported = self._nvml.read("nvmlDeviceGetSupportedEventTypes", handle)
        if isinstance(supported, Unavailable):
            self._registered[index] = supported
        elif not supported & XID_CRITICAL:
            self._registered[index] = Unavailable(REASONS[3])
        else:
            answer = self._nvml.read("nvmlDeviceRegisterEvents", handle, XID_CRITICAL, self._set)
            self._registered[index] = answer if isinstance(answer, Unavailable) else None

    def collect(self, handles: Mapping[int, Any]) -> None:
        """Take what has happened since the last look; never waits."""
        if isinstance(self._set, Unavailable) or None not in self._registered.values():
            return
        for _ in range(MOST_AT_ONCE):
            event = self._nvml.read("nvmlEventSetWait_v2", self._set, 0)
            if isinstance(event, Unavailable):
                self._trouble = None if event.reason == NO_EVENT else event
                return
            index = self._index_of(event.device, handles)
            if event.eventType & XID_CRITICAL and index is not None:
                code = int(event.eventData)
                log = self._seen.setdefault(index, deque(maxlen=KEPT))
                log.append(Xid(code=code, meaning=xid_meaning(code), at=round(time.time(), 3)))

    def of(self, index: int) -> tuple[Xid, ...] | Unavailable:
        """What was seen of a card, or why nothing can be."""
        seen = tuple(self._seen.get(index, ()))
        if seen:
            return seen
        if isinstance(self._set, Unavailable):
            return self._set
        why = self._registered.get(index, Unavailable("not asked for yet"))
        return why or self._trouble or seen

    def _index_of(self, device: Any, handles: Mapping[int, Any]) -> int | None:
        """By the handle itself: a card that was just lost does not tell its number any more."""
        for index, handle in handles.items():
            if _address(handle) == _address(device):
                return index
        answer = self._nvml.read("nvmlDeviceGetIndex", device)
        return None if isinstance(answer, Unavailable) else int(answer)


def _address(handle: Any) -> object:
    import ctypes  # pynvml has loaded it by now; who only names readings needs none of it

    try:
        return ctypes.cast(handle, ctypes.c_void_p).value
    except (ctypes.ArgumentError, TypeError):
        return handle
