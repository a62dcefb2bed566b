"""Reports in every format: what stands in them, what is escaped, and what is said where something lacks."""

from __future__ import annotations

import csv
import io
import json
import os
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from measured_runs import PARAMS, make_job, result, results_file, times

from hfbench.actions.report import Report, ReportResult
from hfbench.compare.baselines import keep
from hfbench.compare.comparing import compare
from hfbench.compare.reading import read_subject
from hfbench.errors import HfbenchError, UsageError
from hfbench.jobs.run import Run
from hfbench.paths import jobs_root
from hfbench.reports.written import is_stdout

EVIL = "</style><script>alert(1)</script>|`$x^2$`&\"'\x1b[31m\x00"
GRID = [
    ({"batch": batch, "dtype": dtype}, result(times(0.05 * batch if dtype == "bf16" else 0.08 * batch)))
    for batch in (1, 2, 4)
    for dtype in ("bf16", "fp32")
]


def report(subject: str, format: str = "auto", **more: Any) -> str:
    """The text of a report."""
    return made(subject, format=format, **more).text


def made(subject: str, **more: Any) -> ReportResult:
    """A report by its action."""
    return Report(subject=subject, **more).perform(Run())


class Page(HTMLParser):
    """The tags, ids and addresses of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.addresses: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Count it."""
        self.tags.append(tag)
        told = dict(attrs)
        self.ids += [told["id"]] if told.get("id") else []
        self.addresses += [value for name in ("href", "src", "xlink:href", "action") if (value := told.get(name))]


def test_a_job_is_told_with_settings_environment_method_and_the_command_that_repeats_it() -> None:
    text = report(make_job(result(times(0.05, seed=1))))
    headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert headings == ["Results", "Can it be believed", "Settings", "Environment", "Method", "Run it again"]
    assert "| tpot | 50." in text
    assert "| stable | every median is known within 1.0% |" in text
    assert "| versions | torch 2.13.0 |" in text
    assert "hfbench bench generate ./smol --dtype bf16 --new-tokens 4" in text
    assert "tpot=\\(e2e-ttft\\)" not in text
    assert "tpot=(e2e-ttft)/(n\\_out-1)" in text


def test_a_script_with_a_matrix_is_a_table_of_cells_with_its_expectations(tmp_path: Path) -> None:
    text = report(str(results_file(tmp_path / "r.jsonl", [*GRID, ({"batch": 8, "dtype": "bf16"}, None)])))
    assert "1 of 7 steps have no result; the table says why" in text
    assert "| 8 | bf16 | - | - | 2 s | failed: out of memory |" in text
    assert text.count("**50.") == 1
    assert "| batch=8 dtype=bf16 | tpot.p50 \\< 1 s | 0.05 s | failed |  |" in text


@pytest.mark.parametrize(("second", "word"), [(0.0501, "best, undecided"), (0.06, "best")])
def test_a_best_whose_samples_do_not_decide_that_it_leads_is_marked_as_undecided(
    tmp_path: Path, second: float, word: str
) -> None:
    cells = [({"batch": 1}, result(times(0.05, count=12))), ({"batch": 2}, result(times(second, count=12, seed=2)))]
    text = report(str(results_file(tmp_path / "r.jsonl", cells)))
    open_ = word != "best"
    assert (" (undecided)**" in text, "as undecided where" in text) == (open_, open_)
    assert f"{word}: batch=" in text


def test_figures_in_doubt_are_marked_and_percentiles_need_their_samples(tmp_path: Path) -> None:
    busy = [{"word": "busy-machine", "detail": "others", "next": "wait"}]
    cells = [({"batch": 1}, result(times(0.05, count=1))), ({"batch": 2}, result(times(0.06), verdicts=busy))]
    text = report(str(results_file(tmp_path / "r.jsonl", cells)))
    assert "50.2 ms? (undecided)" in text.replace("**", "")
    assert "best, undecided, in doubt: batch=1" in text
    assert "in doubt: too few samples" in text
    single = report(str(results_file(tmp_path / "one.jsonl", [cells[0]])))
    assert "median, in doubt" in single
    assert "n=1 | n=1" in report(make_job(result(times(0.05, count=1))))


