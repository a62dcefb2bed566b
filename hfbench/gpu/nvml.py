"""NVML through nvidia-ml-py: one session, and every failure turned into a reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from hfbench.gpu.reading import Unavailable
from hfbench.text import printable

T = TypeVar("T")

# NVML return codes (nvml.h, nvmlReturn_t) and what each means to whoever reads a row.
REASONS: dict[int, str] = {
    1: "NVML was not initialised",
    2: "the driver rejects the request",
    3: "not supported by this GPU",
    4: "no permission",
    6: "not found",
    7: "the driver's answer does not fit",
    8: "a power cable of the GPU is missing",
    9: "the NVIDIA driver is not loaded",
    10: "the driver answered too late",
    11: "trouble with an interrupt of the GPU",
    12: "the NVIDIA driver library (libnvidia-ml.so.1) is not installed",
    13: "this driver lacks the function",
    14: "the memory with the GPU's settings is corrupt",
    15: "the GPU is lost (fell off the bus)",
    16: "the GPU must be reset",
    17: "the operating system blocks access to the GPU",
    18: "driver and library versions differ; reload the driver or reboot",
    19: "in use",
    20: "out of memory in the driver",
    21: "no data",
    25: "driver and binding differ in what they exchange",
    26: "this driver no longer has the function",
    27: "the driver is not ready",
    28: "the driver does not find the GPU",
    999: "unknown error in the driver",
}
LOST = frozenset({15, 16, 28})
"""Codes after which nothing of a GPU can be read."""
LOST_REASONS = frozenset(REASONS[code] for code in LOST)
OLD_BINDING = "the NVML binding lacks the function"
LACKING = frozenset({REASONS[13], REASONS[25], REASONS[26], OLD_BINDING})
"""Reasons for which an older function may still answer."""
LASTING = LACKING | {REASONS[3]}
"""Reasons that do not change while the driver is loaded: asking again is of no use."""


class Nvml:
    """An initialised NVML session. Holding it avoids the cost of loading the driver for each sample."""

    def __init__(self, binding: Any) -> None:
        self.binding = binding

    def read(self, function: str, *arguments: Any, **options: Any) -> Any:
        """The answer of an NVML function, or Unavailable."""
        call = getattr(self.binding, function, None)
        if call is None:
            return Unavailable(OLD_BINDING)
        return self._guarded(lambda: call(*arguments, **options))

    def text(self, function: str, *arguments: Any) -> str | Unavailable:
        """The answer as text that is safe to paint, or Unavailable."""
        answer = self.read(function, *arguments)
        if isinstance(answer, Unavailable):
            return answer
        return printable(answer.decode("utf-8", "surrogateescape") if isinstance(answer, bytes) else str(answer))

    def count(self) -> int | Unavailable:
        """How many GPUs the driver shows to this process."""
        answer: int | Unavailable = self.read("nvmlDeviceGetCount")
        return answer

    def close(self) -> None:
        """End the session; a failure to do so has no consequence."""
        self.read("nvmlShutdown")

    def _guarded(self, call: Callable[[], T]) -> T | Unavailable:
        try:
            return call()
        except self.binding.NVMLError as error:
            return Unavailable(reason_of(error))
        except UnicodeDecodeError:
            return Unavailable("the driver's answer is not text")
        except Exception as error:  # whatever a driver answers, one value is lost and not the whole sample
            if type(error).__name__ == "NVMLLibraryMismatchError":  # no NVMLError: the driver is older than the binding
                return Unavailable(REASONS[13])
            return Unavailable(printable(f"unexpected answer of the driver ({type(error).__name__})"))


def open_nvml() -> Nvml | Unavailable:
    """Load the driver's library and start a session, or say why that cannot be."""
    try:
        import pynvml  # 28 ms, and only who looks at GPUs pays it
    except ImportError:
        return Unavailable("the Python package nvidia-ml-py is not installed")
    session = Nvml(pynvml)
    started = session.read("nvmlInit")
    return started if isinstance(started, Unavailable) else session


def reason_of(error: Any) -> str:
    """What an NVMLError means, in words."""
    code = getattr(error, "value", None)
    return REASONS.get(code, f"NVML error {code}") if isinstance(code, int) else printable(str(error))
