"""Checking: every error at once and in place, every cell of the matrix, and the plan that comes of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hfbench.actions.registry import actions
from hfbench.scripts.check import Checked
from hfbench.scripts.parse import RESERVED
from hfbench.scripts.plan import Plan

CheckText = Callable[[str | bytes], Checked]


def planned(checked: Checked) -> Plan:
    """The plan of a script that is right."""
    assert checked.errors == ()
    assert checked.plan is not None
    return checked.plan


@pytest.mark.parametrize(
    ("text", "line", "column", "code"),
    [
        ("hfbench: 2\nsteps: [gpus: {}]\n", 1, 10, "unknown-version"),
        ("hfbench: '1'\nsteps: [gpus: {}]\n", 1, 10, "unknown-version"),
        ("hfbench: true\nsteps: [gpus: {}]\n", 1, 10, "unknown-version"),
        ("hfbench: 1\nsteps:\n  - chek: {}\n", 3, 5, "unknown-action"),
        ("hfbench: 1\nsteps: []\n", 2, 8, "wrong-type"),
        ("hfbench: 1\nsteps:\n", 2, 7, "wrong-type"),
        ("hfbench: 1\nsteps:\n  - sample.measure:\n      model: demo\n      batch: 0\n", 5, 14, "bad-value"),
        (
            "hfbench: 1\nsteps:\n  - sample.measure:\n      model: >\n        one {{ x }}\n        two\n",
            5,
            13,
            "unknown-variable",
        ),
        ('hfbench: 1\nsteps:\n  - sample.measure: {model: "ä{{ x }}"}\n', 3, 31, "unknown-variable"),
        (
            "hfbench: 1\nsteps:\n  - gpus: {}\n    expect: [devices.cuont == 0, devcies.count == 0]\n",
            4,
            34,
            "unknown-result",
        ),
        ("[1, 2]", 1, 1, "wrong-type"),
        ("just a text", 1, 1, "wrong-type"),
        ("hfbench: 1\nsteps:\n  - gpus: {}\n    expect: 3\n", 4, 13, "wrong-type"),
        ("hfbench: 1\nvars: {x: [[1]]}\nsteps:\n  - gpus: {}\n", 2, 11, "wrong-type"),
        ("hfbench: 1\nsteps:\n  - sample.measure: {model: a, timeout: [1]}\n", 3, 41, "wrong-type"),
        ("hfbench: 1\nsteps:\n  - sample.measure: {model: a, save_as: '{{ x }}'}\n", 3, 41, "bad-name"),
        ("hfbench: 1\nsteps:\n  - screenshot: {screen: jobs, path: a.svg, size: 9x9}\n", 3, 5, "bad-value"),
    ],
)
def test_an_error_points_at_its_cause(text: str, line: int, column: int, code: str, checked: CheckText) -> None:
    [error] = checked(text).errors
    assert (error.line, error.column, error.code) == (line, column, code)


def test_all_errors_are_told_at_once(checked: CheckText) -> None:
    text = (
        "hfbench: 3\nnmae: x\nvars: {a: '{{ b }}'}\nmatrix: {d: [], exclude: [{e: 1}]}\nsteps:\n"
        "  - sample.measure: {btach: 1}\n    expect: [x << 3]\n    on_fail: never\n"
        "  - sample.measure: {model: '{{ zz }}', batch: 99}\n"
    )
    assert [error.code for error in checked(text).errors] == [
        *("unknown-version", "unknown-key", "unknown-variable", "empty-axis", "unknown-axis"),
        *("missing-argument", "unknown-argument", "bad-expectation", "bad-on-fail", "unknown-variable", "bad-value"),
    ]


def test_the_matrix_is_expanded_in_the_order_written_without_the_excluded(checked: CheckText) -> None:
    text = (
        "hfbench: 1\nmatrix:\n  dtype: [fp32, bf16]\n  batch: [8, 1]\n  quick: [true]\n  exclude:\n"
        "    - {dtype: fp32, batch: 8}\nsteps:\n"
        '  - sample.measure: {model: m, dtype: "{{ dtype }}", batch: "{{ batch }}"}\n'
    )
    plan = planned(checked(text))
    assert [cell.label for cell in plan.cells] == [
        "dtype=fp32 batch=1 quick=true",
        "dtype=bf16 batch=8 quick=true",
        "dtype=bf16 batch=1 quick=true",
    ]
    assert [(step.request.dtype, step.request.batch) for _, step in plan] == [("fp32", 1), ("bf16", 8), ("bf16", 1)]


def test_an_exclusion_of_some_axes_leaves_out_all_cells_with_those_values(checked: CheckText) -> None:
    text = (
        "hfbench: 1\nmatrix:\n  a: [1, 2, 3]\n  b: [x, y]\n  exclude: [{a: 2}, {b: y, a: 3}, {a: 1.0, b: y}]\n"
        "steps:\n  - gpus: {}\n"
    )
    assert [cell.label for cell in planned(checked(text)).cells] == ["a=1 b=x", "a=3 b=x"]


def test_true_and_one_are_different_values_of_an_axis(checked: CheckText) -> None:
    text = "hfbench: 1\nmatrix: {a: [1, true, '1'], exclude: [{a: true}]}\nsteps:\n  - gpus: {}\n"
    assert [cell.values["a"] for cell in planned(checked(text)).cells] == [1, "1"]


def test_variables_use_each_other_in_any_order_and_keep_their_types(checked: CheckText) -> None:
    text = (
        'hfbench: 1\nvars:\n  out: "{{ folder }}/{{ name }}.txt"\n  name: "{{ dtype }}-{{ many }}"\n  many: 4\n'
        "  folder: ./runs\n  numbers: [1, 2]\nmatrix:\n  dtype: [bf16]\nsteps:\n"
        '  - sample.measure: {model: "{{ name }}", batch: "{{ many }}", ids: "{{ numbers }}", out: "{{ out }}"}\n'
    )
    [(_, step)] = planned(checked(text))
    shown = step.shown_values()
    assert (shown["model"], shown["batch"], shown["ids"]) == ("bf16-4", 4, [1, 2])
    assert shown["out"] == "runs/bf16-4.txt"


def test_a_list_in_a_list_of_arguments_is_laid_out_flat(checked: CheckText) -> None:
    text = 'hfbench: 1\nvars: {some: [1, 2]}\nsteps:\n  - sample.measure: {model: m, ids: [0, "{{ some }}", 3]}\n'
    [(_, step)] = planned(checked(text))
    assert step.request.ids == (0, 1, 2, 3)


def test_an_axis_may_take_its_values_from_variables(checked: CheckText) -> None:
    text = (
        'hfbench: 1\nvars: {big: 64}\nmatrix: {batch: [1, "{{ big }}"]}\nsteps:\n'
        '  - sample.measure: {model: m, batch: "{{ batch }}"}\n'
    )
    assert [cell.values["batch"] for cell in planned(checked(text)).cells] == [1, 64]


def test_a_value_that_is_wrong_in_one_cell_only_is_found_before_anything_runs(checked: CheckText) -> None:
    text = 'hfbench: 1\nmatrix: {batch: [1, 2, 65, 66]}\nsteps:\n  - sample.measure: {model: m, batch: "{{ batch }}"}\n'
    assert [error.message for error in checked(text).errors] == [
        "sample.measure.batch: 65 is above the greatest value 64 (cell batch=65)",
        "sample.measure.batch: 66 is above the greatest value 64 (cell batch=66)",
    ]


def test_variables_nobody_uses_are_warned_about_even_through_others(checked: CheckText) -> None:
    text = 'hfbench: 1\nvars: {a: 1, b: "{{ a }}", c: x}\nsteps:\n  - sample.measure: {model: "{{ c }}"}\n'
    found = checked(text)
    assert found.plan is not None
    assert [warning.sentence("s") for warning in found.warnings] == [
        "s:2:8: warning: nothing uses the variable 'a'",
        "s:2:14: warning: nothing uses the variable 'b'",
    ]


def test_a_step_without_arguments_needs_no_braces(checked: CheckText) -> None:
    assert planned(checked("hfbench: 1\nsteps:\n  - gpus:\n")).count == 1


def test_the_name_of_a_script_without_one_is_that_of_its_file(checked: CheckText) -> None:
    assert planned(checked("hfbench: 1\nsteps:\n  - gpus: {}\n")).name == "s"


def test_timeouts_are_seconds_and_may_come_from_the_matrix(checked: CheckText) -> None:
    text = 'hfbench: 1\nmatrix: {t: [10m, 90, 1h30m, 0.5]}\nsteps:\n  - gpus: {timeout: "{{ t }}"}\n'
    assert [step.timeout for _, step in planned(checked(text))] == [600, 90, 5400, 0.5]


def test_expectations_are_filled_in_for_each_cell(checked: CheckText) -> None:
    text = "hfbench: 1\nmatrix: {most: [5, 7]}\nsteps:\n  - gpus: {}\n    expect: 'devices.count < {{ most }}'\n"
    assert [step.expectations[0].wanted for _, step in planned(checked(text))] == [5, 7]


@pytest.mark.parametrize("name", ["failed", "headline", "job"])
def test_what_a_result_class_does_not_derive_cannot_be_expected(name: str, checked: CheckText) -> None:
    [error] = checked(f"hfbench: 1\nsteps:\n  - gpus: {{}}\n    expect: {name} == x\n").errors
    assert error.code == "unknown-result"


def test_secret_arguments_are_starred_out_of_what_is_shown(checked: CheckText) -> None:
    [(_, step)] = planned(checked("hfbench: 1\nsteps:\n  - sample.measure: {model: m, token: hf_abc}\n"))
    assert step.request.token == "hf_abc"
    assert step.shown_values()["token"] == "***"


def test_no_action_declares_an_argument_that_scripts_reserve() -> None:
    for spec in actions().values():
        assert not set(RESERVED) & {param.name for param in spec.params}, spec.name


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("batch == true", "batch is a number and cannot be compared with true or false"),
        ("stable == 1", "stable is true or false and cannot be compared with a number"),
        ("model < 3", "model is a text and cannot be compared with a number"),
        ("tpot.n == many", "tpot.n is a number and cannot be compared with a text"),
    ],
)
def test_a_comparison_that_can_never_hold_is_found_before_the_run(text: str, told: str, checked: CheckText) -> None:
    [error] = checked(f"hfbench: 1\nsteps:\n  - sample.measure: {{model: m}}\n    expect: {text}\n").errors
    assert (error.code, error.message) == ("bad-expectation", told)


@pytest.mark.parametrize("text", ["note == true", "tpot.p99 == nan", "extra.a == true", "note == null", "batch == 1.0"])
def test_a_comparison_of_which_the_declaration_says_nothing_is_left_to_the_run(text: str, checked: CheckText) -> None:
    planned(checked(f"hfbench: 1\nsteps:\n  - sample.measure: {{model: m}}\n    expect: {text}\n"))
