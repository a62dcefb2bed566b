"""Tells by its first bytes what a file is when it is not what its name says."""

from __future__ import annotations

LOOK = 512
"""Bytes that `recognise` wants to see."""

LFS_POINTER = b"version https://git-lfs.github.com/spec/"

_STARTS: tuple[tuple[bytes, str], ...] = (
    (b"PK\x03\x04", "a zip archive, as torch.save writes (it may hold pickled code)"),
    (b"GGUF", "a GGUF file"),
    (b"\x80\x02", "a Python pickle (loading it would run its code)"),
    (b"\x80\x03", "a Python pickle (loading it would run its code)"),
    (b"\x80\x04", "a Python pickle (loading it would run its code)"),
    (b"\x80\x05", "a Python pickle (loading it would run its code)"),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"\x28\xb5\x2f\xfd", "a zstd archive"),
    (b"\xfd7zXZ\x00", "an xz archive"),
    (b"\x7fELF", "a program"),
    (b"#!", "a script"),
)


def is_lfs_pointer(head: bytes) -> bool:
    """True for the small text that git keeps in place of a file it has not fetched with git-lfs."""
    return head.startswith(LFS_POINTER)


def lfs_size(head: bytes) -> int | None:
    """The size in bytes of the file that a git-lfs pointer stands for, when it says so."""
    for line in head.split(b"\n"):
        if line.startswith(b"size ") and line[5:].strip().isdigit() and len(line) < 30:
            return int(line[5:])
    return None


def recognise(head: bytes) -> str | None:
    """What the file really is, as the end of "this is ..."; None when its start is like no known kind."""
    if is_lfs_pointer(head):
        return "a git-lfs pointer, not the file itself"
    for start, what in _STARTS:
        if head.startswith(start):
            return what
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if text.startswith((b"<!doctype", b"<html", b"<head", b"<body")):
        return "an HTML page, as a failed download leaves"
    if text.startswith(b"<?xml"):
        return "an XML page, as a refused download leaves"
    if text.startswith((b"{", b"[")):
        return "JSON text"
    return None
