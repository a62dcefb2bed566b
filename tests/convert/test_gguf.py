"""GGUF to Hugging Face: the same weights, the same text, and nothing guessed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hfbench.errors import HfbenchError, UsageError
from hfbench.jobs.events import Event, Progress
from hfbench.jobs.run import Run

if TYPE_CHECKING:
    from conftest import TinyGguf

numpy = pytest.importorskip("numpy")
pytest.importorskip("gguf")
pytest.importorskip("tokenizers")


def converted(tiny: TinyGguf, folder: Path, **told: Any) -> Path:
    from hfbench.convert.gguf import convert_gguf

    folder.mkdir()
    convert_gguf(tiny.write(**told), folder, Run())
    return folder


def interleaved(weights: Any, heads: int) -> Any:
    """The row order of llama.cpp's own converter: in each head the two halves alternate."""
    half = weights.shape[0] // heads // 2
    rows = [head * 2 * half + part * half + k for head in range(heads) for k in range(half) for part in range(2)]
    return weights[rows]


def test_every_weight_arrives_under_its_name_and_in_its_order(tiny_gguf: TinyGguf, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from safetensors.torch import load_file

    wanted = dict(tiny_gguf.weights)
    for number in range(2):
        for name, heads in ((f"blk.{number}.attn_q.weight", 4), (f"blk.{number}.attn_k.weight", 2)):
            tiny_gguf.weights[name] = interleaved(wanted[name], heads)
    loaded = load_file(converted(tiny_gguf, tmp_path / "out") / "model.safetensors")
    assert len(loaded) == len(wanted)
    for ours, theirs in {
        "model.embed_tokens.weight": "token_embd.weight",
        "model.norm.weight": "output_norm.weight",
        "model.layers.1.self_attn.q_proj.weight": "blk.1.attn_q.weight",
        "model.layers.1.self_attn.k_proj.weight": "blk.1.attn_k.weight",
        "model.layers.0.self_attn.v_proj.weight": "blk.0.attn_v.weight",
        "model.layers.0.self_attn.o_proj.weight": "blk.0.attn_output.weight",
        "model.layers.0.mlp.down_proj.weight": "blk.0.ffn_down.weight",
    }.items():
        assert torch.equal(loaded[ours], torch.from_numpy(wanted[theirs]).bfloat16()), ours


def test_blocks_of_a_tensor_join_without_a_seam(
    tiny_gguf: TinyGguf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import hfbench.convert.gguf

    whole = converted(tiny_gguf, tmp_path / "whole") / "model.safetensors"
    monkeypatch.setattr(hfbench.convert.gguf, "BLOCK_VALUES", 200)
    pieces = converted(tiny_gguf, tmp_path / "pieces") / "model.safetensors"
    assert whole.read_bytes() == pieces.read_bytes()


def test_transformers_loads_all_of_it(tiny_gguf: TinyGguf, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    folder = converted(tiny_gguf, tmp_path / "out")
    model, told = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype="auto", output_loading_info=True)
    assert not any(told[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    assert model.lm_head.weight is model.model.embed_tokens.weight
    assert model.config.rope_parameters["rope_theta"] == 100000.0
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    assert tokenizer.eos_token == "</s>"
    assert tokenizer.chat_template == "{{ messages }}"
    assert tokenizer.convert_ids_to_tokens(tokenizer("hello</s>")["input_ids"]) == ["hell", "o", "</s>"]


def test_digits_are_cut_one_by_one_and_any_text_comes_back(tiny_gguf: TinyGguf, tmp_path: Path) -> None:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(converted(tiny_gguf, tmp_path / "out") / "tokenizer.json"))
    assert tokenizer.encode("12").tokens == ["1", "2"]
    text = "h\u00e9llo  w\u00f6rld\n\t\U0001f600 42"
    assert tokenizer.decode(tokenizer.encode(text).ids) == text


def test_a_bos_token_is_added_when_the_file_asks_for_it(tiny_gguf: TinyGguf, tmp_path: Path) -> None:
    from tokenizers import Tokenizer

    folder = converted(tiny_gguf, tmp_path / "out", changes={"tokenizer.ggml.add_bos_token": True})
    assert Tokenizer.from_file(str(folder / "tokenizer.json")).encode("h").tokens == ["<s>", "h"]


def test_the_configuration_holds_what_the_metadata_says(tiny_gguf: TinyGguf, tmp_path: Path) -> None:
    config = json.loads((converted(tiny_gguf, tmp_path / "out") / "config.json").read_text())
    assert config["rms_norm_eps"] == 1e-05
    assert config["tie_word_embeddings"] is True
    assert (config["num_key_value_heads"], config["head_dim"], config["max_position_embeddings"]) == (2, 16, 128)


def test_an_own_output_matrix_is_kept(tiny_gguf: TinyGguf, tmp_path: Path) -> None:
    head = tiny_gguf.weights["token_embd.weight"] * 2
    folder = converted(tiny_gguf, tmp_path / "out", tensors={"output.weight": head})
    assert json.loads((folder / "config.json").read_text())["tie_word_embeddings"] is False
    assert b'"lm_head.weight"' in (folder / "model.safetensors").read_bytes()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"general.architecture": "qwen2"}, "the architecture is 'qwen2', only llama"),
        ({"llama.rope.scaling.type": "yarn"}, "a scaled rotary embedding"),
        ({"llama.expert_count": 8}, "a mixture of experts"),
        ({"llama.rope.dimension_count": 8}, "a part of each head"),
        ({"llama.block_count": None}, "llama.block_count is None, not a size"),
        ({"llama.attention.head_count": 0}, "llama.attention.head_count is 0"),
        ({"llama.attention.head_count_kv": 3}, "4 heads do not divide into 3"),
        ({"llama.rope.freq_base": float("nan")}, "llama.rope.freq_base is nan"),
        ({"llama.feed_forward_length": 100}, r"has shape \[96, 64\], the metadata asks for \[100, 64\]"),
        ({"llama.block_count": 3}, "9 tensors are missing: blk.2.attn_norm.weight"),
        ({"llama.block_count": 1}, "9 tensors have no place in a llama model: blk.1.attn_k.weight"),
        ({"tokenizer.ggml.pre": "glm4"}, "the tokenizer is 'gpt2' with pre-tokenizer 'glm4'"),
        ({"tokenizer.ggml.model": "t5"}, "the tokenizer is 't5'"),
        ({"tokenizer.ggml.merges": ["q \u00ff\u00ff"]}, "merge 0 .* outside the vocabulary"),
        ({"tokenizer.ggml.merges": None}, "tokenizer.ggml.merges is missing"),
        ({"tokenizer.ggml.eos_token_id": 9999}, "the eos token is 9999"),
    ],
)
def test_what_cannot_be_expressed_is_refused(
    tiny_gguf: TinyGguf, tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(HfbenchError, match=message):
        converted(tiny_gguf, tmp_path / "out", changes=changes)


def test_another_family_is_a_usage_error(tiny_gguf: TinyGguf, tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        converted(tiny_gguf, tmp_path / "out", changes={"general.architecture": "gemma3"})


def test_a_truncated_file_names_the_tensor_that_lacks_bytes(tiny_gguf: TinyGguf, tmp_path: Path) -> None:
    from hfbench.convert.gguf import convert_gguf

    path = tiny_gguf.write()
    path.write_bytes(path.read_bytes()[:-100])
    (tmp_path / "out").mkdir()
    with pytest.raises(HfbenchError, match=r"tensor 'blk.1.ffn_down.weight' lacks \d+ bytes"):
        convert_gguf(path, tmp_path / "out", Run())


def test_progress_ends_at_the_bytes_written(tiny_gguf: TinyGguf, tmp_path: Path) -> None:
    from hfbench.convert.gguf import convert_gguf

    events: list[Event] = []
    (tmp_path / "out").mkdir()
    done = convert_gguf(tiny_gguf.write(), tmp_path / "out", Run(events.append))
    last = [event for event in events if isinstance(event, Progress)][-1]
    assert (last.done, last.total, last.unit) == (done.bytes, done.bytes, "B")
    assert done.tensors == len(tiny_gguf.weights)


def test_rounding_to_bf16_is_torchs_for_every_kind_of_number() -> None:
    torch = pytest.importorskip("torch")
    from hfbench.convert.gguf import to_bf16

    bits = numpy.random.default_rng(2).integers(0, 2**32, 200_000, dtype=numpy.uint32)
    values = numpy.concatenate(
        [bits.view(numpy.float32), numpy.float32([0, -0.0, numpy.inf, -numpy.inf, numpy.nan, 1e-45])]
    )
    ours = torch.frombuffer(bytearray(to_bf16(values)), dtype=torch.bfloat16)
    theirs = torch.from_numpy(values).bfloat16()
    assert torch.equal(ours.isnan(), theirs.isnan())
    assert torch.equal(ours.nan_to_num(0), theirs.nan_to_num(0))


def test_the_row_order_of_one_small_head_is_undone() -> None:
    from hfbench.convert.gguf import unpermuted_rows

    original = numpy.arange(16).reshape(8, 2)
    assert (interleaved(original, 2)[unpermuted_rows(8, 2)] == original).all()
    assert unpermuted_rows(4, 1).tolist() == [0, 2, 1, 3]
