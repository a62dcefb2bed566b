"""explain: keys for people, for programs and for exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from hfbench.actions.explain import Explain, ExplainResult
from hfbench.actions.registry import find
from hfbench.actions.results import result_data
from hfbench.cli import main
from hfbench.codec import decode
from hfbench.jobs.run import Run

CONFIG = {
    "model_type": "qwen2",
    "architectures": ["Qwen2ForCausalLM"],
    "hidden_size": 64,
    "num_attention_heads": 4,
    "sliding_window": 4096,
    "use_sliding_window": False,
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "tiny"
    made.mkdir()
    (made / "config.json").write_text(json.dumps(CONFIG))
    return made


def explain(folder: Path, key: str | None = None) -> ExplainResult:
    return Explain(model=str(folder), key=key).perform(Run())


def test_the_declaration_is_inline_with_a_model_and_perhaps_a_key() -> None:
    spec = find("explain")
    assert spec.inline
    positional = [(param.name, param.required) for param in spec.params if param.positional]
    assert positional == [("model", True), ("key", False)]


def test_the_result_has_the_fields_that_others_rely_on(folder: Path) -> None:
    told = json.loads(json.dumps(result_data(explain(folder)), allow_nan=False))
    assert {"model", "source", "keys", "config_class", "runtime", "notes", "problems", "failed"} <= set(told)
    assert {"key", "value", "meaning", "origin", "file", "by", "how", "known", "becomes"} == set(told["keys"][0])
    assert (told["model"], told["source"], told["failed"]) == ("tiny", "config.json", False)
    assert {each["origin"] for each in told["keys"]} == {"file", "default"}
    assert decode(ExplainResult, told) == explain(folder)


def test_files_come_first_and_defaults_stand_apart(folder: Path) -> None:
    lines = explain(folder).lines()
    headings = [line for line in lines if line and not line.startswith(" ")]
    assert headings[:2] == ["tiny", "config.json, 6 keys"]
    assert headings[2].startswith("default of Qwen2Config, transformers ")
    assert "    ! Qwen2Config makes it null: sliding_window if use_sliding_window else None" in lines


def test_one_key_is_told_whole(folder: Path) -> None:
    (folder / "config.json").write_text(json.dumps({**CONFIG, "ignored": "z" * 3000}))
    lines = explain(folder, "ignored").lines()
    assert sum(line.count("z") for line in lines) == 3000
    assert "    means     not explained yet" in lines


@pytest.mark.usefixtures("terminal")
def test_the_lines_fit_a_terminal_and_hold_no_control_character(folder: Path) -> None:
    wild = {"\u001b[2J" * 60: "\u202e" * 500, "n" * 200: {"deep": [1] * 900}, "big": "y" * 2**20, "nan": float("nan")}
    (folder / "config.json").write_text(json.dumps({**CONFIG, **wild}))
    for key in (None, "big", "n*"):
        lines = explain(folder, key).lines()
        assert all(len(line) <= 80 and line.isprintable() for line in lines)
    assert "\\x1b[2J" in "\n".join(explain(folder).lines())


@pytest.mark.parametrize(
    ("words", "code"),
    [([], 0), (["hidden_size"], 0), (["hiden_size"], 1), (["kv_lora_rank"], 1), (["--nothing"], 2)],
)
def test_exit_codes(folder: Path, words: list[str], code: int) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "hfbench", "explain", str(folder), *words], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == code
    assert "Traceback" not in done.stderr


def test_a_configuration_that_is_none_fails_and_says_why(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "config.json").write_text("[]")
    assert main(["explain", str(folder), "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["failed"] is True
    assert told["problems"][0]["found"].startswith("the root is a list")
    assert main(["explain", str(folder), "hidden_size"]) == 1
    assert "x config.json: the root is a list" in capsys.readouterr().out


def test_explaining_imports_no_heavy_library_and_runs_no_code_of_the_model(folder: Path) -> None:
    config = {"model_type": "mine", "auto_map": {"AutoConfig": "mine.Config"}}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "mine.py").write_text(f"open({str(folder / 'ran')!r}, 'w')")
    code = (
        "import sys; from hfbench.cli import main; main(['explain', '.']);"
        "print(sorted({'torch','transformers','numpy','textual','yaml'} & set(sys.modules)))"
    )
    told = subprocess.run(
        [sys.executable, "-P", "-c", code], cwd=folder, capture_output=True, text=True, timeout=120, check=True
    )
    assert told.stdout.splitlines()[-1] == "[]"
    assert not (folder / "ran").exists()
