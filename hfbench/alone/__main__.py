"""Runs a module of hfbench in any Python: `python PATH_OF_THIS_FOLDER hfbench.worker DIR`."""

import os
import runpy
import sys

ALONE = os.path.dirname(os.path.abspath(__file__))

if __name__ == "__main__":
    sys.path[:] = [ALONE, *(path for path in sys.path if os.path.abspath(path or ".") != ALONE)]
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
