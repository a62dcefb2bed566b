"""A plan as records: what is left out is folded, and each record has its own text in full."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from hfbench.convert.plan_table import FileBytes, PlanRow
from hfbench.widgets.plan_rows import files_line, plan_rows, shortened

ROW = PlanRow(
    target="decoder.layers.*.self_attention.linear_qkv.weight",
    count=12,
    sources="model.layers.*.self_attn.{q,k,v}_proj.weight",
    transform="fuse q, k, v by group",
    dtype="BF16",
    shape=(320, 576),
    bytes=4423680,
    fill="",
)


def result(**changes: Any) -> Any:
    given = {"plan": (ROW,), "dropped": (), "notes": (), "launch_flags": ()}
    return SimpleNamespace(**given | changes)


def test_a_row_is_short_in_the_table_and_whole_below_it() -> None:
    rows = plan_rows(result())
    cells = rows.records[0].cells
    assert (cells["target"], cells["sources"], cells["bytes"]) == ("*.linear_qkv", "*.{q,k,v}_proj", "4.22 MiB")
    facts = {fact.label: fact.value for fact in rows.facts[rows.records[0].key]}
    assert facts["becomes"] == ROW.target
    assert facts["made of"] == ROW.sources
    assert facts["each"] == "320 x 576 BF16"


def test_tensors_left_out_for_one_reason_are_one_record_with_their_number() -> None:
    dropped = [f"mp_rank_0{rank}:decoder.layers.{n}.norm.weight: repeats rank 0" for rank in (1, 2) for n in range(40)]
    rows = plan_rows(result(dropped=(*dropped, "rotary.inv_freq: worked out anew")))
    left_out = [record for record in rows.records if "left out" in record.cells.get("how", "")]
    assert [(each.cells["target"], each.cells["count"]) for each in left_out] == [
        ("*.norm", "80"),
        ("rotary.inv_freq", "1"),
    ]
    assert all(each.states["how"] == "warn" and each.cells["how"].startswith("! ") for each in left_out)


def test_copies_of_the_way_back_are_left_out_without_a_warning() -> None:
    why = "the same on a rank before it"
    _, copies = plan_rows(result(dropped=(f"mp_rank_01:a: {why}", f"60 x decoder.layers.*.b: {why}"))).records
    assert (copies.cells["target"], copies.cells["how"], copies.cells["count"]) == ("copies on other ranks", why, "61")
    assert copies.states["how"] == "muted"
    assert plan_rows(result(dropped=("12 x *.inv_freq: worked out anew",))).records[-1].cells["count"] == "12"


def test_notes_and_launch_flags_can_be_read_in_full() -> None:
    rows = plan_rows(result(notes=("a note",), launch_flags=("--bf16", "--norm-epsilon", "1e-06")))
    told = [[fact.value for fact in rows.facts[record.key]] for record in rows.records[1:]]
    assert told[0] == ["a note"]
    assert told[1][:2] == ["--bf16", "--norm-epsilon 1e-06"]


def test_names_lose_what_nearly_all_have_alike() -> None:
    assert shortened("decoder.layers.*.mlp.linear_fc1.weight") == "*.mlp.linear_fc1"
    assert shortened("decoder.layers.*.self_attention.linear_qkv.layer_norm_weight") == "*.linear_qkv.layer_norm_weight"
    assert shortened("decoder.layers.*.mlp.experts.linear_fc1.weight*") == "*.experts.linear_fc1*"
    assert shortened("output_layer.bias") == "output_layer.bias"


def test_the_title_says_how_full_ranks_are() -> None:
    ranks = [FileBytes(name="mp_rank_00", bytes=1 << 20), FileBytes(name="mp_rank_01", bytes=3 << 20)]
    assert files_line(ranks, 4 << 20) == "2 ranks of 1.00 MiB to 3.00 MiB"
    assert files_line(ranks[:1], 1 << 20) == "1 rank of 1.00 MiB"
    assert files_line([FileBytes(name="model.safetensors", bytes=5)], 5) == "1 file of 5 B"
    assert files_line([], 5) == "5 B in all"
