"""Stock huggingface_hub, with and without Xet, against a hub in a process of its own, on both databases."""

from __future__ import annotations

import filecmp
import io
import json
import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hub_process import HubProcess

NewRepo = Callable[..., str]
MIB = 1 << 20


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that looks like a model: text, an empty file, a folder in it, and weights of 5 MiB."""
    folder = tmp_path_factory.mktemp("model")
    weights = random.Random(0).randbytes(5 * MIB)
    header = json.dumps(
        {"w": {"dtype": "BF16", "shape": [len(weights) // 2], "data_offsets": [0, len(weights)]}}
    ).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + weights)
    (folder / "config.json").write_text('{"model_type": "llama", "architectures": ["LlamaForCausalLM"]}')
    (folder / "README.md").write_text("---\nlicense: mit\ntags: [tiny]\n---\n# A model\n")
    (folder / "notes").mkdir()
    (folder / "notes" / "empty.txt").write_text("")
    (folder / "notes" / "ünï 1.txt").write_text("text")
    return folder


@pytest.fixture(params=["xet", "lfs"])
def api(request: pytest.FixtureRequest, hub: HubProcess, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The stock client of the writer; `lfs` is the one without hf-xet, which sends weights in parts here."""
    from huggingface_hub import HfApi, constants

    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", request.param == "lfs")
    return HfApi(endpoint=hub.url, token=hub.writer)


