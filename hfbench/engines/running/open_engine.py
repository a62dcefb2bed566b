"""Opening an engine that hfbench built: its files are whole, its shapes known, and its runtime is there."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hfbench.engines.builders.base import builder_of
from hfbench.engines.files import look_at_files
from hfbench.engines.manifest import MANIFEST, Manifest, engine_folder, read_told
from hfbench.engines.running.decoder import EngineDecoder
from hfbench.errors import HfbenchError, MissingError, UsageError

if TYPE_CHECKING:
    from hfbench.gpu.devices import Gpu


def open_engine(path: Path, *, gpu: Gpu | None, threads: int = 0) -> EngineDecoder:
    """A decoder of the engine in a folder, on the GPU or the CPU it was built for.

    UsageError when there is no manifest or it was built for another kind of device; HfbenchError for files that are
    not what was built; MissingError when its runtime is not installed.
    """
    folder = engine_folder(path)
    if folder is None:
        raise UsageError(f"holds no {MANIFEST}", where=path, remedy="give the folder of an engine that hfbench built")
    manifest = sealed_manifest(folder)
    refuse_damaged(folder, manifest)
    return decoder_of(folder, manifest, gpu=gpu, threads=threads)


def decoder_of(folder: Path, manifest: Manifest, *, gpu: Gpu | None, threads: int = 0) -> EngineDecoder:
    """The same for files that were just written."""
    import torch

    if not has_runner(manifest.builder):
        raise UsageError(f"engines of {manifest.builder} are not driven by hfbench", where=folder)
    _refuse_device(folder, manifest, gpu)
    if missing := [name for name in builder_of(manifest.builder).runs_with if importlib.util.find_spec(name) is None]:
        raise MissingError(
            f"an engine of {manifest.builder} needs {', '.join(missing)}, which this Python lacks",
            where=folder,
            remedy=f"install it with: pip install 'hfbench[{builder_of(manifest.builder).extra}]'",
        )
    runner = importlib.import_module(f"hfbench.engines.running.{manifest.builder}")
    device = torch.device("cpu") if gpu is None else torch.device("cuda", gpu.index)
    try:
        steps: Any = runner.open_steps(folder, manifest, device, threads or int(torch.get_num_threads()))
    except HfbenchError:
        raise  # our own, or a cancel that arrived here
    except Exception as error:
        from hfbench.gpu.generate_model import first_line

        found = f"the runtime of {manifest.builder} cannot load it: {first_line(error)}"
        raise HfbenchError(found, where=folder, remedy="hfbench engine check tells more") from error
    notes: tuple[str, ...] = getattr(steps, "notes", ())
    return EngineDecoder(steps, manifest.shapes, device, str(folder), notes=notes)


def sealed_manifest(folder: Path) -> Manifest:
    """The manifest of an engine; HfbenchError when it was edited after the engine was built."""
    told = read_told(folder)
    if not told.sealed:
        found = "was edited after the engine was built, so that nothing in it can be relied on"
        raise HfbenchError(found, where=folder / MANIFEST, remedy="undo the edit, or build the engine again")
    return told.manifest


def has_runner(builder: str) -> bool:
    """Whether engines of a builder are driven from here."""
    return importlib.util.find_spec(f"hfbench.engines.running.{builder}") is not None


def refuse_damaged(folder: Path, manifest: Manifest) -> None:
    """HfbenchError for the first file that is not what was built; hashes are remembered until a file changes."""
    for file in look_at_files(folder, manifest.files, hashing=True):
        if file.state != "right":
            raise HfbenchError(
                f"is not the file that was built: {file.here}",
                where=folder / file.name,
                remedy="copy the engine again, or build it again",
            )


def _refuse_device(folder: Path, manifest: Manifest, gpu: Gpu | None) -> None:
    built, here = manifest.built_on.gpu is not None, gpu is not None
    if built != here:
        kinds = {True: "a GPU", False: "the CPU"}
        raise UsageError(
            f"the engine was built for {kinds[built]}, and {kinds[here]} was chosen",
            where=folder,
            remedy="give --device cuda:0" if built else "give --device cpu",
        )
