"""The peer of converting to Megatron: mbridge loads a model into megatron-core on the CPU, torch.save writes it.

`mbridge_convert.py MODEL OUT`, with a Python that has mbridge; prints seconds and peak memory as JSON. mbridge expects
a GPU and transformers 4: what asks for either is taken out or set by hand. Weights are not initialised before they are
loaded, and are loaded one at a time, which takes over a third less memory than what mbridge does unless told.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from argparse import Namespace
from pathlib import Path
from typing import Any

BEGAN = time.perf_counter()
NO_FUSIONS = dict.fromkeys(
    (
        "bias_activation_fusion",
        "bias_dropout_fusion",
        "masked_softmax_fusion",
        "gradient_accumulation_fusion",
        "apply_rope_fusion",
        "persist_layer_norm",
    ),
    False,
)
"""Kernels that only a GPU has."""
NORMS = {
    "input_layernorm.weight": "model.layers.{}.input_layernorm.weight",
    "pre_mlp_layernorm.weight": "model.layers.{}.post_attention_layernorm.weight",
}
"""Where the layers without Transformer Engine keep what mbridge knows by Transformer Engine's names only."""


def without_a_gpu() -> None:
    """Make torch answer what is asked of a GPU with the CPU."""
    import torch

    torch.cuda.current_device = lambda: torch.device("cpu")
    torch.nn.Module.cuda = lambda self, device=None: self
    torch.Tensor.cuda = lambda self, *_, **__: self


def bridge_of(model: Path) -> Any:
    """mbridge's bridge of a Llama whose layers need no Transformer Engine."""
    from mbridge.core.llm_bridge import LLMBridge
    from mbridge.models.llama import LLaMABridge
    from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
    from transformers import AutoConfig

    class Plain(LLaMABridge):
        def _get_transformer_layer_spec(self, vp_stage: int | None = None) -> Any:
            self.has_vp_stage = False
            return get_gpt_layer_local_spec(normalization=self.config.normalization)

        def _get_gptmodel_args(self) -> Any:
            return LLMBridge._get_gptmodel_args(self)  # without rope scaling, which the model has not

        def _weight_name_mapping_mcore_to_hf(self, name: str) -> list[str]:
            parts = name.split(".", 3)
            if len(parts) == 4 and parts[3] in NORMS:
                return [NORMS[parts[3]].format(parts[2])]
            return list(super()._weight_name_mapping_mcore_to_hf(name))

    config = AutoConfig.from_pretrained(model)
    if not hasattr(config, "rope_theta"):  # transformers 5 keeps it in rope_parameters
        config.rope_theta = config.rope_parameters["rope_theta"]
    bridge = Plain(config)
    bridge.set_extra_args(use_cpu_initialization=True, perform_initialization=False, **NO_FUSIONS)
    return bridge


def convert(model: Path, out: Path) -> dict[str, float]:
    """Write `model` below `out` as Megatron's legacy format; the seconds of each step."""
    import torch
    from mbridge.core.util import unwrap_model
    from megatron.core import parallel_state

    without_a_gpu()
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "0")
    torch.distributed.init_process_group("gloo", rank=0, world_size=1)
    parallel_state.initialize_model_parallel(1, 1)
    bridge = bridge_of(model)
    imported = time.perf_counter()
    with torch.no_grad():
        built = bridge.get_model(bf16=True, use_cpu_initialization=True)
        bridge.load_weights(built, str(model), memory_efficient=True)
    loaded = time.perf_counter()
    folder = out / "release" / "mp_rank_00"
    folder.mkdir(parents=True)
    state = unwrap_model(built)[0].state_dict()
    whole = {"model": state, "args": Namespace(), "checkpoint_version": 3.0, "iteration": 0}
    torch.save(whole, folder / "model_optim_rng.pt")
    (out / "latest_checkpointed_iteration.txt").write_text("release")
    saved = time.perf_counter()
    torch.distributed.destroy_process_group()
    return {"import": imported - BEGAN, "load": loaded - imported, "save": saved - loaded, "total": saved - BEGAN}


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    seconds = convert(Path(sys.argv[1]), Path(sys.argv[2]))
    with open("/proc/self/status") as lines:
        peak = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
    print(json.dumps({"seconds": seconds, "peak": peak}))
