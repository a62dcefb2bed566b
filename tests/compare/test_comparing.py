"""Jobs, sweeps, baselines and files side by side: what is read, what is matched, what is refused in a sentence."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from measured_runs import HERE, PARAMS, make_job, result, results_file, times

from hfbench.codec import decode, encode
from hfbench.compare.baselines import file_of, forget, keep, listed, read_baseline
from hfbench.compare.comparing import compare
from hfbench.compare.reading import read_subject
from hfbench.compare.result import CompareResult, Outcome, Word
from hfbench.errors import HfbenchError, UsageError
from hfbench.line_width import lines_of
from hfbench.paths import jobs_root


def words(found: CompareResult, metric: str = "tpot") -> list[Word]:
    """The verdicts of one metric in the order of pairs and cells."""
    return [each.word for pair in found.pairs for each in pair.verdicts if each.metric == metric]


def test_two_jobs_get_a_verdict_a_metric_and_the_differences_stand_before_them() -> None:
    a = make_job(result(times(0.05, seed=1)), number=1)
    other = {**HERE, "versions": {"torch": "2.14.0"}, "gpus": {"driver": "580.1", "devices": [{"name": "H200"}]}}
    b = make_job(result(times(0.06, seed=2)), number=2, params={**PARAMS, "dtype": "fp32"}, environment=other)
    found = compare([a, b])
    assert [(each.metric, each.word) for each in found.pairs[0].verdicts] == [
        ("tpot", Word.SLOWER),
        ("throughput", Word.SLOWER),
    ]
    told = [(each.about, each.name, each.a, each.b) for each in found.pairs[0].differences]
    assert told == [
        ("setting", "dtype", "bf16", "fp32"),
        ("hardware", "GPUs", "", "H200"),
        ("software", "driver", "", "580.1"),
        ("software", "torch", "2.13.0", "2.14.0"),
    ]
    with lines_of(80):
        lines = found.lines()
    assert lines.index("         setting: dtype: bf16 -> fp32") < next(
        n for n, line in enumerate(lines) if "SLOWER" in line
    )
    assert max(map(len, lines)) <= 80


def test_a_result_survives_the_way_through_json_that_screens_take() -> None:
    found = compare(
        [make_job(result(times(0.05)), number=1), make_job(result(times(0.06)), number=2)], fail_if=["tpot > 2x"]
    )
    assert decode(CompareResult, json.loads(json.dumps(encode(found)))) == found


def test_everything_is_measured_against_the_first() -> None:
    jobs = [make_job(result(times(middle, seed=n)), number=n) for n, middle in enumerate((0.05, 0.06, 0.04), 1)]
    found = compare(jobs)
    assert [pair.b.letter for pair in found.pairs] == ["B", "C"]
    assert words(found) == [Word.SLOWER, Word.FASTER]


def test_other_models_are_compared_with_a_warning_and_other_work_too() -> None:
    a = make_job(result(times(0.05)), number=1)
    b = make_job(result(times(0.06)), number=2, params={**PARAMS, "model": "./big", "batch": 8})
    sentence = compare([a, b]).pairs[0].sentence
    assert "the models differ" in sentence
    assert "batch differ, so that a step is not the same work" in sentence


def test_actions_without_a_common_metric_are_refused_in_a_sentence() -> None:
    a = make_job(result(times(0.05)), number=1)
    b = make_job({"findings": []}, number=2, action="check", params={"model": "./smol"})
    found = compare([a, b])
    assert found.pairs[0].refused
    assert "bench.generate and check have no metric in common" in found.pairs[0].sentence
    assert found.headline == "B: not compared"


def test_results_without_samples_are_told_as_single_figures_and_stay_undecided() -> None:
    a = make_job({"seconds": 3.0, "bytes": 10}, number=1, action="convert.safetensors")
    b = make_job({"seconds": 2.0, "bytes": 10}, number=2, action="convert.safetensors")
    assert {each.metric: each.word for each in compare([a, b]).pairs[0].verdicts} == {
        "seconds": Word.UNDECIDED,
        "bytes": Word.SAME,
    }


@pytest.mark.parametrize(
    ("last", "found"),
    [
        ({"kind": "failed", "error": {"found": "out of device memory", "exit": 1}}, "out of device memory"),
        ({"kind": "cancelled", "reason": "asked by somebody"}, "asked by somebody"),
        (None, "the worker is gone"),
    ],
)
def test_a_job_without_a_result_is_a_sentence_and_its_condition_does_not_pass(
    last: dict[str, object] | None, found: str
) -> None:
    a, b = make_job(result(times(0.05)), number=1), make_job(None, number=2, last=last)
    compared = compare([a, b], fail_if=["tpot.p50 > 1.05x"])
    assert found in compared.pairs[0].sentence
    assert compared.conditions[0].outcome is Outcome.FAILS
    assert found in compared.conditions[0].details[0]
    assert compared.exit == 1
    assert compared.open_conditions
    assert compare([a, b], fail_if=["tpot.p50 > 1.05x"], strict=True).exit == 1


def test_one_candidate_of_several_without_a_result_fails_the_gate_of_all() -> None:
    a, b = make_job(result(times(0.05)), number=1), make_job(result(times(0.05, seed=2)), number=2)
    c = make_job(None, number=3, last={"kind": "failed", "error": {"found": "out of device memory", "exit": 1}})
    found = compare([a, b, c], fail_if=["tpot.p50 > 1.5x"])
    assert (found.exit, found.conditions[0].outcome) == (1, Outcome.FAILS)
    assert found.conditions[0].details == ("C: nothing was compared: C has no result: out of device memory",)
    assert compare([a, b], fail_if=["tpot.p50 > 1.5x"]).exit == 0
    other = make_job({"findings": []}, number=4, action="check", params={"model": "./smol"})
    assert compare([a, b, other], fail_if=["tpot.p50 > 1.5x"]).exit == 1


CELLS = [({"batch": n}, result(times(0.05, seed=n))) for n in (1, 2)]


@pytest.mark.parametrize(
    ("theirs", "exit", "told"),
    [
        (CELLS[:1], 1, "B at batch=2: there is no tpot (there is no such cell), and A has one"),
        ([CELLS[0], ({"batch": 2}, None)], 1, "B at batch=2: there is no tpot (it has no result: out of memory)"),
        ([*CELLS, ({"batch": 4}, result(times(0.2)))], 0, "B at batch=4: not asked: A has no tpot"),
        (CELLS, 0, ""),
    ],
)
def test_a_gate_wants_every_cell_of_a_of_the_candidate(tmp_path: Path, theirs: list[Any], exit: int, told: str) -> None:
    sides = [results_file(tmp_path / f"{name}.jsonl", cells) for name, cells in (("a", CELLS), ("b", theirs))]
    found = compare([*map(str, sides)], fail_if=["tpot > 1.5x"])
    assert found.exit == exit
    assert told in "".join(found.conditions[0].details)


def test_a_cell_that_failed_in_both_fails_no_gate_and_one_that_failed_in_a_alone_is_said(tmp_path: Path) -> None:
    failed = [CELLS[0], ({"batch": 2}, None)]
    again = [({"batch": n}, result(times(0.05, seed=n + 10))) for n in (1, 2)]
    a, b, c = (
        str(results_file(tmp_path / f"{name}.jsonl", cells))
        for name, cells in (("a", failed), ("b", failed), ("c", again))
    )
    assert compare([a, b], fail_if=["tpot > 1.5x"]).exit == 0
    better = compare([a, c], fail_if=["tpot > 1.5x"])
    assert (better.exit, better.conditions[0].details) == (
        0,
        ("B at batch=2: not asked: A has no tpot (it has no result: out of memory)",),
    )


def test_a_cell_that_never_came_to_the_measurement_fails_the_gate_of_one_run_against_a_sweep(tmp_path: Path) -> None:
    file = results_file(tmp_path / "b.jsonl", CELLS)
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    for each in lines:
        if each.get("cell") == {"batch": 2}:
            each.update(action="check", status="failed", result=None, metrics=None, error={"found": "no such model"})
    file.write_text("".join(json.dumps(each) + "\n" for each in lines))
    found = compare([make_job(result(times(0.05, seed=9)), number=1), str(file)], fail_if=["tpot > 1.5x"])
    assert found.exit == 1
    assert "B at batch=2: there is no tpot (it has no result: no such model)" in found.conditions[0].details[0]


def test_cells_whose_labels_read_alike_stay_different_cells(tmp_path: Path) -> None:
    values: list[dict[str, Any]] = [{"b": "1 c=2"}, {"b": "1", "c": "2"}, {"b": True}, {"b": "true"}, {"b": 1}]
    cells = [(each, result(times(0.05 * (place + 1)))) for place, each in enumerate(values)]
    a = results_file(tmp_path / "a.jsonl", cells)
    b = results_file(tmp_path / "b.jsonl", cells[::-1])
    assert read_subject(str(a)).cells == len(values)
    found = compare([str(a), str(b)])
    assert [cell.values for cell in found.pairs[0].cells] == values
    assert words(found) == [Word.SAME] * len(values)


def test_steps_and_times_that_are_none_are_read_around(tmp_path: Path) -> None:
    file = results_file(tmp_path / "a.jsonl", CELLS)
    text = file.read_text().replace('"step": 1', '"step": [1]').replace('"at": 2.0', f'"at": 1{"0" * 400}')
    file.write_text(text.replace('"name": "nightly"', '"script": "a\\u0000b"'))
    subject = read_subject(str(file))
    assert (subject.cells, subject.measured[0].created, subject.script) == (2, None, "")
    assert words(compare([str(file), str(file)])) == [Word.SAME, Word.SAME]


def test_a_condition_that_holds_makes_exit_1() -> None:
    a, b = make_job(result(times(0.05)), number=1), make_job(result(times(0.06)), number=2)
    assert compare([a, b], fail_if=["tpot.p50 > 1.05x", "tpot.p50 > 2x"]).exit == 1
    assert compare([b, a], fail_if=["tpot.p50 > 1.05x"]).exit == 0


def test_cells_are_matched_by_their_values_and_others_listed(tmp_path: Path) -> None:
    ours = [({"batch": n, "dtype": "bf16"}, result(times(0.05, seed=n))) for n in (1, 2)]
    theirs = [({"dtype": "bf16", "batch": n}, result(times(0.06, seed=n))) for n in (2, 3)]
    found = compare([str(results_file(tmp_path / "a.jsonl", ours)), str(results_file(tmp_path / "b.jsonl", theirs))])
    pair = found.pairs[0]
    assert [cell.label for cell in pair.cells] == ["dtype=bf16 batch=2"]
    assert (pair.only_a, pair.only_b) == (("batch=1 dtype=bf16",), ("batch=3 dtype=bf16",))
    assert words(found) == [Word.SLOWER]


def test_a_cell_that_failed_and_a_metric_that_one_cell_lacks_are_told(tmp_path: Path) -> None:
    whole = result(times(0.05))
    less = {**whole, "metrics": {"tpot": whole["metrics"]["tpot"]}}
    cells = [({"batch": 1}, whole), ({"batch": 2}, whole)]
    a = results_file(tmp_path / "a.jsonl", cells)
    b = results_file(tmp_path / "b.jsonl", [({"batch": 1}, None), ({"batch": 2}, less)])
    first, second = compare([str(a), str(b)]).pairs[0].cells
    assert first.note == "B has no result: out of memory"
    assert second.lacking == ("B lacks 'throughput'",)
    assert [each.metric for each in second.metrics] == ["tpot"]


def test_sweeps_over_other_axes_are_refused_and_one_run_is_compared_with_every_cell(tmp_path: Path) -> None:
    a = results_file(tmp_path / "a.jsonl", [({"batch": n}, result(times(0.05))) for n in (1, 2)])
    b = results_file(tmp_path / "b.jsonl", [({"prompt": n}, result(times(0.05))) for n in (1, 2)])
    refused = compare([str(a), str(b)]).pairs[0]
    assert refused.refused
    assert "no cell of B has the values of a cell of A (batch against prompt)" in refused.sentence
    one = make_job(result(times(0.06)), number=1)
    found = compare([one, str(a)])
    assert "A is one run, and is compared with each of 2 cells of B" in found.pairs[0].sentence
    assert words(found) == [Word.FASTER, Word.FASTER]


def test_a_baseline_survives_the_removal_of_its_job() -> None:
    a, b = make_job(result(times(0.05)), number=1), make_job(result(times(0.06)), number=2)
    keep("nightly", read_subject(a), replace_it=False)
    shutil.rmtree(jobs_root() / a)
    found = compare(["nightly", b])
    assert words(found) == [Word.SLOWER]
    assert found.sides[0].kind == "baseline"
    assert [(each.name, each.of, each.problem) for each in listed()] == [("nightly", a, "")]
    forget("nightly")
    assert listed() == []


def test_a_baseline_is_not_replaced_unasked_and_nothing_without_a_result_is_kept() -> None:
    a = make_job(result(times(0.05)), number=1)
    keep("n", read_subject(a), replace_it=False)
    with pytest.raises(UsageError, match="there is a baseline 'n' already"):
        keep("n", read_subject(a), replace_it=False)
    keep("n", read_subject(a), replace_it=True)
    with pytest.raises(UsageError, match="has no result to keep: the worker is gone"):
        keep("m", read_subject(make_job(None, number=2)), replace_it=False)
    with pytest.raises(UsageError, match="is no name of a baseline"):
        keep("../m", read_subject(a), replace_it=False)


def test_a_damaged_baseline_and_one_of_a_newer_version_are_sentences() -> None:
    a = make_job(result(times(0.05)), number=1)
    file = keep("n", read_subject(a), replace_it=False)
    data = json.loads(file.read_text())
    file.write_text(json.dumps({**data, "v": 99, "moon": 1, "subject": {**data["subject"], "phase": "full"}}))
    assert "a newer hfbench wrote this baseline" in read_baseline("n").notes[-1]
    file.write_text(file.read_text()[:100])
    assert "damaged" in listed()[0].problem
    with pytest.raises(HfbenchError, match="damaged"):
        read_subject("n")
    with pytest.raises(UsageError, match=r"no baseline 'nn'.*did you mean 'n'|no baseline 'nn'"):
        read_subject("baseline:nn")
    assert file_of("n").exists()


def test_a_word_for_several_things_must_say_which(tmp_path: Path) -> None:
    a = make_job(result(times(0.05)), number=1)
    kept = keep("other", read_subject(a), replace_it=False)
    kept.rename(kept.with_name(f"{a}.json"))  # as an older version would have kept it
    with pytest.raises(UsageError, match=r"stands for several things: baseline:.* and job:"):
        read_subject(a)
    assert read_subject(f"job:{a}").kind == "job"
    assert read_subject(f"baseline:{a}").kind == "baseline"


def test_a_file_of_the_current_folder_takes_the_place_of_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    a = make_job(result(times(0.05)), number=1)
    keep("nightly", read_subject(a), replace_it=False)
    results_file(tmp_path / "nightly", CELLS)
    results_file(tmp_path / "last", CELLS)
    for word, told in (("nightly", "file:nightly and baseline:nightly"), ("last", "file:last and job:last")):
        with pytest.raises(UsageError, match=f"stands for several things: {told}"):
            read_subject(word)
    assert read_subject("./nightly").kind == read_subject("file:nightly").kind == "script"
    assert read_subject("baseline:nightly").kind == "baseline"
    (tmp_path / "nightly").unlink()
    assert read_subject("nightly").kind == "baseline"


LONG = "x" * 5000
NOTHING = ["~nosuch", "file:~nosuch", LONG, f"file:{LONG}", f"baseline:{LONG}", "a\0b", "file:a\0b"]


@pytest.mark.parametrize("word", NOTHING, ids=range(len(NOTHING)))
def test_a_word_for_nothing_is_a_short_sentence(word: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_subject(word)
    assert len(str(caught.value)) < 800


def test_a_baseline_that_was_kept_at_no_time_hides_no_other() -> None:
    job = read_subject(make_job(result(times(0.05)), number=1))
    keep("good", job, replace_it=False)
    file = keep("bad", job, replace_it=False)
    data = json.loads(file.read_text())
    file.write_text(json.dumps({**data, "kept": 10**400}))
    assert [(each.name, each.kept is None, each.problem) for each in listed()] == [
        ("bad", True, ""),
        ("good", False, ""),
    ]
    file.write_text(json.dumps({**data, "subject": {**data["subject"], "made": 10**400}}))
    assert "damaged" in listed()[0].problem


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", "not a file of results"),
        ("[1, 2]", "not a file of results"),
        ("hello\nworld\n", "not a file of results"),
        ('{"a": 1}\n{"b": 2}\n', "not a file of results"),
    ],
)
def test_a_file_of_something_else_is_refused(tmp_path: Path, text: str, found: str) -> None:
    file = tmp_path / "x.json"
    file.write_text(text)
    with pytest.raises(HfbenchError, match=found):
        read_subject(str(file))


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(HfbenchError, match="it is not text"):
        read_subject(str(tmp_path / "x.json"))


def test_what_json_printed_is_compared_with_the_settings_of_its_job(tmp_path: Path) -> None:
    a, b = make_job(result(times(0.05)), number=1), make_job(result(times(0.06)), number=2)
    printed = tmp_path / "a.json"
    printed.write_text(json.dumps({**result(times(0.05)), "job": a}))
    found = compare([str(printed), b])
    assert words(found) == [Word.SLOWER]
    assert found.pairs[0].differences == ()
    shutil.rmtree(jobs_root() / a)
    assert "settings and environment are not known" in compare([str(printed), b]).sides[0].notes[0]


def test_results_of_a_newer_version_and_of_a_script_that_was_cut_off_say_so(tmp_path: Path) -> None:
    file = results_file(tmp_path / "a.jsonl", [({"batch": 1}, result(times(0.05)))], v=7)
    assert "a newer hfbench wrote these results" in read_subject(str(file)).notes[0]
    lines = file.read_text().splitlines()[:-1]
    file.write_text("\n".join([*lines, '{"event": "step_fin']))
    assert "has not come to its end" in read_subject(str(file)).notes[1]


def test_a_run_in_turns_stands_alone_and_its_rows_are_the_sides() -> None:
    def row(name: str, middle: float, seed: int) -> dict[str, object]:
        return {
            "name": name,
            "metrics": result(times(middle, seed=seed))["metrics"],
            "params": {**PARAMS, "mode": name},
        }

    rows = [row("A", 0.05, 1), row("B", 0.06, 2)]
    busy = [{"word": "busy-machine", "detail": "other processes kept 1.5 of 2 CPUs busy"}]
    job = make_job({"rows": rows, "verdicts": busy}, number=1, action="bench.compare")
    found = compare([job], fail_if=["tpot.p50 > 1.05x"])
    assert words(found) == [Word.SLOWER]
    assert found.pairs[0].verdicts.__next__().method == "in turns"
    assert any("B/A is the median of the rounds' ratios" in line for line in found.lines())
    assert found.exit == 1
    with pytest.raises(UsageError, match="one thing alone cannot be compared"):
        compare([make_job(result(times(0.05)), number=2)])


def test_samples_that_are_no_numbers_are_told_below_the_table_and_huge_ones_break_nothing() -> None:
    good, bad = result(times(0.05, seed=1)), result(times(0.05, seed=2))
    bad["metrics"]["tpot"]["samples"][3:6] = [float("nan")] * 3
    huge = result(times(0.05, seed=3))
    huge["metrics"]["tpot"].update(samples=[1e308, 5e-324] * 50, p50=1e308, mean=1e308)
    jobs = [make_job(each, number=place) for place, each in enumerate((good, bad, huge), 1)]
    found = compare(jobs, fail_if=["tpot.p50 > 1.05x", "tpot.mean > 1 s"])
    assert "B: 3 of 100 samples of tpot are no finite numbers and are left out" in found.pairs[0].cells[0].lacking
    assert max(len(line) for line in found.lines() if line.startswith(("tpot", "throughput"))) <= 80


def test_modes_of_one_run_are_compared_with_the_first_which_is_eager() -> None:
    rows = [
        {"mode": mode, **result(times(middle, seed=3))["metrics"]}
        for mode, middle in (("eager", 0.05), ("compile", 0.03))
    ]
    rows.append({"mode": "cudagraph", "word": "not run", "reason": "there is no GPU"})
    found = compare([make_job({"rows": rows}, action="bench.modes", params={**PARAMS, "modes": ["compile"]})])
    assert [side.title for side in found.sides] == ["bench.modes eager", "bench.modes compile"]
    assert [(each.name, each.a, each.b) for each in found.pairs[0].differences] == [("mode", "eager", "compile")]
    assert words(found) == [Word.FASTER]


def test_a_run_compared_with_itself_says_so() -> None:
    job = make_job(result(times(0.05)), number=1)
    keep("nightly", read_subject(job), replace_it=False)
    for other in (job, "nightly"):
        found = compare([other, job], fail_if=["tpot.p50 > 1.05x", "tpot.p50 > 1 s"])
        assert found.pairs[0].sentence.startswith("A and B are the same run, and tell nothing of a change")
        assert [each.outcome for each in found.conditions] == [Outcome.UNDECIDED, Outcome.PASSES]
        assert found.conditions[0].details == ("B: A and B are the same run, and tell nothing of a change",)
    copy = job_file(job).parent / "copy.json"
    copy.write_bytes(job_file(job).read_bytes())
    assert "the same run" in compare([job, f"file:{copy}"]).pairs[0].sentence
    again = make_job(result(times(0.05)), number=2)
    assert "the same run" not in compare([job, again]).pairs[0].sentence, (
        "two jobs are two runs, whatever they measured"
    )


def job_file(job: str) -> Path:
    """The file of a job's result."""
    return jobs_root() / job / "result.json"


