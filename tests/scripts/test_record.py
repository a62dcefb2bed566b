"""Recording: intent with defaults and secrets left out, written so that a replay records the same bytes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hfbench.actions.base import Spec
from hfbench.errors import HfbenchError, UsageError
from hfbench.scripts.check import Checked, check
from hfbench.scripts.errors import Problems
from hfbench.scripts.format import script_text, step_text, value_text
from hfbench.scripts.progress import Progress
from hfbench.scripts.read import read_tree
from hfbench.scripts.record import Recorder
from hfbench.scripts.replay import replay
from hfbench.scripts.results import open_results
from hfbench.scripts.templates import fill
from hfbench.scripts.tree import Scalar, Table

CheckText = Callable[[str | bytes], Checked]


def recorded(samples: Mapping[str, Spec], *requests: tuple[str, dict[str, Any]], name: str = "recorded") -> Recorder:
    """A recorder that has taken these requests."""
    recorder = Recorder(name=name)
    recorder.start()
    for action, values in requests:
        recorder.add(samples[action], samples[action].build(values))
    return recorder


def test_a_recording_reads_as_a_person_would_write_it(samples: Mapping[str, Spec]) -> None:
    recorder = recorded(
        samples,
        ("sample.measure", {"model": "./models/a", "batch": 8, "token": "hf_secret", "text": "the {{ braces }}"}),
        ("toy.count", {"to": 3, "model": "./models/a"}),
        ("toy.count", {"to": 5, "model": "other/model"}),
    )
    assert recorder.texts()[0] == (
        "hfbench: 1\n"
        "name: recorded\n"
        "vars:\n"
        "  model: ./models/a\n"
        "  model_2: other/model\n"
        "steps:\n"
        '  - sample.measure: {model: "{{ model }}", batch: 8, text: "the \\\\{{ braces }}"}\n'
        '  - toy.count: {model: "{{ model }}", save_as: count}\n'
        '  - toy.count: {to: 5, model: "{{ model_2 }}", save_as: count_2}\n'
    )


def test_record_check_replay_and_record_again_gives_equal_bytes(
    samples: Mapping[str, Spec], checked: CheckText, tmp_path: Path
) -> None:
    requests = (
        (
            "sample.measure",
            {"model": "m", "ids": [1, 2], "budget": "90s", "out": "a b/ü", "text": "x: [y] #z\n\t\x1b'\"\\"},
        ),
        ("toy.count", {"to": 2, "pause": 0.001}),
        ("toy.count", {"to": 1, "model": "m"}),
        ("gpus", {}),
    )
    first = recorded(samples, *requests, name="s")
    again = Recorder(name="s")
    again.start()
    plan = checked(first.texts()[0]).plan
    assert plan is not None
    with open_results(tmp_path / "results.jsonl", plan.file) as results:
        assert replay(plan, results, Progress(plan), machine={}, dispatched=again.add) == 0
    assert again.texts()[0] == first.texts()[0]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    text=st.text(max_size=30).filter(lambda text: "\0" not in text),
    model=st.text(min_size=1, max_size=20).filter(lambda text: "\0" not in text),
    share=st.floats(0, 1),
    ids=st.lists(st.integers(-(2**62), 2**62), max_size=4),
)
def test_any_request_is_recorded_so_that_it_is_read_back(
    samples: Mapping[str, Spec], text: str, model: str, share: float, ids: list[int]
) -> None:
    values = {"model": model, "text": text, "share": share, "ids": ids}
    recorder = recorded(samples, ("sample.measure", values))
    source = recorder.texts()[0].encode()
    found = check(source, Path("s"), samples)
    assert found.errors == ()
    assert found.plan is not None
    [(_, step)] = found.plan
    again = Recorder()
    again.start()
    again.add(step.spec, step.request)
    assert step.request == samples["sample.measure"].build(values)
    assert again.texts()[0].encode() == source


@given(
    st.one_of(
        st.text(max_size=40),
        st.booleans(),
        st.integers(-(2**62), 2**62),
        st.floats(allow_nan=False, allow_infinity=False),
    )
)
def test_any_value_is_written_so_that_it_reads_back_the_same(value: str | bool | int | float) -> None:
    root = read_tree(f"x: {value_text(value)}\n".encode(), problems := Problems())
    assert not problems
    assert isinstance(root, Table)
    node = root.entries[0].value
    assert isinstance(node, Scalar)
    assert (type(node.value), node.value) == (type(value), value)


def test_a_long_step_takes_a_line_for_each_argument() -> None:
    text = step_text("bench.generate", {"model": "x" * 60, "prompt_text": "y" * 60})
    assert text == f"- bench.generate:\n    model: {'x' * 60}\n    prompt_text: {'y' * 60}"
    whole = script_text("long", {}, [("bench.generate", {"model": "x" * 60, "prompt_text": "y" * 60})])
    assert yaml.safe_load(whole)["steps"] == [{"bench.generate": {"model": "x" * 60, "prompt_text": "y" * 60}}]


def test_text_that_looks_like_something_else_is_quoted() -> None:
    texts = [
        "",
        "7",
        "true",
        "null",
        "~",
        "1e3",
        "- a",
        "a: b",
        "#x",
        "{x}",
        "*a",
        "x ",
        " x",
        "9" * 40,
        "é\u202e",
        "a\nb",
    ]
    assert [value_text(text)[0] for text in texts] == ['"'] * len(texts)
    assert [fill(text, {}) for text in texts] == texts


def test_the_home_folder_is_written_short_where_it_is_expanded_again(
    samples: Mapping[str, Spec], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    values = {"model": "/home/ada/models/a", "out": "/home/ada/out"}
    text = recorded(samples, ("sample.measure", values), ("toy.count", {"model": "/home/adam/b"})).texts()[0]
    assert "  model: ~/models/a\n  model_2: /home/adam/b\n" in text
    assert "out: /home/ada/out" in text


def test_nothing_is_taken_before_the_start_and_after_the_stop(samples: Mapping[str, Spec]) -> None:
    recorder = Recorder()
    spec = samples["gpus"]
    recorder.add(spec, spec.build({}))
    recorder.start()
    recorder.add(spec, spec.build({}))
    recorder.stop()
    recorder.add(spec, spec.build({}))
    assert len(recorder) == 1


def test_an_empty_recording_cannot_be_saved(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nothing is recorded yet"):
        Recorder().save(tmp_path / "s.hfb.yaml")
    assert not list(tmp_path.glob("*.yaml"))


def test_a_recording_does_not_overwrite_a_file_unless_asked(samples: Mapping[str, Spec], tmp_path: Path) -> None:
    recorder = recorded(samples, ("gpus", {}))
    path = tmp_path / "s.hfb.yaml"
    path.write_text("precious" * 1000)
    with pytest.raises(UsageError, match="there already"):
        recorder.save(path)
    recorder.save(path, replace=True)
    assert path.read_text() == recorder.texts()[0]


@pytest.mark.parametrize("where", ["missing/s.hfb.yaml", "."])
def test_a_recording_that_cannot_be_written_is_a_sentence(
    where: str, samples: Mapping[str, Spec], tmp_path: Path
) -> None:
    with pytest.raises(HfbenchError, match=r"cannot be written|there already"):
        recorded(samples, ("gpus", {})).save(tmp_path / where)


def test_a_recorded_secret_is_nowhere(samples: Mapping[str, Spec]) -> None:
    assert "hf_secret" not in recorded(samples, ("sample.measure", {"model": "m", "token": "hf_secret"})).texts()[0]


def test_recording_needs_no_yaml_library() -> None:
    code = "import sys, hfbench.scripts.record; print({'yaml', 'textual', 'rich'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_a_sweep_is_recorded_as_the_matrix_it_is_in_a_script_of_its_own(
    samples: Mapping[str, Spec], checked: CheckText, tmp_path: Path
) -> None:
    recorder = recorded(samples, ("toy.count", {"to": 3, "model": "m"}))
    recorder.add_sweep(samples["toy.count"], {"to": "{{ to }}", "model": "m"}, {"to": [1, 2]})
    recorder.add(samples["toy.count"], samples["toy.count"].build({"to": 4}))
    first, sweep, last = recorder.save(tmp_path / "all.hfb.yaml")
    assert [each.name for each in (first, sweep, last)] == ["all.hfb.yaml", "all-2.hfb.yaml", "all-3.hfb.yaml"]
    assert (tmp_path / "all-2.hfb.yaml").read_text() == (
        "hfbench: 1\n"
        "name: recorded-2\n"
        "vars:\n"
        "  model: m\n"
        "matrix:\n"
        "  to: [1, 2]\n"
        "steps:\n"
        '  - toy.count: {to: "{{ to }}", model: "{{ model }}", save_as: count}\n'
        "    on_fail: continue\n"
    )
    counts = [
        [step.spec.values(step.request)["to"] for _, step in checked(each.read_bytes()).plan or ()]
        for each in (first, sweep, last)
    ]
    assert counts == [[3], [1, 2], [4]]
    (tmp_path / "all.hfb.yaml").unlink()
    with pytest.raises(UsageError, match=r"all-2\.hfb\.yaml: the file is there already"):
        recorder.save(tmp_path / "all.hfb.yaml")
    assert not (tmp_path / "all.hfb.yaml").exists(), "all or none"
