"""A conversion is whole or not there: killed it goes on, disturbed it says why, and what it writes is the same."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hfbench.convert.boxes import Box, Copy, TensorSpec
from hfbench.convert.formats.distcp_layout import lay_out_torch_dist
from hfbench.convert.formats.layout import FileLayout
from hfbench.convert.formats.open import open_tensors
from hfbench.convert.formats.pt_layout import lay_out_pt
from hfbench.convert.formats.safetensors_layout import lay_out_safetensors, lay_out_shard
from hfbench.convert.plan import Target
from hfbench.convert.stored import TensorSet
from hfbench.convert.stream import manifest, outputs, preflight
from hfbench.convert.stream.convert import convert
from hfbench.convert.stream.partial import claimed
from hfbench.convert.stream.same import same_bits
from hfbench.errors import HfbenchError, Interrupted, UsageError
from hfbench.jobs.events import Event, Log, Progress
from hfbench.jobs.run import Run

TENSORS, ROWS, COLUMNS = 12, 96, 64


def write_model(folder: Path, *, tensors: int = TENSORS, rows: int = ROWS, columns: int = COLUMNS) -> Path:
    """A safetensors file of bfloat16 tensors, all different."""
    folder.mkdir()
    specs = [TensorSpec(f"layers.{number}.weight", "BF16", (rows, columns)) for number in range(tensors)]
    layout = lay_out_shard("model.safetensors", specs)
    with (folder / layout.path).open("wb") as file:
        file.write(layout.fixed[0][1])
        file.write(np.random.default_rng(0).integers(0, 2**14, tensors * rows * columns, dtype="u2").tobytes())
    return folder


def copied(sources: TensorSet, dtype: str = "") -> list[Target]:
    found = []
    for name, source in sources.tensors.items():
        spec, box = source.spec, Box(0, source.spec.rows, 0, source.spec.columns)
        found.append(
            Target(TensorSpec(name, dtype or spec.dtype, spec.shape), "", (Copy(name, box, name, box),), "copy")
        )
    return found


def layouts_of(targets: list[Target]) -> list[FileLayout]:
    """The same tensors as a torch file and as torch_dist: checksums are to be filled in."""
    specs = [each.spec for each in targets]
    return lay_out_torch_dist("dist", specs, {"a": 1}, most_bytes=40_000)


def to_pt(folder: Path, out: Path, run: Run | None = None, **options: Any) -> Any:
    sources = open_tensors(folder)
    targets = copied(sources)
    layout = lay_out_pt("model.pt", [each.spec for each in targets], {"iteration": 1})
    return convert(targets, sources, [layout], out, run or Run(), extra={"a/note.txt": b"hello"}, **options)


def everything(folder: Path) -> dict[str, bytes]:
    return {str(each.relative_to(folder)): each.read_bytes() for each in sorted(folder.rglob("*")) if each.is_file()}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_model(tmp_path / "model")


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


def partial(out: Path) -> Path:
    return out.with_name(f".{out.name}.partial")


def test_a_conversion_is_the_same_however_many_threads_write_it(model: Path, tmp_path: Path) -> None:
    found = []
    for threads in (1, 3):
        out = tmp_path / f"out{threads}"
        written = to_pt(model, out, threads=threads)
        assert (written.tensors, written.bytes, written.reused) == (TENSORS, TENSORS * ROWS * COLUMNS * 2, False)
        found.append(everything(out))
        assert not partial(out).exists()
    assert found[0] == found[1]
    lines = [json.loads(line) for line in found[0][manifest.FINISHED].splitlines()]
    assert [line["tensor"] for line in lines if "tensor" in line] == [f"layers.{n}.weight" for n in range(TENSORS)]
    assert found[0]["a/note.txt"] == b"hello"


CHILD = """
import sys
from pathlib import Path
from hfbench.convert.boxes import Box, Copy
from hfbench.convert.formats.distcp_layout import lay_out_torch_dist
from hfbench.convert.formats.open import open_tensors
from hfbench.convert.plan import Target
from hfbench.convert.stream.convert import convert
from hfbench.jobs.run import Run

sources, targets = open_tensors(Path(sys.argv[1])), []
for name, source in sources.tensors.items():
    box = Box(0, source.spec.rows, 0, source.spec.columns)
    targets.append(Target(source.spec, "", (Copy(name, box, name, box),), "copy"))
