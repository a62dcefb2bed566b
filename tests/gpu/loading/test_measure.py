"""bench.load as a whole, on a small checkpoint, and what it makes of its samples."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hfbench.actions.bench_load import BenchLoad
from hfbench.errors import HfbenchError
from hfbench.exits import Exit
from hfbench.gpu.loading import measure
from hfbench.gpu.loading.files import filesystem
from hfbench.gpu.loading.loaders import Loader
from hfbench.gpu.loading.measure import LOAD
from hfbench.gpu.loading.result import LoaderRow, LoadResult, Speed, fastest, speed
from hfbench.gpu.timing.samples import Samples
from hfbench.jobs.run import Run


def load(model: Path, **more: Any) -> LoadResult:
    found: LoadResult = BenchLoad(model=str(model), **{"device": "cpu", "rounds": 1, "budget": 20.0, **more}).perform(
        Run()
    )
    return found


def row(result: LoadResult, name: str) -> LoaderRow:
    return next(each for each in result.rows if each.loader == name)


def test_every_loader_has_figures_or_a_reason(checkpoint: Path) -> None:
    told: list[Any] = []
    found = BenchLoad(model=str(checkpoint), device="cpu", rounds=2, budget=30.0).perform(Run(told.append))
    disk = filesystem(checkpoint) not in ("tmpfs", "ramfs")
    assert found.rounds <= 2
    for each in found.rows:
        ran = [each.cold, each.warm] if disk else [each.warm]
        assert all(ran) != bool(each.reason), each
        for figures in filter(None, ran):
            assert figures.seconds.n == found.rounds
            assert figures.rate == pytest.approx(each.bytes / figures.seconds.p50)
    assert row(found, "safetensors-mmap").verified == "every byte equals the file's"
    assert row(found, "torch-load").verified == "every byte equals that of the safetensors files"
    assert row(found, "torch-load").safe is False
    assert row(found, "plain").warm is not None
    assert row(found, "instanttensor").reason
    peaks = row(found, "safetensors-read").peaks
    assert peaks is not None
    assert peaks.grown is not None
    assert peaks.grown >= row(found, "safetensors-read").bytes
    names = {each.name for each in told if each.kind == "metric"}
    assert "load.safetensors-mmap.warm" in names
    assert set(found.fastest) == ({"cold", "warm"} if disk else {"warm"})
    assert max(map(len, found.lines())) <= 80


def test_files_in_memory_have_no_cold_figures(checkpoint: Path) -> None:
    if filesystem(Path("/dev/shm")) != "tmpfs" or not os.access("/dev/shm", os.W_OK):
        pytest.skip("no tmpfs here")
    import tempfile

    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        model = Path(shutil.copytree(checkpoint, Path(folder) / "model"))
        found = load(model, loaders=("safetensors-mmap",))
    assert row(found, "safetensors-mmap").cold is None
    assert row(found, "safetensors-mmap").warm is not None
    assert any("100% of the bytes stay in the page cache: a tmpfs disk" in note for note in found.notes)


def test_a_loader_that_gives_other_bytes_is_no_longer_measured(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measure, "file_digest", lambda paths: "of other files")
    with pytest.raises(HfbenchError, match="can load it: safetensors-mmap: it gives other bytes than") as caught:
        load(checkpoint, loaders=("safetensors-mmap",))
    assert caught.value.exit == Exit.FAILED, "no package is missing"


def test_a_pickle_of_other_tensors_is_compared_with_itself_only(checkpoint: Path, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    for file in checkpoint.glob("*.safetensors*"):
        shutil.copy(file, tmp_path)
    torch.save({"other": torch.ones(3)}, tmp_path / "pytorch_model.bin")
    found = load(tmp_path, loaders=("torch-load", "torch-load-mmap"), cache="warm")
    assert row(found, "torch-load-mmap").verified == "every byte equals that of the other way to unpickle it"
    assert found.fastest == {}, "no safe loader was asked for"


def samples(*values: float) -> Samples:
    return Samples("x", LOAD, list(values))


def made(name: str, *values: float, safe: bool = True) -> LoaderRow:
    cold: Speed = speed(samples(*values), 1000, samples(1.0))
    return LoaderRow(
        loader=name,
        summary="",
        format="safetensors",
        safe=safe,
        why="",
        reason="",
        bytes=1000,
        tensors=1,
        verified="",
        cold=cold,
        warm=None,
        cached_after_cold=None,
        peaks=None,
    )


def test_the_fastest_is_safe_and_beaten_by_none_for_sure() -> None:
    slow = made("slow", *[2.0 + step / 100 for step in range(8)])
    quick = made("quick", *[1.0 + step / 100 for step in range(8)])
    alike = made("alike", *[1.02 + step / 100 for step in range(8)])
    wild = made("wild", *[0.1] * 8, safe=False)
    found = fastest([slow, alike, quick, wild], "cold")
    assert found is not None
    assert (found.loader, found.tied, found.certain) == ("alike", ("alike", "quick"), True)
    found = fastest([slow, quick, wild], "cold")
    assert found is not None
    assert (found.loader, found.tied) == ("quick", ("quick",))
    assert fastest([wild], "cold") is None
    assert fastest([slow], "warm") is None


def test_a_slower_median_that_is_taken_says_why(checkpoint: Path) -> None:
    alike, quick = (made(name, *[at + step / 100 for step in range(8)]) for name, at in (("alike", 1.02), ("quick", 1)))
    best = fastest([alike, quick], "cold")
    assert best
    found = replace(
        load(checkpoint, cache="warm", loaders=("safetensors-mmap",)), rows=(alike, quick), fastest={"cold": best}
    )
    assert found.headline == "cold alike 9.48e-07 GB/s (1 alike)"
    assert [line.split(maxsplit=1)[-1] for line in found.lines() if "simplest" in line or "fastest" in line] == [
        "fastest that is safe: alike, 9.48e-07 GB/s",
        "simplest of those whose intervals overlap: quick 9.66e-07 GB/s",
    ]


def test_a_loader_that_lacks_several_packages_says_so_in_a_sentence() -> None:
    loader = Loader(id="x", summary="", format="any", needs=("no_such_a", "json", "no_such_b"))
    assert loader.refusal(("safetensors",), "cpu") == "no_such_a and no_such_b are not installed"


def test_too_few_samples_are_no_certainty() -> None:
    found = fastest([made("one", 1.0, 1.1), made("two", 2.0, 2.1)], "cold")
    assert found is not None
    assert (found.loader, found.certain) == ("one", False)


def test_rate_and_share_come_from_medians() -> None:
    figures = made("x", 0.5, 2.0, 4.0).cold
    assert figures is not None
    assert (figures.rate, figures.of_plain) == (500.0, 0.5)
    assert replace(figures, of_plain=None).rate == 500.0


def hfbench(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "hfbench", *words], capture_output=True, text=True, timeout=200)


def test_the_command_prints_json(checkpoint: Path, home: Path) -> None:
    done = hfbench("bench", "load", str(checkpoint), "--loaders", "safetensors-pread", "--rounds", "1", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert [each["loader"] for each in told["rows"]] == ["plain", "safetensors-pread"]
    assert told["fastest"]["warm"]["loader"] == "safetensors-pread"


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["--loaders", "safetensor-mmap"], 2, "Did you mean 'safetensors-mmap'?"),
        (["--loaders", "plain"], 2, "loaders: plain is what others are compared with. Name another beside it"),
        (["--device", "cuda:0"], 4, "there is no GPU 0"),
    ],
)
def test_bad_requests_are_sentences(checkpoint: Path, home: Path, words: list[str], code: int, sentence: str) -> None:
    done = hfbench("bench", "load", str(checkpoint), *words)
    assert done.returncode == code, done.stderr
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
