"""What a serve command is asked for, and one thing that was found about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Severity = Literal["ok", "note", "warning", "error"]


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Options in hfbench's own words; None and empty leave the server's default."""

    tp: int = 1
    pp: int = 1
    ep: int = 1
    max_len: int | None = None
    dtype: str = ""
    quantization: str = ""
    kv_dtype: str = ""
    trust_remote_code: bool = False
    memory_fraction: float | None = None
    max_seqs: int | None = None
    host: str = ""
    port: int | None = None


@dataclass(frozen=True, kw_only=True)
class ServeFinding:
    """One check: what it looked at, and the sentence. An `error` refuses the command."""

    check: str
    severity: Severity
    found: str
    remedy: str = ""
