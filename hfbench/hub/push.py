"""Sends a folder to a hub: looked at first, only what changed, as one commit on top of the one that was seen."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hfbench.errors import HfbenchError, UsageError
from hfbench.hub.client import HubClient
from hfbench.hub.endpoints import endpoint as endpoint_of
from hfbench.hub.facts import HubFile
from hfbench.hub.pull import asked_for
from hfbench.hub.pushing.artifacts import LABEL, Parcel, parcel
from hfbench.hub.pushing.changes import Change, compared, files_to_push
from hfbench.hub.pushing.facts import Concern, Pushed, PushedFile
from hfbench.hub.pushing.precheck import concerns_about, secrets_in
from hfbench.hub.refusals import HubError, NoSuchRevision, NotVisible
from hfbench.jobs.run import Run
from hfbench.models.problem import counted
from hfbench.units import show_bytes

BATCH = 256 << 20
"""Bytes of files that are sent side by side, after which progress is told."""
STALE = 412
TRIES = 4
"""Commits that are tried where others commit other files at the same time."""
MAIN = "main"
SHOWN = 5


@dataclass(frozen=True, kw_only=True)
class PushWish:
    """What is to be sent and how strictly it is looked at."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    artifacts: tuple[str, ...] = ()
    force: bool = False
    """Push in spite of errors; never in spite of secrets."""
    strict: bool = False
    """Warnings refuse as errors do."""


class Refused(HfbenchError):
    """Something speaks against the push; `concerns` names each."""

    concerns: tuple[Concern, ...] = ()


@dataclass(slots=True)
class _Target:
    """Where it goes: the repository as it was when it was looked at."""

    client: HubClient
    repo: str
    revision: str
    commit: str = ""
    files: dict[str, HubFile] = field(default_factory=dict)
    absent: bool = False
    new_branch: bool = False


def push(
    folder: Path | None,
    model: str,
    run: Run,
    *,
    endpoint: str = "",
    revision: str = "",
    message: str = "",
    private: bool = False,
    create: bool = False,
    what: PushWish | None = None,
    dry_run: bool = False,
) -> Pushed:
    """Push a folder, artifacts beside the model, or both, and say what was done.

    Refused when something speaks against it, HubError and its kinds when the hub refuses.
    """
    what, began = what or PushWish(), time.monotonic()
    named, at, revision = asked_for(model, endpoint, revision)
    if folder is None and not what.artifacts:
        raise UsageError("nothing to push", remedy="give a folder, or --artifact KIND:PATH")
    client = HubClient(endpoint_of(at), warn=lambda text: run.log(text, "warning"))
    files = files_to_push(folder, what.include, what.exclude) if folder else []
    concerns = concerns_about(folder, files, model=True) if folder else []
    target = _looked_at(client, named.repo, revision, create=create)
    parcels = [parcel(each, target.commit) for each in what.artifacts]
    concerns += [found for each in parcels for found in secrets_in(each.folder, each.files)]
    _refuse(concerns, what)
    for each in concerns:
        run.log(f"{each.file}: {each.text}" if each.file else each.text, "warning")
    changes = compared(folder, files, target.files, run) if folder else []
    for each_parcel in parcels:
        changes += compared(each_parcel.folder, each_parcel.files, target.files, run, below=each_parcel.below)
    sent = [each for each in changes if each.state != "unchanged"]
    commit, url = target.commit, ""
    if not dry_run:
        _create(target, private=private)
        if sent:
            told = message or _message(folder, parcels)
            commit, url = _sent(target, sent, _labels(parcels, sent), told, run)
    return Pushed(
        folder=str(folder or ""),
        repo=named.repo,
        endpoint=client.endpoint.name,
        url=client.endpoint.url,
        revision=revision,
        files=tuple(PushedFile(path=each.path, bytes=each.file.bytes, state=each.state) for each in changes),
        bytes=sum(each.file.bytes for each in changes),
        changed_bytes=sum(each.file.bytes for each in sent),
        only_there=len(target.files.keys() - {each.path for each in changes}) if folder else 0,
        concerns=tuple(concerns),
        artifacts=tuple(each.below.rstrip("/") for each in parcels),
        created=(target.absent or target.new_branch) and not dry_run,
        commit=commit,
        commit_url=url,
        seconds=time.monotonic() - began,
        dry_run=dry_run,
    )


def _looked_at(client: HubClient, repo: str, revision: str, *, create: bool) -> _Target:
    """The repository as it is; NotVisible where it is not there and is not to be made."""
    new_branch = False
    try:
        commit = client.info(repo, revision).commit
    except NotVisible as error:
        if create:
            return _Target(client, repo, revision, absent=True, new_branch=revision != MAIN)
        raise NotVisible(error.found, where=error.where, remedy=f"{error.remedy}; --create makes it") from error
    except NoSuchRevision as error:
        if not create:
            raise NoSuchRevision(
                error.found, where=error.where, remedy="--create makes the branch from main"
            ) from error
        commit, new_branch = client.info(repo, MAIN).commit, True
    files = {each.path: each for each in client.files(repo, commit)}
    return _Target(client, repo, revision, commit, files, new_branch=new_branch)


