"""What an environment says of itself, and every way in which it may fail to."""

from __future__ import annotations

import ast
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hfbench.environments import Environment, Probed, here, probe, probe_all, probe_child
from hfbench.environments.probe import ask

Fake = Callable[..., Environment]


@pytest.fixture
def fake(tmp_path: Path) -> Fake:
    """An interpreter that is a shell script, with `$PYTHON` the real one."""

    def make(script: str, timeout: float = 30.0) -> Environment:
        path = tmp_path / "python"
        path.write_text(f"#!/bin/sh\nPYTHON='{sys.executable}'\n{script}\n")
        path.chmod(0o755)
        return Environment(name="fake", command=(str(path),), timeout=timeout)

    return make


@pytest.fixture
def stub(tmp_path: Path, fake: Fake) -> Callable[[str], Environment]:
    """A real Python with no package but a torch of one line, beside a version.py like torch's."""

    def make(line: str) -> Environment:
        site = tmp_path / "site"
        (site / "torch").mkdir(parents=True)
        text = "__version__ = '2.8.0+cu128'\ncuda: Optional[str] = '12.8'\nhip: Optional[str] = None\n"
        (site / "torch" / "version.py").write_text(f"from typing import Optional\n{text}")
        (site / "torch" / "__init__.py").write_text(line)
        return fake(f'PYTHONPATH={site} exec "$PYTHON" -S "$@"', timeout=5.0)

    return make


def test_the_child_is_written_for_python_3_9() -> None:
    source = Path(probe_child.__file__).read_text()
    tree = ast.parse(source, feature_version=(3, 9))
    imported = {
        name.name.partition(".")[0] for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names
    }
    assert imported - {"torch"} <= sys.stdlib_module_names


def test_a_worker_venv_tells_its_versions_and_no_other(worker_python: Path) -> None:
    told = ask(Environment(name="worker", command=(str(worker_python),)))
    import torch
    import transformers

    assert told.trouble == ""
    assert told.python == sys.version.split()[0]
    assert told.versions["torch"] == torch.__version__
    assert told.versions["transformers"] == transformers.__version__
    assert told.torch is not None
    assert told.torch.version == torch.__version__
    assert told.torch.cuda == (torch.version.cuda or "")
    assert told.torch.cxx11_abi is torch.compiled_with_cxx11_abi()
    assert told.lacks(("torch", "transformers", "textual", "triton_not_there")) == ("textual", "triton_not_there")


def test_a_hanging_interpreter_is_stopped_in_time_with_all_it_started(fake: Fake, tmp_path: Path) -> None:
    began = time.monotonic()
    told = ask(fake(f"sleep 300 & echo $! > {tmp_path}/pid; sleep 300", timeout=0.5))
    assert told.trouble == "it took longer than 500 ms and was stopped before it told its versions"
    assert time.monotonic() - began < 10
    assert not told.answered
    left = int((tmp_path / "pid").read_text())
    while alive(left) and time.monotonic() - began < 10:  # a signal takes its time to arrive
        time.sleep(0.01)
    assert not alive(left)


def test_one_that_closed_its_pipes_and_stays_is_stopped_too(fake: Fake) -> None:
    told = ask(fake("exec >&- 2>&-; exec sleep 300", timeout=0.5))
    assert "was stopped before it told its versions" in told.trouble


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        ("kill -SEGV $$", "SIGSEGV ended it before it told its versions"),
        ("echo no such module >&2; exit 3", "it ended with status 3 before it told its versions: no such module"),
        ("echo hello", "it is no Python, or one that does not answer: hello"),
        ("printf 'hfbench-probe:{broken\\n'", "it is no Python, or one that does not answer"),
        ('printf \'hfbench-probe:{"base": 3}\\nhfbench-probe:{"end": true}\\n\'', "its answer has another shape"),
        ("printf '\\033[31mred\\377'", "it is no Python, or one that does not answer: \\x1b[31mred"),
    ],
)
def test_what_does_not_answer_is_a_sentence(fake: Fake, script: str, sentence: str) -> None:
    told = ask(fake(script))
    assert told.trouble.startswith(sentence)
    assert not told.answered
    assert told.trouble.isprintable()


def test_one_that_prints_without_end_is_stopped(fake: Fake) -> None:
    assert ask(fake("exec yes")).trouble.startswith("it printed more than 4 MiB and was stopped")


def test_one_that_is_not_there_or_no_program_is_a_sentence(tmp_path: Path) -> None:
    gone = ask(Environment(name="x", command=(str(tmp_path / "gone"),)))
    assert gone.trouble == f"{tmp_path}/gone cannot be started: No such file or directory"
    text = tmp_path / "text"
    text.write_text("\x7fELF no program")
    text.chmod(0o755)
    assert ask(Environment(name="x", command=(str(text),))).trouble.endswith("cannot be started: Exec format error")


