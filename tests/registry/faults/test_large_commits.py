"""Commits of very many files, and of very much text: in bounded time and memory."""

from __future__ import annotations

import os
import time

import pytest
from hub_inside import REPO
from hub_measures import memory
from hub_process import HubProcess
from test_commits import commit, file, lines

MIB = 1 << 20


@pytest.mark.slow
def test_ten_thousand_files_and_a_hundred_mib_of_text_are_bounded(served: HubProcess) -> None:
    small = lines(*(file(f"many/{n % 100}/f{n}.txt", b"%d" % n) for n in range(10_000)))
    large = lines(*(file(f"large/{n}.txt", os.urandom(5 * MIB).hex().encode()[: 8 * MIB]) for n in range(12)))
    before = memory(served)
    for body, most in ((small, 20), (large, 30)):
        begun = time.monotonic()
        assert commit(served, REPO, body).status_code == 200
        assert time.monotonic() - begun < most
        assert memory(served) - before < 200 * MIB
    with served.client() as client:
        assert len(client.get(f"/api/models/{REPO}/tree/main/many?recursive=true").json()) == 1000
        assert client.get(f"/{REPO}/resolve/main/many/99/f9999.txt").content == b"9999"


@pytest.mark.slow
def test_a_line_or_a_commit_without_end_is_refused(served: HubProcess) -> None:
    before = memory(served)
    with served.client(served.writer) as client:
        address = f"/api/models/{REPO}/commit/main"
        head = lines() + b"\n"
        endless = client.post(address, content=head + b'{"key": "file", "value": {"path": "' + b"x" * (30 * MIB))
        many = client.post(address, content=head + b'{"key":"deletedFile","value":{"path":"x"}}\n' * 200_001)
    assert (endless.status_code, many.status_code) == (413, 413)
    assert memory(served) - before < 150 * MIB
