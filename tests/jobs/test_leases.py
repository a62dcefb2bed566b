"""One benchmark at a time per device."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from signal import SIGKILL

import pytest
from story import JobStory, until

from hfbench.jobs.directory import JobsFolderError
from hfbench.jobs.events import Queued
from hfbench.jobs.leases import hold, holder, lease_file
from hfbench.jobs.snapshot import State
from hfbench.paths import leases_root

NewStory = Callable[[], JobStory]


def test_the_second_job_waits_and_names_the_first(new_story: NewStory) -> None:
    first = new_story().launch("toy.count", to=100_000).until(progress=1)
    second = new_story().launch("toy.count", to=2).until("queued")
    assert (second.now.waits_for, second.now.device) == (first.job.id, "cpu")
    assert second.now.started is None
    assert holder(leases_root(), "cpu") == first.job.id
    first.cancel()
    second.expect_outcome("finished")
    assert second.end().waits_for == ""
    assert holder(leases_root(), "cpu") == ""


def test_a_killed_job_lets_go_of_its_device(new_story: NewStory) -> None:
    first = new_story().launch("toy.count", to=100_000).until(progress=1)
    second = new_story().launch("toy.count", to=2).until("queued")
    first.kill(SIGKILL, supervisor=True).expect_outcome("died")
    second.expect_outcome("finished")


def test_a_queued_job_can_be_cancelled(new_story: NewStory) -> None:
    first = new_story().launch("toy.count", to=100_000).until(progress=1)
    new_story().launch("toy.count", to=2).until("queued").cancel().expect_outcome("cancelled")
    assert first.now.state is State.RUNNING


def test_without_a_lease_it_runs_beside_the_other(new_story: NewStory) -> None:
    first = new_story().launch("toy.count", to=100_000).until(progress=1)
    second = new_story().launch("toy.count", to=2, lease=False).expect_outcome("finished")
    assert not any(isinstance(event, Queued) for event in second.events)
    assert first.now.state is State.RUNNING
    assert holder(leases_root(), "cpu") == first.job.id


def test_the_time_in_the_queue_does_not_count(new_story: NewStory) -> None:
    first = new_story().launch("toy.count", to=100_000).until(progress=1)
    second = new_story().launch("toy.count", to=2, timeout=2.0).until("queued")
    assert second.events[-1].kind == "queued"
    threading.Event().wait(2.5)
    assert second.now.state is State.QUEUED
    first.cancel()
    second.expect_outcome("finished")


def test_a_device_that_does_not_exist_fails_the_job(new_story: NewStory) -> None:
    new_story().launch("toy.count", device="tpu").expect_outcome("failed").expect_reason("'tpu' is not a device")


@pytest.mark.parametrize("device", ["../../etc/passwd", "GPU-1/2", "", "..", "x" * 300, "\n", "a\0b"])
def test_any_device_name_stays_inside_the_folder(tmp_path: Path, device: str) -> None:
    assert lease_file(tmp_path, device).parent == tmp_path
    with hold(tmp_path / "leases", device, "job", print):
        assert holder(tmp_path / "leases", device) == "job"


def test_two_devices_never_share_a_lock(tmp_path: Path) -> None:
    assert lease_file(tmp_path, "GPU/1") != lease_file(tmp_path, "GPU_1")


def test_a_link_in_place_of_a_lock_is_refused_by_name(tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_text("keep me")
    root = tmp_path / "leases"
    root.mkdir()
    (root / "cpu").symlink_to(target)
    with (
        pytest.raises(JobsFolderError, match="the folder of device locks cannot be written"),
        hold(root, "cpu", "job", print),
    ):
        pass
    assert target.read_text() == "keep me"


def test_a_holder_that_left_no_name_is_another_process(tmp_path: Path) -> None:
    with hold(tmp_path, "cpu", "job", print):
        (tmp_path / "cpu").write_text("{torn")
        assert holder(tmp_path, "cpu") == "another process"


def test_a_lock_is_for_all_users_of_the_machine(tmp_path: Path) -> None:
    root = tmp_path / "leases"
    with hold(root, "cpu", "job", print):
        assert root.stat().st_mode & 0o7777 == 0o1777
        assert (root / "cpu").stat().st_mode & 0o777 == 0o666


def test_waiting_tells_each_holder_once(tmp_path: Path) -> None:
    told: list[str] = []
    ready = threading.Event()

    def wait_for_it() -> None:
        with hold(tmp_path, "cpu", "second", told.append):
            ready.set()

    with hold(tmp_path, "cpu", "first", print):
        thread = threading.Thread(target=wait_for_it)
        thread.start()
        until(lambda: bool(told), "it never said that it waits")
        threading.Event().wait(0.5)
    thread.join(20)
    assert ready.is_set()
    assert told == ["first"]


def test_the_lease_folder_is_shared_unless_a_home_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HFBENCH_HOME")
    monkeypatch.setenv("TMPDIR", "/scratch/job-17")
    assert str(leases_root()) == "/tmp/hfbench-leases"
    assert os.environ["TMPDIR"]


def test_who_came_first_gets_the_device_first_and_the_dead_do_not_wait(tmp_path: Path) -> None:
    order: list[int] = []
    (tmp_path / ".cpu.00000000000000000001-0123abcd").write_text("")  # the ticket of a killed job

    def wait_for_it(number: int, queued: threading.Event) -> None:
        with hold(tmp_path, "cpu", f"job {number}", lambda _: queued.set()):
            order.append(number)

    threads = []
    with hold(tmp_path, "cpu", "first", print):
        for number in range(6):
            queued = threading.Event()
            threads.append(threading.Thread(target=wait_for_it, args=(number, queued)))
            threads[-1].start()
            assert queued.wait(20)
    for thread in threads:
        thread.join(20)
    assert order == [0, 1, 2, 3, 4, 5]
    assert [each.name for each in tmp_path.iterdir()] == ["cpu"]