def test_a_page_holds_everything_and_fetches_nothing(tmp_path: Path) -> None:
    page = Page(report(str(results_file(tmp_path / "r.jsonl", GRID)), "html"))
    assert page.tags.count("svg") == 3  # two heat maps, and latency against throughput
    assert not {"script", "img", "iframe", "object", "embed", "base"} & set(page.tags)
    assert all(each.startswith(("#", "data:")) for each in page.addresses)
    assert len(page.ids) == len(set(page.ids))


@pytest.mark.parametrize("format", ["html", "md", "junit", "csv"])
def test_a_name_that_is_markup_stays_a_name(tmp_path: Path, format: str) -> None:
    a = make_job(result(times(0.05)), number=1, params={**PARAMS, "model": EVIL, "dtype": EVIL})
    b = make_job(result(times(0.06)), number=2, params={**PARAMS, "model": EVIL})
    text = report(a, format, against=(b,))
    assert "\x1b" not in text
    assert "\x00" not in text
    if format == "html":
        assert "script" not in Page(text).tags
    if format == "md":
        assert "<script>" not in text.replace("\\<", "")
    cells = results_file(tmp_path / "r.jsonl", [({EVIL: n, "b": EVIL}, result(times(0.05))) for n in (1, 2, 3)])
    assert "script" not in Page(report(str(cells), "html")).tags


def test_a_comparison_stands_first_with_its_conditions() -> None:
    a, b = make_job(result(times(0.05, seed=1)), number=1), make_job(result(times(0.06, seed=2)), number=2)
    text = report(a, against=(b,), fail_if=("tpot.p50 > 1.05x",))
    assert text.index("## B against A") < text.index("## Conditions") < text.index("## Results")
    assert "SLOWER" in text
    assert "| tpot.p50 \\> 1.05x | fails |" in text
    with pytest.raises(UsageError, match="nothing to compare with"):
        report(a, fail_if=("tpot.p50 > 1.05x",))


def test_a_run_in_turns_is_reported_with_its_own_comparison() -> None:
    sides = (("A", 0.05, 1), ("B", 0.06, 2))
    rows = [{"name": name, "metrics": result(times(middle, seed=seed))["metrics"]} for name, middle, seed in sides]
    text = report(make_job({"rows": rows, "verdicts": []}, action="bench.compare"))
    assert text.index("## B against A") < text.index("| rows.A.tpot | 50.")
    assert "SLOWER" in text


def test_csv_has_a_row_a_metric_in_base_units_and_no_formula_for_a_spreadsheet(tmp_path: Path) -> None:
    cells = [({"batch": 1, "=cmd": "=1+1"}, result(times(0.05))), ({"batch": -2, "=cmd": "@x"}, None)]
    rows = list(csv.DictReader(io.StringIO(report(str(results_file(tmp_path / "r.jsonl", cells)), "csv"))))
    assert [row["metric"] for row in rows] == ["tpot", "throughput", ""]
    assert float(rows[0]["p50"]) == pytest.approx(0.05, rel=0.01)
    assert (rows[0]["'=cmd"], rows[2]["'=cmd"], rows[2]["batch"]) == ("'=1+1", "'@x", "-2")


def test_nothing_that_a_results_file_tells_is_a_formula(tmp_path: Path) -> None:
    found = result(times(0.05))
    found["metrics"] = {"=name": {**found["metrics"]["tpot"], "unit": "=HYPERLINK(1)"}}
    file = results_file(tmp_path / "r.jsonl", [({"b": 1}, found), ({"b": 2}, None)])
    evil = {"ok": "=1+1", "failed": "@state", "bench.generate": "+action", "box": "-host"}
    text = file.read_text()
    for plain, formula in evil.items():
        text = text.replace(f'"{plain}"', f'"{formula}"')
    file.write_text(text)
    for row in csv.reader(io.StringIO(report(str(file), "csv"))):
        assert not [cell for cell in row if re.match(r"[=+\-@]", cell)]


def test_json_keeps_all_samples_and_can_be_compared_and_reported_again(tmp_path: Path) -> None:
    a, b = make_job(result(times(0.05, seed=1)), number=1), make_job(result(times(0.06, seed=2)), number=2)
    out = tmp_path / "a.json"
    made(a, out=out)
    data = json.loads(out.read_text())
    assert len(data["subject"]["measured"][0]["result"]["metrics"]["tpot"]["samples"]) == 100
    assert compare([str(out), b]).pairs[0].count()["SLOWER"] == 2  # type: ignore[index]
    assert report(str(out)).splitlines()[0] == report(a).splitlines()[0]


