"""Where things live: XDG folders, or everything below HFBENCH_HOME. Pure: whoever writes makes the folder."""

from __future__ import annotations

import os
from pathlib import Path

from hfbench.errors import MissingError

HOME = "HFBENCH_HOME"
SHARED_LEASES = Path("/tmp/hfbench-leases")
"""Not below TMPDIR, which schedulers set for each job: all users of a machine meet here."""

XDG = {
    "config": ("XDG_CONFIG_HOME", "~/.config"),
    "cache": ("XDG_CACHE_HOME", "~/.cache"),
    "jobs": ("XDG_DATA_HOME", "~/.local/share"),
    "state": ("XDG_STATE_HOME", "~/.local/state"),
}
"""A relative path in one of the variables is to be ignored, says the specification."""


def expand(text: str) -> Path:
    """The path with `~` for the home folder; a `~name` that is nobody's home stays as it is written."""
    return Path(os.path.expanduser(text))


def _root(kind: str) -> Path:
    if home := os.environ.get(HOME):
        return expand(home) / kind
    variable, usual = XDG[kind]
    told = os.environ.get(variable, "")
    return (Path(told) if os.path.isabs(told) else expand(usual)) / "hfbench"


def config_root() -> Path:
    """Folder of config.toml, key maps and user themes."""
    return _root("config")


def packaged_themes() -> Path:
    """The folder of themes that come with hfbench: inside the wheel, or beside the package in a checkout."""
    here = Path(__file__).resolve().parent
    for folder in (here / "themes", here.parent / "themes"):
        if folder.is_dir():
            return folder
    raise MissingError("the themes of hfbench are missing", where=here / "themes", remedy="install hfbench again")


def theme_folders() -> list[Path]:
    """Where theme files lie; a later folder's take the place of an earlier one's."""
    return [packaged_themes(), config_root() / "themes"]


def cache_root() -> Path:
    """Folder of what can be made again: the demo model, the job index."""
    return _root("cache")


def jobs_root() -> Path:
    """Folder of job directories: results are data and are never swept away as a cache."""
    return _root("jobs") if os.environ.get(HOME) else _root("jobs") / "jobs"


def sweeps_root() -> Path:
    """Folder of sweeps, beside the jobs: both are results."""
    return _root("sweeps") if os.environ.get(HOME) else _root("jobs") / "sweeps"


def baselines_root() -> Path:
    """Folder of measurements that were kept under a name."""
    return _root("baselines") if os.environ.get(HOME) else _root("jobs") / "baselines"


def state_root() -> Path:
    """Folder of where workbenches were left."""
    return _root("state")


def registry_root() -> Path:
    """Folder of this user's own hub: models are data."""
    return _root("registry") if os.environ.get(HOME) else _root("jobs") / "registry"


def remote_root() -> Path:
    """Folder of models on hubs that were opened without their weights, a folder an endpoint."""
    return _root("cache") / "remote"


def leases_root() -> Path:
    """Folder of device locks, one for the whole machine unless HFBENCH_HOME sets a private one."""
    if os.environ.get(HOME):
        return _root("leases")
    return SHARED_LEASES


def config_file() -> Path:
    """The user's configuration."""
    return config_root() / "config.toml"


def demo_model() -> Path:
    """The folder `hfbench demo` makes."""
    return cache_root() / "models" / "smollm2-135m-instruct"
