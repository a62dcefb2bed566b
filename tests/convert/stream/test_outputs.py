"""Stretches of a file come out byte for byte, wherever they begin, and whether or not the disk takes whole pages."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hfbench.convert.stream import outputs
from hfbench.convert.stream.outputs import PAGE, Outputs

SIZE = 10 * PAGE
BEFORE = b"\xaa"


def filled(folder: Path, at: int, parts: list[int], *, cached: bool = False) -> bytes:
    """A file of one byte, and in it a stretch of numbered bytes written in these parts."""
    file = folder / "file"
    file.write_bytes(BEFORE * SIZE)
    data = bytes(number % 251 for number in range(sum(parts)))
    with Outputs(folder) as written:
        stretch = written.stretch("file", at, max(parts, default=0), cached=cached)
        done = 0
        for part in parts:
            stretch.room(part)[:] = data[done : done + part]
            stretch.put(part)
            done += part
        stretch.flush()
    assert file.read_bytes() == BEFORE * at + data + BEFORE * (SIZE - at - len(data))
    return data


@given(
    at=st.integers(0, 2 * PAGE),
    parts=st.lists(st.one_of(st.integers(0, 3 * PAGE), st.sampled_from([1, PAGE - 1, PAGE, PAGE + 1])), max_size=4),
    cached=st.booleans(),
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_stretch_is_written_and_nothing_beside_it(tmp_path: Path, at: int, parts: list[int], cached: bool) -> None:
    while sum(parts) > SIZE - at:
        parts = parts[:-1]
    filled(tmp_path, at, parts, cached=cached)


@pytest.mark.parametrize("where", ["open", "write"])
def test_where_the_disk_takes_no_whole_pages_they_go_through_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """As memory's file systems refuse it when a file is opened, and disks of larger pages when it is written."""
    real_open, real_write, refused = os.open, os.pwrite, []
    direct: set[int] = set()

    def opened(path: str, flags: int, *more: int) -> int:
        if where == "open" and flags & os.O_DIRECT:
            refused.append(path)
            raise OSError(errno.EINVAL, "refused")
        descriptor = real_open(path, flags, *more)
        (direct.add if flags & os.O_DIRECT else direct.discard)(descriptor)
        return descriptor

    def wrote(descriptor: int, data: memoryview, at: int) -> int:
        if descriptor in direct:
            refused.append(descriptor)
            raise OSError(errno.EINVAL, "refused")
        return real_write(descriptor, data, at)

    with monkeypatch.context() as patch:
        patch.setattr(outputs.os, "open", opened)
        patch.setattr(outputs.os, "pwrite", wrote)
        filled(tmp_path, 100, [2 * PAGE, PAGE, 3 * PAGE])
    assert len(refused) == 1, "it is tried once a file"


def test_a_full_disk_is_not_taken_for_one_that_refuses_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int, data: memoryview, at: int) -> int:
        raise OSError(errno.ENOSPC, "full")

    with monkeypatch.context() as patch:
        patch.setattr(outputs.os, "pwrite", full)
        with pytest.raises(OSError, match="full") as caught:
            filled(tmp_path, 0, [2 * PAGE])
    assert caught.value.filename == str(tmp_path / "file")