def test_junit_counts_what_it_holds_and_says_why(tmp_path: Path) -> None:
    cells = results_file(tmp_path / "r.jsonl", [({"batch": 1}, result(times(0.05))), ({"batch": 2}, None)])
    before = results_file(
        tmp_path / "before.jsonl", [({"batch": 1}, result(times(0.05, seed=2))), ({"batch": 2}, None)]
    )
    keep("before", read_subject(str(before)), replace_it=False)
    text = report(str(cells), "junit", against=("before",), fail_if=("tpot.p50 > 1.05x", "tpot.p50 < 1.05x"))
    root = ElementTree.fromstring(text)
    check_junit(root)
    suite = root[0]
    outcomes = {case.get("name"): [child.tag for child in case] for case in suite}
    assert outcomes["batch=1"] == ["system-out"]
    assert outcomes["batch=2"] == ["failure"]
    assert outcomes["batch=2 tpot.p50 < 1 s"] == ["failure"]
    assert outcomes["not tpot.p50 < 1.05x"] == ["failure"]
    assert suite.find("./testcase[@name='batch=2']/failure").get("message") == "out of memory"  # type: ignore[union-attr]


def test_junit_of_a_script_skips_the_gate_that_could_not_be_told_and_keeps_the_verdicts_of_a_noisy_step(
    tmp_path: Path,
) -> None:
    conditions = [
        {"text": f"tpot.p50 > {bound}x", "outcome": outcome, "details": [f"B: p50 is {outcome}"]}
        for bound, outcome in ((1.05, "undecided"), (2, "fails"), (3, "passes"))
    ]
    busy = [{"word": "busy-machine", "detail": "other processes kept 1.9 of 2 CPUs busy", "next": "wait"}]
    for strict, skipped in ((False, 1), (True, 0)):
        gate = {"headline": "B: 1 UNDECIDED", "conditions": conditions, "strict": strict}
        cells = [({"n": 1}, result(times(0.05), verdicts=busy)), ({"n": 2}, gate)]
        root = ElementTree.fromstring(report(str(results_file(tmp_path / "r.jsonl", cells)), "junit"))
        check_junit(root)
        assert "verdict busy-machine: other processes" in str(root[0].findtext("./testcase[@name='n=1']/system-out"))
        told = root[0].findall("./testcase[@name='n=2 not tpot.p50 > 1.05x']/skipped")
        assert [each.get("message") for each in told] == skipped * ["undecided: tpot.p50 > 1.05x; B: p50 is undecided"]
        assert len(root[0].findall("./testcase[@name='n=2 not tpot.p50 > 2x']/failure")) == 1
        assert list(root[0].find("./testcase[@name='n=2 not tpot.p50 > 3x']") or ()) == []


def test_a_candidate_without_a_result_is_a_failure_in_junit() -> None:
    a, b = make_job(result(times(0.05)), number=1), make_job(result(times(0.05, seed=2)), number=2)
    c = make_job(None, number=3, last={"kind": "failed", "error": {"found": "out of memory", "exit": 1}})
    for others, failures in ((("C", b, c), 1), (("B", b), 0)):
        suite = ElementTree.fromstring(report(a, "junit", against=others[1:], fail_if=("tpot.p50 > 1.5x",)))[0]
        assert len(suite.findall("./testcase[@name='not tpot.p50 > 1.5x']/failure")) == failures, others[0]


@pytest.mark.parametrize("format", ["junit", "html"])
def test_characters_that_no_document_may_hold_are_replaced(tmp_path: Path, format: str) -> None:
    evil = "a\ufffeb\uffffc\ufdd0d\x0be\ud800f\U0001ffffg"
    cells = [({"name": evil, "batch": batch}, result(times(0.05))) for batch in (1, 2)]
    text = report(str(results_file(tmp_path / "r.jsonl", [*cells, ({"name": evil, "batch": 4}, None)])), format)
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff\U0001ffff]", text)
    assert "a\ufffdb\ufffdc" in text
    if format == "junit":
        check_junit(ElementTree.fromstring(text))


