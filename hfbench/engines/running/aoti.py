"""Drives AOTInductor packages: both programs read one copy of the weights, and check every input they get."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from hfbench.engines.builders.aoti import ALIASES, PACKAGE, WEIGHTS
from hfbench.engines.manifest import Manifest
from hfbench.engines.programs import read_form

CHECK_INPUTS = "AOTI_RUNTIME_CHECK_INPUTS"
"""Without it a program reads beyond an input of another shape, and answers or ends the process."""


def open_steps(folder: Path, manifest: Manifest, device: Any, threads: int) -> AotiSteps:
    """Load the programs and give them the weights, which stay mapped from their file on the CPU."""
    return AotiSteps(folder, manifest, device)


class AotiSteps:
    """The programs of a package over one static cache."""

    def __init__(self, folder: Path, manifest: Manifest, device: Any) -> None:
        os.environ[CHECK_INPUTS] = "1"
        import torch
        from safetensors import safe_open
        from torch._inductor.package import load_package

        self._batch, self._device = manifest.shapes.batch, device
        self._keys, self._values = read_form(folder).zeros(device)
        self._position = torch.zeros((), dtype=torch.long, device=device)
        self._token = torch.zeros(self._batch, 1, dtype=torch.long, device=device)
        index = device.index if device.type == "cuda" else -1
        self._programs = {
            name: load_package(str(folder / PACKAGE), name, device_index=index)
            for name in manifest.options["programs"].split(", ")
        }
        with safe_open(folder / WEIGHTS, framework="pt", device=str(device)) as file:
            aliases: dict[str, str] = json.loads((file.metadata() or {}).get(ALIASES, "{}"))
            kept = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - no mapping of its own
        self._weights = kept  # the programs hold no reference of their own
        for name, program in self._programs.items():
            named = {each: f"{name}/{each}" for each in program.get_constant_fqns()}
            constants = {each: kept[aliases.get(own, own)] for each, own in named.items()}
            program.load_constants(constants, check_full_update=True, user_managed=True)

    def prefill(self, ids: Any) -> Any:
        """Empty the cache and read prompts; a single token is a decode step."""
        import torch

        for each in (*self._keys, *self._values):
            each.zero_()
        if ids.shape[1] == 1:
            return self.step(ids, 0)
        own = torch.empty(tuple(ids.shape), dtype=torch.long, device=self._device)  # strides are checked as well
        return self._call("prefill", own.copy_(ids), 0)

    def step(self, tokens: Any, position: int) -> Any:
        """Logits after one more token."""
        return self._call("decode", self._token.copy_(tokens), position)

    def _call(self, name: str, ids: Any, position: int) -> Any:
        return self._programs[name](ids, self._position.fill_(position), self._keys, self._values)
