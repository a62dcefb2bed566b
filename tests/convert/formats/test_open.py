"""Which files of a folder are its tensors, and what is said when they are not all there."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path

import pytest

from hfbench.convert.boxes import TensorSpec
from hfbench.convert.formats.inert import Global, StandIn
from hfbench.convert.formats.layout import FileLayout
from hfbench.convert.formats.open import megatron_facts, open_tensors
from hfbench.convert.formats.pt_layout import lay_out_pt
from hfbench.convert.formats.safetensors_layout import lay_out_safetensors
from hfbench.errors import HfbenchError, UsageError
from hfbench.models.reference import resolve


def put(folder: Path, layout: FileLayout) -> None:
    """Write a file as it is laid out, its tensors zero."""
    path = folder / layout.path
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.truncate(layout.size)
        for at, data in layout.fixed:
            file.seek(at)
            file.write(data)


def matrix(name: str) -> TensorSpec:
    return TensorSpec(name, "F32", (2, 3))


def put_pt(folder: Path, path: str, *names: str, under: str = "") -> None:
    put(folder, lay_out_pt(path, [matrix(name) for name in names], {"epoch": 3}, under=under))


def put_index(folder: Path, **files: str) -> None:
    text = {"metadata": {"total_size": 24 * len(files)}, "weight_map": files}
    (folder / "pytorch_model.bin.index.json").write_text(json.dumps(text))


def test_the_index_of_bin_files_is_followed_and_others_are_left_alone(tmp_path: Path) -> None:
    put_pt(tmp_path, "pytorch_model-1.bin", "a")
    put_pt(tmp_path, "pytorch_model-2.bin", "b")
    put_pt(tmp_path, "stray.bin", "c")
    put_index(tmp_path, a="pytorch_model-1.bin", b="pytorch_model-2.bin")
    assert set(open_tensors(tmp_path).tensors) == {"a", "b"}
    (tmp_path / "pytorch_model-2.bin").unlink()
    with pytest.raises(HfbenchError, match=r"names 1 file that is missing: 'pytorch_model-2\.bin'\. Fetch"):
        open_tensors(tmp_path)


def test_a_tensor_in_two_files_is_refused(tmp_path: Path) -> None:
    put_pt(tmp_path, "pytorch_model-1.bin", "a")
    put_pt(tmp_path, "pytorch_model-2.bin", "a")
    put_index(tmp_path, a="pytorch_model-1.bin", b="pytorch_model-2.bin")
    with pytest.raises(HfbenchError, match="tensor 'a' is in two files"):
        open_tensors(tmp_path)


def test_tensors_below_a_key_of_a_training_program_are_found(tmp_path: Path) -> None:
    put_pt(tmp_path, "last.ckpt", "a", "b", under="state_dict")
    assert set(open_tensors(tmp_path / "last.ckpt").tensors) == {"a", "b"}
    put_pt(tmp_path, "nothing.pt", under="optimizer")
    with pytest.raises(HfbenchError, match="holds no tensors by name"):
        open_tensors(tmp_path / "nothing.pt")


def test_of_several_torch_files_without_an_index_one_is_to_be_named(tmp_path: Path) -> None:
    put_pt(tmp_path, "one.pt", "a")
    assert set(open_tensors(tmp_path).tensors) == {"a"}
    put_pt(tmp_path, "two.pt", "b")
    with pytest.raises(UsageError, match=r"holds 2 files of torch: 'one\.pt', 'two\.pt'. Name one"):
        open_tensors(tmp_path)
    place = resolve(str(tmp_path / "two.pt"))
    assert set(open_tensors(place.folder / place.only).tensors) == {"b"}


def test_a_model_wins_over_the_copies_cut_for_ranks_that_lie_in_it(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    for layout in lay_out_safetensors([matrix("a")]):
        put(tmp_path, layout)
    put_pt(tmp_path, "mp_rank_00/model_optim_rng.pt", "cut", under="model")
    assert set(open_tensors(tmp_path).tensors) == {"a"}
    (tmp_path / "config.json").unlink()
    assert set(open_tensors(tmp_path).tensors) == {"mp_rank_00:cut"}


def test_ranks_are_read_from_the_iteration_that_the_tracker_names(tmp_path: Path) -> None:
    for iteration, names in (("release", ["a"]), ("iter_0000012", ["b"])):
        for rank in ("mp_rank_00_000", "mp_rank_01_000"):
            specs = [matrix(f"{rank}:{name}") for name in names]
            extra = {"args": Namespace(n=len(iteration)), "checkpoint_version": 3.0}
            put(tmp_path, lay_out_pt(f"{iteration}/{rank}/model_optim_rng.pt", specs, extra))
    with pytest.raises(UsageError, match=r"and no latest_checkpointed_iteration\.txt\. Name one of these folders"):
        megatron_facts(tmp_path)
    (tmp_path / "latest_checkpointed_iteration.txt").write_text("release\n")
    facts = megatron_facts(tmp_path)
    assert (facts.iteration, facts.ranks, facts.args) == ("release", ("mp_rank_00_000", "mp_rank_01_000"), {"n": 7})
    assert set(open_tensors(tmp_path).tensors) == {"mp_rank_00_000:a", "mp_rank_01_000:a"}
    assert megatron_facts(tmp_path / "iter_0000012").iteration == 12
    (tmp_path / "latest_checkpointed_iteration.txt").write_text("soon")
    with pytest.raises(UsageError, match="holds 'soon' instead of an iteration or 'release'"):
        open_tensors(tmp_path)


def test_folders_without_weights_are_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no weights in safetensors"):
        open_tensors(tmp_path)
    with pytest.raises(UsageError, match="there is no such file or folder"):
        open_tensors(tmp_path / "gone")
    with pytest.raises(UsageError, match="holds no Megatron checkpoint"):
        megatron_facts(tmp_path)
    (tmp_path / "mp_rank_00").mkdir()
    with pytest.raises(HfbenchError, match=r"holds no model_optim_rng\.pt\. Fetch the checkpoint again"):
        open_tensors(tmp_path)


def test_shards_hold_what_they_may_and_a_larger_tensor_has_its_own() -> None:
    specs = [TensorSpec(name, "F32", (size,)) for name, size in (("a", 10), ("b", 10), ("c", 100), ("d", 1))]
    *shards, index = lay_out_safetensors(specs, most_bytes=80)
    assert [[piece.target for piece in shard.pieces] for shard in shards] == [["a", "b"], ["c"], ["d"]]
    assert [shard.path for shard in shards] == [f"model-0000{n}-of-00003.safetensors" for n in (1, 2, 3)]
    assert json.loads(index.fixed[0][1])["metadata"] == {"total_size": 484}


def test_wider_elements_come_first_so_that_all_are_aligned() -> None:
    specs = [TensorSpec("bytes", "U8", (3,)), TensorSpec("halves", "BF16", (5,)), TensorSpec("words", "F64", (2,))]
    (layout,) = lay_out_safetensors(specs)
    begins = {piece.target: piece.begin for piece in layout.pieces}
    assert begins["words"] % 8 == begins["halves"] % 2 == 0
    assert begins["words"] < begins["halves"] < begins["bytes"]


def test_the_safetensors_library_opens_what_is_laid_out(tmp_path: Path) -> None:
    from safetensors import safe_open

    specs = [
        matrix("a"),
        TensorSpec("b", "BF16", (4,)),
        TensorSpec("c", "U8", (3, 1)),
        TensorSpec("none", "F32", (0, 2)),
    ]
    for layout in lay_out_safetensors([*specs, TensorSpec("scalar", "F64", ())]):
        put(tmp_path, layout)
    with safe_open(tmp_path / "model.safetensors", framework="np") as file:
        shapes = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
    assert shapes == {**{spec.name: spec.shape for spec in specs}, "scalar": ()}
    with pytest.raises(ValueError, match="__metadata__, which safetensors keeps"):
        lay_out_safetensors([matrix("__metadata__")])


def test_an_index_of_bin_files_that_names_more_than_they_hold_is_put_aside_on_request(tmp_path: Path) -> None:
    put_pt(tmp_path, "pytorch_model.bin", "a")
    put_index(tmp_path, a="pytorch_model.bin", ghost="pytorch_model.bin")
    with pytest.raises(HfbenchError, match=r"names 1 tensor that the files do not hold: 'ghost'.*--fix-index"):
        open_tensors(tmp_path)
    assert set(open_tensors(tmp_path, trust_index=False).tensors) == {"a"}


@pytest.mark.parametrize("index", [True, False], ids=["with an index", "without"])
def test_files_that_count_more_than_are_there_are_refused(tmp_path: Path, index: bool) -> None:
    put_pt(tmp_path, "pytorch_model-00002-of-00003.bin", "a")
    if index:
        put_index(tmp_path, a="pytorch_model-00002-of-00003.bin")
    with pytest.raises(HfbenchError, match=r"(names|holds) 1 file of 3"):
        open_tensors(tmp_path)


def put_rank(folder: Path, rank: str, *names: str, **args: object) -> None:
    content = {"args": Namespace(**args), "checkpoint_version": 3.0, "iteration": 7}
    put(folder, lay_out_pt(f"{rank}/model_optim_rng.pt", [matrix(name) for name in names], content))


def test_ranks_of_two_checkpoints_are_not_read_as_one(tmp_path: Path) -> None:
    put_rank(tmp_path, "mp_rank_00", "a", rotary_base=500000)
    put_rank(tmp_path, "mp_rank_01", "a", rotary_base=500000)
    assert set(open_tensors(tmp_path).tensors) == {"mp_rank_00:a", "mp_rank_01:a"}
    put_rank(tmp_path, "mp_rank_01", "a", rotary_base=10000)
    with pytest.raises(HfbenchError, match="its rotary_base is '10000', that of mp_rank_00 '500000'"):
        open_tensors(tmp_path)


def test_the_prefix_of_a_wrapped_module_is_left_out(tmp_path: Path) -> None:
    put_rank(tmp_path, "mp_rank_00", "module.module.a", "module.module.b")
    assert set(open_tensors(tmp_path).tensors) == {"mp_rank_00:a", "mp_rank_00:b"}


def test_a_tensor_of_a_kind_that_is_not_read_is_not_left_out_in_silence(tmp_path: Path) -> None:
    sparse = StandIn(Global("torch._utils", "_rebuild_sparse_tensor"), (1,))
    put(tmp_path, lay_out_pt("pytorch_model.bin", [matrix("a")], {"b": sparse}, under=""))
    with pytest.raises(HfbenchError, match=r"tensor 'b' is of a kind that is not read \(torch._utils._rebuild_sparse"):
        open_tensors(tmp_path)