def check_junit(root: ElementTree.Element) -> None:
    """What the schemas of CI systems agree on: names, counts that add up, at most one outcome a case."""
    assert root.tag == "testsuites"
    allowed = {"name", "tests", "failures", "errors", "skipped", "time", "timestamp", "hostname"}
    for suite in root:
        assert suite.tag == "testsuite"
        assert set(suite.attrib) <= allowed
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", suite.attrib["timestamp"])
        cases = list(suite)
        assert int(suite.attrib["tests"]) == len(cases)
        for tag, name in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
            assert int(suite.attrib[name]) == sum(case.find(tag) is not None for case in cases)
        for case in cases:
            assert {"name", "classname", "time"} == set(case.attrib)
            assert float(case.attrib["time"]) >= 0
            tags = [child.tag for child in case]
            assert len([tag for tag in tags if tag != "system-out"]) <= 1
            assert set(tags) <= {"failure", "error", "skipped", "system-out"}


@pytest.mark.parametrize("format", ["md", "html", "csv", "json", "junit"])
def test_an_unfinished_job_is_reported_with_what_is_known(format: str) -> None:
    job = make_job(None, last={"kind": "failed", "error": {"found": "out of device memory", "exit": 1}})
    assert "out of device memory" in report(job, format)


def test_a_result_without_metrics_is_told_by_its_own_lines() -> None:
    text = report(make_job({"moon": "full", "seconds": 2.0}, action="other.action", params={}))
    assert re.search(r"^moon +full$", text, re.MULTILINE)
    assert "The settings were not kept, so that no command can be told" in text


def test_the_format_follows_from_the_name_of_the_file_and_the_file_is_whole_or_not_there(tmp_path: Path) -> None:
    job = make_job(result(times(0.05)))
    found = made(job, out=tmp_path / "r.xml")
    assert (found.format, found.text) == ("junit", "")
    assert (tmp_path / "r.xml").stat().st_size == found.bytes
    with pytest.raises(UsageError, match="cannot be written"):
        made(job, out=tmp_path / "absent" / "r.md")
    assert [each.name for each in tmp_path.glob("*r*")] == ["r.xml"]


def test_a_report_does_not_overwrite_what_it_is_about(tmp_path: Path) -> None:
    file = results_file(tmp_path / "r.jsonl", GRID)
    job = make_job(result(times(0.05)))
    kept = keep("nightly", read_subject(job), replace_it=False)
    asked: list[tuple[str, tuple[str, ...], Path]] = [
        (str(file), (), file),
        (f"file:{file}", (), file),
        (job, (f"file:{file}",), file),
        ("baseline:nightly", (), kept),
        (job, (), jobs_root() / job / "result.json"),
    ]
    for subject, against, out in asked:
        before = out.read_bytes()
        with pytest.raises(UsageError, match="would overwrite what it is about"):
            made(subject, against=against, out=out)
        assert out.read_bytes() == before
    made(job, out=jobs_root() / job / "artifacts.md")


def test_a_name_as_long_as_names_can_be_is_written(tmp_path: Path) -> None:
    made(make_job(result(times(0.05))), out=tmp_path / f"{'n' * 252}.md")
    assert [len(each.name) for each in tmp_path.iterdir() if each.suffix == ".md"] == [255]
    with pytest.raises(UsageError, match="File name too long") as caught:
        made(make_job(result(times(0.05)), number=2), out=tmp_path / f"{'n' * 5000}.md")
    assert len(str(caught.value)) < 400
    with pytest.raises(UsageError, match="no file can have this name"):
        made(make_job(result(times(0.05)), number=3), out=tmp_path / "a\0b.md")


def test_a_current_folder_that_is_gone_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = make_job(result(times(0.05)))
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(UsageError, match="the current folder is gone"):
        made(job, out=Path("x.md"))


@pytest.mark.parametrize("format", ["md", "html", "csv", "json", "junit"])
def test_names_that_are_not_utf_8_are_told_in_every_format(tmp_path: Path, format: str) -> None:
    odd, found = "mo\udcffdel", result(times(0.05), model="mo\udcffdel")
    found["metrics"] = {odd: {**found["metrics"]["tpot"], "unit": odd}, "tpot": found["metrics"]["tpot"]}
    one = report(make_job(found, params={**PARAMS, "model": odd}), format)
    cells = [({"name": odd, "batch": batch}, found) for batch in (1, 2, 3)]
    many = report(str(results_file(tmp_path / "r.jsonl", cells)), format)
    for text in (one, many):
        assert text.encode()
    if format == "md":
        assert "hfbench bench generate $'mo\\xffdel'" in one
    if format in ("md", "html", "csv"):
        assert "mo\\xffdel" in one.replace("\\\\", "\\")


