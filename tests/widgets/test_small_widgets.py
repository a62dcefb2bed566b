"""The widgets around the tables, on a screen."""

from __future__ import annotations

import base64
import math
import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.app import App, ComposeResult
from textual.widgets import Input

from hfbench.errors import HfbenchError
from hfbench.text import printable
from hfbench.widgets.breadcrumb import Breadcrumb
from hfbench.widgets.cells import spans_width, width_of
from hfbench.widgets.clipboard import copy_text
from hfbench.widgets.clipboard_routes import copy_by_tmux, copy_to_file
from hfbench.widgets.facts_lines import Fact, facts_lines, wrapped
from hfbench.widgets.facts_table import FactsTable
from hfbench.widgets.filter_bar import FilterBar
from hfbench.widgets.glyphs import ASCII, UNICODE
from hfbench.widgets.help_panel import HelpPanel, show_help
from hfbench.widgets.jump_overlay import JumpOverlay, start_jump
from hfbench.widgets.jump_targets import LETTERS, assign_letters
from hfbench.widgets.key_line import KeyLine
from hfbench.widgets.log_view import LogView
from hfbench.widgets.machine_strip import MachineStrip
from hfbench.widgets.machine_text import StripState
from hfbench.widgets.notice import Notice
from hfbench.widgets.plot import Plot
from hfbench.widgets.plot_lines import Series
from hfbench.widgets.progress_line import ProgressLine
from hfbench.widgets.progress_text import Phase
from hfbench.widgets.record_columns import Column
from hfbench.widgets.record_rows import Record
from hfbench.widgets.record_table import RecordTable

SIZES = [(80, 24), (40, 10), (120, 40)]


def small_table(*keys: str) -> RecordTable:
    table = RecordTable((Column("name", "Name", flexible=True),))
    table.show([Record(key, {"name": key}) for key in keys])
    return table


@pytest.mark.parametrize("size", SIZES)
async def test_all_of_them_together_fit_every_size(stage, size) -> None:
    log = LogView()
    log.show(f"line {number}\x1b[31m" for number in range(100))
    shown = (
        Breadcrumb(("Models", "m", "Overview"), ("lab-3",)),
        KeyLine(),
        ProgressLine([Phase("measure", "running", 0.5, 3)]),
        FactsTable([Fact("context", "8192"), Fact("rope_theta", "missing", "warn")], title="What it is"),
        Notice("shard 3 of 4 is missing", where="index", remedy="fetch it again", state="error"),
        log,
        MachineStrip(StripState(reason="no GPU", host="cpu 2 cores")),
    )
    async with stage(*shown, size=size) as pilot:
        picture = pilot.app.picture()
        assert all(width_of(line) == size[0] for line in picture)
        text = "\n".join(picture)
        for part in (
            "hfbench  Models > m > Overview",
            "50%",
            "! missing",
            "x index: shard 3 of 4 is missing",
            "line 99\\x1b[31m",
        ):
            assert part in text
        assert picture[-1].rstrip().endswith("? help  q quit")


async def test_the_filter_bar_opens_tells_each_key_and_gives_the_focus_back(stage) -> None:
    bar, table = FilterBar(), small_table("a", "b")
    async with stage(bar, table) as pilot:
        assert not bar.display
        pilot.app.screen.set_focus(table)
        bar.open()
        await pilot.press("m", "l", "p")
        await pilot.pause()
        assert [m.text for m in pilot.app.heard_of(FilterBar.Changed)][-1] == "mlp"
        await pilot.press("enter")
        await pilot.pause()
        assert (bar.text, bar.display, table.has_focus) == ("mlp", True, True)
        bar.open()
        await pilot.press("escape")
        await pilot.pause()
        assert (bar.text, bar.display, table.has_focus) == ("", False, True)
        assert [m.kept for m in pilot.app.heard_of(FilterBar.Closed)] == [True, False]
        assert [m.text for m in pilot.app.heard_of(FilterBar.Changed)][-1] == ""


async def test_jump_mode_goes_to_a_region_by_its_letter(stage) -> None:
    one, two = small_table("a"), small_table("b")
    two.jump_key = "t"
    async with stage(one, two) as pilot:
        one.focus()
        start_jump(pilot.app)
        await pilot.pause()
        assert isinstance(pilot.app.screen, JumpOverlay)
        assert " a " in pilot.app.picture()[0]
        await pilot.press("t")
        await pilot.pause()
        assert two.has_focus
        start_jump(pilot.app)
        await pilot.pause()
        await pilot.press("escape")
        await pilot.pause()
        assert two.has_focus


