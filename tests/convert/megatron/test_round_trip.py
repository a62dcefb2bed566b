"""A plan moves every element to its place and, reversed, back: for all families, formats, spellings and layouts."""

from __future__ import annotations

import numpy
import pytest
from hf_models import NAMES, checkpoint, execute, specs_of
from hypothesis import given, settings
from hypothesis import strategies as st

from hfbench.convert.megatron.destination import Destination
from hfbench.convert.megatron.parallel import Parallel
from hfbench.convert.megatron.plan import plan_megatron
from hfbench.convert.megatron.plan_back import plan_hf
from hfbench.errors import UsageError

LAYOUTS = {
    "tp1": Parallel(),
    "tp2-pp2": Parallel(tp=2, pp=2),
    "tp4": Parallel(tp=4),  # more than key-value heads
    "uneven": Parallel(tp=2, pp=3, first_stage_layers=1, last_stage_layers=1),
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("format", ["torch", "torch_dist"])
def test_there_and_back_every_element_is_where_it_was(name: str, layout: str, format: str) -> None:
    model = checkpoint(name)
    names = "te" if layout == "tp2-pp2" else "local"
    there = plan_megatron(model.config, model.specs, Destination(LAYOUTS[layout], format=format, names=names))
    written = execute(there.targets, model.bits())
    back = plan_hf(there.args, specs_of(there), model.config)
    found = execute(back.targets, written)
    kept = {name: bits for name, bits in model.bits().items() if name in found}
    left_out = {each.source for each in there.dropped} - set(found)
    assert set(found) | left_out == set(model.shapes)
    repeated = {name for name in found if name.endswith(("embed_tokens.weight", "shared_head.head.weight"))}
    for tensor, bits in kept.items():
        if tensor not in repeated or tensor == "model.embed_tokens.weight":
            assert numpy.array_equal(found[tensor], bits), tensor
    assert {target.spec.name: target.spec for target in back.targets}.items() <= model.specs.items()
    for copy, first in back.twins:
        assert numpy.array_equal(written[copy], written[first]), copy
    assert back.args == model.config


@pytest.mark.parametrize("name", NAMES)
def test_without_a_configuration_the_arguments_tell_one_that_plans_alike(name: str) -> None:
    """config.json built from arguments gives the same tensors and, converted again, the same arguments."""
    model = checkpoint(name)
    there = plan_megatron(model.config, model.specs, Destination(Parallel(tp=2)))
    back = plan_hf(there.args, specs_of(there))
    again = plan_megatron(back.args, specs_of(back), Destination(Parallel(tp=2)))
    assert {k: v for k, v in again.args.items() if k != "moe_aux_loss_coeff"} == {
        k: v for k, v in there.args.items() if k != "moe_aux_loss_coeff"
    }
    assert specs_of(again) == specs_of(there)


@pytest.mark.parametrize("name", ["mixtral", "qwen3_moe", "qwen2_moe", "deepseek_v3"])
def test_experts_are_divided_among_expert_ranks_in_contiguous_blocks(name: str) -> None:
    model = checkpoint(name)
    layout = Parallel(tp=2, pp=2, ep=2)
    there = plan_megatron(model.config, model.specs, Destination(layout))
    second = [each for each in there.targets if each.spec.name.startswith("mp_rank_00_001_001:")]
    experts = [each for each in second if ".mlp.experts.linear_fc2.weight1" in each.spec.name]
    assert experts
    assert all(".experts.3." in source for each in experts for source in each.sources)
    back = plan_hf(there.args, specs_of(there), model.config)
    found = execute(back.targets, execute(there.targets, model.bits()))
    bits = model.bits()
    assert all(numpy.array_equal(found[each], bits[each]) for each in found if "experts" in each)


def test_experts_that_lie_in_two_tensors_are_found_too() -> None:
    """transformers 5 keeps all experts of a layer in gate_up_proj and down_proj; some checkpoints are stored so."""
    model = checkpoint("qwen3_moe")
    joined = {name: shape for name, shape in model.shapes.items() if ".experts." not in name}
    for layer in range(4):
        joined[f"model.layers.{layer}.mlp.experts.gate_up_proj"] = (4, 16, 16)
        joined[f"model.layers.{layer}.mlp.experts.down_proj"] = (4, 16, 8)
    bits = model.bits()
    together = dict(bits)
    for layer in range(4):
        inside = f"model.layers.{layer}.mlp.experts."
        pairs = [(bits[f"{inside}{e}.gate_proj.weight"], bits[f"{inside}{e}.up_proj.weight"]) for e in range(4)]
        together[inside + "gate_up_proj"] = numpy.concatenate([numpy.concatenate(pair) for pair in pairs])
        together[inside + "down_proj"] = numpy.concatenate([bits[f"{inside}{e}.down_proj.weight"] for e in range(4)])
    apart = execute(plan_megatron(model.config, model.specs, Destination(Parallel(tp=2))).targets, bits)
    model.shapes = joined
    same = execute(plan_megatron(model.config, model.specs, Destination(Parallel(tp=2))).targets, together)
    assert apart.keys() == same.keys()
    assert all(numpy.array_equal(apart[name], same[name]) for name in apart)


@settings(max_examples=20, deadline=None)
@given(
    groups=st.sampled_from([1, 2, 3, 4, 6]),
    repeats=st.integers(1, 4),
    head=st.sampled_from([2, 4]),
    tp=st.sampled_from([1, 2, 3, 4, 6]),
    vocab=st.integers(1, 90),
)
def test_any_layout_that_is_not_refused_loses_nothing(
    groups: int, repeats: int, head: int, tp: int, vocab: int
) -> None:
    changes = {
        "num_attention_heads": groups * repeats,
        "num_key_value_heads": groups,
        "head_dim": head,
        "vocab_size": vocab,
        "num_hidden_layers": 2,
    }
    model = checkpoint("llama", **changes)
    layout = Parallel(tp=tp)
    rows = (repeats + 2) * groups * head
    if groups * repeats % tp or (groups % tp and tp % groups) or rows % tp or 24 % tp:
        with pytest.raises(UsageError, match=f"--tp {tp}"):
            plan_megatron(model.config, model.specs, Destination(layout))
        return
    there = plan_megatron(model.config, model.specs, Destination(layout, divisible_by=8))
    back = plan_hf(there.args, specs_of(there), model.config)
    found = execute(back.targets, execute(there.targets, model.bits()))
    assert found.keys() == model.shapes.keys()
    assert all(numpy.array_equal(found[name], bits) for name, bits in model.bits().items())
