"""A model as programs of fixed shapes, run by torch without any builder: the same logits as eager."""

from __future__ import annotations

from typing import Any

import pytest
from built_engines import BATCH, CONTEXT, LONGEST

from hfbench.engines.builders.base import Asked
from hfbench.engines.programs import CacheForm, cache_form, functional, in_place, read_form, write_form
from hfbench.errors import HfbenchError, UsageError
from hfbench.gpu.decoding import Decoder
from hfbench.gpu.generate_model import Loaded

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

SMALL = {
    "vocab_size": 128,
    "hidden_size": 32,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
}
FAMILIES: dict[str, dict[str, Any]] = {
    "llama": SMALL,
    "qwen3": {**SMALL, "head_dim": 8},
    "mistral": {**SMALL, "sliding_window": CONTEXT},
    "gemma3_text": {**SMALL, "head_dim": 8, "sliding_window": CONTEXT},
    "mixtral": {**SMALL, "num_local_experts": 4},
    "gpt_neox": {name: value for name, value in SMALL.items() if name != "num_key_value_heads"},
}
CPU = torch.device("cpu")


def model_of(family: str, **more: Any) -> Loaded:
    torch.manual_seed(1)
    config = transformers.AutoConfig.for_model(family, **{**FAMILIES.get(family, SMALL), **more})
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    return Loaded(model=model, device=CPU, dtype="fp32", seconds=0.0)


def asked(**more: Any) -> Asked:
    told = {"model": "tiny", "builder": "aoti", "batch": BATCH, "min_prompt": 1, "max_prompt": LONGEST}
    return Asked(**{**told, "context": CONTEXT, "dtype": "fp32", "gpu": None, **more})


def worst_of(loaded: Loaded, form: CacheForm, call: Any) -> float:
    """The largest error of a prompt and five steps as a share of the largest logit; `call` takes ids,
    position, keys and values."""
    eager, ids = Decoder(loaded.model, CPU), torch.randint(3, 120, (BATCH, LONGEST))
    keys, values = form.zeros(CPU)
    wanted, cache = eager.forward(ids, None)
    position, worst = 0, 0.0
    for _ in range(6):
        logits, keys, values = call(ids, torch.tensor(position), keys, values)
        worst = max(worst, float((logits - wanted).abs().max() / wanted.abs().max()))
        position += ids.shape[1]
        ids = wanted.argmax(-1, keepdim=True)
        wanted, cache = eager.forward(ids, cache)
    return worst


@pytest.mark.parametrize("family", FAMILIES)
def test_both_kinds_of_programs_give_the_logits_of_eager(family: str) -> None:
    loaded = model_of(family)
    form = cache_form(loaded, asked())
    programs = {each.name: each.module for each in in_place(loaded, asked(), form)}
    one, layers = functional(loaded, asked(), form).module, len(form.keys)

    def changing(ids: Any, position: Any, keys: Any, values: Any) -> Any:
        return programs["decode" if ids.shape[1] == 1 else "prefill"](ids, position, keys, values), keys, values

    def pure(ids: Any, position: Any, keys: Any, values: Any) -> Any:
        before = [each.clone() for each in keys]
        logits, *cache = one(ids, position, keys, values)
        assert all(torch.equal(a, b) for a, b in zip(before, keys, strict=True))
        return logits, cache[:layers], cache[layers:]

    with torch.no_grad():
        assert worst_of(loaded, form, changing) < 1e-5
        assert worst_of(loaded, form, pure) < 1e-5


def test_a_window_shorter_than_the_context_is_refused_with_what_would_fit() -> None:
    with pytest.raises(UsageError, match=r"look back 8 tokens only, and the context is 24.*--context 8 or less"):
        cache_form(model_of("mistral", sliding_window=8), asked())


def test_a_cache_of_more_than_keys_and_values_is_refused_by_its_name() -> None:
    with pytest.raises(HfbenchError, match="LinearAttentionLayer"):
        cache_form(model_of("lfm2", layer_types=["conv", "full_attention"]), asked())


@pytest.mark.parametrize(
    ("least", "most", "names", "varies"),
    [(1, 12, ["decode", "prefill"], True), (12, 12, ["decode", "prefill"], False), (1, 1, ["decode"], False)],
)
def test_a_dimension_is_dynamic_only_where_lengths_differ(
    least: int, most: int, names: list[str], varies: bool
) -> None:
    loaded, wish = model_of("llama"), asked(min_prompt=least, max_prompt=most)
    programs = in_place(loaded, wish, cache_form(loaded, wish))
    assert [each.name for each in programs] == names
    assert any(each.dynamic is not None for each in programs) == varies


def test_the_form_of_a_cache_is_read_as_it_was_written(tmp_path: Any) -> None:
    form = CacheForm(dtype="float32", keys=((1, 2, 24, 8),), values=((1, 2, 24, 4),), vocabulary=128)
    write_form(tmp_path, form)
    assert read_form(tmp_path) == form
    (tmp_path / "cache.json").write_text('{"dtype": 3}')
    with pytest.raises(HfbenchError, match=r"cache\.json: cannot be read"):
        read_form(tmp_path)
