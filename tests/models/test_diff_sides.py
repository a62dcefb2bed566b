"""What a side can be: folders whose files cannot be read, single files, other formats, tied heads, moved tensors."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hfbench.errors import HfbenchError
from hfbench.models.diff.compare import diff_models
from hfbench.models.diff.facts import Clash, Rename

Tensors = Mapping[str, tuple[str, tuple[int, ...], bytes]]


def weights(path: Path, tensors: Tensors) -> Path:
    header: dict[str, Any] = {}
    end = 0
    for name, (dtype, shape, raw) in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [end, end + len(raw)]}
        end += len(raw)
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(raw for _, _, raw in tensors.values()))
    return path


def model(folder: Path, tensors: Tensors | None, **config: Any) -> Path:
    folder.mkdir()
    if tensors is not None:
        weights(folder / "model.safetensors", tensors)
    (folder / "config.json").write_text(json.dumps({"model_type": "llama", **config}))
    return folder


def index(folder: Path, shards: Mapping[str, list[str]]) -> None:
    entries = {name: shard for shard, names in shards.items() for name in names}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": entries}))


def u8(text: bytes) -> tuple[str, tuple[int, ...], bytes]:
    return "U8", (len(text),), text


BOTH: Tensors = {"x": u8(b"12"), "y": u8(b"34")}


class Trap:
    """Runs when it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (Path("sprung"),))


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "weights.pth"])
def test_pickles_are_never_unpickled_and_the_other_side_is_not_called_different(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    a, b = model(tmp_path / "a", BOTH), model(tmp_path / "b", None)
    (b / name).write_bytes(pickle.dumps(Trap()))
    for sides in ((a, b), (b, a), (a, b / name)):
        found = diff_models(*map(str, sides), values=True)
        assert (found.added, found.removed) == ((), ())
        assert [each.name for each in found.unread] == ["x", "y"]
        [problem] = found.problems
        assert (problem.code, problem.severity) == ("weights_unopened", "error")
        assert "never unpickled" in problem.found
        assert name in problem.found
    assert not (tmp_path / "sprung").exists()


def test_gguf_weights_are_told_for_what_they_are(tmp_path: Path) -> None:
    a, b = model(tmp_path / "a", BOTH), model(tmp_path / "b", None)
    (b / "model-Q4_K_M.gguf").write_bytes(b"GGUF" + bytes(100))
    for other in (b, b / "model-Q4_K_M.gguf"):
        [problem] = diff_models(str(a), str(other)).problems
        assert "GGUF weights, whose tensors have other names and packed values" in problem.found
        assert problem.where == "B"


def test_tensors_of_a_missing_shard_are_unread_and_others_are_removed(tmp_path: Path) -> None:
    tensors: Tensors = {**BOTH, "z": u8(b"5")}
    a, b = model(tmp_path / "a", tensors), model(tmp_path / "b", None)
    weights(b / "one.safetensors", {"x": u8(b"12")})
    index(b, {"one.safetensors": ["x"], "two.safetensors": ["model.y"]})
    found = diff_models(str(a), str(b))
    assert [each.name for each in found.unread] == ["y"]
    assert [each.name for each in found.removed] == ["z"]
    assert found.counts["unread"] == 1
    assert found.problems


def test_a_broken_file_without_an_index_may_hold_anything(tmp_path: Path) -> None:
    a, b = model(tmp_path / "a", BOTH), model(tmp_path / "b", BOTH)
    (a / "model.safetensors").write_bytes(b"nonsense")
    found = diff_models(str(a), str(b))
    assert [each.name for each in found.unread] == ["x", "y"]
    assert found.added == ()


def test_a_folder_without_weights_has_none_and_that_is_a_note(tmp_path: Path) -> None:
    a, b = model(tmp_path / "a", BOTH), model(tmp_path / "b", None)
    found = diff_models(str(a), str(b))
    assert [each.name for each in found.removed] == ["x", "y"]
    assert [(each.where, each.code) for each in found.notes] == [("B", "weights_missing")]
    assert found.problems == ()


def test_an_index_stands_for_its_folder_and_a_file_for_its_tensors(tmp_path: Path) -> None:
    a, b = model(tmp_path / "a", BOTH), model(tmp_path / "b", None, other=1)
    weights(b / "one.safetensors", {"x": u8(b"12")})
    weights(b / "two.safetensors", {"y": u8(b"34")})
    index(b, {"one.safetensors": ["x"], "two.safetensors": ["y"]})
    found = diff_models(str(a), str(b / "model.safetensors.index.json"), values=True)
    assert found.counts["equal"] == 2
    assert [each.key for each in found.config] == ["other"]
    single = diff_models(str(a / "model.safetensors"), str(b / "one.safetensors"))
    assert [each.name for each in single.removed] == ["y"]
    assert [each.code for each in single.notes] == ["single_file"]


def test_weights_that_lie_there_twice_are_compared_once(tmp_path: Path) -> None:
    a, b = model(tmp_path / "a", BOTH), model(tmp_path / "b", None)
    weights(b / "one.safetensors", {"x": u8(b"12")})
    weights(b / "two.safetensors", {"y": u8(b"34")})
    index(b, {"one.safetensors": ["x"], "two.safetensors": ["y"]})
    weights(b / "consolidated.safetensors", {"tok.x": u8(b"12"), "tok.y": u8(b"34")})
    (b / "original").mkdir()
    weights(b / "original" / "model.safetensors", BOTH)
    found = diff_models(str(a), str(b), values=True)
    assert (found.tensors_b, found.differs, found.problems) == (2, False, ())


@pytest.mark.parametrize(("head", "said"), [(b"1234", "whose bytes it repeats"), (b"1235", "which it does not repeat")])
def test_a_stored_head_that_the_other_side_ties_is_explained(head: bytes, said: str, tmp_path: Path) -> None:
    table: Tensors = {"model.embed_tokens.weight": u8(b"1234")}
    a = model(tmp_path / "a", {**table, "lm_head.weight": u8(head)}, tie_word_embeddings=True)
    b = model(tmp_path / "b", table, tie_word_embeddings=True)
    [note] = diff_models(str(a), str(b)).notes
    assert "'lm_head.weight' is stored in A alone; the other side ties it to the embedding" in note.found
    [note] = diff_models(str(b), str(a), values=True).notes
    assert note.found.startswith("'lm_head.weight' is stored in B alone")
    assert note.found.endswith(said)
    untied = model(tmp_path / "c", table, tie_word_embeddings=False)
    assert diff_models(str(a), str(untied)).notes == ()


def test_tensors_under_other_names_are_found_by_their_bytes_when_values_are_read(tmp_path: Path) -> None:
    a = model(tmp_path / "a", {"enc.w": u8(b"1234"), "enc.b": u8(b"7777"), "gone": u8(b"12")})
    b = model(tmp_path / "b", {"dec.b": u8(b"7777"), "dec.w": u8(b"1234"), "new": u8(b"21")})
    assert diff_models(str(a), str(b)).renamed == ()
    found = diff_models(str(a), str(b), values=True)
    assert found.renamed == (Rename(a="enc.w", b="dec.w", rule="", by="bytes"),)
    assert {each.name for each in found.removed} == {"enc.b", "gone"}  # one value throughout says nothing
    assert [(each.name, each.verdict) for each in found.values or ()] == [("enc.w", "equal")]


def test_bytes_that_several_tensors_share_rename_none_of_them(tmp_path: Path) -> None:
    a = model(tmp_path / "a", {"p": u8(b"12"), "q": u8(b"12")})
    b = model(tmp_path / "b", {"r": u8(b"12")})
    found = diff_models(str(a), str(b), values=True)
    assert found.renamed == ()
    assert found.clashes == (Clash(name="the same bytes", rule="", a=("p", "q"), b=("r",)),)


def test_rules_reach_the_comparison_and_its_values(tmp_path: Path) -> None:
    a = model(tmp_path / "a", {"layers.0.attn.w": u8(b"12")})
    b = model(tmp_path / "b", {"layers.0.self_attn.w": u8(b"13")})
    found = diff_models(str(a), str(b), rename=["attn=self_attn"], values=True)
    assert [each.by for each in found.renamed] == ["rule"]
    assert [(each.name, each.max_abs) for each in found.values or ()] == [("layers.0.attn.w", 1.0)]


def test_a_name_that_cannot_be_is_told_in_a_sentence(tmp_path: Path) -> None:
    for name in ("x" * 5000, "a\0b", "~nobody-of-that-name/x"):
        with pytest.raises(HfbenchError):
            diff_models(name, str(tmp_path))


def test_large_tensors_are_compared_in_little_memory(tmp_path: Path) -> None:
    """Two files of 512 MiB, of which nearly all is a hole."""
    size = 2**29
    for side in ("a", "b"):
        header = json.dumps({"w": {"dtype": "BF16", "shape": [size // 2], "data_offsets": [0, size]}}).encode()
        with (tmp_path / f"{side}.safetensors").open("wb") as file:
            file.write(len(header).to_bytes(8, "little") + header)
            file.truncate(8 + len(header) + size)
    with (tmp_path / "b.safetensors").open("r+b") as file:
        file.seek(2**20)
        file.write(b"\1")
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from hfbench.models.diff.compare import diff_models\n"
        "found = diff_models(*sys.argv[1:], values=True)\n"
        "print(found.values[0].verdict, Path('/proc/self/status').read_text().split('VmHWM:')[1].split()[0])\n"
    )
    paths = [str(tmp_path / f"{side}.safetensors") for side in ("a", "b")]
    ended = subprocess.run([sys.executable, "-c", code, *paths], capture_output=True, text=True, timeout=240)
    assert ended.returncode == 0, ended.stderr
    verdict, kib = ended.stdout.split()
    assert verdict == "close"
    assert int(kib) < 300 * 1024