def model_difference(a: tuple[str, str], b: tuple[str, str]) -> list[tuple[str, str]]:
    """How two runs differ in their model, each given as it was asked for and as the folder it led to."""
    jobs = [
        make_job(result(times(0.05, seed=number), folder=folder), number=number, params={**PARAMS, "model": model})
        for number, (model, folder) in enumerate((a, b), 1)
    ]
    (pair,) = compare(jobs).pairs
    shutil.rmtree(jobs_root())
    return [(each.a, each.b) for each in pair.differences if each.about == "model"]


def test_one_model_is_one_however_it_was_asked_for_and_a_branch_that_moved_is_another(tmp_path: Path) -> None:
    real, link = tmp_path / "smol", tmp_path / "latest"
    real.mkdir()
    link.symlink_to(real)
    snapshots = [
        f"/{where}/hub/models--org--smol/snapshots/{c}"
        for where, c in (("x", "a" * 40), ("y", "b" * 40), ("y", "a" * 40))
    ]
    assert model_difference(("demo", str(real)), (str(link), str(link))) == []
    assert model_difference(("org/smol", snapshots[0]), (snapshots[2], snapshots[2])) == []
    assert model_difference(("demo", str(real)), ("org/smol", snapshots[0])) == [("demo", "org/smol")]
    assert model_difference(("./m", "/a/m"), ("./m", "/b/m")) == [("/a/m", "/b/m")]
    assert model_difference(("org/smol", snapshots[0]), ("org/smol", snapshots[1])) == [
        ("org/smol@" + "a" * 40, "org/smol@" + "b" * 40)
    ]


def test_a_model_that_no_result_tells_the_folder_of_is_followed_from_where_the_job_began(tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "config.json").write_text("{}")
    jobs = [
        make_job(result(times(0.05, seed=n)), number=n, params={**PARAMS, "model": model})
        for n, model in enumerate(("./m", str(tmp_path / "m")), 1)
    ]
    request = jobs_root() / jobs[0] / "request.json"
    request.write_text(json.dumps({**json.loads(request.read_text()), "cwd": str(tmp_path)}))
    assert compare(jobs).pairs[0].differences == ()


def test_names_with_escapes_and_brackets_cannot_reach_a_terminal() -> None:
    evil = {**PARAMS, "model": "\x1b[31mred\x1b[0m/[bold]x"}
    a, b = (make_job(result(times(0.05)), number=n, params=evil) for n in (1, 2))
    assert "\x1b" not in "\n".join(compare([a, b]).lines())
