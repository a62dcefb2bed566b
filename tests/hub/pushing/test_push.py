"""Pushes to a real hub: what refuses one, what is sent, and what lies beside a model."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hub_lab import Lab
from small_hub_model import write_model

from hfbench.errors import HfbenchError, UsageError
from hfbench.hub import push as pushing
from hfbench.hub.client import HubClient
from hfbench.hub.endpoints import endpoint
from hfbench.hub.pull import pull
from hfbench.hub.push import PushWish, Refused, push
from hfbench.hub.pushing.artifacts import artifacts_of
from hfbench.hub.pushing.facts import Pushed
from hfbench.hub.refusals import HubError, NoSuchRevision, NotVisible
from hfbench.jobs.run import Run

TOKEN = "hf_" + "a1B2" * 10
_numbers = count()


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_model(tmp_path / "model")


@pytest.fixture
def repo(lab_settings: Lab) -> str:
    """A name no other test pushes to."""
    return f"lab:team/pushed{next(_numbers)}"


def pushed(folder: Path | None, repo: str, **more: Any) -> Pushed:
    what = PushWish(**{name: more.pop(name) for name in list(more) if name in PushWish.__dataclass_fields__})
    return push(folder, repo, Run(), what=what, **more)


def states(done: Pushed) -> dict[str, str]:
    return {each.path: each.state for each in done.files}


def test_a_model_goes_up_and_comes_back_byte_for_byte(model: Path, repo: str, tmp_path: Path) -> None:
    done = pushed(model, repo, create=True, private=True)
    assert done.created
    assert set(states(done).values()) == {"new"}
    assert len(done.commit) == 40
    assert done.commit in done.commit_url
    back = pull(repo, Run(), cache=tmp_path / "cache")
    assert back.commit == done.commit
    for path in model.iterdir():
        assert (Path(back.folder) / path.name).read_bytes() == path.read_bytes()
    assert HubClient(endpoint("lab")).info(done.repo).private


def test_a_second_push_sends_what_changed_and_nothing_else(model: Path, repo: str) -> None:
    first = pushed(model, repo, create=True)
    again = pushed(model, repo)
    assert (again.changed_bytes, again.commit, again.commit_url) == (0, first.commit, "")
    (model / "generation_config.json").write_text('{"do_sample": false}')
    third = pushed(model, repo, message="Greedy by default")
    assert {path for path, state in states(third).items() if state != "unchanged"} == {"generation_config.json"}
    assert third.changed_bytes == len('{"do_sample": false}')
    assert third.commit != first.commit


def test_a_dry_run_sends_nothing(model: Path, repo: str) -> None:
    told = pushed(model, repo, create=True, dry_run=True)
    assert told.changed_bytes == told.bytes > 0
    with pytest.raises(NotVisible, match="--create makes it"):
        pushed(model, repo)


def test_what_the_check_calls_an_error_refuses_the_push_unless_it_is_forced(model: Path, repo: str) -> None:
    shard = model / "model-00002-of-00002.safetensors"
    shard.write_bytes(shard.read_bytes()[:-100])
    with pytest.raises(Refused, match=r"nothing was pushed: model-00002-of-00002\.safetensors: HB\d+ .*--force"):
        pushed(model, repo, create=True)
    assert pushed(model, repo, create=True, force=True).commit


def test_findings_about_what_is_left_out_refuse_nothing(model: Path, repo: str) -> None:
    (model / "tokenizer.json").write_text("{")
    with pytest.raises(Refused, match=r"tokenizer\.json"):
        pushed(model, repo, create=True)
    assert "tokenizer.json" not in states(pushed(model, repo, create=True, exclude=("tokenizer.*",)))


def test_a_model_without_card_or_licence_is_warned_of_and_refused_when_strict(model: Path, repo: str) -> None:
    (model / "README.md").write_text("# Small\n")
    with pytest.raises(Refused, match="no licence is named"):
        pushed(model, repo, create=True, strict=True)
    done = pushed(model, repo, create=True)
    assert any("no licence is named" in each.text for each in done.concerns)
    (model / "README.md").unlink()
    (model / "LICENSE").write_text("MIT")
    assert any("no model card" in each.text for each in pushed(model, repo).concerns)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (".env", "HOME=/root"),
        ("deploy/.env.prod", "x=1"),
        ("notes.txt", f"export HF_TOKEN={TOKEN}"),
        ("key.txt", "-----BEGIN OPENSSH PRIVATE KEY-----\nabc"),
        ("config/aws.json", '{"key": "AKIA' + "ABCDEFGHIJKLMNOP" + '"}'),
        ("train.py", 'token = "hfb_' + "x" * 43 + '"'),
        ("id_rsa", "x"),
    ],
)
def test_secrets_refuse_a_push_even_if_it_is_forced_and_are_not_repeated(
    model: Path, repo: str, name: str, content: str
) -> None:
    (model / name).parent.mkdir(exist_ok=True)
    (model / name).write_text(content)
    with pytest.raises(Refused, match="nothing was pushed") as refused:
        pushed(model, repo, create=True, force=True)
    assert name in str(refused.value)
    assert TOKEN not in str(refused.value)
    assert [each.severity for each in refused.value.concerns] == ["secret"]


def test_words_that_only_look_like_secrets_refuse_nothing(model: Path, repo: str) -> None:
    (model / "notes.txt").write_text("hf_hub_download hf_model sk-learn AKIA .env PRIVATE KEY token=")
    (model / ".env.example").write_text("HF_TOKEN=")
    assert pushed(model, repo, create=True).commit


def test_a_link_out_of_the_folder_is_not_pushed(model: Path, repo: str, tmp_path: Path) -> None:
    (tmp_path / "private.json").write_text("{}")
    (model / "extra.json").symlink_to(tmp_path / "private.json")
    with pytest.raises(HfbenchError, match=r"extra\.json: cannot be pushed: a link"):
        pushed(model, repo, create=True)


def test_a_snapshot_of_the_cache_can_be_pushed(model: Path, repo: str, tmp_path: Path) -> None:
    pushed(model, repo, create=True)
    snapshot = Path(pull(repo, Run(), cache=tmp_path / "cache").folder)
    done = pushed(snapshot, f"lab:team/pushed{next(_numbers)}", create=True)
    assert done.changed_bytes == sum(path.stat().st_size for path in model.iterdir())


@pytest.mark.parametrize("others", ["other.txt", "generation_config.json"])
def test_a_commit_that_came_between_is_built_on_unless_it_touched_the_same_files(
    model: Path, repo: str, monkeypatch: pytest.MonkeyPatch, others: str
) -> None:
    pushed(model, repo, create=True)
    (model / "generation_config.json").write_text("{}")
    looked = pushing._looked_at

    def then_another(client: HubClient, *told: Any, **more: Any) -> Any:
        target = looked(client, *told, **more)
        client.api().upload_file(repo_id=target.repo, path_in_repo=others, path_or_fileobj=b"first")
        return target

    monkeypatch.setattr(pushing, "_looked_at", then_another)
    if others == "other.txt":
        done = pushed(model, repo)
        held = {each.path for each in HubClient(endpoint("lab")).files(done.repo, done.commit)}
        assert {"other.txt", "generation_config.json"} <= held, "what the others committed is still there"
    else:
        with pytest.raises(HubError, match="somebody else committed while this was being pushed"):
            pushed(model, repo)
    monkeypatch.undo()


def test_a_reader_and_a_stranger_are_told_why_they_may_not_push(
    model: Path, repo: str, lab_settings: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    pushed(model, repo, create=True)
    (model / "generation_config.json").write_text("{}")
    monkeypatch.setenv("LAB_TOKEN", lab_settings.hub.reader)
    with pytest.raises(HubError, match="the variable LAB_TOKEN"):
        pushed(model, repo)
    monkeypatch.setenv("LAB_TOKEN", lab_settings.hub.stranger)
    with pytest.raises(HubError):
        pushed(model, f"lab:team/pushed{next(_numbers)}", create=True)


def test_a_branch_is_pushed_to_beside_main(model: Path, repo: str) -> None:
    first = pushed(model, repo, create=True, revision="next")
    (model / "generation_config.json").write_text("{}")
    with pytest.raises(NoSuchRevision, match="--create makes the branch"):
        pushed(model, repo, revision="third")
    assert pushed(model, repo, revision="third", create=True).commit
    client = HubClient(endpoint("lab"))
    assert client.info(first.repo, "next").commit == first.commit
    assert "config.json" not in {each.path for each in client.files(first.repo, "main")}


def test_artifacts_lie_beside_the_model_and_are_found(model: Path, repo: str, tmp_path: Path) -> None:
    base = pushed(model, repo, create=True)
    engine = tmp_path / "engine"
    engine.mkdir()
    (engine / "rank0.engine").write_bytes(b"\0plan" * 1000)
    (engine / "config.json").write_text("{}")
    report = tmp_path / "report.json"
    report.write_text(json.dumps({"verdict": "proven"}))
    done = pushed(None, repo, artifacts=(f"engine:{engine}", f"report:{report}"))
    assert all(path.startswith(("engines/", "reports/")) for path in states(done))
    _, found = artifacts_of(HubClient(endpoint("lab")), base.repo, "main")
    told = {(each.kind, each.name, each.files, each.made_for) for each in found}
    assert told == {("engine", "engine", 2, base.commit), ("report", "report.json", 1, base.commit)}
    again = pushed(None, repo, artifacts=(f"engine:{engine}",))
    assert (again.changed_bytes, again.commit_url) == (0, "")
    copy = tmp_path / "copy"
    shutil.copytree(engine, copy)
    assert pushed(None, repo, artifacts=(f"engine:{copy}",)).artifacts == again.artifacts, "content names it"
    fetched = pull(repo, Run(), cache=tmp_path / "cache")
    assert not [each.path for each in fetched.files if each.path.startswith(("engines/", "reports/"))]


def test_an_artifact_that_is_none_is_refused(repo: str, model: Path, tmp_path: Path) -> None:
    pushed(model, repo, create=True)
    for given in ("engine", "film:/tmp", f"engine:{tmp_path}/nothing", "engine:~nosuch"):
        with pytest.raises(UsageError):
            pushed(None, repo, artifacts=(given,))


def test_the_command_tells_the_commit_and_the_warnings(
    model: Path, repo: str, hfbench: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    (model / "README.md").write_text("# Small\n")
    done = hfbench("push", model, repo, "--create")
    assert done.returncode == 0, done.stderr
    assert "7 files" in done.stdout or "6 files" in done.stdout
    assert "/commit/" in done.stdout
    assert "no licence is named" in done.stdout
    listed = hfbench("hub", "artifacts", repo, "--json")
    assert json.loads(listed.stdout)["artifacts"] == []


def test_a_name_that_is_no_text_is_told_in_words(model: Path, repo: str) -> None:
    (model / os.fsdecode(b"b\xff")).write_text("x")
    with pytest.raises(HfbenchError, match="cannot be pushed: its name is not UTF-8"):
        pushed(model, repo, create=True)
