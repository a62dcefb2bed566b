"""Builds the wheel, installs it alone in a clean venv, and paints a first frame in a pseudo-terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import tempfile
import termios
import time
import venv
from pathlib import Path

READY = b"Models"
PATIENCE = 60.0


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        subprocess.run(
            [sys.executable, "-m", "build", "--wheel", "--outdir", here, "."], check=True, stdout=subprocess.DEVNULL
        )
        (wheel,) = here.glob("*.whl")
        venv.create(here / "venv", with_pip=True)
        python = here / "venv" / "bin" / "python"
        subprocess.run([python, "-m", "pip", "install", "--quiet", wheel], check=True)
        heavy = subprocess.run([python, "-c", "import torch"], capture_output=True, check=False)
        assert heavy.returncode != 0, "the base install must not bring torch"
        page = subprocess.run([python, "-m", "hfbench", "docs", "read", "index"], check=True, capture_output=True)
        assert page.stdout.startswith(b"# hfbench"), "the pages of the documentation are not in the wheel"
        frame, status = paint(here / "venv" / "bin" / "hfbench", here / "home")
        assert READY in frame, f"no first frame; the terminal got {frame[-800:]!r}"
        assert b"Traceback" not in frame, frame.decode(errors="replace")
        assert status == 0, f"leaving with q gave exit status {status}"
    print(f"wheel: a first frame of {len(frame)} bytes without torch, and a clean exit")
    return 0


def paint(program: Path, home: Path) -> tuple[bytes, int]:
    """Everything the program draws until it shows its first screen, and how it ends when asked to quit."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(TERM="xterm-256color", HFBENCH_HOME=str(home), HOME=str(home))
        os.execv(program, [str(program)])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    frame, asked, end = b"", False, time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if select.select([terminal], [], [], 0.5)[0]:
            try:
                frame += os.read(terminal, 65536)
            except OSError:  # the program closed its side
                break
        elif READY in frame and not asked:
            os.write(terminal, b"q")
            asked = True
    return frame, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


if __name__ == "__main__":
    sys.exit(main())
