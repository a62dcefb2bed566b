"""What a commit changes: puts and deletions laid over a tree, folder by folder."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from sqlalchemy.ext.asyncio import AsyncConnection

from hfbench.registry.errors import BadRequest, Refusal
from hfbench.registry.names import twins
from hfbench.registry.revisions.entries import EMPTY, Entry, Tree, tree_of
from hfbench.registry.revisions.trees import Trees


@dataclass(slots=True)
class Changes:
    """Changes of one folder: the last word on each name. Made by `put`, `delete` and `delete_folder` in their order."""

    cleared: bool = False
    files: dict[str, Entry | None] = field(default_factory=dict)
    """None is a deletion."""
    folders: dict[str, Changes] = field(default_factory=dict)

    def put(self, path: str, entry: Entry) -> None:
        """A file at a path; only the content of the entry counts."""
        folder, name = self._leaf(path)
        folder.files[name] = replace(entry, name=name)

    def delete(self, path: str) -> None:
        """No file at a path."""
        folder, name = self._leaf(path)
        if not folder.files.pop(name, None):
            folder.files[name] = None

    def delete_folder(self, path: str) -> None:
        """Nothing below a path."""
        folder, name = self._leaf(path.strip("/"))
        folder.folders[name] = Changes(cleared=True)

    def _leaf(self, path: str) -> tuple[Changes, str]:
        *parts, name = path.split("/")
        folder = self
        for part in parts:
            folder = folder.folders.setdefault(part, Changes())
        return folder, name

    def added(self, below: str = "") -> Iterator[tuple[str, Entry]]:
        """Every file that is put, with its path."""
        for name, entry in self.files.items():
            if entry is not None:
                yield f"{below}{name}", entry
        for name, folder in self.folders.items():
            yield from folder.added(f"{below}{name}/")


async def apply(changes: Changes, trees: Trees, connection: AsyncConnection, root: str) -> tuple[Tree, list[Tree]]:
    """The tree that changes make of a root tree, and all trees that are new. Refusal says which path is in the way."""
    made: list[Tree] = []
    tree = await _apply(changes, trees, connection, root, "", made)
    return tree, made


async def _apply(
    changes: Changes, trees: Trees, connection: AsyncConnection, id: str, below: str, made: list[Tree]
) -> Tree:
    before = await trees.load(connection, id)
    entries = {} if changes.cleared else dict(before.entries)
    for name, entry in changes.files.items():
        if entry is None:
            _remove(entries, name, below)
    for name, folder in changes.folders.items():
        there = entries.pop(name, None)
        if there is not None and not there.is_folder:
            raise BadRequest(f"{below}{name} is a file: nothing can be below it.")
        if folder.cleared and there is None and not folder.files and not folder.folders:
            raise _absent(f"{below}{name}/")
        tree = await _apply(folder, trees, connection, there.target if there else EMPTY.id, f"{below}{name}/", made)
        if tree.entries:
            entries[name] = Entry(name, tree.id, tree.git_id, is_folder=True)
    for name, entry in changes.files.items():
        if entry is not None:
            if (there := entries.get(name)) is not None and there.is_folder:
                raise BadRequest(f"{below}{name} is a folder: no file can have its name.")
            entries[name] = entry
    if entries.keys() - before.entries.keys() and (pair := twins(entries)):
        raise BadRequest(
            f"{below}{pair[0]} and {below}{pair[1]} differ only in their case: many machines could hold only one."
        )
    tree = tree_of(entries.values())
    if tree.id != id and tree.entries:
        made.append(tree)
    return tree


def _remove(entries: dict[str, Entry], name: str, below: str) -> None:
    there = entries.pop(name, None)
    if there is None:
        raise _absent(f"{below}{name}")
    if there.is_folder:
        raise BadRequest(f"{below}{name} is a folder: delete it as one.")


def _absent(path: str) -> Refusal:
    return Refusal(404, f"{path} does not exist and cannot be deleted.", code="EntryNotFound")
