"""Samples of all GPUs: one session held, one sample in flight, and no call of the driver waited for without end."""

from __future__ import annotations

import threading
import time

from hfbench.gpu.nvml import Nvml, open_nvml
from hfbench.gpu.reading import Unavailable
from hfbench.gpu.telemetry.card import Card
from hfbench.gpu.telemetry.decode import cuda_version
from hfbench.gpu.telemetry.demo import demo_cards, open_demo
from hfbench.gpu.telemetry.patience import Patience, Task
from hfbench.gpu.telemetry.readings import GpuSnapshot, Text
from hfbench.gpu.telemetry.xids import XidLog

SLOW_EVERY = 5.0
"""Seconds between two looks at what changes slowly."""
PATIENCE = 1.0
"""Seconds a call may take before the sample goes on without it."""
START_PATIENCE = 10.0
"""Seconds the first call may take: without persistence mode it wakes up every card."""
REOPEN_EVERY = 30.0
"""Seconds between two new sessions while a card is lost: a session does not see a card that was put back."""
SESSION = "session"


class Sampler:
    """Reads GPUs on demand and holds its NVML session between samples.

    `demo` made-up cards replace the driver's; by default as many as HFBENCH_DEMO_GPUS says. `only` is the UUID of the
    one card to read. `patience` and `start_patience` are seconds.
    """

    def __init__(
        self,
        *,
        demo: int | None = None,
        only: str = "",
        patience: float = PATIENCE,
        start_patience: float = START_PATIENCE,
    ) -> None:
        self._demo = demo_cards() if demo is None else demo
        self._only = only
        self._patience, self._start_patience = Patience(patience), start_patience
        self._one = threading.Lock()
        self._session: _Session | None = None
        self._refused: Unavailable | None = None

    def sample(self) -> GpuSnapshot:
        """The GPUs now. Never raises: what cannot be read is a reason in its place."""
        with self._one:
            return self._sample()

    def close(self) -> None:
        """Give the NVML session back; the next sample opens a new one. While a call hangs the session is left open."""
        with self._one:
            self._end()
            self._patience.close()

    def _sample(self) -> GpuSnapshot:
        session = self._opened()
        if isinstance(session, Unavailable):
            return self._nothing(session.reason)
        now = time.monotonic()
        self._patience.run(session.common_tasks())
        if isinstance(session.count, Unavailable):
            waiting = self._late_sentence()
            if not waiting:
                self._end()  # tried again each time: a driver may be loaded while the workbench runs
            return self._nothing(waiting or session.count.reason)
        cards = session.wanted_cards(self._only)
        self._patience.run(task for card in cards for task in card.tasks(now, SLOW_EVERY))
        if back := [card for card in cards if card.came_back()]:
            self._patience.run(task for card in back for task in card.tasks(now, SLOW_EVERY))
        if any(card.replaced() for card in cards):
            session.cards.clear()  # the driver numbers its cards anew: nothing of what is held belongs to its index
            return self._sample()
        self._patience.run(session.xid_tasks())
        snapshot = self._built(session)
        if any(device.reason for device in snapshot.devices) and now - session.since > REOPEN_EVERY:
            self._end()
        return snapshot

    def _opened(self) -> _Session | Unavailable:
        """The session, opened now if there is none: a driver may be loaded while the workbench runs."""
        if self._session is None:
            self._refused = None
            self._patience.run([Task((SESSION, "nvmlInit"), self._open)], limit=self._start_patience)
        if self._session is not None:
            return self._session
        return Unavailable(self._late_sentence()) if self._refused is None else self._refused

    def _open(self) -> None:
        opened = open_demo(self._demo) if self._demo else open_nvml()
        if isinstance(opened, Unavailable):
            self._refused = opened
        else:
            self._session = _Session(opened)

    def _end(self) -> None:
        session, self._session = self._session, None
        if session is not None and not self._patience.stuck:  # to end a session under a call crashes the driver
            self._patience.run([Task((SESSION, "nvmlShutdown"), session.nvml.close)])

    def _built(self, session: _Session) -> GpuSnapshot:
        now = time.monotonic()
        none = "the driver does not show this GPU" if session.count else "the driver shows no GPU to this process"
        devices = tuple(
            card.reading(now, self._patience.late(card), session.xids.of(card.index))
            for card in session.wanted_cards(self._only)
        )
        return GpuSnapshot(
            driver=session.driver,
            cuda=session.cuda,
            reason="" if devices else none,
            devices=devices,
            demo=bool(self._demo),
            at=round(time.time(), 3),
            waiting=self._late_sentence(),
        )

    def _nothing(self, reason: str) -> GpuSnapshot:
        unknown = Unavailable(reason)
        return GpuSnapshot(
            driver=unknown, cuda=unknown, reason=reason, devices=(), demo=bool(self._demo), at=round(time.time(), 3)
        )

    def _late_sentence(self) -> str:
        late = self._patience.late(SESSION)
        return f"the driver has not answered {' and '.join(late)} for {max(late.values()):.0f} s" if late else ""


class _Session:
    """An NVML session, its cards, and what is common to them."""

    def __init__(self, nvml: Nvml) -> None:
        self.nvml = nvml
        self.since = time.monotonic()
        self.cards: dict[int, Card] = {}
        self.xids = XidLog(nvml)
        self.count: int | Unavailable = Unavailable("the driver has not told how many GPUs there are")
        self.driver: Text = Unavailable("not read yet")
        self.cuda: Text = Unavailable("not read yet")

    def common_tasks(self) -> list[Task]:
        """Calls that name no card."""
        tasks = [Task((SESSION, "nvmlDeviceGetCount"), self._count)]
        if isinstance(self.driver, Unavailable) or isinstance(self.cuda, Unavailable):
            tasks.append(Task((SESSION, "nvmlSystemGetDriverVersion"), self._versions))
        return tasks

    def wanted_cards(self, only: str) -> list[Card]:
        """All cards, or the one with that UUID once it is known."""
        count = 0 if isinstance(self.count, Unavailable) else self.count
        for index in [index for index in self.cards if index >= count]:
            del self.cards[index]
        for index in range(count):
            self.cards.setdefault(index, Card(self.nvml, index))
        cards = [self.cards[index] for index in range(count)]
        return [card for card in cards if not only or card.uuid in (None, only)]

    def xid_tasks(self) -> list[Task]:
        """Listen to cards that are new, and take what happened."""
        return [Task((SESSION, "nvmlEventSetWait"), self._xids)]

    def _count(self) -> None:
        self.count = self.nvml.count()

    def _versions(self) -> None:
        self.driver = self.nvml.text("nvmlSystemGetDriverVersion")
        number = self.nvml.read("nvmlSystemGetCudaDriverVersion_v2")
        self.cuda = number if isinstance(number, Unavailable) else cuda_version(number)

    def _xids(self) -> None:
        handles = {card.index: card.handle for card in self.cards.values() if not isinstance(card.handle, Unavailable)}
        for index, handle in handles.items():
            self.xids.register(index, handle)
        self.xids.collect(handles)