async def test_a_letter_that_is_also_a_key_of_the_app_only_jumps() -> None:
    class Quitting(App[None]):
        BINDINGS = [("q", "quit", "quit")]

        def compose(self) -> ComposeResult:
            yield small_table("a")
            two = small_table("b")
            two.jump_key = "q"
            yield two

    async with Quitting().run_test() as pilot:
        await pilot.pause()
        start_jump(pilot.app)
        await pilot.pause()
        await pilot.press("q")
        await pilot.pause()
        assert pilot.app.is_running
        assert pilot.app._exit is False
        assert pilot.app.focused is pilot.app.query(RecordTable).last()


@given(st.lists(st.text(max_size=2), max_size=40))
def test_letters_are_unique_and_wishes_come_first(wishes: list[str]) -> None:
    letters = assign_letters(wishes)
    given_ = [letter for letter in letters if letter]
    assert len(set(given_)) == len(given_) == min(len(wishes), len(LETTERS))
    for wish in set(wishes) & set(LETTERS):
        assert letters[wishes.index(wish)] == wish


async def test_help_tells_of_the_focused_widget_and_its_keys(stage) -> None:
    table = small_table("a")
    async with stage(table) as pilot:
        table.focus()
        show_help(pilot.app)
        show_help(pilot.app)
        await pilot.pause()
        text = "\n".join(pilot.app.picture())
        assert "`" not in text
        assert "every word must occur in the row" in text
        assert "enter" in text
        assert len(pilot.app.screen_stack) == 2
        await pilot.press("question_mark")
        await pilot.pause()
        assert not isinstance(pilot.app.screen, HelpPanel)
        assert table.has_focus


async def test_keys_follow_the_focus(stage) -> None:
    table, other = small_table("a"), Input()
    async with stage(table, other, KeyLine()) as pilot:
        table.focus()
        await pilot.pause()
        assert "enter open  o order" in pilot.app.picture()[-1]
        other.focus()
        await pilot.pause()
        assert "o order" not in pilot.app.picture()[-1]


async def test_the_log_follows_until_it_is_scrolled_and_end_follows_again(stage) -> None:
    log = LogView(limit=100)
    async with stage(log, size=(40, 10)) as pilot:
        assert "no output yet" in pilot.app.picture()[0]
        log.extend(f"line {number}" for number in range(50))
        await pilot.pause()
        assert "line 49" in pilot.app.picture()[-1]
        await pilot.press("pageup")
        first = pilot.app.picture()[0].split("line")[1].split()[0]
        log.extend(f"line {number}" for number in range(50, 130))
        await pilot.pause()
        assert pilot.app.picture()[0].split("line")[1].split()[0] == first
        assert log.tail(1) == ["line 129"]
        await pilot.press("end")
        log.extend(["the last"])
        await pilot.pause()
        assert "the last" in pilot.app.picture()[-1]


async def test_a_progress_bar_in_a_log_is_one_line_as_it_ended(stage) -> None:
    log = LogView()
    async with stage(log, size=(40, 5)) as pilot:
        log.extend(["  1%\r 50%\r100% done\n", "x" * 5000])
        await pilot.pause()
        assert pilot.app.picture()[0].startswith("100% done")
        assert len(log.tail(1)[0]) == 2000


async def test_a_plot_repaints_when_it_grows(stage) -> None:
    plot = Plot()
    async with stage(plot) as pilot:
        assert "no samples yet" in pilot.app.picture()[0]
        plot.show(Series([1.0, 2.0, math.nan], unit="ms", title="tpot"))
        await pilot.pause()
        assert pilot.app.picture()[0].startswith("tpot  1 of 3 samples not finite")


async def test_a_notice_takes_no_room_until_it_has_something_to_say(stage) -> None:
    notice = Notice()
    async with stage(notice, small_table("a")) as pilot:
        assert "Name" in pilot.app.picture()[0]
        notice.show_error(HfbenchError("is no safetensors file\x1b", where="/m/a.bin", remedy="fetch it again"))
        await pilot.pause()
        assert pilot.app.picture()[0].startswith("x /m/a.bin: is no safetensors file\\x1b")
        assert pilot.app.picture()[1].startswith("  fetch it again")
        notice.clear()
        await pilot.pause()
        assert "Name" in pilot.app.picture()[0]


@given(
    st.lists(st.builds(Fact, st.text(max_size=30), st.text(max_size=80), st.sampled_from(["", "ok", "error"]))),
    st.integers(8, 120),
)
def test_facts_fit_and_lose_no_letter_of_a_value(facts: list[Fact], width: int) -> None:
    lines = facts_lines(facts, width, UNICODE)
    assert all(spans_width(line) <= width for line in lines)
    values = "".join(UNICODE.sign(fact.state) + printable(fact.value) for fact in facts)
    assert "".join("".join(line[1][0] for line in lines).split()) == "".join(values.split())  # spaces of any kind break


