"""Files on their way into the cache: followed while they grow, never served to their end when they are wrong."""

from __future__ import annotations

import asyncio
import hashlib
import random
from io import BytesIO
from pathlib import Path

import pytest

from hfbench.registry.storage.cache import Cache
from hfbench.registry.storage.layout import Layout
from hfbench.registry.storage.rebuilding import DamagedError, Rebuilder, Recipe, verified
from hfbench.registry.storage.sweeping import make_folders
from hfbench.registry.xet.hashes import spelled
from hfbench.registry.xet.shards import Term
from hfbench.registry.xet.xorbs import pack_xorb, verify_xorb

CONTENTS = [random.Random(seed).randbytes(100_000) for seed in range(60)]
WHOLE = b"".join(CONTENTS)


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    made = Layout(tmp_path / "hub")
    make_folders(made)
    return made


def recipe(layout: Layout, sha256: str = "") -> Recipe:
    """The recipe of a file whose xorb is stored, with another hash if one is given."""
    body, name = pack_xorb(CONTENTS)
    layout.xorb(spelled(name)).write_bytes(body)
    index = verify_xorb(BytesIO(body), len(body), name)
    terms = (Term(name, len(WHOLE), 0, len(CONTENTS)),)
    return Recipe(sha256 or hashlib.sha256(WHOLE).hexdigest(), len(WHOLE), terms, {name: index})


async def test_several_readers_share_one_rebuilding(layout: Layout) -> None:
    made, rebuilder = recipe(layout), Rebuilder(layout, Cache(layout, 1 << 30))

    async def read() -> bytes:
        return b"".join([piece async for piece in rebuilder.start(made, layout.cached(made.sha256)).follow()])

    assert set(await asyncio.gather(*(read() for _ in range(4)))) == {WHOLE}
    assert layout.cached(made.sha256).read_bytes() == WHOLE
    assert await read() == WHOLE, "who comes as it is kept reads what was kept"
    assert not list(layout.drafts.iterdir())


async def test_a_wrong_file_is_neither_kept_nor_read_to_its_end(layout: Layout) -> None:
    made, rebuilder = recipe(layout, "0" * 64), Rebuilder(layout, Cache(layout, 1 << 30))
    got = 0

    async def read() -> None:
        nonlocal got
        async for piece in rebuilder.start(made, layout.cached(made.sha256)).follow():
            got += len(piece)

    with pytest.raises(DamagedError):
        await read()
    assert got < len(WHOLE)
    assert not layout.cached(made.sha256).exists()
    assert not list(layout.drafts.iterdir())


def test_the_last_piece_waits_for_the_hash() -> None:
    pieces = verified([b"x" * (1 << 20), b"y"], "0" * 64)
    assert next(pieces) == b"x" * (1 << 20)
    with pytest.raises(DamagedError):
        next(pieces)


def test_the_longest_unused_leave_the_cache_and_what_is_in_use_stays(layout: Layout) -> None:
    import os
    import time

    cache, now = Cache(layout, 250), time.time()
    for number, age in enumerate((5000, 4000, 3000, 10)):
        path = layout.cached(f"{number:064}")
        path.write_bytes(b"x" * 100)
        os.utime(path, (now - age, now - age))
    assert cache.shrink() == 200
    assert [layout.cached(f"{number:064}").exists() for number in range(4)] == [False, False, True, True]


def test_a_cache_of_another_boot_is_not_trusted(layout: Layout) -> None:
    cache = Cache(layout, 1000)
    layout.cached("0" * 64).write_bytes(b"x")
    assert cache.distrust()
    assert not layout.cached("0" * 64).exists()
    layout.cached("0" * 64).write_bytes(b"x")
    assert not cache.distrust()
    assert layout.cached("0" * 64).exists()