def test_what_an_interpreter_prints_of_itself_is_not_its_answer(fake: Fake) -> None:
    told = ask(fake('echo "Loading modules..."; exec "$PYTHON" -S "$@"'))
    assert (told.trouble, told.answered) == ("", True)


@pytest.mark.parametrize(
    ("line", "trouble"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGABRT)", "SIGABRT ended it while torch was imported"),
        ("raise OSError('libcudart.so.12: no such file')", "torch cannot be imported: OSError: libcudart.so.12"),
        ("raise SystemExit(0)", "torch cannot be imported: SystemExit: 0"),
        ("import time; time.sleep(300)", "it took longer than 5.00 s and was stopped while torch was imported"),
    ],
)
def test_a_torch_that_cannot_be_imported_leaves_what_its_text_says(
    stub: Callable[[str], Environment], line: str, trouble: str
) -> None:
    told = ask(stub(line))
    assert told.trouble.startswith(trouble)
    assert told.answered
    assert told.torch is not None
    assert (told.torch.version, told.torch.cuda, told.torch.hip) == ("2.8.0+cu128", "12.8", "")
    assert told.torch.cxx11_abi is None


def test_the_flags_of_a_cuda_build_are_read_without_a_gpu(stub: Callable[[str], Environment]) -> None:
    told = ask(
        stub(
            "from torch import version; from types import SimpleNamespace\n"
            "__version__ = version.__version__\n"
            "compiled_with_cxx11_abi = lambda: True\n"
            "_C = SimpleNamespace(_cuda_getArchFlags=lambda: 'sm_80 sm_90 compute_90', _nccl_version=lambda: 22703,\n"
            "  _cudnn=SimpleNamespace(getCompileVersion=lambda: (9, 8, 0)))\n"
        )
    )
    assert told.trouble == ""
    assert told.torch is not None
    assert told.torch.arch_list == ("sm_80", "sm_90", "compute_90")
    assert (told.torch.nccl, told.torch.cudnn, told.torch.cxx11_abi) == ("2.27.3", "9.8.0", True)


def test_variables_of_this_python_do_not_reach_another(
    fake: Fake, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "only_here.py").touch()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert "only_here" not in ask(fake('exec "$PYTHON" -S "$@"')).modules


def test_an_answer_is_kept_until_the_interpreter_or_its_packages_change(fake: Fake, tmp_path: Path) -> None:
    site, count = tmp_path / "site", tmp_path / "count"
    site.mkdir()
    environment = fake(f'echo asked >> {count}; PYTHONPATH={site} exec "$PYTHON" -S "$@"')

    def times() -> int:
        return len(count.read_text().splitlines())

    first = probe(environment)
    assert probe(environment) == first
    assert times() == 1
    (site / "added.py").touch()
    assert "added" in probe(environment).modules
    assert times() == 2
    os.utime(environment.command[0], (1, 1))
    probe(environment)
    assert times() == 3
    probe(environment, again=True)
    assert times() == 4


def test_trouble_is_not_remembered(fake: Fake, tmp_path: Path) -> None:
    environment = fake(f'[ -e {tmp_path}/well ] || exit 1; exec "$PYTHON" -S "$@"')
    assert not probe(environment).answered
    (tmp_path / "well").touch()
    assert probe(environment).answered


def test_a_damaged_memory_is_made_again(fake: Fake, home: Path) -> None:
    environment = fake('exec "$PYTHON" -S "$@"')
    (home / "cache").mkdir(parents=True)
    (home / "cache" / "environments.sqlite").write_bytes(b"no database" * 500)
    assert probe(environment).answered
    assert probe(environment).answered


def test_several_wait_for_their_limits_at_the_same_time(fake: Fake) -> None:
    slow = fake("exec sleep 300", timeout=1.0)
    began = time.monotonic()
    told = probe_all([slow, slow, slow])
    assert time.monotonic() - began < 2.8
    assert all("took longer than" in each.trouble for each in told)


def test_an_old_python_tells_its_versions_and_runs_nothing() -> None:
    assert Probed(python="3.9.18").old
    assert Probed(python="3.10.2rc1").old
    assert not Probed(python="3.11.0").old
    assert not Probed().old
    assert here().is_here


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("way", ["hangs", "answers"])
def test_what_left_the_group_and_lost_its_parent_is_stopped_as_well(fake: Fake, tmp_path: Path, way: str) -> None:
    leave = f"setsid sh -c 'echo $$ > {tmp_path}/pid; exec sleep 300' >/dev/null 2>&1 &"
    wait = f"while [ ! -s {tmp_path}/pid ]; do :; done"
    ask(fake(f"{leave}\n{wait}\n{'sleep 300' if way == 'hangs' else 'exit 0'}", timeout=1.0))
    left, until = int((tmp_path / "pid").read_text()), time.monotonic() + 10
    while alive(left) and time.monotonic() < until:
        time.sleep(0.01)
    assert not alive(left)
