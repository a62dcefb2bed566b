"""Reads stretches of a checkpoint's tensors, never a whole one."""

from __future__ import annotations

import os
from types import TracebackType
from typing import BinaryIO, Self

from hfbench.models.checkpoint import Checkpoint
from hfbench.models.columns import TensorInfo
from hfbench.models.files import open_regular
from hfbench.models.problem import ModelError
from hfbench.models.remote_mark import refuse_headers_only

MOST_OPEN = 16
"""Files kept open a reader."""


class Weights:
    """Reads stretches of a checkpoint's tensors; closes its files when left. One thread may use it.

    WeightsAbsent for a model whose weights were left on a hub.
    """

    def __init__(self, checkpoint: Checkpoint) -> None:
        refuse_headers_only(checkpoint.folder, "reading values")
        self.folder = checkpoint.folder
        self.starts = {shard.name: shard.header_bytes for shard in checkpoint.shards}
        self.files: dict[str, BinaryIO] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for file in self.files.values():
            file.close()

    def read(self, tensor: TensorInfo, begin: int, end: int) -> bytearray:
        """Bytes of a tensor counted from its first; fewer at its end. ModelError when the file does not give them."""
        found = bytearray(max(0, min(end, tensor.bytes) - begin))
        self.fill(memoryview(found), tensor.shard, tensor.begin + begin)
        return found

    def fill(self, room: memoryview, shard: str, begin: int) -> None:
        """Fill the room with a shard's data from byte `begin` on. ModelError when the file does not give so much."""
        place = self.starts[shard] + begin
        try:
            while room:
                got = os.preadv(self._file(shard).fileno(), [room], place)
                if not got:
                    raise ModelError("st_truncated", "ends before its last tensor", where=shard)
                room, place = room[got:], place + got
        except OSError as error:
            raise ModelError("unreadable", f"cannot be read ({error.strerror})", where=shard) from None

    def _file(self, shard: str) -> BinaryIO:
        if shard not in self.files:
            if len(self.files) == MOST_OPEN:
                self.files.pop(next(iter(self.files))).close()
            self.files[shard] = open_regular(self.folder / shard, self.folder)
        return self.files[shard]
