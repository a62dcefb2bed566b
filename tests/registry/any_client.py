"""What any version of huggingface_hub has to be able to do with the hub; run by the Python of that version alone."""

import filecmp
import sys
from pathlib import Path

from huggingface_hub import CommitOperationDelete, HfApi
from huggingface_hub.utils import HfHubHTTPError


def status_of(work):
    """What the hub refused some work with."""
    try:
        work()
    except HfHubHTTPError as error:
        return error.response.status_code
    return 200


def main(repo: str, folder: str, scratch: str) -> None:
    api = HfApi()
    assert api.whoami()["name"] == "writer"
    url = api.create_repo(repo, exist_ok=True)
    assert url.repo_id == repo, url
    api.create_repo(repo, exist_ok=True)
    api.upload_folder(repo_id=repo, folder_path=folder)
    names = sorted(str(path.relative_to(folder)) for path in Path(folder).rglob("*") if path.is_file())
    found = sorted(name for name in api.list_repo_files(repo) if name != ".gitattributes")
    assert found == names, (found, names)
    for way in ({"cache_dir": f"{scratch}/cache"}, {"local_dir": f"{scratch}/local"}):
        back = api.snapshot_download(repo, **way)
        same = filecmp.cmpfiles(folder, back, names, shallow=False)
        assert same == (names, [], []), same
    commits = len(api.list_repo_commits(repo))
    api.create_branch(repo, branch="feat/x")
    api.create_tag(repo, tag="v1")
    api.upload_file(repo_id=repo, path_or_fileobj=b"\0new", path_in_repo="sub dir/n.bin", revision="feat/x")
    assert api.file_exists(repo, "sub dir/n.bin", revision="feat/x")
    api.create_commit(repo, [CommitOperationDelete("notes/")], commit_message="less")
    assert len(api.list_repo_commits(repo)) == commits + 1
    info = api.model_info(repo, files_metadata=True)
    sizes = {each.rfilename: each.size for each in info.siblings}
    assert sizes["model.safetensors"] == Path(folder, "model.safetensors").stat().st_size
    assert repo in [each.id for each in api.list_models(search=repo.partition("/")[2])]
    assert api.get_safetensors_metadata(repo).parameter_count == {"BF16": 1 << 20}
    for wrong in ("none", "notes/x.txt"):
        assert status_of(lambda wrong=wrong: api.hf_hub_download(repo, wrong, cache_dir=f"{scratch}/cache")) == 404
    assert not api.repo_exists("team/there-is-none")
    assert status_of(lambda: api.create_branch(repo, branch="feat/x")) == 409
    api.delete_repo(repo)
    assert not api.repo_exists(repo)
    print("well")


if __name__ == "__main__":
    main(*sys.argv[1:])
