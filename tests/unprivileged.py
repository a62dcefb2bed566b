"""Starts a command without root's right to pass over permissions, so that a file without any is unreadable for it too.

`python tests/unprivileged.py COMMAND...`. The user stays the same: what root owns and may read by its mode stays so.
"""

from __future__ import annotations

import ctypes
import os
import sys

DAC_OVERRIDE, DAC_READ_SEARCH = 1, 2
"""Capabilities of Linux: to read, write and enter what no permission allows."""

REFUSED = 77

_ONCE = "UNPRIVILEGED"
_VERSION = 0x20080522
_CAPBSET_DROP = 24


class _Header(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]


class _Set(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint32) for name in ("effective", "permitted", "inheritable")]


def drop() -> None:
    """Give both rights up, for this process and all it starts; OSError when the kernel does not let us."""
    libc = ctypes.CDLL(None, use_errno=True)
    for right in (DAC_OVERRIDE, DAC_READ_SEARCH):  # a program started by root would get them back otherwise
        if libc.prctl(_CAPBSET_DROP, right, 0, 0, 0):
            raise OSError(ctypes.get_errno(), "cannot give up a capability")
    header, sets = _Header(_VERSION, 0), (_Set * 2)()
    if libc.capget(ctypes.byref(header), sets):
        raise OSError(ctypes.get_errno(), "cannot read the capabilities")
    kept = ~(1 << DAC_OVERRIDE | 1 << DAC_READ_SEARCH)
    for name in ("effective", "permitted", "inheritable"):
        setattr(sets[0], name, getattr(sets[0], name) & kept)
    if libc.capset(ctypes.byref(header), sets):
        raise OSError(ctypes.get_errno(), "cannot set the capabilities")


def main() -> int:
    """Become the command; 77 when that cannot be done."""
    try:
        drop()
        if os.environ.get(_ONCE):
            return REFUSED  # it was done before, and permissions did not bind
        os.execvpe(sys.argv[1], sys.argv[1:], {**os.environ, _ONCE: "1"})
    except OSError:
        return REFUSED


if __name__ == "__main__":
    sys.exit(main())
