"""Compares the values of paired tensors, one tensor and one stretch of it at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Self

from hfbench.models.checkpoint import Checkpoint
from hfbench.models.columns import TensorInfo
from hfbench.models.diff.facts import Tolerance, ValueDiff
from hfbench.models.diff.metrics import Metrics, equal_values, not_measured
from hfbench.models.diff.quantized import Quantized, Scale, Settings, same_scales
from hfbench.models.diff.tolerance import tolerance
from hfbench.models.dtypes import BITS
from hfbench.models.values.decode import Array, load_numpy, numbers
from hfbench.models.values.reading import Weights

STRETCH = 2**20
"""Bytes compared at a time: both sides stay in the processor's cache."""

ELEMENTS = 2**16
"""Elements measured at a time: some arrays of float64 that stay in the processor's cache."""

LONGEST_ROW = 2**22
"""Elements of one row of a scaled weight; rows are not divided."""


class ValueComparison:
    """Compares pairs of rows of two checkpoints; holds their files until left.

    `rtol` and `atol` take the place of what follows from the dtypes. `done` is told bytes of A as they pass.
    `settings` are the quantization_config of each side.
    """

    def __init__(
        self,
        a: Checkpoint,
        b: Checkpoint,
        *,
        rtol: float | None = None,
        atol: float | None = None,
        settings: tuple[Settings, Settings] = ({}, {}),
        done: Callable[[int], None] = lambda _: None,
    ) -> None:
        self.columns = a.columns, b.columns
        self.weights = Weights(a), Weights(b)
        self.sides = Quantized(a, self.weights[0], settings[0]), Quantized(b, self.weights[1], settings[1])
        self.rtol, self.atol = rtol, atol
        self._done, self._passed = done, 0
        self._tolerances: dict[tuple[str, str, bool], Tolerance] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for each in self.weights:
            each.__exit__(kind, error, at)

    @property
    def tolerances(self) -> tuple[Tolerance, ...]:
        """Those that values were judged by so far."""
        return tuple({each.dtypes: each for each in self._tolerances.values()}.values())

    def compare(self, row_a: int, row_b: int) -> ValueDiff | None:
        """How the values of a pair compare; None when the shapes differ. ModelError when a file gives out,
        MissingError when bytes differ and numpy is not there to say by how much."""
        one, other = self.columns[0][row_a], self.columns[1][row_b]
        self._passed = 0
        found = self._compared(one, other) if one.shape == other.shape else None
        self._pass(one.bytes)
        return found

    def _compared(self, one: TensorInfo, other: TensorInfo) -> ValueDiff:
        same_dtype = one.dtype == other.dtype
        a, b = self.sides
        if same_dtype and same_bytes(*self.weights, one, other, self._pass) and same_scales(a, one, b, other):
            return equal_values(one)
        if note := self._unmeasured(one, other):
            return not_measured(one, note, same_dtype=same_dtype)
        scales = [
            (beside, side.scale(tensor, beside)) if (beside := side.scale_beside(tensor)) else None
            for side, tensor in ((a, one), (b, other))
        ]
        odd = [found[0] for found in scales if found and (found[1] is None or one.shape[-1] > LONGEST_ROW)]
        if odd:
            note = f"not measured: the scales {odd[0].name} fit in no known way"
            return not_measured(one, note, same_dtype=same_dtype)
        return self._measured(one, other, [found and found[1] for found in scales])

    def _unmeasured(self, one: TensorInfo, other: TensorInfo) -> str:
        packed = {t.dtype for side, t in zip(self.sides, (one, other), strict=True) if side.packed(t)}
        if packed:
            return f"packed {' and '.join(sorted(packed))} values are not measured"
        if (one.dtype == "C64") != (other.dtype == "C64"):
            return "complex values are not measured against others"
        return ""

    def _measured(self, one: TensorInfo, other: TensorInfo, scales: list[Scale | None]) -> ValueDiff:
        scaled = any(scales)
        metrics = Metrics(
            one.dtype,
            other.dtype,
            self._tolerance(one.dtype, other.dtype, scaled),
            same_bits=one.dtype == other.dtype and not scaled,
        )
        for begin, count in _stretches(one, scaled):
            parts = [self._numbers(side, each, begin, count) for side, each in enumerate((one, other))]
            if not scaled:
                metrics.add(*parts)
            else:
                metrics.add(*_multiplied(parts, scales, begin, count, one.shape[-1]))
            self._pass((begin + count) * BITS[one.dtype] // 8)
        names = dict.fromkeys(scale.name for scale in scales if scale)
        return metrics.told(one, f"scaled by {' and '.join(names)}" if names else "")

    def _numbers(self, side: int, tensor: TensorInfo, begin: int, count: int) -> Array:
        size = BITS[tensor.dtype] // 8
        return numbers(self.weights[side].read(tensor, begin * size, (begin + count) * size), tensor.dtype)

    def _tolerance(self, a: str, b: str, scaled: bool) -> Tolerance:
        key = a, b, scaled
        if key not in self._tolerances:
            self._tolerances[key] = tolerance(a, b, scaled=scaled, rtol=self.rtol, atol=self.atol)
        return self._tolerances[key]

    def _pass(self, end: int) -> None:
        """Tell of bytes of the present tensor up to `end`, each once though they may be read again."""
        if end > self._passed:
            self._done(end - self._passed)
            self._passed = end


def same_bytes(
    a: Weights, b: Weights, one: TensorInfo, other: TensorInfo, done: Callable[[int], None] = lambda _: None
) -> bool:
    """True when two tensors are stored alike, byte by byte; `done` is told up to where they are."""
    if one.bytes != other.bytes:
        return False
    rooms = [bytearray(min(STRETCH, one.bytes)) for _ in range(2)]  # filled again and again: new ones would be cleared
    for begin in range(0, one.bytes, STRETCH):
        end = min(begin + STRETCH, one.bytes)
        for weights, tensor, room in ((a, one, rooms[0]), (b, other, rooms[1])):
            if end - begin < len(room):
                del room[end - begin :]
            with memoryview(room) as view:
                weights.fill(view, tensor.shard, tensor.begin + begin)
        if rooms[0] != rooms[1]:
            return False
        done(end)
    return True


def _stretches(tensor: TensorInfo, scaled: bool) -> Iterator[tuple[int, int]]:
    """First element and number of elements of each part; whole rows where scales are to be laid over them."""
    row = max(1, tensor.shape[-1]) if scaled else 1
    step = max(1, ELEMENTS // row) * row
    for begin in range(0, tensor.elements, step):
        yield begin, min(step, tensor.elements - begin)


def _multiplied(
    parts: list[Array], scales: list[Scale | None], begin: int, count: int, row: int
) -> tuple[Array, Array, Array | float]:
    """Both sides times their scales, and the larger scale of each place."""
    first, rows = begin // row, count // row
    factors = [1.0 if scale is None else scale.of_rows(first, rows) for scale in scales]
    a, b = (part * factor for part, factor in zip(parts, factors, strict=True))
    known = [abs(factor) for scale, factor in zip(scales, factors, strict=True) if scale is not None]
    return a, b, known[0] if len(known) == 1 else load_numpy().maximum(*known)
