"""How a file looks around the tensors it will hold, known before the first of them is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class FileLayout:
    """Every byte of a file but those of its tensors: it can be filled in any order, by several writers, and resumed.

    `path` is relative to the output folder. `begins` has the first byte of each tensor, by target name. `fixed` are
    stretches as (offset, bytes). `crc32_at` says where the CRC-32 of a tensor's bytes belongs (little-endian, 4
    bytes): zip files keep it in two places.
    """

    path: str
    size: int
    begins: Mapping[str, int]
    fixed: tuple[tuple[int, bytes], ...]
    crc32_at: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