layouts = lay_out_torch_dist("dist", [each.spec for each in targets], {"a": 1}, most_bytes=40_000)
convert(targets, sources, layouts, Path(sys.argv[2]), Run(), threads=2)
"""


def started(model: Path, out: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", CHILD, model, out])


def test_killed_at_any_time_it_goes_on_and_ends_the_same(tmp_path: Path) -> None:
    model = write_model(tmp_path / "model", tensors=400, rows=256, columns=256)
    out, calm = tmp_path / "out", tmp_path / "calm"
    sources = open_tensors(model)
    targets = copied(sources)
    convert(targets, sources, layouts_of(targets), calm, Run())
    killed = 0
    for least in (1, 60, 150):
        child = started(model, out)
        working = partial(out) / manifest.WORKING
        while child.poll() is None and lines_in(working) < least:
            time.sleep(0.001)
        child.send_signal(signal.SIGKILL)
        child.wait()
        killed += not out.exists()
    assert killed
    told: list[Event] = []
    written = convert(targets, sources, layouts_of(targets), out, Run(told.append))
    assert everything(out) == everything(calm)
    assert written.resumed_bytes
    first = next(event for event in told if isinstance(event, Progress) and event.phase == "convert")
    assert first.done == written.resumed_bytes or written.reused
    assert not partial(out).exists()


def lines_in(path: Path) -> int:
    try:
        return path.read_bytes().count(b"\n") - 1
    except OSError:
        return -1


def stopped(model: Path, out: Path, monkeypatch: pytest.MonkeyPatch, after: int, code: int = errno.ENOSPC) -> Exception:
    """Convert until the disk takes no more; the error."""
    calm, left = os.pwrite, [after]

    def full(descriptor: int, data: Any, at: int) -> int:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(code, os.strerror(code))
        return calm(descriptor, data, at)

    with monkeypatch.context() as patch:
        patch.setattr(outputs.os, "pwrite", full)
        with pytest.raises(HfbenchError) as caught:
            to_pt(model, out, threads=1)
    return caught.value


def test_a_full_disk_is_told_and_what_was_written_is_used(
    model: Path, out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    to_pt(model, tmp_path / "calm")
    error = stopped(model, out, monkeypatch, 20)
    assert str(error).startswith(f"{out}: the disk is full. Free space and run the same command again, or delete it: ")
    assert str(partial(out)) in str(error)
    assert not out.exists()
    told: list[Event] = []
    written = to_pt(model, out, Run(told.append))
    assert 0 < written.resumed_bytes < written.bytes
    assert everything(out) == everything(tmp_path / "calm")
    assert any(isinstance(event, Log) and "going on: " in event.text for event in told)


def test_a_failure_before_the_first_tensor_leaves_nothing(
    model: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "the disk is full" in str(stopped(model, out, monkeypatch, 1))
    assert not out.exists()
    assert not partial(out).exists()


def test_stopped_by_somebody_it_says_what_is_kept_and_goes_on(model: Path, out: Path, tmp_path: Path) -> None:
    told: list[str] = []

    def stop(event: Event) -> None:
        if isinstance(event, Log):
            told.append(event.text)
        if isinstance(event, Progress) and event.done == event.total:
            raise Interrupted("stopped")

    with pytest.raises(Interrupted):
        to_pt(model, out, Run(stop))
    assert not out.exists()
    assert any(text.endswith("the same command goes on from there") for text in told)
    to_pt(model, tmp_path / "calm")
    assert to_pt(model, out).resumed_bytes
    assert everything(out) == everything(tmp_path / "calm")


@pytest.mark.parametrize("change", ["plan", "source"])
def test_another_plan_or_a_changed_source_begins_anew_and_says_so(
    model: Path, out: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    stopped(model, out, monkeypatch, 20)
    told: list[Event] = []
    if change == "source":
        os.utime(model / "model.safetensors")
        written = to_pt(model, out, Run(told.append))
    else:
        sources = open_tensors(model)
        targets = copied(sources)
        layouts = lay_out_safetensors([each.spec for each in targets])
        written = convert(targets, sources, layouts, out, Run(told.append))
        assert not (out / "model.pt").exists()
    assert written.resumed_bytes == 0
    assert any(isinstance(event, Log) and "beginning anew" in event.text for event in told)


def test_after_a_restart_of_the_machine_each_piece_is_compared(
    model: Path, out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A power cut may lose the last writes though the manifest tells of them: such a piece is written again."""
    to_pt(model, tmp_path / "calm")
    stopped(model, out, monkeypatch, 20)
    sources = open_tensors(model)
    begin = lay_out_pt("model.pt", [each.spec for each in copied(sources)], {"iteration": 1}).pieces[0].begin
    with (partial(out) / "model.pt").open("r+b") as file:
        file.seek(begin)
        file.write(bytes(100))
    monkeypatch.setattr(manifest, "BOOT_ID", Path(__file__))
    with (partial(out) / manifest.WORKING).open("ab") as file:
        file.write(b'{"n": 11, "sha')  # half a line
    to_pt(model, out)
    assert everything(out) == everything(tmp_path / "calm")