def test_a_folder_goes_up_and_comes_back_byte_for_byte(
    api: Any, hub: HubProcess, model: Path, tmp_path: Path, new_repo: NewRepo
) -> None:
    repo = new_repo(hub)
    api.upload_folder(repo_id=repo, folder_path=model)
    back = Path(api.snapshot_download(repo, local_dir=tmp_path / "back"))
    names = [str(path.relative_to(model)) for path in model.rglob("*") if path.is_file()]
    assert filecmp.cmpfiles(model, back, names, shallow=False) == (names, [], [])
    info = api.model_info(repo, files_metadata=True)
    assert info.safetensors.parameters == {"BF16": 5 * MIB // 2}
    assert {"license:mit", "tiny", "safetensors", "llama"} <= set(info.tags)
    assert api.get_safetensors_metadata(repo).parameter_count == {"BF16": 5 * MIB // 2}
    before = len(api.list_repo_commits(repo))
    api.upload_folder(repo_id=repo, folder_path=model)
    assert len(api.list_repo_commits(repo)) == before, "the same folder again is no commit"


def test_content_that_is_known_is_not_sent_again(api: Any, hub: HubProcess, model: Path, new_repo: NewRepo) -> None:
    first, second = new_repo(hub), new_repo(hub)
    api.upload_file(repo_id=first, path_or_fileobj=model / "model.safetensors", path_in_repo="a.safetensors")
    before = received(hub)
    api.upload_file(repo_id=second, path_or_fileobj=model / "model.safetensors", path_in_repo="b.safetensors")
    assert received(hub) - before < 100_000
    assert api.get_paths_info(second, "b.safetensors")[0].size == (model / "model.safetensors").stat().st_size


def test_branches_tags_copies_and_deletions(api: Any, hub: HubProcess, new_repo: NewRepo, tmp_path: Path) -> None:
    from huggingface_hub import CommitOperationCopy, CommitOperationDelete
    from huggingface_hub.errors import HfHubHTTPError, RemoteEntryNotFoundError, RevisionNotFoundError

    repo = new_repo(hub)
    api.upload_file(repo_id=repo, path_or_fileobj=b"\0binary" * 1000, path_in_repo="a/x.bin")
    api.create_branch(repo, branch="feat/x")
    with pytest.raises(HfHubHTTPError, match="409"):
        api.create_branch(repo, branch="feat/x")
    api.upload_file(repo_id=repo, path_or_fileobj=io.BytesIO(b"\0other"), path_in_repo="y.bin", revision="feat/x")
    api.create_tag(repo, tag="v1", revision="feat/x")
    assert api.file_exists(repo, "y.bin", revision="v1")
    assert not api.file_exists(repo, "y.bin")
    api.create_commit(
        repo, [CommitOperationCopy("a/x.bin", "b/x.bin"), CommitOperationDelete("a/")], commit_message="m"
    )
    assert [entry.path for entry in api.list_repo_tree(repo, recursive=True)] == ["b", "b/x.bin"]
    got = api.hf_hub_download(repo, "b/x.bin", cache_dir=tmp_path)
    assert Path(got).read_bytes() == b"\0binary" * 1000
    with pytest.raises(RevisionNotFoundError):
        api.hf_hub_download(repo, "x", revision="none", cache_dir=tmp_path)
    with pytest.raises(RemoteEntryNotFoundError):
        api.hf_hub_download(repo, "none", cache_dir=tmp_path)
    names = {(ref.name, ref.ref) for ref in api.list_repo_refs(repo).branches}
    assert names == {("main", "refs/heads/main"), ("feat/x", "refs/heads/feat/x")}
    last = api.get_paths_info(repo, "b/x.bin", expand=True)[0].last_commit
    assert (last.title, last.oid) == ("m", api.model_info(repo).sha)


def test_a_model_that_was_moved_is_found_under_its_old_name_until_it_is_deleted(
    api: Any, hub: HubProcess, model: Path, tmp_path: Path, new_repo: NewRepo
) -> None:
    from huggingface_hub.errors import RepositoryNotFoundError

    old, new = new_repo(hub), f"writer/{new_repo(hub).partition('/')[2]}-moved"
    api.upload_folder(repo_id=old, folder_path=model)
    api.move_repo(old, new)
    assert api.model_info(old).id == new
    assert filecmp.cmp(api.hf_hub_download(old, "config.json", cache_dir=tmp_path), model / "config.json")
    assert api.create_repo(old, exist_ok=True).repo_id == new, "who uploads by the old name makes no second model"
    (tmp_path / "more.bin").write_bytes(random.Random(old).randbytes(2 * MIB))
    api.upload_file(repo_id=old, path_or_fileobj=tmp_path / "more.bin", path_in_repo="more.bin")
    assert "more.bin" in api.list_repo_files(new)
    with pytest.raises(RepositoryNotFoundError):
        api.delete_repo(old)
    api.update_repo_settings(new, private=True)
    with pytest.raises(RepositoryNotFoundError):
        type(api)(endpoint=hub.url, token=hub.stranger).model_info(old)
    api.delete_repo(new)
    with pytest.raises(RepositoryNotFoundError):
        api.model_info(old)
    assert api.create_repo(old).repo_id == old


def test_a_dataset_and_a_move(api: Any, hub: HubProcess, tmp_path: Path) -> None:
    api.create_repo("team/data", repo_type="dataset", exist_ok=True)
    api.upload_file(repo_id="team/data", path_or_fileobj=b"a,b\n", path_in_repo="x.csv", repo_type="dataset")
    api.move_repo("team/data", "team/moved", repo_type="dataset")
    assert "team/moved" in [each.id for each in api.list_datasets(author="team")]
    got = api.hf_hub_download("team/moved", "x.csv", repo_type="dataset", cache_dir=tmp_path)
    assert Path(got).read_text() == "a,b\n"
    api.delete_repo("team/moved", repo_type="dataset")
    assert not api.repo_exists("team/moved", repo_type="dataset")


def test_gated_and_private_are_told_apart(api: Any, hub: HubProcess, new_repo: NewRepo, tmp_path: Path) -> None:
    from huggingface_hub import HfApi
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError

    repo = new_repo(hub)
    api.upload_file(repo_id=repo, path_or_fileobj=b"{}", path_in_repo="config.json")
    api.update_repo_settings(repo, gated="manual")
    stranger = HfApi(endpoint=hub.url, token=hub.stranger)
    with pytest.raises(GatedRepoError):
        stranger.hf_hub_download(repo, "config.json", cache_dir=tmp_path / "1")
    api.grant_access(repo, "stranger")
    assert stranger.hf_hub_download(repo, "config.json", cache_dir=tmp_path / "2")
    api.update_repo_settings(repo, private=True, gated=False)
    for token in (hub.stranger, False):
        with pytest.raises(RepositoryNotFoundError):
            HfApi(endpoint=hub.url, token=token).hf_hub_download(repo, "config.json", cache_dir=tmp_path / "3")


def received(hub: HubProcess) -> int:
    """Bytes of bodies the hub has taken in."""
    with hub.client(hub.admin) as client:
        lines = client.get("/metrics").text.splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("hfbench_registry_received_bytes_total ")))