@pytest.mark.parametrize("values", [[1e308, -1e308] * 8, [5e-324, 1.0] * 8, [1e300] * 16])
def test_values_that_cannot_be_drawn_leave_out_a_picture_and_say_so(tmp_path: Path, values: list[float]) -> None:
    found = result(times(0.05))
    found["metrics"]["tpot"].update(samples=values, p50=values[0], mean=values[0])
    one = make_job(found, number=1)
    assert "There is no picture of tpot, sample by sample" in report(one, "html")
    assert "<h2" in report(one, "html", against=(make_job(result(times(0.05)), number=2),))
    cells = [({"batch": batch, "dtype": dtype}, found) for batch in (1, 2) for dtype in ("bf16", "fp32")]
    assert "There is no picture of tpot, median" in report(str(results_file(tmp_path / "r.jsonl", cells)), "html")


@pytest.mark.parametrize("at", [1e300, -1e300, -1e18, 10**400, 253402300800, 0, 1796000000])
def test_a_time_that_no_calendar_has_is_no_trouble(tmp_path: Path, at: float) -> None:
    file = results_file(tmp_path / "r.jsonl", GRID[:1], at=at)
    root = ElementTree.fromstring(report(str(file), "junit"))
    check_junit(root)
    assert (root[0].attrib["timestamp"] == "2026-11-30T00:53:20") == (at == 1796000000)


def test_cells_that_read_alike_are_columns_of_their_own(tmp_path: Path) -> None:
    cells = [({"b": b, "n": n}, result(times(0.05))) for b in (True, "true") for n in (1, 2)]
    text = report(str(results_file(tmp_path / "r.jsonl", cells)), "html")
    assert "4 cells, 4 steps" in text
    assert Page(text).tags.count("svg") == 3


def test_a_link_keeps_pointing_at_the_file_that_is_written_and_its_mode_stays(tmp_path: Path) -> None:
    (tmp_path / "real.md").write_text("before")
    (tmp_path / "real.md").chmod(0o640)
    (tmp_path / "link.md").symlink_to("real.md")
    made(make_job(result(times(0.05))), out=tmp_path / "link.md")
    assert (tmp_path / "link.md").is_symlink()
    assert (tmp_path / "real.md").read_text().startswith("# bench.generate")
    assert (tmp_path / "real.md").stat().st_mode & 0o777 == 0o640


def test_a_pipe_is_written_into_and_stays_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    reading = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    made(make_job(result(times(0.05))), out=tmp_path / "pipe")
    assert os.read(reading, 65536).startswith(b"# bench.generate")
    os.close(reading)
    assert (tmp_path / "pipe").is_fifo()


def test_a_full_device_behind_a_link_is_a_sentence_and_the_link_stays(tmp_path: Path) -> None:
    if not os.access("/dev/full", os.W_OK):
        pytest.skip("there is no /dev/full that may be written")
    (tmp_path / "full").symlink_to("/dev/full")  # never the device itself: who may, would lose it to a fault here
    with pytest.raises(UsageError, match="No space left on device"):
        made(make_job(result(times(0.05))), out=tmp_path / "full")
    assert (tmp_path / "full").is_symlink()


def test_an_open_stream_as_a_file_is_written_on_where_it_stands(tmp_path: Path) -> None:
    file = tmp_path / "log"
    file.write_text("before\n")
    with file.open("a") as stream:
        made(make_job(result(times(0.05))), out=Path(f"/dev/fd/{stream.fileno()}"))
    assert file.read_text().startswith("before\n# bench.generate")


def test_the_standard_output_as_a_file_gets_the_report_and_nothing_beside_it() -> None:
    job = make_job(result(times(0.05)))
    assert is_stdout(Path("/dev/stdout"))
    assert made(job, out=Path("/proc/self/fd/1")) == made(job)  # a place where a fault can replace nothing


def test_a_job_that_is_gone_is_a_sentence() -> None:
    with pytest.raises(HfbenchError, match="is neither a file nor a job"):
        report("2026-11-29T20-11-04-bench.generate-3f9a1c")