def test_long_labels_go_on_below_too_so_that_they_differ() -> None:
    facts = [Fact("after.transformers.rope_scaling.factor", "8.0"), Fact("after.transformers.rope_theta", "1 or more")]
    lines = [("".join(text for text, _ in line)).rstrip() for line in facts_lines(facts, 40, ASCII)]
    assert lines == [
        "after.transformers.   8.0",
        "rope_scaling.factor",
        "after.transformers.   1 or more",
        "rope_theta",
    ]


def test_long_values_go_on_below_their_column() -> None:
    lines = [
        "".join(text for text, _ in line)
        for line in facts_lines([Fact("dtype", "bf16 in all but one tensor")], 20, ASCII)
    ]
    assert lines == ["dtype  bf16 in all", "       but one", "       tensor"]
    assert wrapped("a" * 7, 3) == ["aaa", "aaa", "a"]


def test_a_copy_goes_into_a_file_only_its_owner_reads(tmp_path: Path) -> None:
    path, why = copy_to_file("text \udcff", tmp_path / "cache")
    assert path is not None
    assert why == ""
    assert path.read_bytes() == b"text \xff"
    assert path.stat().st_mode & 0o077 == 0


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    path, why = copy_to_file("text", tmp_path / "file")
    assert path is None
    assert "exists" in why or "directory" in why


def failing_tmux(folder: Path) -> dict[str, str]:
    folder.mkdir()
    tool = folder / "tmux"
    tool.write_text("#!/bin/sh\necho no server >&2\nexit 1\n")
    tool.chmod(0o755)
    return {"TMUX": "/tmp/x,1,0", "PATH": f"{folder}:/usr/bin:/bin"}


@pytest.mark.skipif(not shutil.which("tmux"), reason="tmux is not installed")
def test_inside_tmux_its_buffer_gets_the_text(tmp_path: Path) -> None:
    socket = tmp_path / "s"
    server = ["tmux", "-S", str(socket), "-f", "/dev/null"]
    subprocess.run([*server, "new-session", "-d", "-x", "80", "-y", "24", "sleep 60"], check=True)
    try:
        environment = {**os.environ, "TMUX": f"{socket},0,0"}
        assert copy_by_tmux("héllo\n  two", environment) is None
        shown = subprocess.run([*server, "show-buffer"], capture_output=True, check=True)
        assert shown.stdout.decode() == "héllo\n  two"
    finally:
        subprocess.run([*server, "kill-server"], check=False)


COPYING = """
from textual.app import App, ComposeResult
from hfbench.widgets.clipboard import copy_text

class Copying(App):
    async def on_mount(self):
        self.exit(await copy_text(self, "héllo"))

print("SAID", Copying().run())
"""


def test_outside_tmux_the_terminal_gets_the_text() -> None:
    environment = {**os.environ, "TERM": "xterm-256color", "PYTHONPATH": os.pathsep.join(sys.path)}
    environment.pop("TMUX", None)
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", COPYING],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment,
        start_new_session=True,
    ) as program:
        os.close(theirs)
        output = b""
        while b"SAID" not in output or b"\n" not in output.split(b"SAID")[-1]:
            try:
                output += os.read(ours, 65536)
            except OSError:
                break
        os.close(ours)
        program.wait(20)
    assert b"\x1b]52;c;" + base64.b64encode("héllo".encode()) in output
    assert b"SAID copied 5 characters through the terminal (OSC 52)" in output


async def test_a_tmux_that_fails_leads_to_a_file_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in failing_tmux(tmp_path / "bin").items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HFBENCH_HOME", str(tmp_path / "home"))
    app: App[None] = App()
    async with app.run_test():
        said = await copy_text(app, "abc")
    assert said == f"wrote 3 characters to {tmp_path}/home/cache/clipboard.txt (tmux failed: no server)"


async def test_a_copy_that_fails_everywhere_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TMUX", raising=False)
    (tmp_path / "home").write_text("a file where the folder should be")
    monkeypatch.setenv("HFBENCH_HOME", str(tmp_path / "home"))
    app: App[None] = App()
    async with app.run_test():
        assert (await copy_text(app, "abc")).startswith("could not copy: ")


async def test_a_text_shown_from_its_top_stays_there_when_the_view_shrinks(stage) -> None:
    log = LogView()
    async with stage(log, size=(80, 24)) as pilot:
        log.show([f"line {number}" for number in range(23)], from_top=True)
        await pilot.pause()
        await pilot.resize_terminal(80, 12)
        await pilot.pause()
        assert "line 0" in pilot.app.picture()[0]
