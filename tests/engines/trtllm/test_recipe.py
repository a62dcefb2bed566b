"""A recipe of a plan: who decided each option, and commands that the recording of trtllm-build takes."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from recording_trtllm_build import parsed
from small_model import config, make

from hfbench.actions.engine_recipe import EngineRecipe, EngineRecipeResult
from hfbench.engines.trtllm.template import load_templates
from hfbench.errors import UsageError
from hfbench.jobs.run import Run

SHIPPED = sorted(load_templates(Path("/nowhere")).loaded)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A llama whose context is 1024."""
    folder = make(tmp_path / "model")
    config(max_position_embeddings=1024)(folder)
    return folder


def recipe(model: Path, **values: object) -> EngineRecipeResult:
    """The result of the action."""
    result = EngineRecipe.spec.build({"model": str(model), **values}).perform(Run())  # type: ignore[attr-defined]
    assert isinstance(result, EngineRecipeResult)
    return result


def origins(result: EngineRecipeResult) -> dict[str, tuple[str, str]]:
    """Value and origin of each flag of trtllm-build."""
    return {each.flag: (each.value, each.origin) for each in result.build}


@pytest.mark.parametrize("template", SHIPPED)
def test_the_words_of_every_shipped_template_are_flags_of_the_table(model: Path, template: str) -> None:
    words = shlex.split(recipe(model, template=template).build_command)
    told = parsed(words[1:])
    assert told["max_seq_len"] == "256"
    assert told["checkpoint_dir"] == "CHECKPOINT"


def test_the_recording_refuses_what_is_not_in_the_table(model: Path) -> None:
    program = Path(__file__).with_name("recording_trtllm_build.py")
    for words in (["--use_custom_all_reduce", "enable"], ["--gemm_plugin", "fast"], ["--gemm_plugin"]):
        done = subprocess.run([sys.executable, program, *words], capture_output=True, text=True, timeout=60)
        assert done.returncode == 2
        assert "trtllm-build: error:" in done.stdout


def test_user_wins_over_model_and_model_over_template(model: Path) -> None:
    build = {"max_num_tokens": 512, "use_fused_mlp": "disable", "gemm_plugin": "auto"}
    config(max_position_embeddings=1024, trtllm_config={"template": "dense-bf16", "build": build})(model)
    result = recipe(model, set=["max_num_tokens=256"])
    assert (result.template, result.chosen_by) == ("dense-bf16", "model")
    told = origins(result)
    assert told["max_num_tokens"] == ("256", "user")
    assert told["use_fused_mlp"] == ("disable", "model")
    assert told["gemm_plugin"] == ("auto", "model")
    assert told["max_batch_size"] == ("1", "request")
    assert recipe(model, template="fp8").chosen_by == "user"


def test_without_a_wish_the_dtype_chooses_the_template(model: Path) -> None:
    assert recipe(model).template == "dense-bf16"
    assert recipe(model, dtype="fp16").template == "dense-fp16"


def test_a_model_that_wishes_for_a_wrong_flag_is_told_by_its_file(model: Path) -> None:
    config(trtllm_config={"build": {"gemm_plugn": "auto"}})(model)
    with pytest.raises(UsageError, match=r"config.json: trtllm_config: trtllm-build has no flag 'gemm_plugn'"):
        recipe(model)


def test_an_architecture_without_a_known_conversion_says_how_to_name_one(model: Path) -> None:
    config(model_type="gptj", architectures=["GPTJForCausalLM"], max_position_embeddings=1024)(model)
    with pytest.raises(UsageError, match=r"no conversion is known for GPTJForCausalLM"):
        recipe(model)