def test_of_two_conversions_into_one_folder_the_second_is_refused(model: Path, out: Path) -> None:
    with (
        claimed(out),
        pytest.raises(UsageError, match=r"out: is being written by another conversion\. Wait for it, or choose"),
    ):
        to_pt(model, out)
    to_pt(model, out)


def test_done_again_it_is_found_done_and_other_folders_are_left_alone(model: Path, out: Path) -> None:
    to_pt(model, out)
    before = everything(out)
    again = to_pt(model, out)
    assert again.reused
    assert everything(out) == before
    os.utime(model / "model.safetensors")
    with pytest.raises(UsageError, match="out: holds another conversion, or this one of files that have changed"):
        to_pt(model, out)
    (out / manifest.FINISHED).unlink()
    with pytest.raises(UsageError, match="out: holds other files and is left alone"):
        to_pt(model, out)
    assert not partial(out).exists()


def test_an_empty_folder_is_taken_a_file_and_the_source_are_not(model: Path, out: Path) -> None:
    with pytest.raises(UsageError, match="is where the source is"):
        to_pt(model, model)
    with pytest.raises(UsageError, match="is where the source is"):
        to_pt(model, model.parent)
    out.write_bytes(b"")
    with pytest.raises(UsageError, match="is not a folder"):
        to_pt(model, out)
    out.unlink()
    out.mkdir()
    assert to_pt(model, out).tensors == TENSORS


def test_a_folder_that_no_conversion_made_is_not_emptied(model: Path, out: Path) -> None:
    partial(out).mkdir()
    (partial(out) / "letter.txt").write_text("dear")
    with pytest.raises(UsageError, match="holds files that no conversion put there"):
        to_pt(model, out)
    assert (partial(out) / "letter.txt").read_text() == "dear"


