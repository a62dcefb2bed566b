"""CRC-32 as zip files want it, by whatever is quickest here."""

from __future__ import annotations

try:
    from zlib_ng.zlib_ng import crc32
except ImportError:  # thirteen times the CPU seconds, and the same value
    from zlib import crc32

__all__ = ["crc32"]
