"""The files of the model's folder, as they lie on disk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from hfbench.models.files import ModelFile
from hfbench.screens.model_tabs.base import RecordTab
from hfbench.screens.model_view import ModelView
from hfbench.units import show_bytes
from hfbench.widgets.facts_lines import Fact
from hfbench.widgets.record_columns import Column
from hfbench.widgets.record_rows import Record


class FilesTab(RecordTab):
    """Every file with its size; a link is told with what it leads to."""

    title: ClassVar[str] = "Files"
    columns = (
        Column("name", "Name", flexible=True, min=20, max=60, middle=True),
        Column("kind", "Kind", priority=1),
        Column("size", "Size", align="right"),
        Column("note", "Note", priority=2, flexible=True, min=10, max=80, middle=True),
    )
    empty = "the folder holds no files"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._files: dict[str, ModelFile] = {}

    def show(self, view: ModelView) -> None:
        """The listing does not change while weights are read: it is laid out once."""
        if view.files is None or list(self._files.values()) != list(view.files) or not view.reading:
            super().show(view)

    def records(self, view: ModelView) -> Sequence[Record]:
        """A row a file."""
        self._files = {file.name: file for file in view.files or ()}
        return [record_of(file) for file in self._files.values()]

    def facts(self) -> Sequence[Fact]:
        """Path, exact size and link."""
        file = self._files.get(self.current or "")
        if file is None:
            return ()
        told = [Fact("path", str(file.path)), Fact("size", f"{file.bytes:,} bytes ({show_bytes(file.bytes)})")]
        told += [Fact("link to", file.target)] if file.target else []
        return [*told, Fact("problem", file.problem, "error")] if file.problem else told

    def copied(self) -> str:
        """The path."""
        file = self._files.get(self.current or "")
        return str(file.path) if file else ""


def record_of(file: ModelFile) -> Record:
    """A file as a row; a fault stands where the link would."""
    note = file.problem or (f"-> {file.target}" if file.target else "")
    return Record(
        file.name,
        {"name": file.name, "kind": file.kind, "size": show_bytes(file.bytes), "note": note},
        states={"note": "error" if file.problem else "muted"},
        order={"size": file.bytes},
    )