def test_a_file_of_somebody_else_is_not_published_with_the_result(
    model: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it lies there before the conversion goes on or comes while it runs."""
    stopped(model, out, monkeypatch, 20)
    strange = partial(out) / "notes" / "letter.txt"
    strange.parent.mkdir()
    strange.write_text("dear")
    with pytest.raises(UsageError, match=r"holds 'notes/letter.txt', which no conversion put there\. Move it away"):
        to_pt(model, out)
    strange.unlink()

    def bring(event: Event) -> None:
        if isinstance(event, Progress) and event.done == event.total:
            strange.write_text("dear")

    with pytest.raises(UsageError, match=r"holds 'notes/letter.txt'"):
        to_pt(model, out, Run(bring))
    assert not out.exists()
    strange.unlink()
    assert to_pt(model, out).resumed_bytes


def test_too_little_disk_or_memory_is_told_before_anything_is_written(
    model: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(preflight, "SPARE_DISK", 1 << 60)
        with pytest.raises(HfbenchError, match=r"KiB are to be written, .* are free. Free .* or choose another disk"):
            to_pt(model, out)
    with monkeypatch.context() as patch:
        patch.setattr("hfbench.convert.stream.convert.BASE_MEMORY", 1 << 60)
        with pytest.raises(HfbenchError, match="of memory are needed"):
            to_pt(model, out)
    assert sorted(each.name for each in out.parent.iterdir()) == ["model"]


def test_a_source_that_changes_meanwhile_is_not_published(model: Path, out: Path) -> None:
    def touch(event: Event) -> None:
        if isinstance(event, Progress) and event.done == event.total:
            os.utime(model / "model.safetensors", ns=(1, 1))

    with pytest.raises(HfbenchError, match="a file changed while it was converted"):
        to_pt(model, out, Run(touch))
    assert not out.exists()


def test_a_source_that_ends_early_is_told_with_its_name(model: Path, out: Path) -> None:
    sources = open_tensors(model)
    targets = copied(sources)
    with (model / "model.safetensors").open("r+b") as file:
        file.truncate(5000)
    with pytest.raises(HfbenchError, match=r"model\.safetensors: ends before its last tensor"):
        convert(targets, sources, lay_out_safetensors([each.spec for each in targets]), out, Run())
    assert not out.exists()


def float_model(folder: Path) -> Path:
    """Two float32 tensors: one that float16 holds, one with what it cannot."""
    folder.mkdir()
    specs = [TensorSpec("calm", "F32", (2, 4)), TensorSpec("wild", "F32", (2, 4))]
    layout = lay_out_shard("model.safetensors", specs)
    wild = np.array([65520, -1e6, 65519, np.inf, np.nan, 2e-8, 0, 1], "f4")
    data = np.concatenate([np.arange(8, dtype="f4"), wild])
    (folder / layout.path).write_bytes(layout.fixed[0][1] + data.tobytes())
    return folder


def test_a_cast_refuses_what_it_would_lose_and_names_it(tmp_path: Path, out: Path) -> None:
    sources = open_tensors(float_model(tmp_path / "floats"))
    targets = copied(sources, "F16")
    layouts = lay_out_safetensors([each.spec for each in targets])
    wanted = {
        (): r"1 value of 1 tensor are NaN: 'wild' \(1\), beside inf, overflow, underflow. Keep .* with --allow nan",
        ("nan", "inf"): r"2 values of 1 tensor are too large for F16: they would become infinite: 'wild' \(2\)",
    }
    for allow, found in wanted.items():
        with pytest.raises(HfbenchError, match=found):
            convert(targets, sources, layouts, out, Run(), allow=allow)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["floats"]
    kinds = ("nan", "inf", "overflow", "underflow")
    written = convert(targets, sources, layouts, out, Run(), allow=kinds)
    counts = {each.kind: (each.tensor, each.values) for each in written.findings}
    assert counts == {"nan": ("wild", 1), "inf": ("wild", 1), "overflow": ("wild", 2), "underflow": ("wild", 1)}
    header = json.loads((out / manifest.FINISHED).read_text().splitlines()[0])
    assert [each["kind"] for each in header["findings"]] == list(kinds)
    assert header["allowed"] == sorted(kinds)
    assert open_tensors(out).tensors["wild"].spec.dtype == "F16"


def test_plans_that_are_not_whole_are_refused(model: Path, out: Path) -> None:
    sources = open_tensors(model)
    targets = copied(sources)
    layouts = lay_out_safetensors([each.spec for each in targets])
    hole = [Target(targets[0].spec, "", (), ""), *targets[1:]]
    with pytest.raises(ValueError, match="elements that nothing writes"):
        convert(hole, sources, layouts, out, Run())
    with pytest.raises(ValueError, match="0 of 96 rows have a place"):
        convert(targets, sources, lay_out_safetensors([each.spec for each in targets[1:]]), out, Run())
    with pytest.raises(ValueError, match="is no path for a file"):
        convert(targets, sources, layouts, out, Run(), extra={"../x": b""})


def test_tensors_are_compared_bit_by_bit(model: Path) -> None:
    sources = open_tensors(model)
    names = list(sources.tensors)
    twin = {**sources.tensors, "twin": sources.tensors[names[0]]}
    assert same_bits(TensorSet(folder=model, tensors=twin), "twin", names[0], Run())
    assert not same_bits(sources, names[0], names[1], Run())


def test_lines_that_no_conversion_wrote_into_the_manifest_are_passed_over(tmp_path: Path) -> None:
    good = {"n": 0, "sha256": "0" * 64, "crc32": 7}
    bad = [{"crc32": 2**32}, {"crc32": -1}, {"crc32": True}, {"n": True}, {"n": "0"}, {"sha256": "0" * 63}]
    lines = [{"plan": "p"}, good, *({**good, **each} for each in bad)]
    (tmp_path / manifest.WORKING).write_text("".join(json.dumps(line) + "\n" for line in lines))
    header, landed = manifest.read_working(tmp_path)
    assert header == {"plan": "p"}
    assert [(each.number, each.crc32) for each in landed] == [(0, 7)]


def test_a_link_in_the_folder_under_way_is_not_followed(model: Path, out: Path, tmp_path: Path) -> None:
    partial, elsewhere = out.with_name(f".{out.name}.partial"), tmp_path / "elsewhere"
    for folder in (partial, elsewhere):
        folder.mkdir(parents=True)
    (partial / manifest.WORKING).write_text("{}\n")
    (partial / "a").symlink_to(elsewhere)
    with pytest.raises(UsageError, match="holds links, which no conversion puts there"):
        to_pt(model, out)
    assert not list(elsewhere.iterdir())
