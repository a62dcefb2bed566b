"""toy.alone: tells what a worker can import, and what a child of it can."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from hfbench.actions.base import action
from hfbench.actions.params import param
from hfbench.beside import start_beside
from hfbench.jobs.run import Run


@dataclass(frozen=True)
class Alone:
    """Where hfbench was found, and which of the modules can be imported."""

    python: str
    package: str
    modules: tuple[str, ...]
    child: str
    cwd: str


@action("toy.alone", result=Alone, needs=("needed_by_toy",))
@dataclass(frozen=True, kw_only=True)
class LookAround:
    """Look around."""

    modules: tuple[str, ...] = param("Modules to look for", default=("textual", "yaml"))

    def perform(self, run: Run) -> Alone:
        import hfbench

        with start_beside("hfbench.worker") as child:  # which complains that no folder was given
            child.communicate()
        code = "import sys, hfbench; print(hfbench.__version__, *sys.path, sep='\\n')"
        environment = {"PYTHONPATH": __import__("hfbench.beside").beside.python_path()}
        told = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        found = [name for name in self.modules if importlib.util.find_spec(name)]
        return Alone(
            python=sys.executable,
            package=str(Path(hfbench.__file__).parent),
            modules=tuple(found),
            child=json.dumps([child.returncode, *told.stdout.splitlines()]),
            cwd=str(Path.cwd()),
        )
