"""What checks read of the kernel's files, and which kernels reach which card."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hfbench.doctor.checks.processor import listed
from hfbench.doctor.checks.torch import serves
from hfbench.doctor.limits import Limit, read_limits
from hfbench.doctor.mounts import mount_of, read_mounts
from hfbench.doctor.pythons import distributions
from hfbench.doctor.system import System, room_of, stamp_of

ROWS = r"""25 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 25 0:26 / /mnt/my\040disk rw,nosuid - nfs4 server:/a\040b rw,vers=4.2
31 25 0:27 / /mnt/my\040disk ro,noexec - tmpfs none rw
a damaged row
"""


@pytest.mark.parametrize(
    ("arches", "capability", "how"),
    [
        (("sm_80",), "8.0", "yes"),
        (("sm_80",), "8.9", "yes"),
        (("sm_89",), "8.0", "no"),
        (("sm_80",), "9.0", "no"),
        (("compute_80",), "9.0", "compiles"),
        (("compute_90",), "8.0", "no"),
        (("sm_90a",), "9.0", "yes"),
        (("compute_90a",), "10.0", "no"),
        (("sm_100f",), "10.3", "yes"),
        (("compute_100f",), "12.0", "no"),
        (("sm_120",), "12.1", "yes"),
        (("sm_90", "compute_90"), "12.0", "compiles"),
        ((), "9.0", "no"),
        (("gfx942",), "9.0", "no"),
    ],
)
def test_kernels_reach_cards_by_the_rules_of_cuda(arches: tuple[str, ...], capability: str, how: str) -> None:
    assert serves(arches, capability) == how


def test_the_last_of_the_longest_mounts_holds_a_path() -> None:
    mounts = read_mounts(ROWS)
    assert [mount.kind for mount in mounts] == ["ext4", "nfs4", "tmpfs"]
    over = mount_of(Path("/mnt/my disk/models"), mounts)
    under = mount_of(Path("/mnt/other"), mounts)
    assert over is not None
    assert under is not None
    assert (over.kind, "noexec" in over.options, over.in_memory, over.network) == ("tmpfs", True, True, False)
    assert under.kind == "ext4"
    assert mounts[1].network
    assert mounts[1].source == "server:/a b"


def test_limits_are_numbers_or_none_at_all() -> None:
    text = "Limit  Soft Limit  Hard Limit  Units\nMax open files          1024          unlimited          files\n"
    assert read_limits(text) == {"Max open files": Limit(soft=1024, hard=-1)}
    assert "Max open files" in read_limits(Path("/proc/self/limits").read_text())


def test_lists_of_processors_are_read() -> None:
    assert listed("0-3,8,10-11\n") == {0, 1, 2, 3, 8, 10, 11}
    assert listed("") == set()


def test_the_tightest_bound_of_all_groups_above_counts(machine: Any) -> None:
    system = machine(
        files={
            "/proc/self/cgroup": "0::/slurm/job_1/step_0\n",
            "/sys/fs/cgroup/slurm/job_1/step_0/memory.max": "max\n",
            "/sys/fs/cgroup/slurm/job_1/memory.max": "4096\n",
            "/sys/fs/cgroup/slurm/memory.max": "8192\n",
        }
    )
    assert system.cgroups.memory is not None
    assert system.cgroups.memory.value == 4096
    assert system.cgroups.memory.where == "/sys/fs/cgroup/slurm/job_1/memory.max"


def test_distributions_are_known_by_normalised_names() -> None:
    names = ["nvidia_ml_py-13.615.71.dist-info", "Torch.Audio-2.1-py3.11.egg-info", "numpy", "README.txt"]
    assert distributions(names) == {"nvidia-ml-py": "13.615.71", "torch-audio": "2.1"}


def test_a_link_to_another_disk_is_followed(machine: Any) -> None:
    system = machine(
        mounts={"/scratch": "nfs4"}, files={"/scratch/hub/x": "", "/home/me/.cache/huggingface/hub/version.txt": None}
    )
    link = system.at("/home/me/.cache/huggingface")
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(system.at("/scratch"))
    mount = system.mount("/home/me/.cache/huggingface/hub")
    assert mount is not None
    assert mount.kind == "nfs4"


def test_this_machine_is_read_as_it_is(tmp_path: Path) -> None:
    system = System()
    room, stamp = room_of(tmp_path), stamp_of(tmp_path)
    assert room is not None
    assert stamp is not None
    assert 0 < room.free <= room.total
    assert abs(stamp - system.now()) < 60
    assert list(tmp_path.iterdir()) == []
    assert system.meminfo["MemTotal"] > 0
    assert system.mount("/proc/self") is not None
    assert system.which("sh")
    assert room_of(tmp_path / "absent") is None
    assert stamp_of(tmp_path / "absent") is None