def _refuse(concerns: Sequence[Concern], what: PushWish) -> None:
    """Refused for secrets, for errors unless forced, for warnings if strict."""
    secrets = [each for each in concerns if each.severity == "secret"]
    against = [each for each in concerns if each.severity == "error" or (what.strict and each.severity == "warning")]
    if not secrets and (not against or what.force):
        return
    shown = secrets or against
    told = "; ".join(f"{each.file}: {each.text}" if each.file else each.text for each in shown[:SHOWN])
    more = f"; and {len(shown) - SHOWN} more" if len(shown) > SHOWN else ""
    if secrets:
        error = Refused(f"nothing was pushed: {told}{more}", remedy="remove them, or leave them out with --exclude")
    else:
        error = Refused(f"nothing was pushed: {told}{more}", remedy="mend it, or push it as it is with --force")
    error.concerns = tuple(shown)
    raise error


def _create(target: _Target, *, private: bool) -> None:
    """Make what is missing: the repository, the branch."""
    api = target.client.api()
    with target.client.errors_of(target.repo):
        if target.absent:
            api.create_repo(target.repo, private=private, exist_ok=True)
        if target.new_branch:
            api.create_branch(target.repo, branch=target.revision, exist_ok=True)
    if target.absent:
        target.commit = target.client.info(target.repo, target.revision).commit


def _sent(target: _Target, sent: Sequence[Change], labels: dict[str, bytes], message: str, run: Run) -> tuple[str, str]:
    """Upload in batches, then commit; the commit and its page."""
    api = target.client.api()
    from huggingface_hub import CommitOperationAdd
    from huggingface_hub.utils import disable_progress_bars

    disable_progress_bars()
    total, done = sum(each.file.bytes for each in sent), 0
    run.log(f"{counted(len(sent), 'file')} to send, {show_bytes(total)}")
    operations: list[Any] = []
    where = {"repo_id": target.repo, "revision": target.revision}
    with target.client.errors_of(target.repo, target.revision):
        for batch in _batches(sent):
            added = [CommitOperationAdd(each.path, str(each.file.path)) for each in batch]
            run.progress("push", done, total, "B")
            api.preupload_lfs_files(additions=added, free_memory=False, **where)
            operations += added
            done += sum(each.file.bytes for each in batch)
        operations += [CommitOperationAdd(path, label) for path, label in labels.items()]
        run.progress("push", done, total, "B")
    for left in reversed(range(TRIES)):
        try:
            with target.client.errors_of(target.repo, target.revision):
                made = api.create_commit(
                    operations=operations, commit_message=message, parent_commit=target.commit, **where
                )
            return str(made.oid), str(made.commit_url)
        except HubError as error:
            if getattr(getattr(error.__cause__, "response", None), "status_code", 0) != STALE:
                raise
            if left and _went_on_elsewhere(target, operations):
                run.log("somebody else committed other files meanwhile: the commit is made on top of theirs", "warning")
                continue
            raise HubError(
                "somebody else committed while this was being pushed, and nothing of it was changed",
                where=error.where,
                remedy="push again: what was sent is there already",
            ) from error
    raise AssertionError("the last try returns or raises")


def _went_on_elsewhere(target: _Target, operations: Sequence[Any]) -> bool:
    """Whether each of these files is on the hub as it was when it was looked at, or is already what is pushed; the
    target is then at the new commit."""
    commit = target.client.info(target.repo, target.revision).commit
    files = {each.path: each for each in target.client.files(target.repo, commit)}
    for each in operations:
        there = files.get(each.path_in_repo)
        if there != target.files.get(each.path_in_repo) and not (there is not None and _is_content(each, there)):
            return False
    target.commit, target.files = commit, files
    return True


def _is_content(operation: Any, there: HubFile) -> bool:
    """Whether a file of the hub has the content of an upload."""
    if there.sha256 or there.size != operation.upload_info.size:
        return bool(there.sha256 == operation.upload_info.sha256.hex())
    with operation.as_file() as file:
        content = file.read()
    return git_sha1(content) == there.git_sha1


def git_sha1(content: bytes) -> str:
    """What git calls a file of this content."""
    return hashlib.sha1(f"blob {len(content)}\0".encode() + content, usedforsecurity=False).hexdigest()


def _batches(sent: Sequence[Change]) -> Iterator[list[Change]]:
    """Files in groups that are sent side by side."""
    batch: list[Change] = []
    for each in sent:
        if batch and sum(one.file.bytes for one in batch) + each.file.bytes > BATCH:
            yield batch
            batch = []
        batch.append(each)
    if batch:
        yield batch


def _labels(parcels: Sequence[Parcel], sent: Sequence[Change]) -> dict[str, bytes]:
    """The labels of artifacts of which something is new; one that is there already keeps its own."""
    paths = [each.path for each in sent]
    return {f"{each.below}{LABEL}": each.label for each in parcels if any(p.startswith(each.below) for p in paths)}


def _message(folder: Path | None, parcels: Sequence[Parcel]) -> str:
    what = [f"{folder.resolve().name}"] if folder else []
    what += [f"{each.kind} {each.fingerprint}" for each in parcels]
    return f"Push {', '.join(what)}"
