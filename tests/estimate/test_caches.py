"""What layers keep: by token, by window, by state, by runtime and by rank."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hfbench.estimate.cache_bytes import cache_shares, cache_terms, kv_bytes_of_next_token, kv_bytes_per_token
from hfbench.estimate.model import Reading
from hfbench.estimate.runtimes import runtimes
from hfbench.estimate.workload import Workload
from hfbench.units import GIB, MIB

Read = Callable[..., Reading]
Work = Callable[..., Workload]
ConfigOf = Callable[..., dict[str, Any]]


def kept(reading: Reading, work: Workload) -> int:
    return sum(sum(term) for term in cache_terms(reading.model, work).values())


def per_token(reading: Reading, runtime: str = "vllm") -> int:
    assert reading.model.caches is not None
    return kv_bytes_per_token(reading.model.caches, runtimes()[runtime], 2)


def test_smollm2_keeps_720_mib_at_32k(read: Read, work: Work, config_of: ConfigOf) -> None:
    reading = read(config_of("smollm2"))
    assert kept(reading, work(reading)) == 720 * MIB


def test_deepseek_v3_keeps_2_14_gib_as_latent_vectors(read: Read, work: Work, config_of: ConfigOf) -> None:
    reading = read(config_of("deepseek_v3"))
    assert per_token(reading) == 70_272
    assert round(kept(reading, work(reading)) / GIB, 2) == 2.14


def test_deepseek_v3_keeps_57_times_as_much_where_the_runtime_expands(
    read: Read, work: Work, config_of: ConfigOf
) -> None:
    reading = read(config_of("deepseek_v3"))
    expanded = kept(reading, work(reading, runtime="transformers-5.14"))
    assert expanded == 32768 * 61 * 128 * (128 + 64 + 128) * 2
    assert cache_shares(reading.model, work(reading, runtime="transformers-5.14"))[0].kind == "expanded_attention"


@pytest.mark.parametrize(
    ("name", "gib"), [("llama", 16.0), ("deepseek_v3", 8.58), ("gemma3", 11.62), ("qwen3_next", 3.29)]
)
def test_four_sequences_of_32k_keep_what_the_layers_keep(
    read: Read, work: Work, config_of: ConfigOf, name: str, gib: float
) -> None:
    reading = read(config_of(name))
    assert round(kept(reading, work(reading, batch=4)) / GIB, 2) == gib


def test_sliding_layers_stop_at_their_window(read: Read, work: Work, config_of: ConfigOf) -> None:
    reading = read(config_of("gemma3"))
    sliding, full = cache_shares(reading.model, work(reading))
    assert (sliding.kind, sliding.layers, sliding.window) == ("sliding_attention", 52, 1024)
    assert sliding.total_bytes == 52 * 1024 * 8192
    assert (full.kind, full.layers, full.total_bytes) == ("full_attention", 10, 10 * 32768 * 8192)
    assert per_token(reading) == 62 * 8192
    assert kv_bytes_of_next_token(reading.model, work(reading)) == 10 * 8192
    assert kv_bytes_of_next_token(reading.model, work(reading, context=100)) == 62 * 8192


def test_recurrent_layers_keep_a_state_that_does_not_grow(read: Read, work: Work, config_of: ConfigOf) -> None:
    reading = read(config_of("qwen3_next"))
    linear, full = cache_shares(reading.model, work(reading))
    assert (linear.kind, linear.layers, linear.bytes_per_token) == ("linear_attention", 36, 0)
    assert linear.state_bytes == 32 * 128 * 128 * 4 + (2 * 16 * 128 + 32 * 128) * 4 * 2
    assert full.layers == 12
    assert per_token(reading) == 12 * 2 * 2 * 256 * 2


def test_an_encoder_makes_keys_and_keeps_none(read: Read, work: Work) -> None:
    sizes = {"hidden_size": 384, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 1536}
    reading = read({"model_type": "bert", "architectures": ["BertModel"], **sizes})
    assert per_token(reading) == 18_432
    assert kept(reading, work(reading)) == 0
    assert kv_bytes_of_next_token(reading.model, work(reading)) == 0


def test_a_listening_decoder_keeps_the_frames_whatever_the_context(read: Read, work: Work) -> None:
    reading = read({"model_type": "whisper", "architectures": ["WhisperForConditionalGeneration"]})
    short, long = (cache_terms(reading.model, work(reading, context=each)) for each in (1, 400))
    assert short["cross_attention"] == long["cross_attention"] == [4 * 1500 * 2 * 384 * 2]
    assert long["kv_cache"] == [400 * 4 * 2 * 384 * 2]


def test_gemma_4_layers_have_heads_of_their_own_and_share_caches(read: Read, work: Work, config_of: ConfigOf) -> None:
    text = config_of("gemma3", model_type="gemma4_text", num_hidden_layers=6, head_dim=256, num_key_value_heads=8)
    text |= {"global_head_dim": 512, "num_global_key_value_heads": 2, "num_kv_shared_layers": 2}
    text["attention_k_eq_v"] = True
    text["layer_types"] = ["sliding_attention", "full_attention", "sliding_attention"] * 2
    reading = read({"model_type": "gemma4", "text_config": text})
    shares = {share.kind: share for share in cache_shares(reading.model, work(reading))}
    assert (shares["sliding_attention"].layers, shares["sliding_attention"].bytes_per_token) == (3, 2 * 8 * 256 * 2)
    assert (shares["full_attention"].layers, shares["full_attention"].bytes_per_token) == (1, 2 * 2 * 512 * 2)
    assert shares["shared_with_an_earlier_layer"].total_bytes == 0


def test_tokens_chosen_by_an_index_cost_index_keys(read: Read, work: Work, config_of: ConfigOf) -> None:
    sparse = config_of("deepseek_v3", model_type="deepseek_v32", index_head_dim=128, index_n_heads=64)
    reading = read(sparse)
    assert per_token(reading) == 70_272
    assert cache_terms(reading.model, work(reading))["index_keys"] == [61 * 32768 * 128 * 2]


def test_heads_are_divided_among_ranks_but_never_finer_than_one(read: Read, work: Work, config_of: ConfigOf) -> None:
    reading = read(config_of("llama"))
    alone = cache_terms(reading.model, work(reading))["kv_cache"][0]
    assert cache_terms(reading.model, work(reading, tp=4))["kv_cache"][0] * 4 == alone
    assert cache_terms(reading.model, work(reading, tp=32))["kv_cache"][0] * 8 == alone


def test_copies_of_the_attention_share_the_batch(read: Read, work: Work, config_of: ConfigOf) -> None:
    reading = read(config_of("gpt_oss"))
    one = kept(reading, work(reading, batch=1))
    assert kept(reading, work(reading, batch=12, ep=8)) == 2 * one  # eight copies, two sequences on the fullest
    assert kept(reading, work(reading, batch=12, tp=8, ep=8)) * 8 == 12 * one


def test_layers_of_experts_keep_nothing(read: Read, work: Work) -> None:
    config = {
        "model_type": "nemotron_h",
        "hybrid_override_pattern": "MEM*E-",
        "num_key_value_heads": 2,
        "head_dim": 128,
        "mamba_num_heads": 8,
        "num_hidden_layers": 99,
    }
    reading = read(config)
    assert per_token(reading) == 2 * 2 * 128 * 2
    shares = {share.kind: share.layers for share in cache_shares(reading.model, work(reading))}
    assert shares == {"mamba": 2, "none": 3, "full_attention": 1}


def test_a_window_that_looks_ahead_looks_half_as_far_back(read: Read, work: Work, config_of: ConfigOf) -> None:
    reading = read(config_of("gemma3", use_bidirectional_attention=True))
    assert cache_shares(reading.model, work(reading))[0].window == 513


def test_latent_vectors_are_on_every_rank(read: Read, work: Work, config_of: ConfigOf) -> None:
    reading = read(config_of("deepseek_v3"))
    assert cache_terms(reading.model, work(reading, tp=8)) == cache_terms(reading.model, work(reading))


def test_stages_divide_the_layers(read: Read, work: Work, config_of: ConfigOf) -> None:
    reading = read(config_of("smollm2"))
    alone = cache_terms(reading.model, work(reading))["kv_cache"][0]
    staged = cache_terms(reading.model, work(reading, pp=4))["kv_cache"]
    assert sum(staged) == alone
    assert [each * 30 // alone for each in staged] == [7, 8, 8, 7]


def test_eight_bits_halve_the_cache(read: Read, work: Work, config_of: ConfigOf) -> None:
    reading = read(config_of("llama"))
    assert kept(reading, work(reading, kv_dtype="fp8")) * 2 == kept(reading, work(reading))
