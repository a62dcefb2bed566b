"""check: the verdict for people, for programs and for exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from small_model import all_of, config, gone, make, put

from hfbench.actions.check import Check, CheckResult
from hfbench.actions.check import _told as check_lines
from hfbench.actions.registry import find
from hfbench.actions.results import result_data
from hfbench.checks.pages import check_pages
from hfbench.checks.run import MOST
from hfbench.checks.sarif import sarif_text
from hfbench.cli import main
from hfbench.codec import decode
from hfbench.errors import UsageError
from hfbench.jobs.run import Run


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return make(tmp_path / "tiny")


def check(target: object, **options: Any) -> CheckResult:
    return Check(model=str(target), **options).perform(Run())


def test_the_declaration_is_inline_with_a_positional_model() -> None:
    spec = find("check")
    assert spec.inline
    assert [param.name for param in spec.params if param.positional] == ["model"]


def test_a_clean_model_is_ok_with_exit_zero(model: Path) -> None:
    result = check(model)
    assert (result.verdict, result.findings, result.exit, result.failed) == ("ok", (), 0, False)
    assert result.lines() == ["tiny", "ok: nothing speaks against it"]


@pytest.mark.parametrize(("fail_on", "exit"), [("error", 0), ("warning", 1), ("info", 1)])
def test_findings_at_or_above_the_severity_asked_for_make_exit_one(model: Path, fail_on: str, exit: int) -> None:
    config(torch_dtype="float32")(model)
    result = check(model, fail_on=fail_on)
    assert (result.verdict, result.exit) == ("warn", exit)


def test_an_error_refuses_the_model(model: Path) -> None:
    gone("config.json")(model)
    result = check(model)
    assert (result.verdict, result.exit, result.counts["error"]) == ("refuse", 1, 1)


def test_a_target_that_is_nowhere_could_not_be_checked(tmp_path: Path) -> None:
    assert check(tmp_path / "gone").exit == 2
    assert check("org/never-fetched", cache_dir=tmp_path, offline=True).exit == 2


def test_the_result_is_told_in_json_as_it_is_promised(model: Path) -> None:
    gone("model.safetensors")(model)
    told = json.loads(json.dumps(result_data(check(model))))
    assert {"model", "verdict", "findings"} <= set(told)
    assert {"id", "severity", "file", "message", "evidence", "remedy"} <= set(told["findings"][0])
    assert decode(CheckResult, told) == check(model)


@pytest.mark.usefixtures("terminal")
def test_lines_fit_a_terminal_and_hold_no_control_character(model: Path) -> None:
    all_of(config(model_type="\x1b[31m" + "x" * 500), put("x" * 180 + ".safetensors", b""))(model)
    lines = check(model).lines()
    assert all(len(line) <= 80 and line.isprintable() for line in lines)
    assert "\\x1b[31m" in "\n".join(lines)


def missing_files(count: int) -> Any:
    """An index that names so many files, none of which is there."""

    def edit(folder: Path) -> None:
        gone("model.safetensors")(folder)
        weight_map = {f"t{number}": f"model-{number:05d}.safetensors" for number in range(count)}
        put("model.safetensors.index.json", json.dumps({"metadata": {}, "weight_map": weight_map}))(folder)

    return edit


def test_many_findings_of_one_rule_are_counted_in_the_table_and_listed_in_json(model: Path) -> None:
    missing_files(40)(model)
    result = check(model)
    lines = result.lines()
    assert sum("HB142" in line and "missing" in line for line in lines) == 5
    assert "         and 35 more of HB142; --json lists all" in lines
    assert lines[-1] == "hfbench rule HB142 tells why this is looked for and what to do"
    assert len(result.findings) == 40


def test_a_missing_file_names_the_tensors_that_are_lost(model: Path) -> None:
    missing_files(2)(model)
    (first, second) = check(model).findings
    assert first.evidence == {"tensors": 1, "names": ["t0"]}
    assert "(2 of 2 files missing; the index has no total_size" in first.message
    assert second.message == "missing; model.safetensors.index.json puts 1 tensor into it"


def test_a_rule_that_finds_without_end_is_cut_and_says_so(model: Path) -> None:
    missing_files(MOST + 500)(model)
    result = check(model)
    assert len(result.findings) == MOST + 1
    assert any("there is more of this kind" in each.message for each in result.findings)


def test_a_remedy_is_not_lost_behind_a_long_sentence(model: Path) -> None:
    config(model_type="x" * 1900, architectures=["y" * 1900])(model)
    for finding in check(model).findings:
        told = check_lines([finding])
        assert " ".join(finding.remedy.split()[-2:]).rstrip(".") in " ".join(" ".join(told).split())


def test_sarif_names_the_rules_and_the_places(model: Path) -> None:
    config(torch_dtype="float32", eos_token_id=99)(model)
    result = check(model, sarif=True)
    told = json.loads("\n".join(result.lines()))
    assert told["version"] == "2.1.0"
    (run,) = told["runs"]
    described = {each["id"] for each in run["tool"]["driver"]["rules"]}
    assert described == {each["ruleId"] for each in run["results"]} == {each.id for each in result.findings}
    assert run["results"][0]["level"] == "error"
    assert run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"] == {
        "uri": "config.json",
        "uriBaseId": "MODEL",
    }
    assert run["originalUriBaseIds"] == {"MODEL": {"uri": f"{model.as_uri()}/"}}
    for each in run["results"]:
        sentences = each["message"]["text"].split(". ")
        assert all(not sentence[0].islower() for sentence in sentences)


def test_sarif_points_at_the_folder_where_no_file_is_to_blame(model: Path) -> None:
    gone("tokenizer.json")(model)
    (run,) = json.loads("\n".join(check(model, sarif=True).lines()))["runs"]
    places = [each["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for each in run["results"]]
    assert "." in places


def test_sarif_and_json_at_once_are_a_mistake(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UsageError, match="Give one"):
        main(["check", str(model), "--json", "--sarif"])
    assert capsys.readouterr().out == ""


def test_sarif_is_ascii_whatever_files_are_called(model: Path) -> None:
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'ab' * 32}\nsize 4976698672\n"
    put("n\u00f6te [1].safetensors", pointer)(model)
    text = sarif_text(str(model), check(model).findings)
    assert text.isascii()
    assert "n%C3%B6te%20%5B1%5D.safetensors" in text


def test_the_command_line_prints_one_json_object(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config(num_attention_heads=3)(model)
    assert main(["check", str(model), "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["verdict"], told["findings"][0]["id"]) == ("refuse", "HB214")


def test_options_that_contradict_the_model_are_findings(model: Path) -> None:
    assert check(model, quantization="gptq").verdict == "refuse"
    assert check(model, dtype="half").verdict == "warn"


def test_a_check_imports_no_heavy_library_and_runs_no_code_of_the_model(model: Path) -> None:
    config(model_type="mine", auto_map={"AutoConfig": "mine.Config"})(model)
    put("mine.py", f"open({str(model / 'ran')!r}, 'w')")(model)
    put("json.py", f"open({str(model / 'ran')!r}, 'w')")(model)
    code = (
        "import sys; from hfbench.cli import main; main(['check', '.']);"
        "print(sorted({'torch','transformers','numpy','textual','jinja2','tokenizers'} & set(sys.modules)))"
    )
    told = subprocess.run(
        [sys.executable, "-P", "-c", code], cwd=model, capture_output=True, text=True, timeout=120, check=True
    )
    assert told.stdout.splitlines()[-1] == "[]"
    assert not (model / "ran").exists()


def test_the_pages_of_the_rules_are_what_the_rules_say_today() -> None:
    docs = Path(__file__).resolve().parents[2] / "docs"
    pages = check_pages()
    assert {name: (docs / name).read_text(encoding="utf-8") for name in pages} == pages
    assert {f"checks/{each.name}" for each in (docs / "checks").iterdir()} == set(pages)
