"""Each check on a machine that has the trap and on one that has not."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from doctor_machines import DRIVER, cuda_torch, python
from gpu_readings import card

from hfbench.doctor.check import TOPICS, all_checks
from hfbench.doctor.run import report_of
from hfbench.doctor.system import Ran, Room
from hfbench.gpu.nvml import REASONS
from hfbench.gpu.telemetry import Ecc, GpuProcess, Mig, MigInstance, Pcie, Rows, Utilization
from hfbench.units import GIB, MIB

JOB = "2026-11-29T20-11-04-bench.generate-3f9a1c"
DISK = {"total": 100 * GIB, "inodes": 10**6, "inodes_free": 10**5}
PCI = {"/sys/bus/pci/devices/0000:10:00.0/vendor": "0x10de\n", "/sys/bus/pci/devices/0000:10:00.0/class": "0x030200\n"}
UNPRIVILEGED_PROCESS = {
    "pid": 77,
    "kinds": ("compute",),
    "memory": 60 * GIB,
    "user": "ann",
    "command": "python train.py",
}


@dataclass(frozen=True)
class Case:
    """A machine, and what a check says of it."""

    id: str
    verdict: str
    found: str
    made: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.id}-{self.verdict}-{self.found[:24]}"


def good(id: str, found: str = "", **made: Any) -> Case:
    return Case(id, "ok", found, made)


def bad(id: str, verdict: str, found: str, **made: Any) -> Case:
    return Case(id, verdict, found, made)


H200 = card(0, compute_capability="9.0")
SLICE = MigInstance(index=0, uuid="MIG-0", gpu_instance=7, compute_instance=0, memory_used=0, memory_total=12 * GIB)

CASES = [
    # driver
    good("driver.loaded", "580.65", files=DRIVER, cards=[H200]),
    good("driver.loaded", "no NVIDIA card"),
    bad("driver.loaded", "error", "driver is not loaded", files=PCI),
    good("driver.mismatch", "both are 580.65.06", files=DRIVER, cards=[H200]),
    bad(
        "driver.mismatch",
        "error",
        "the libraries are 575.57",
        files={
            **DRIVER,
            "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.580.65.06": None,
            "/usr/lib/x86_64-linux-gnu/libcuda.so.580.65.06": None,
            "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.575.57": "",
        },
    ),
    bad("driver.mismatch", "error", "the kernel module is 580.65.06", files=DRIVER, no_cards=REASONS[18]),
    good("driver.cuda", "serves 1 Python", files=DRIVER, cards=[H200], pythons=[python(torch=cuda_torch("13.0"))]),
    bad(
        "driver.cuda",
        "error",
        "driver 470.57.02 is too old: here needs 525.60.13",
        files={"/proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX Module  470.57.02  x\n"},
        pythons=[python(torch=cuda_torch("12.8"))],
    ),
    bad(
        "driver.cuda",
        "warning",
        "is of CUDA 13.0: here has CUDA 13.2",
        files=DRIVER,
        cards=[H200],
        pythons=[python(torch=cuda_torch("13.2"))],
    ),
    bad(
        "driver.cuda",
        "warning",
        "needs 580.65.6",
        files={
            "/proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX Module  535.54.03  x\n",
            "/usr/local/cuda/compat/libcuda.so.580.65.06": "",
        },
        pythons=[python(torch=cuda_torch("13.0"))],
    ),
    good("driver.compat", "none is in the way", files=DRIVER),
    bad(
        "driver.compat",
        "error",
        "libcuda 550.54.15 before that of the driver",
        files={**DRIVER, "/usr/local/cuda/compat/libcuda.so.550.54.15": ""},
        environ={"LD_LIBRARY_PATH": "/usr/local/cuda/compat"},
    ),
    bad(
        "driver.compat",
        "warning",
        "of a compat package",
        files={**DRIVER, "/usr/local/cuda/compat/libcuda.so.590.44.01": ""},
        environ={"LD_LIBRARY_PATH": "/usr/local/cuda/compat"},
    ),
    good("driver.nouveau"),
    bad("driver.nouveau", "error", "nouveau", files={"/proc/modules": "nouveau 2000 1 - Live 0x0\n"}),
    good("driver.nodes", "1 card can be opened", files=DRIVER),
    bad("driver.nodes", "error", "/dev/nvidia-uvm is not there", files={**DRIVER, "/dev/nvidia-uvm": None}),
    bad("driver.nodes", "error", "/dev/nvidia0 is not there", files={**DRIVER, "/dev/nvidia0": None}),
    # cards
    good("cards.answer", "all answer", cards=[H200]),
    bad("cards.answer", "error", "fell off the bus", cards=[H200, card(1, reason=REASONS[15])]),
    good("cards.visible", "no card"),
    good("cards.visible", "all 1", cards=[H200]),
    good("cards.visible", "all 2", cards=[H200, card(1)], environ={"CUDA_VISIBLE_DEVICES": "1,0"}),
    bad("cards.visible", "warning", "1 of 2", cards=[H200, card(1)], environ={"CUDA_VISIBLE_DEVICES": "1"}),
    bad("cards.visible", "error", "none of 2 cards", cards=[H200, card(1)], environ={"CUDA_VISIBLE_DEVICES": ""}),
    bad("cards.visible", "error", "'7' is no card", cards=[H200, card(1)], environ={"CUDA_VISIBLE_DEVICES": "0,7,1"}),
    good("cards.errors", cards=[H200]),
    bad("cards.errors", "error", "card 0: a broken row", cards=[card(0, rows=Rows(remapping_failed=True))]),
    bad("cards.errors", "warning", "waits to be taken", cards=[card(0, rows=Rows(remapping_pending=True))]),
    bad("cards.errors", "warning", "uncorrected ECC", cards=[card(0, ecc=Ecc(volatile_uncorrected=3))]),
    good("cards.ecc", cards=[card(0, ecc=Ecc(enabled=True))]),
    bad("cards.ecc", "warning", "ECC is off", cards=[card(0, ecc=Ecc(enabled=False))]),
    good("cards.xid", "none", cards=[H200], commands={"dmesg": Ran(code=0, out="[1.0] usb 1-1\n", err="")}),
    bad(
        "cards.xid",
        "error",
        "Xid 79",
        cards=[H200],
        commands={"dmesg": Ran(code=0, out="[9.1] NVRM: Xid (PCI:0000:10:00): 79, pid=7, GPU has fallen\n", err="")},
    ),
    bad(
        "cards.xid",
        "warning",
        "Xid 31",
        cards=[H200],
        commands={"dmesg": Ran(code=0, out="[9.1] NVRM: Xid (PCI:0000:10:00): 31, pid=7, MMU fault\n", err="")},
    ),
    bad(
        "cards.xid",
        "unknown",
        "cannot be read",
        cards=[H200],
        commands={"dmesg": Ran(code=1, out="", err="dmesg: read kernel buffer failed: Operation not permitted\n")},
    ),
    good("cards.persistence", "on", cards=[card(0, persistence=True)]),
    bad("cards.persistence", "warning", "card 0: off", cards=[card(0, persistence=False)]),
    good("cards.mode", "default", cards=[card(0, compute_mode="default")]),
    bad("cards.mode", "warning", "one process", cards=[card(0, compute_mode="exclusive process")]),
    bad("cards.mode", "error", "takes no program", cards=[card(0, compute_mode="prohibited")]),
    good("cards.mig", cards=[card(0, mig=Mig(enabled=True, pending=True, instances=(SLICE,)))]),
    bad("cards.mig", "error", "no instance", cards=[card(0, mig=Mig(enabled=True, pending=True, instances=()))]),
    bad("cards.mig", "warning", "waits", cards=[card(0, mig=Mig(enabled=False, pending=True, instances=()))]),
    good("cards.power", "at the card's own", cards=[H200], default_power={0: 700.0}),
    bad("cards.power", "warning", "400 W of 700 W", cards=[card(0, power_limit=400)], default_power={0: 700.0}),
    bad("cards.power", "unknown", "does not tell", cards=[H200]),
    good("cards.pcie", cards=[card(0, pcie=Pcie(width=16, width_max=16, generation=5, generation_max=5))]),
    good(
        "cards.pcie",  # idle: the generation is lowered to save power
        cards=[
            card(
                0,
                pcie=Pcie(width=16, width_max=16, generation=1, generation_max=5),
                utilization=Utilization(gpu=0, memory=0),
            )
        ],
    ),
    bad("cards.pcie", "warning", "fewer lanes", cards=[card(0, pcie=Pcie(width=8, width_max=16))]),
    bad("cards.pcie", "warning", "lower generation", cards=[card(0, pcie=Pcie(generation=3, generation_max=5))]),
    good("cards.held", cards=[card(0, processes=())]),
    good("cards.held", cards=[card(0, processes=(GpuProcess(**UNPRIVILEGED_PROCESS, job=JOB),))]),
    bad(
        "cards.held",
        "warning",
        "1 program not of hfbench",
        cards=[card(0, processes=(GpuProcess(**UNPRIVILEGED_PROCESS),))],
    ),
    bad(
        "cards.held",
        "error",
        "pid 77 is dead",
        files={"/proc/77/stat": "77 (python) Z 1 77"},
        cards=[card(0, processes=(GpuProcess(**UNPRIVILEGED_PROCESS),))],
    ),
    # torch
    good("torch.cpu_only", files=DRIVER, cards=[H200], pythons=[python(torch=cuda_torch())]),
    good("torch.cpu_only", "no card", pythons=[python(torch=cuda_torch(""))]),
    bad("torch.cpu_only", "error", "here is built without", cards=[H200], pythons=[python(torch=cuda_torch(""))]),
    bad(
        "torch.cpu_only",
        "warning",
        "old is built without",
        cards=[H200],
        pythons=[python(torch=cuda_torch()), python("old", torch=cuda_torch(""))],
    ),
    good("torch.arches", "served", cards=[H200], pythons=[python(torch=cuda_torch())]),
    bad(
        "torch.arches",
        "error",
        "here for 12.0",
        cards=[card(0, compute_capability="12.0")],
        pythons=[python(torch=cuda_torch("12.6", "sm_80", "sm_90"))],
    ),
    bad(
        "torch.arches",
        "warning",
        "from PTX",
        cards=[card(0, compute_capability="12.0")],
        pythons=[python(torch=cuda_torch("12.6", "sm_90", "compute_90"))],
    ),
    bad(
        "torch.arches",
        "unknown",
        "does not tell",
        cards=[H200],
        pythons=[python(torch=replace(cuda_torch(), arch_list=()))],
    ),
    good("torch.pynvml", pythons=[python(nvidia_ml_py="13.0")]),
    bad("torch.pynvml", "warning", "installed in here", pythons=[python(nvidia_ml_py="13.0", pynvml="11.5.3")]),
    good(
        "torch.runtimes",
        files={"/opt/here/site-packages/nvidia_cuda_runtime-13.0.96.dist-info/METADATA": ""},
        pythons=[python(torch=cuda_torch("13.0"))],
    ),
    bad(
        "torch.runtimes",
        "warning",
        "here (CUDA 12, CUDA 13)",
        files={
            "/opt/here/site-packages/nvidia_cuda_runtime-13.0.96.dist-info/METADATA": "",
            "/opt/here/site-packages/nvidia_cuda_runtime_cu12-12.8.90.dist-info/METADATA": "",
        },
        pythons=[python(torch=cuda_torch("13.0"))],
    ),
    bad(
        "torch.runtimes",
        "warning",
        "here (CUDA 12)",
        files={"/opt/here/site-packages/nvidia_cuda_runtime_cu12-12.8.90.dist-info/METADATA": ""},
        pythons=[python(torch=cuda_torch("13.0"))],
    ),
    good("torch.variables", environ={"TRITON_INTERPRET": "0"}),
    bad("torch.variables", "warning", "kernels run in Python", environ={"TRITON_INTERPRET": "1"}),
    # memory
    good("memory.shared", rooms={"/dev/shm": Room(**{**DISK, "total": 32 * GIB}, free=30 * GIB)}),
    bad(
        "memory.shared",
        "warning",
        "a container's default",
        rooms={"/dev/shm": Room(**{**DISK, "total": 64 * MIB}, free=MIB)},
    ),
    bad("memory.shared", "warning", "almost full", rooms={"/dev/shm": Room(**{**DISK, "total": 32 * GIB}, free=MIB)}),
    bad("memory.shared", "error", "no /dev/shm", files={"/dev/shm/x": None, "/dev/shm": None}),
    good("memory.group", "64.0 GiB, no tighter limit"),
    bad(
        "memory.group",
        "warning",
        "8.00 GiB of the machine's 64.0 GiB",
        files={"/sys/fs/cgroup/user.slice/memory.max": f"{8 * GIB}\n"},
    ),
    bad(
        "memory.group",
        "warning",
        "8.00 GiB of the machine's 64.0 GiB",
        files={
            "/proc/self/cgroup": "4:memory:/docker/ab\n0::/\n",
            "/sys/fs/cgroup/memory/memory.limit_in_bytes": f"{8 * GIB}\n",
        },
    ),
    good(
        "memory.group",
        "no tighter limit",
        files={
            "/proc/self/cgroup": "4:memory:/\n",
            "/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
        },
    ),
    bad("memory.group", "warning", "2.00 GiB in all", files={"/proc/meminfo": "MemTotal: 2097152 kB\n"}),
    bad("memory.group", "unknown", "does not tell", files={"/proc/meminfo": ""}),
    good("memory.killed", "nobody"),
    bad(
        "memory.killed",
        "warning",
        "of this group that the kernel ended: 2",
        files={"/sys/fs/cgroup/user.slice/memory.events": "low 0\noom 2\noom_kill 2\n"},
    ),
    bad("memory.killed", "warning", "since the machine started: 5", files={"/proc/vmstat": "oom_kill 5\n"}),
    bad("memory.killed", "unknown", "does not count", files={"/proc/vmstat": ""}),
    good("memory.swap", "none"),
    bad(
        "memory.swap",
        "warning",
        "6.00 GiB in use",
        files={"/proc/meminfo": f"MemTotal: 1 kB\nSwapTotal: {8 * 2**20} kB\nSwapFree: {2 * 2**20} kB\n"},
    ),
    good("memory.hugepages", "madvise"),
    bad(
        "memory.hugepages",
        "warning",
        "never",
        files={"/sys/kernel/mm/transparent_hugepage/enabled": "always madvise [never]\n"},
    ),
    # processor
    good("processor.group", "all 8"),
    bad("processor.group", "warning", "2.5 of the 8", files={"/sys/fs/cgroup/user.slice/cpu.max": "250000 100000\n"}),
    bad(
        "processor.group",
        "warning",
        "2 of the 8",
        files={
            "/proc/self/cgroup": "1:cpu,cpuacct:/\n",
            "/sys/fs/cgroup/cpu/cpu.cfs_quota_us": "200000\n",
            "/sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
        },
    ),
    bad(
        "processor.group",
        "unknown",
        "does not tell",
        files={"/proc/self/status": "", "/sys/devices/system/cpu/online": ""},
    ),
    good("processor.affinity", "all 8"),
    bad(
        "processor.affinity",
        "warning",
        "bound to 4 of 8 processors, none of node1",
        files={"/proc/self/status": "Cpus_allowed_list:\t0-3\n"},
    ),
    good("processor.governor"),
    good(
        "processor.governor",
        "performance",
        files={"/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance\n"},
    ),
    bad(
        "processor.governor",
        "warning",
        "powersave",
        files={
            "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "powersave\n",
            "/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver": "acpi-cpufreq\n",
        },
    ),
    good("processor.threads", "none is set"),
    good("processor.threads", "fit", environ={"OMP_NUM_THREADS": "8"}),
    bad("processor.threads", "error", "no number", environ={"OMP_NUM_THREADS": "all"}),
    bad("processor.threads", "warning", "64, of 8", environ={"OMP_NUM_THREADS": "64"}),
    bad("processor.threads", "warning", "is 1", environ={"OMP_NUM_THREADS": "1"}),
    # limits
    good("limits.files", "65,536"),
    bad("limits.files", "warning", "1,024", limits={"Max open files": "1024 524288"}),
    good("limits.processes"),
    bad("limits.processes", "warning", "1,024", limits={"Max processes": "1024 1024"}),
    good("limits.locked", files={"/sys/class/infiniband/mlx5_0": ""}),
    bad(
        "limits.locked",
        "warning",
        "there is InfiniBand",
        files={"/sys/class/infiniband/mlx5_0": ""},
        limits={"Max locked memory": "65536 65536"},
    ),
    good("limits.core", "none are written"),
    bad("limits.core", "warning", "written as core", limits={"Max core file size": "unlimited unlimited"}),
    # disks
    good("disks.room"),
    bad(
        "disks.room", "error", "MiB for models", rooms={"/home/me/.cache/huggingface/hub": Room(**DISK, free=200 * MIB)}
    ),
    bad("disks.room", "warning", "500 MiB for jobs", rooms={"/jobs": Room(**DISK, free=500 * MIB)}),
    good("disks.inodes"),
    bad("disks.inodes", "error", "no more files", rooms={"/jobs": Room(**{**DISK, "inodes_free": 0}, free=GIB)}),
    bad("disks.inodes", "warning", "few more", rooms={"/jobs": Room(**{**DISK, "inodes_free": 50}, free=GIB)}),
    good("disks.writable"),
    bad("disks.writable", "error", "jobs (/jobs)", mounts={"/jobs": "ext4,ro"}),
    good("disks.memory"),
    bad("disks.memory", "warning", "jobs (tmpfs)", mounts={"/jobs": "tmpfs"}),
    good("disks.network"),
    bad("disks.network", "warning", "models (nfs4)", mounts={"/home": "nfs4"}),
    good("disks.clock"),
    bad("disks.clock", "warning", "1 m 30 s ahead", skew=90.0),
    bad("disks.clock", "warning", "1 m 30 s behind", skew=-90.0),
    bad("disks.clock", "unknown", "nothing can be written", skew=None),
    good("disks.noexec"),
    bad("disks.noexec", "error", "TMPDIR lies", mounts={"/tmp": "ext4,noexec"}),
    # hub
    good("hub.caches", "none is set"),
    good("hub.caches", "name one folder", environ={"HF_HOME": "/home/me/hf"}),
    bad("hub.caches", "error", "not an absolute path", environ={"HF_HOME": "cache"}),
    bad("hub.caches", "error", "names a file", environ={"HF_HOME": "/home/me/work/notes.txt"}),
    bad("hub.caches", "warning", "differ", environ={"HF_HUB_CACHE": "/a", "HUGGINGFACE_HUB_CACHE": "/b"}),
    bad("hub.caches", "warning", "no longer read", environ={"TRANSFORMERS_CACHE": "/old"}),
    good("hub.offline"),
    bad("hub.offline", "warning", "nothing is fetched", environ={"HF_HUB_OFFLINE": "1"}),
    bad("hub.offline", "warning", "means no", environ={"HF_HUB_OFFLINE": "offline"}),
    good("hub.endpoint", "huggingface.co"),
    bad("hub.endpoint", "error", "no address", environ={"HF_ENDPOINT": "hub.example.org"}),
    bad("hub.endpoint", "warning", "unencrypted", environ={"HF_ENDPOINT": "http://hub.example.org"}),
    bad("hub.endpoint", "warning", "come from hub.example.org", environ={"HF_ENDPOINT": "https://hub.example.org"}),
    # compilers
    good("compilers.shadow"),
    bad("compilers.shadow", "error", "torch.py hides", files={"/home/me/work/torch.py": ""}),
    bad("compilers.shadow", "error", "transformers hides", files={"/home/me/work/transformers/__init__.py": ""}),
    bad(
        "compilers.shadow",
        "error",
        "random.py hides",
        files={"/lib/own/random.py": ""},
        environ={"PYTHONPATH": "/lib/own"},
    ),
    good("compilers.cxx", "/usr/bin/g++"),
    good("compilers.cxx", "no torch needs it", files={"/usr/bin/g++": None}),
    bad(
        "compilers.cxx",
        "warning",
        "no C++ compiler",
        files={"/usr/bin/g++": None},
        pythons=[python(torch=cuda_torch())],
    ),
    bad("compilers.cxx", "error", "clang++-99, which is not there", environ={"CXX": "clang++-99 -O2"}),
    good("compilers.cc"),
    bad("compilers.cc", "warning", "no C compiler", files={"/usr/bin/gcc": None}, pythons=[python(torch=cuda_torch())]),
    good("compilers.headers"),
    bad(
        "compilers.headers",
        "warning",
        "Python.h is not there",
        files={"/usr/include/python3.11/Python.h": None},
        pythons=[python(triton="3.5.0")],
    ),
    good("compilers.caches"),
    bad("compilers.caches", "warning", "TRITON_CACHE_DIR on a network disk", mounts={"/home": "lustre"}),
    # terminal
    good("terminal.locale", "C.UTF-8"),
    bad("terminal.locale", "warning", "LC_ALL is C,", environ={"LC_ALL": "C"}),
    bad("terminal.locale", "warning", "none is set", environ={"LANG": ""}),
    good("terminal.type", "xterm-256color"),
    bad("terminal.type", "warning", "TERM is dumb", environ={"TERM": "dumb"}),
    bad("terminal.type", "warning", "inside tmux", environ={"TMUX": "/tmp/tmux,1,0"}),
    bad("terminal.type", "warning", "few colours", environ={"TERM": "xterm"}),
    good("terminal.clipboard"),
    bad(
        "terminal.clipboard",
        "warning",
        "keeps it",
        environ={"TMUX": "/tmp/tmux,1,0"},
        commands={"tmux": Ran(code=0, out="off\n", err="")},
    ),
    bad("terminal.clipboard", "unknown", "does not tell", environ={"TMUX": "/tmp/tmux,1,0"}),
    # jobs
    good("jobs.whole", "1 job, all whole", files={f"/jobs/{JOB}/request.json": '{"v": 1}'}),
    bad("jobs.whole", "error", "1 of 1 damaged: 3f9a1c", files={f"/jobs/{JOB}/request.json": '{"v": '}),
    good("jobs.leases", files={"/leases/cpu": ""}),
    bad("jobs.leases", "warning", "network", files={"/leases/cpu": ""}, mounts={"/leases": "nfs"}),
    good("jobs.config", "none"),
    bad(
        "jobs.config",
        "error",
        "1 problem: unknown key 'ui.thme'",
        files={"/home/me/.config/hfbench/config.toml": '[ui]\nthme = "x"\n'},
    ),
    # environments
    good("environments.answer", "none is declared"),
    good("environments.answer", "all 1 answer", pythons=[python(), python("vllm", vllm="0.11")]),
    bad(
        "environments.answer",
        "error",
        "vllm: it took longer than 60 s",
        pythons=[python(), python("vllm", trouble="it took longer than 60 s")],
    ),
    bad(
        "environments.answer",
        "warning",
        "torch cannot be imported",
        pythons=[python(), python("vllm", trouble="torch cannot be imported: ImportError", vllm="0.11")],
    ),
    good("environments.here", "torch 2.9.0", pythons=[python(torch=cuda_torch())]),
    bad(
        "environments.here",
        "error",
        "cannot be imported",
        pythons=[python(trouble="torch cannot be imported", numpy="2")],
    ),
    good("environments.old"),
    bad("environments.old", "warning", "trt has 3.10.1", pythons=[python(), python("trt", python="3.10.1")]),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_check_tells_the_trap_from_its_absence(case: Case, machine: Any) -> None:
    known = {each.id: each for each in all_checks()}
    report = report_of(known[case.id], machine(**case.made))
    assert (report.verdict, case.found in report.found) == (case.verdict, True), report
    assert case.verdict not in ("warning", "error") or (report.remedy and report.evidence), report


def test_every_check_has_a_machine_with_its_trap_and_one_without() -> None:
    told = {(case.id, case.verdict == "ok") for case in CASES}
    assert told == {(each.id, fine) for each in all_checks() for fine in (True, False)}


def test_every_check_says_what_goes_wrong_and_fits_a_row() -> None:
    for each in all_checks():
        assert each.topic in TOPICS, each.id
        assert each.why.endswith((".", ":")) or each.why, each.id
        assert len(each.title) <= 26, each.title


def test_ids_are_unique() -> None:
    ids = [each.id for each in all_checks()]
    assert len(ids) == len(set(ids))


@pytest.mark.unprivileged
def test_nodes_that_this_user_cannot_open_are_an_error(machine: Any) -> None:
    system = machine(files=DRIVER)
    system.at("/dev/nvidia0").chmod(0)
    known = {each.id: each for each in all_checks()}
    report = report_of(known["driver.nodes"], system)
    assert (report.verdict, "/dev/nvidia0 cannot be opened" in report.found) == ("error", True)


@pytest.mark.unprivileged
def test_a_cache_of_somebody_else_is_an_error(machine: Any) -> None:
    system = machine()
    system.at("/home/me/.cache/huggingface/hub").chmod(0o555)
    known = {each.id: each for each in all_checks()}
    report = report_of(known["disks.writable"], system)
    system.at("/home/me/.cache/huggingface/hub").chmod(0o755)
    assert (report.verdict, "models" in report.found) == ("error", True)
