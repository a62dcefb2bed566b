"""The builder `aoti`: two AOTInductor programs of one model in a package, its weights once beside them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hfbench.engines.builders.base import Asked, Built, Making
from hfbench.engines.programs import Program, cache_form, in_place, write_form
from hfbench.errors import MissingError
from hfbench.models.reference import Location
from hfbench.units import show_bytes

if TYPE_CHECKING:
    from hfbench.gpu.generate_model import Loaded

PACKAGE, WEIGHTS = "engine.pt2", "weights.safetensors"
ALIASES = "aliases"
"""Key of the metadata of the weights: which tensors are another one by a second name."""

CODE_BYTES = 256 << 20
"""Room for compiled code and its sources."""

OPTIONS: dict[str, Any] = {
    "aot_inductor.package": True,
    "aot_inductor.package_constants_in_so": False,  # both programs share one copy of the weights
}
RESOLVED = (
    "max_autotune",
    "freezing",
    "cpp.simdlen",
    "cpp.dynamic_threads",
    "aot_inductor.compile_wrapper_opt_level",
    "aot_inductor.use_runtime_constant_folding",
    "fallback_random",
    "emulate_precision_casts",
)
"""Settings of Inductor that are recorded as they were."""


class Aoti:
    """AOTInductor: needs torch and a C++ compiler to build, and torch alone to run."""

    name = "aoti"
    summary = "AOTInductor package of prefill and decode over a static cache, for the CPU and CUDA"
    needs = ("torch", "transformers", "safetensors")
    runs_with = ("torch", "safetensors")
    extra = "torch"
    auto_dtype = "auto"

    def refuse(self, asked: Asked, location: Location) -> None:
        """Nothing is known to fail before the model is exported."""

    def space(self, asked: Asked, weight_bytes: int) -> int:
        """The weights once, and room for code."""
        return weight_bytes + CODE_BYTES

    def build(self, making: Making) -> Built:
        """Export both programs, compile them, and write package, weights and form of the cache."""
        from torch._inductor.package import package_aoti

        loaded, asked = making.load(), making.asked
        form = cache_form(loaded, asked)
        programs = in_place(loaded, asked, form)
        files, constants = {}, {}
        for done, program in enumerate(programs):
            making.run.progress("compile", done, len(programs))
            exported = export(program, making)
            constants[program.name] = _constants(exported)
            files[program.name] = _compiled(program, exported, making)
        making.run.progress("compile", len(programs), len(programs))
        package_aoti(str(making.folder / PACKAGE), files)
        _write_weights(making.folder / WEIGHTS, constants)
        write_form(making.folder, form)
        for name in (PACKAGE, WEIGHTS):
            making.log(f"{name}: {show_bytes((making.folder / name).stat().st_size)}")
        return Built(dtype=loaded.dtype, options=_resolved(loaded, programs))


def export(program: Program, making: Making) -> Any:
    """The program as torch.export traces it; HfbenchError with torch's reason when it cannot."""
    import torch

    making.log(f"exporting {program.name}")
    with making.translated(f"{program.name} does not export"), torch.no_grad():
        return torch.export.export(program.module, program.arguments, dynamic_shapes=program.dynamic, strict=False)


def _compiled(program: Program, exported: Any, making: Making) -> Any:
    import torch

    making.log(f"compiling {program.name}")
    with making.translated(f"{program.name} does not compile"), torch.no_grad():
        try:
            return torch._inductor.aot_compile(exported.module(), program.arguments, options=OPTIONS)
        except Exception as error:
            if "InvalidCxxCompiler" in f"{type(error).__name__} {error}":
                remedy = "install g++, or name one in CXX"
                raise MissingError("finds no C++ compiler", where="AOTInductor", remedy=remedy) from error
            raise


def _constants(exported: Any) -> dict[str, Any]:
    """Every tensor a compiled program may want to be given, by the name it asks for."""
    return {**dict(exported.constants), **dict(exported.state_dict)}


def _write_weights(path: Path, programs: dict[str, dict[str, Any]]) -> None:
    """One file for all programs: `decode/NAME` where a tensor belongs to one of them alone, no memory written twice."""
    from safetensors.torch import save_file

    kept: dict[str, Any] = {}
    aliases: dict[str, str] = {}
    first: dict[tuple[Any, ...], str] = {}
    for program, constants in programs.items():
        for name, tensor in constants.items():
            if not hasattr(tensor, "data_ptr"):
                continue  # objects of torch's own classes, which no safetensors file holds and no Llama has
            place = (tensor.data_ptr(), tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype)
            own = f"{program}/{name}"
            if tensor.numel() and place in first:
                aliases[own] = first[place]
                continue
            first[place] = own
            kept[own] = tensor.detach().contiguous()
    save_file(kept, str(path), metadata={ALIASES: json.dumps(aliases)})


def _resolved(loaded: Loaded, programs: list[Program]) -> dict[str, str]:
    import torch
    from torch._inductor import config

    settings = config.get_config_copy()
    found = {name: str(settings[name]) for name in RESOLVED if name in settings}
    found |= {name: str(value) for name, value in OPTIONS.items()}
    found["programs"] = ", ".join(program.name for program in programs)
    if loaded.device.type == "cpu":
        from torch._inductor.cpu_vec_isa import pick_vec_isa

        found["cpu_isa"] = str(pick_vec_isa())
        found["threads"] = str(torch.get_num_threads())
    return found


BUILDER = Aoti()
