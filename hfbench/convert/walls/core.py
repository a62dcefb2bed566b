"""megatron-core itself as a second judge: the checkpoint run at its own TP x PP by another environment's Python."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hfbench.beside import end_group
from hfbench.convert.formats.megatron_folder import RANK_FILES, MegatronFacts
from hfbench.convert.walls import mcore_ranks
from hfbench.convert.walls.asking import Judging, last_words
from hfbench.convert.walls.megatron_args import MegatronArgs
from hfbench.convert.walls.results import Core
from hfbench.environments import find
from hfbench.errors import HfbenchError, MissingError, UsageError
from hfbench.jobs.run import Run
from hfbench.units import show_elapsed

PATIENCE = 300.0
"""Seconds that importing megatron-core and torch may take, on a slow disk too."""
PROBE = "import megatron.core, torch; print(megatron.core.__version__)"
UNKNOWN = {
    "multi_latent_attention": "multi-latent attention",
    "embedding_scale": "a scaled embedding",
    "attn_logit_softcapping": "soft caps on logits",
    "final_logit_softcapping": "soft caps on logits",
    "post_norms": "norms behind attention and MLP",
    "rotary_base_local": "two rotary bases",
}
"""Arguments of models that megatron-core does not run on a CPU, in words."""


class Unloadable(HfbenchError):
    """The checkpoint does not fit the model that its arguments describe."""


def python_of(environment: str) -> Path:
    """The Python of an environment: a path, or a name of the configuration's `[environments]`.

    UsageError when there is neither, MissingError when it has no megatron-core.
    """
    found = find(environment)
    path = found.python
    if path is None:
        told = f"the environment {environment!r} is a command, and ranks of megatron-core are started here"
        raise UsageError(told, remedy="name one that has `python`")
    try:
        probe = subprocess.run(
            [path, "-I", "-c", PROBE], capture_output=True, text=True, check=False, cwd="/", timeout=PATIENCE
        )
    except subprocess.TimeoutExpired:
        raise MissingError(f"took longer than {show_elapsed(PATIENCE)} to import megatron-core", where=path) from None
    except OSError as error:
        raise MissingError(f"cannot be started: {error.strerror}", where=path) from error
    if probe.returncode:
        said = (probe.stderr.strip().splitlines() or ["it ended without a word"])[-1]
        remedy = f"install them with: {path} -m pip install torch megatron-core"
        raise MissingError(f"has no megatron-core and torch that can be imported ({said})", where=path, remedy=remedy)
    return path


def core_wall(
    judging: Judging, facts: MegatronFacts, sequences: Sequence[Sequence[int]], python: Path, limit: float, run: Run
) -> Core:
    """Logits of megatron-core against those of transformers, which the judging process kept from its last forward."""
    args = MegatronArgs(facts.args)
    told: dict[str, Any] = {"environment": str(python), "tp": args.tp, "pp": args.pp}
    odd = next((words for name, words in UNKNOWN.items() if args.get(name)), "")
    if odd:
        return Core(verdict="not asked", reason=f"megatron-core on a CPU does not run {odd}", **told)
    began = time.perf_counter()
    run.progress("forward megatron-core", 0, 1)
    with tempfile.TemporaryDirectory(prefix="hfbench-core-") as folder:
        logits = Path(folder) / "logits.pt"
        request = {
            "folder": str(facts.folder.absolute()),
            "format": facts.format,
            "file": rank_file(facts),
            "args": facts.args,
            "tp": args.tp,
            "pp": args.pp,
            "tokens": sequences,
            "logits": str(logits),
        }
        Path(folder, "request.json").write_text(json.dumps(request, default=str), encoding="utf-8")
        try:
            version = ranks_run(python, Path(folder, "request.json"))
            found = judging.ask("compare", file=str(logits))
        except Unloadable as error:
            return Core(verdict="differs", reason=str(error), seconds=time.perf_counter() - began, **told)
        except HfbenchError as error:
            return Core(verdict="could not", reason=str(error), seconds=time.perf_counter() - began, **told)
    run.progress("forward megatron-core", 1, 1)
    right = found["relative"] < limit and found["top5"] == 1.0
    figures = {name: found[name] for name in ("max_abs", "relative", "top5")}
    seconds = time.perf_counter() - began
    return Core(verdict="proven" if right else "differs", version=version, seconds=seconds, **figures, **told)


def ranks_run(python: Path, request: Path) -> str:
    """Run all ranks to their end; the version of megatron-core. HfbenchError with its last words when it fails."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "CUDA"))}
    environment |= {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "GLOO_SOCKET_IFNAME": "lo"}
    with tempfile.TemporaryFile() as said:
        child = subprocess.Popen(
            [python, "-I", mcore_ranks.__file__, request],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=said,
            env=environment,
            cwd="/",
            process_group=0,
        )
        try:
            out, _ = child.communicate()
        finally:
            end_group(child)
        if child.returncode == mcore_ranks.UNLOADABLE:
            raise Unloadable(f"megatron-core cannot load it: {last_words(said)}")
        if child.returncode:
            raise HfbenchError(f"megatron-core cannot run it: {last_words(said)}")
    return str(json.loads(out.splitlines()[-1])["version"])


def rank_file(facts: MegatronFacts) -> str:
    """The name of the file that each rank's folder has."""
    for name in RANK_FILES:
        if facts.ranks and (facts.folder / facts.ranks[0] / name).exists():
            return name
    return RANK_FILES[0]
