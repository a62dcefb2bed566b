"""From a name or a path to a kernel: each thing that can be wrong with a file is one sentence with its line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from kernel_files import COPY, line_of, write

from hfbench.errors import MissingError, UsageError
from hfbench.gpu.kernels.loading import BrokenKernel, find, load, read, shipped


def test_the_library_is_found_by_name_and_says_what_it_is() -> None:
    assert {"matmul", "rmsnorm", "softmax"} <= set(shipped())
    found = find("softmax")
    assert (found.name, found.path) == ("softmax", shipped()["softmax"])
    assert found.summary == "Softmax of each row: y = exp(x - max(x)) / sum(exp(x - max(x)))."


def test_a_path_is_a_file_even_without_a_slash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert find("mine.py").path == path
    assert find(str(path)).digest == find("./mine.py").digest


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("sofmax", "there is no kernel 'sofmax'. Did you mean 'softmax'?"),
        ("zzz", "there is no kernel 'zzz'. Known: add_rmsnorm,"),
        ("gone.py", "gone.py: cannot be read: No such file or directory"),
        (".", "there is no kernel '.'"),
        ("./", "is a folder. Give the path of a Python file"),
    ],
)
def test_what_is_not_there_is_a_usage_error(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        find(text)
    assert sentence in str(caught.value)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "mine.py")
    with pytest.raises(UsageError, match=r"mine\.py: is not a plain file"):
        find(str(tmp_path / "mine.py"))


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        (b"x = 1\ndef f(:\n", "mine.py:2: is no Python: invalid syntax"),
        (b"x = '\0'\n", "is no Python: source code string cannot contain null bytes"),
        (b"x = '\xff'\n", "is no Python: "),
        (b"(" * 5000, "is no Python: "),
    ],
)
def test_a_file_that_is_no_python_says_where(tmp_path: Path, source: bytes, sentence: str) -> None:
    (tmp_path / "mine.py").write_bytes(source)
    with pytest.raises(BrokenKernel) as caught:
        read(tmp_path / "mine.py")
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    ("change", "mark", "sentence"),
    [
        (("KERNEL = Kernel(", "OTHER = Kernel("), "", "declares no kernel. Add KERNEL = Kernel(...)"),
        (("KERNEL = Kernel(", "KERNEL = dict("), "", "KERNEL is a dict, no Kernel"),
        (("import triton\n", "import triton, sys\nsys.exit(3)\n"), "sys.exit", "ends Python with status 3"),
        (("import triton\n", "import triton, nothing_here\n"), "nothing_here", "No module named 'nothing_here'"),
        (("import triton\n", "import triton\n1 / 0\n"), "1 / 0", "ZeroDivisionError: division by zero"),
        (("import triton\n", "return\n"), "return\n", "is no Python: 'return' outside function"),
        (('"n": "i32"}', '"m": "i32"}'), "KERNEL = Kernel(", "ValueError: fn has no parameter 'm'"),
    ],
)
def test_what_is_wrong_when_it_is_loaded_is_told_with_its_line(
    tmp_path: Path, change: tuple[str, str], mark: str, sentence: str
) -> None:
    pytest.importorskip("triton")
    path = write(tmp_path, COPY, change)
    with pytest.raises(BrokenKernel) as caught:
        load(path)
    assert sentence in str(caught.value)
    line = (
        f":{next(n for n, text in enumerate(path.read_text().splitlines(True), 1) if mark in text)}:" if mark else ":"
    )
    assert str(caught.value).startswith(f"{path}{line}")


@pytest.mark.parametrize(("package", "extra"), [("torch", "torch,triton"), ("triton", "triton")])
def test_a_library_that_is_not_installed_is_named_with_its_extra(tmp_path: Path, package: str, extra: str) -> None:
    missing = f"raise ModuleNotFoundError(\"No module named '{package}'\", name='{package}')\n"
    with pytest.raises(MissingError) as caught:
        load(write(tmp_path, missing + COPY))
    assert f"pip install 'hfbench[{extra}]'" in str(caught.value)
    assert caught.value.exit == 4


def test_modules_beside_the_file_are_known_and_hide_nothing(tmp_path: Path) -> None:
    pytest.importorskip("triton")
    (tmp_path / "helper_of_loading.py").write_text("SIZE = 64\n")
    (tmp_path / "dataclasses.py").write_text("raise RuntimeError('a file hides a library')\n")
    path = write(tmp_path, COPY, ("import triton\n", "import dataclasses\nimport helper_of_loading\nimport triton\n"))
    kernel, neighbours = load(path)
    assert kernel.name == "copy"
    assert set(neighbours) == {str(tmp_path / "helper_of_loading.py")}
    assert line_of(path, "helper_of_loading") == 4
