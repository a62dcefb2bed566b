"""Numbers of NVML in words."""

from __future__ import annotations

CLOCK_REASONS = {
    0x001: "idle",
    0x002: "application clocks",
    0x004: "power cap",
    0x008: "hardware slowdown",
    0x010: "sync boost",
    0x020: "thermal (software)",
    0x040: "thermal (hardware)",
    0x080: "power brake",
    0x100: "display clocks",
    0x200: "board limit",
    0x400: "reliability",
}
"""nvmlClocksEventReason* of nvml.h; the last two have only the old name, nvmlClocksThrottleReason*."""
HARMLESS = frozenset({"idle", "application clocks", "sync boost", "display clocks"})
"""Reasons that somebody asked for: a card that has only these is not throttled."""

XIDS = {
    8: "the GPU stopped processing",
    13: "exception in a kernel",
    31: "a kernel accessed memory that is not its own",
    32: "invalid or corrupted push buffer",
    38: "driver firmware error",
    43: "the GPU stopped processing",
    45: "work was cleaned up after an earlier error",
    46: "the GPU stopped processing",
    48: "double bit ECC error",
    61: "internal micro-controller breakpoint",
    62: "internal micro-controller halt",
    63: "a memory row or page was taken out of use",
    64: "a memory row or page could not be taken out of use",
    68: "video processor exception",
    69: "exception in a graphics engine",
    74: "NVLink error",
    79: "the GPU fell off the bus",
    92: "many single bit ECC errors",
    94: "contained ECC error",
    95: "uncontained ECC error",
    119: "the GPU system processor does not answer",
    120: "error of the GPU system processor",
    140: "unrecovered ECC error",
    154: "the GPU asks for a recovery",
}
"""Xid numbers of NVIDIA's public catalogue that an operator of compute nodes meets."""

COMPUTE_MODES = {0: "default", 1: "exclusive thread", 2: "prohibited", 3: "exclusive process"}


def clock_words(mask: int) -> tuple[str, ...]:
    """`0x44` -> (`power cap`, `thermal (hardware)`); bits that are not known keep their number."""
    known = [word for bit, word in CLOCK_REASONS.items() if mask & bit]
    rest = mask & ~sum(CLOCK_REASONS)
    return (*known, *([f"reason {rest:#x}"] if rest else []))


def throttling(words: tuple[str, ...]) -> tuple[str, ...]:
    """Those of the words by which a busy card is slower than it could be."""
    return tuple(word for word in words if word not in HARMLESS)


def xid_meaning(code: int) -> str:
    """What a Xid says, or that it is not known here."""
    return XIDS.get(code, "see NVIDIA's list of Xid errors")


def compute_mode(number: int) -> str:
    """nvmlComputeMode_t in words."""
    return COMPUTE_MODES.get(number, f"mode {number}")


def cuda_version(number: int) -> str:
    """`13000` -> `13.0`: NVML packs 1000 * major + 10 * minor."""
    return f"{number // 1000}.{number % 1000 // 10}"
