"""`hfbench environments`, and jobs that run in one of them."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from worker_venv import make_worker_venv

from hfbench.jobs.directory import JobDirectory, job_ids
from hfbench.paths import config_file, jobs_root

Hfbench = Callable[..., Any]
QUICK = ("--device", "cpu", "--prompt", "4", "--new-tokens", "2", "--max-iterations", "2", "--warmup", "1")


@pytest.fixture
def declared(home: Path, worker_python: Path) -> None:
    """An environment with torch and transformers alone, one behind a prefix, and one that is not there."""
    config_file().parent.mkdir(parents=True)
    config_file().write_text(
        f'[environments.worker]\npython = "{worker_python}"\n'
        f'[environments.prefixed]\ncommand = ["env", "ONLY=1", "{worker_python}"]\n'
        '[environments.gone]\npython = "/no/python"\n'
    )


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A llama of one layer."""
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    folder = tmp_path_factory.mktemp("models") / "tiny"
    heads = {"num_attention_heads": 2, "num_key_value_heads": 2, "num_hidden_layers": 1}
    torch.manual_seed(3)
    config = transformers.LlamaConfig(vocab_size=64, hidden_size=16, intermediate_size=32, **heads)
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    return folder


@pytest.mark.usefixtures("declared")
def test_each_is_listed_with_its_versions_what_it_runs_and_what_is_wrong(hfbench: Hfbench) -> None:
    import torch

    done = hfbench("environments", "--json")
    assert done.returncode == 1, "one of them is in trouble"
    told = json.loads(done.stdout)
    assert told["headline"] == "4 environments, trouble with gone"
    here, worker, prefixed, gone = told["environments"]
    assert [each["name"] for each in told["environments"]] == ["here", "worker", "prefixed", "gone"]
    assert here["command"] == [sys.executable]
    assert worker["versions"]["torch"] == prefixed["versions"]["torch"] == torch.__version__
    assert worker["torch"]["cxx11_abi"] is torch.compiled_with_cxx11_abi()
    assert "bench.generate" in worker["runs"]
    assert worker["cannot_run"]["demo"].startswith("no gguf")
    assert (gone["python"], gone["runs"]) == ("", [])
    assert gone["trouble"] == "/no/python cannot be started: No such file or directory"


def test_alone_it_says_how_another_is_declared(hfbench: Hfbench, home: Path) -> None:
    done = hfbench("environments")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"No other is declared. [environments.NAME] in {config_file()} adds one" in " ".join(done.stdout.split())


@pytest.mark.usefixtures("declared")
@pytest.mark.parametrize("name", ["worker", "prefixed"])
def test_a_model_is_measured_where_only_torch_and_transformers_are_installed(
    hfbench: Hfbench, tiny: Path, worker_python: Path, name: str
) -> None:
    done = hfbench("bench", "generate", tiny, "--in", name, *QUICK, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["metrics"]["tpot"]["p50"] > 0
    job = JobDirectory(jobs_root() / job_ids(jobs_root())[-1])
    environment = job.read("environment.json")
    assert environment is not None
    assert environment["executable"] == str(worker_python)
    assert job.request["environment"]["name"] == name
    assert f"  in  {'':12}{name}" in hfbench("jobs", "show", "last").stdout


@pytest.mark.usefixtures("declared")
def test_words_that_cannot_be_obeyed_start_no_job(hfbench: Hfbench, tiny: Path) -> None:
    def told(*words: object) -> tuple[int, str]:
        done = hfbench(*words)
        return done.returncode, " ".join(done.stderr.split())

    code, sentence = told("bench", "generate", tiny, "--in", "workr")
    assert (code, sentence) == (2, "hfbench: no environment is called 'workr'. Did you mean 'worker'?")
    code, sentence = told("bench", "generate", tiny, "--in", "gone")
    assert (code, sentence) == (4, "hfbench: /no/python: there is no Python that can be run. Give the path of one")
    code, sentence = told("demo", "--in", "worker")
    assert code == 4
    assert "the environment 'worker' cannot run demo: no gguf" in sentence
    code, sentence = told("inspect", tiny, "--in", "worker")
    assert code == 2
    assert "inspect: it only reads, in this process, and cannot run in the environment 'worker'" in sentence
    assert not job_ids(jobs_root())


@pytest.mark.usefixtures("toy_actions")
def test_what_this_python_lacks_is_run_where_it_is_and_the_log_says_so(hfbench: Hfbench, tmp_path: Path) -> None:
    bare = make_worker_venv(tmp_path / "bare", names=())
    python = make_worker_venv(tmp_path / "venv", names=(), modules=["needed_by_toy"])
    config_file().parent.mkdir(parents=True)
    config_file().write_text(f'[environments.bare]\npython = "{bare}"\n[environments.good]\npython = "{python}"\n')
    done = hfbench("toy", "alone", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["python"] == str(python)
    told = json.loads(hfbench("jobs", "show", "last", "--json").stdout)
    assert told["environment_why"] == "this Python lacks needed_by_toy: it runs in the environment 'good'"
    assert [each["text"] for each in told["logs"]] == [told["environment_why"]]
    assert hfbench("toy", "alone", "--in", "here").returncode == 4
    config_file().write_text(f'[environments.bare]\npython = "{bare}"\n')
    refused = hfbench("toy", "alone")
    assert refused.returncode == 4
    assert "environments looked at: bare (no needed_by_toy)" in " ".join(refused.stderr.split())


@pytest.mark.usefixtures("declared", "toy_actions")
def test_a_script_names_the_environment_of_a_step(hfbench: Hfbench, tmp_path: Path, worker_python: Path) -> None:
    script = tmp_path / "s.hfb.yaml"
    text = 'hfbench: 1\nmatrix: {place: [here, worker]}\nsteps:\n  - toy.count: {to: 1, in: "{{ place }}"}\n'
    script.write_text(text)
    planned = [json.loads(line) for line in hfbench("--script", script, "--dry-run").stdout.splitlines()]
    assert [each["in"] for each in planned] == ["here", "worker"]
    done = hfbench("--script", script)
    assert done.returncode == 0, done.stderr
    ran = {(job.environment("name"), (job.read("environment.json") or {})["executable"]) for job in jobs()}
    assert ran == {("", sys.executable), ("worker", str(worker_python))}
    script.write_text(text.replace("worker]", "workr]"))
    wrong = hfbench("--script", script)
    assert wrong.returncode == 2
    assert "s.hfb.yaml:4:28: no environment is called 'workr'; did you mean 'worker'?" in wrong.stderr


def jobs() -> list[JobDirectory]:
    return [JobDirectory(jobs_root() / each) for each in job_ids(jobs_root())]
