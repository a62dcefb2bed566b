"""Layouts that cannot be, and the option that each refusal names."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hf_models import checkpoint

from hfbench.convert.megatron.destination import Destination
from hfbench.convert.megatron.parallel import Parallel
from hfbench.convert.megatron.plan import model_of, plan_megatron
from hfbench.convert.megatron.proposals import proposals
from hfbench.errors import UsageError

SMOLLM2 = {"num_attention_heads": 9, "num_key_value_heads": 3, "head_dim": 2, "intermediate_size": 24}


def planned(layout: Parallel, name: str = "llama", **changes: Any) -> None:
    model = checkpoint(name, **changes)
    plan_megatron(model.config, model.specs, Destination(layout))


@pytest.mark.parametrize(
    ("layout", "changes", "told"),
    [
        (Parallel(tp=3), {}, "4 attention heads do not divide by --tp 3. Use --tp 1 or 2 or 4"),
        (
            Parallel(pp=4),
            {"num_hidden_layers": 6},
            "--pp 4. Use --first-stage-layers 1 --last-stage-layers 1, or --pp 3",
        ),
        (Parallel(pp=2), {"num_hidden_layers": 5}, "use --first-stage-layers 3 --last-stage-layers 2"),
        (Parallel(pp=9), {}, "4 layers do not fill 9 pipeline stages"),
        (Parallel(last_stage_layers=2), {}, "--last-stage-layers needs more than one pipeline stage"),
        (Parallel(first_stage_layers=2), {}, "--first-stage-layers needs more than one pipeline stage"),
        (Parallel(pp=2, first_stage_layers=1, last_stage_layers=1), {}, "the stages hold 2 of 4 layers"),
        (Parallel(pp=3, first_stage_layers=1), {}, "3 layers beside the uneven stages do not divide among 2 stages"),
        (Parallel(ep=2), {}, "no experts to divide by --ep"),
        (Parallel(tp=4), {"intermediate_size": 22}, "the feed-forward width, 22, does not divide by --tp 4"),
    ],
)
def test_refusal_names_the_option(layout: Parallel, changes: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError, match=re.escape(told).replace("Use", "[Uu]se").replace("use\\ ", "[Uu]se ")):
        planned(layout, **changes)


def test_experts_that_do_not_divide_are_refused() -> None:
    with pytest.raises(UsageError, match=r"4 experts do not divide by --ep 3\. Use --ep 1 or 2 or 4"):
        planned(Parallel(ep=3), "mixtral")


def test_nine_heads_and_three_key_heads_take_three_ranks_and_not_two() -> None:
    """SmolLM2-135M: TP 3 works, TP 2 is refused with the reason."""
    with pytest.raises(UsageError, match=r"9 attention heads do not divide by --tp 2. Use --tp 1 or 3"):
        planned(Parallel(tp=2), **SMOLLM2)
    assert Parallel(tp=3).stages(30) == (range(30),)


def test_key_heads_that_neither_divide_nor_are_divided_are_refused() -> None:
    with pytest.raises(UsageError, match="3 key-value heads neither divide by nor are divided by --tp 2"):
        planned(Parallel(tp=2), num_attention_heads=12, num_key_value_heads=3, head_dim=2)


def test_key_heads_whose_rows_more_ranks_cannot_share_are_refused_though_the_heads_divide() -> None:
    """With 9 heads and 3 key-value heads 9 ranks would need 15 head sizes of rows in 9 equal parts."""
    told = r"3 key-value heads, 30 rows together with their queries, are not to be shared by --tp 9\. Use --tp 1 or 3"
    with pytest.raises(UsageError, match=told):
        planned(Parallel(tp=9), **{**SMOLLM2, "intermediate_size": 36})


def test_stages_that_were_proposed_hold_all_layers() -> None:
    for layers in range(2, 40):
        for pp in range(2, layers + 1):
            if layers % pp == 0:
                continue
            with pytest.raises(UsageError) as caught:
                Parallel(pp=pp).stages(layers)
            first, last = (int(each) for each in re.findall(r"stage-layers (\d+)", str(caught.value)))
            stages = Parallel(pp=pp, first_stage_layers=first, last_stage_layers=last).stages(layers)
            assert sum(map(len, stages)) == layers


def test_rank_folders_are_spelled_as_megatron_spells_them() -> None:
    layouts = {Parallel(tp=2): "mp_rank_01", Parallel(tp=2, pp=2): "mp_rank_01_001"}
    layouts |= {Parallel(tp=2, ep=2): "mp_rank_01_001", Parallel(tp=2, pp=2, ep=2): "mp_rank_01_001_001"}
    for layout, folder in layouts.items():
        assert layout.folder(list(layout.ranks())[-1]) == folder


def test_proposed_layouts_can_be_planned_and_hold_what_they_promise() -> None:
    model = checkpoint("qwen3_moe", vocab_size=128)
    found = proposals(model_of(model.config, model.specs, Destination()).items, sizes_of(model))
    assert found[0].tp == found[0].pp == found[0].ep == 1
    for each in found:
        plan = plan_megatron(
            model.config, model.specs, Destination(Parallel(tp=each.tp, pp=each.pp, ep=each.ep), divisible_by=1)
        )
        by_rank: dict[str, int] = {}
        for target in plan.targets:
            rank = target.spec.name.partition(":")[0]
            by_rank[rank] = by_rank.get(rank, 0) + 2 * target.spec.rows * target.spec.columns
        assert max(by_rank.values()) == each.rank_bytes


def sizes_of(model: Any) -> Any:
    return model_of(model.config, model.specs, Destination(divisible_by=1)).sizes
