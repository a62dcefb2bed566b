"""Whether a kernel file is run by a program that uses it, or only to see what it declares."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_inspected: ContextVar[bool] = ContextVar("inspected", default=False)


@contextmanager
def only_declared() -> Iterator[None]:
    """Inside, decorated kernels are declared and not made operators: that takes seconds, and who reads needs none."""
    token = _inspected.set(True)
    try:
        yield
    finally:
        _inspected.reset(token)


def used() -> bool:
    """Whether a kernel is to become an operator as soon as it is declared."""
    return not _inspected.get()
