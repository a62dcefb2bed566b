"""Entry of the `hfbench` command: every way out of it leaves one sentence and the right exit code."""

from __future__ import annotations

import os
import sys

from hfbench.errors import HfbenchError
from hfbench.exits import Exit, complain


def main() -> int:
    """Run the command line; never a traceback for anything a user can cause."""
    from hfbench import cli

    try:
        code = cli.main(sys.argv[1:])
        sys.stdout.flush()
    except HfbenchError as error:
        complain(error)
        return int(error.exit)
    except KeyboardInterrupt:
        complain("interrupted")
        return Exit.INTERRUPTED
    except BrokenPipeError:
        # The reader of our output is gone. Point stdout away, so that the flush at exit stays quiet too.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.OK
    return code


if __name__ == "__main__":
    sys.exit(main())
