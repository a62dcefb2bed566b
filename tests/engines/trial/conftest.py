"""A real AOTInductor package of one linear layer, compiled once for a file of tests."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hfbench.engines.trial.attempt import TORCH_CACHE

Change = Callable[[str, bytes], bytes]


@pytest.fixture(autouse=True, scope="session")
def torch_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What torch learns of the processor by compiling is learned once, not once for each test's own home."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(TORCH_CACHE, str(tmp_path_factory.mktemp("inductor")))
        yield


@pytest.fixture(scope="session")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A package for two rows of eight numbers, as torch writes it; some ten seconds of g++."""
    torch = pytest.importorskip("torch")
    path = tmp_path_factory.mktemp("package") / "linear.pt2"
    with torch.no_grad():
        exported = torch.export.export(torch.nn.Linear(8, 8).eval(), (torch.zeros(2, 8),))
        unhurried = {"aot_inductor.compile_wrapper_opt_level": "O0"}
        torch._inductor.aoti_compile_and_package(exported, package_path=str(path), inductor_configs=unhurried)
    return path


@pytest.fixture
def changed(package: Path, tmp_path: Path) -> Callable[[Change], Path]:
    """The package with each of its files put through a function of name and content."""

    def change(how: Change) -> Path:
        path = tmp_path / "changed.pt2"
        with zipfile.ZipFile(package) as source, zipfile.ZipFile(path, "w") as target:
            for each in source.infolist():
                target.writestr(zipfile.ZipInfo(each.filename), how(each.filename, source.read(each)))
        return path

    return change
