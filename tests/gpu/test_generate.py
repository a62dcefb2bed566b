"""Measuring a real model on the CPU: known answers, honest sums, and clear refusals."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hfbench.actions.bench_generate import Generate
from hfbench.codec import decode, encode
from hfbench.errors import HfbenchError, Interrupted, MissingError, UsageError
from hfbench.exits import Exit
from hfbench.gpu import devices
from hfbench.gpu.generate_result import GenerateResult
from hfbench.gpu.timing.formulas import FORMULAS
from hfbench.jobs.events import Event, Log, Metric, Progress
from hfbench.jobs.run import Run

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
load_file = pytest.importorskip("safetensors.torch").load_file
save_file = pytest.importorskip("safetensors.torch").save_file


def measured(model: Path, emit: Callable[[Event], None] = lambda event: None, **values: Any) -> GenerateResult:
    """A short measurement: two iterations after one warm-up unless told otherwise."""
    short = {
        "device": "cpu",
        "prompt": 8,
        "new_tokens": 6,
        "warmup": 1,
        "max_iterations": 2,
        "budget": 30.0,
        "threads": 1,
    }
    return Generate.spec.build({"model": str(model)} | short | values).perform(Run(emit))  # type: ignore[attr-defined, no-any-return]


def refused(model: Path, kind: type[HfbenchError] = HfbenchError, **values: Any) -> str:
    with pytest.raises(kind) as caught:
        measured(model, **values)
    return str(caught.value)


def edit(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def lose_a_weight(model: Path) -> None:
    """Remove a weight in a way that the headers do not show."""
    weights = load_file(model / "model.safetensors")
    del weights["model.layers.1.mlp.up_proj.weight"]
    save_file(weights, model / "model.safetensors", metadata={"format": "pt"})


def test_the_demo_model_knows_the_capital_of_france(demo_model: Path) -> None:
    result = measured(demo_model, prompt_text="The capital of France is", new_tokens=4, max_iterations=1, warmup=0)
    assert result.output_text.startswith(" Paris.")
    assert (result.dtype, result.prompt_tokens) == ("bf16", 5)


def test_cached_decoding_takes_the_tokens_that_decoding_without_a_cache_takes(tiny_llama: Path) -> None:
    from transformers import AutoModelForCausalLM

    from hfbench.gpu.prompts import random_prompts

    result = measured(tiny_llama, batch=3, new_tokens=10)
    model = AutoModelForCausalLM.from_pretrained(tiny_llama).eval()
    ids = torch.tensor(random_prompts(vocabulary=128, special={0, 1, 2}, length=8, batch=3, seed=0))
    with torch.inference_mode():
        for _ in range(10):
            ids = torch.cat([ids, model(ids, use_cache=False).logits[:, -1].argmax(-1, keepdim=True)], dim=1)
    assert result.output_ids == ids[:, 8:].tolist()


def test_samples_add_up_to_less_than_the_wall_time_and_agree_with_each_other(tiny_llama: Path) -> None:
    began = time.perf_counter()
    result = measured(tiny_llama, batch=2, max_iterations=12, ci=0.0001)
    wall, metrics = time.perf_counter() - began, result.metrics
    assert (metrics.ttft.n, metrics.tpot.n, metrics.e2e.n, metrics.itl.n) == (12, 12, 12, 12 * 5)
    assert sum(metrics.e2e.samples) <= result.measured_seconds <= wall
    assert sum(metrics.ttft.samples) + sum(metrics.itl.samples) == pytest.approx(sum(metrics.e2e.samples))
    for ttft, tpot, e2e, rate, prefill in zip(
        metrics.ttft.samples,
        metrics.tpot.samples,
        metrics.e2e.samples,
        metrics.throughput.samples,
        metrics.prefill_rate.samples,
        strict=True,
    ):
        assert tpot == pytest.approx((e2e - ttft) / 5)
        assert rate == pytest.approx(2 * 6 / e2e)
        assert prefill == pytest.approx(2 * 8 / ttft)


def test_the_result_has_the_shape_that_others_read(tiny_llama: Path) -> None:
    result = measured(tiny_llama, batch=2)
    data = json.loads(json.dumps(encode(result)))
    keys = {"p50", "p90", "p99", "mean", "std", "ci_low", "ci_high", "n", "samples", "unit", "formula"}
    assert {"ttft", "tpot", "itl", "e2e", "throughput", "prefill_rate"} == data["metrics"].keys()
    for metric in data["metrics"].values():
        assert keys <= metric.keys()
        assert FORMULAS[metric["formula"]].unit == metric["unit"]
    assert [len(row) for row in data["output_ids"]] == [6, 6]
    assert data["stop_reason"] == "max-iterations"
    assert data["warmup"]["iterations"] == len(data["warmup"]["seconds"]) == 1
    assert data["peak_memory"]["rss_bytes"] > 2**20
    assert data["peak_memory"]["cuda_allocated_bytes"] is None
    assert data["peak_memory"]["reason"] == "no CUDA memory: the run was on cpu"
    assert (data["threads"], data["device"], data["dtype"]) == (1, "cpu", "fp32")
    assert all(verdict.keys() == {"word", "detail", "next"} for verdict in data["verdicts"])
    assert decode(GenerateResult, data) == result


@pytest.mark.usefixtures("terminal")
def test_the_rendering_fits_eighty_columns_and_escapes_what_it_shows(tiny_llama: Path) -> None:
    import dataclasses

    result = measured(tiny_llama)
    hostile = dataclasses.replace(result, output_text="\x1b[2J" + "x" * 200, model="m\x1b]0;" + "y" * 200)
    lines = hostile.lines()
    assert max(map(len, lines)) <= 80
    assert all(line.isprintable() for line in lines)
    assert any(line.startswith("tpot") for line in lines)
    assert any("does not stop at an end token" in line for line in lines)


def test_seed_and_prompt_decide_the_tokens(tiny_llama: Path) -> None:
    first, again, other = (measured(tiny_llama, seed=seed).output_ids for seed in (3, 3, 4))
    assert first == again != other


def test_attention_implementations_agree_and_are_recorded(tiny_llama: Path) -> None:
    sdpa, eager = (measured(tiny_llama, attention=name) for name in ("sdpa", "eager"))
    assert sdpa.output_ids == eager.output_ids
    assert (sdpa.attention, eager.attention) == ("sdpa", "eager")


@pytest.mark.parametrize("dtype", ["bf16", "fp16"])
def test_a_half_precision_asked_for_on_the_cpu_is_kept_and_said(tiny_llama: Path, dtype: str) -> None:
    result = measured(tiny_llama, dtype=dtype)
    assert result.dtype == dtype
    assert any(f"{dtype} was kept on the CPU" in note for note in result.notes)


def test_events_tell_the_phases_and_every_iteration(tiny_llama: Path) -> None:
    events: list[Event] = []
    measured(tiny_llama, events.append, max_iterations=3)
    phases = list(dict.fromkeys(event.phase for event in events if isinstance(event, Progress)))
    assert phases == ["import", "configure", "load", "warm-up", "measure"]
    last = [event for event in events if isinstance(event, Progress)][-1]
    assert (last.done, last.total) == (1.0, 1.0)
    metrics = [(event.name, event.unit) for event in events if isinstance(event, Metric)]
    assert metrics == [("ttft", "s"), ("tpot", "s"), ("e2e", "s")] * 3


def test_a_spent_budget_still_measures_once_and_says_so(tiny_llama: Path) -> None:
    result = measured(tiny_llama, budget=0.001, warmup=5, max_iterations=50)
    assert result.stop_reason == "budget-spent"
    assert (result.warmup.asked, result.warmup.iterations, result.iterations) == (5, 0, 1), "the first one counts"
    assert "ended it after 1 iteration, which was the first and not warmed up" in " ".join(result.notes)
    assert any("warm-up iterations fitted the budget" in note for note in result.notes)
    assert {"interval-not-reached", "few-samples"} <= {verdict.word for verdict in result.verdicts}


def test_a_loose_interval_ends_the_measurement(tiny_llama: Path) -> None:
    result = measured(tiny_llama, ci=1.0, max_iterations=500)
    assert result.stop_reason == "interval-reached"
    assert 10 <= result.iterations < 500


def test_a_cancel_passes_through(tiny_llama: Path) -> None:
    def cancel(event: Event) -> None:
        if isinstance(event, Metric):
            raise Interrupted("cancelled by a test")

    with pytest.raises(Interrupted, match="cancelled by a test"):
        measured(tiny_llama, cancel)


def test_logits_that_overflow_are_told(tiny_copy: Path) -> None:
    weights = load_file(tiny_copy / "model.safetensors")
    weights["model.norm.weight"][:] = torch.inf
    save_file(weights, tiny_copy / "model.safetensors", metadata={"format": "pt"})
    assert "not-finite" in {verdict.word for verdict in measured(tiny_copy).verdicts}


def test_a_prompt_beyond_the_context_is_refused_before_the_weights_are_read(tiny_copy: Path) -> None:
    lose_a_weight(tiny_copy)
    message = refused(tiny_copy, UsageError, prompt=60, new_tokens=5)
    assert "60 prompt tokens and 5 new ones exceed the context of 64" in message


def test_a_text_beyond_the_context_is_refused_before_the_weights_are_read(demo_model: Path, tmp_path: Path) -> None:
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        (tmp_path / name).write_bytes((demo_model / name).read_bytes())
    save_file({f"weight.{number}": torch.zeros(40_000) for number in range(32)}, tmp_path / "model.safetensors")
    message = refused(tmp_path, UsageError, prompt_text="word " * 9000)
    assert "exceed the context of 8192" in message


def test_a_checkpoint_that_lacks_a_weight_is_never_measured(tiny_copy: Path) -> None:
    lose_a_weight(tiny_copy)
    assert "missing weights: model.layers.1.mlp.up_proj.weight" in refused(tiny_copy)


def test_a_checkpoint_of_a_model_without_a_head_is_told_from_a_damaged_one(tiny_copy: Path) -> None:
    lose_a_weight(tiny_copy)
    edit(tiny_copy / "config.json", architectures=["LlamaModel"])
    told = "its weights are those of LlamaModel, and as LlamaForCausalLM it lacks model.layers.1.mlp.up_proj.weight"
    assert told in refused(tiny_copy)


def test_weights_of_another_shape_are_refused(tiny_copy: Path) -> None:
    edit(tiny_copy / "config.json", intermediate_size=48)
    assert "weights of another shape than the configuration says: model.layers.0.mlp" in refused(tiny_copy)


@pytest.mark.parametrize("damage", [b"", b"\xff" * 40, b"version https://git-lfs.github.com/spec/v1\noid sha256:00\n"])
def test_weights_that_are_no_safetensors_are_one_sentence(tiny_copy: Path, damage: bytes) -> None:
    (tiny_copy / "model.safetensors").write_bytes(damage)
    message = refused(tiny_copy)
    assert "\n" not in message
    assert str(tiny_copy) in message


PROBE = """
import json, sys
from hfbench.actions.bench_generate import Generate
from hfbench.errors import HfbenchError
from hfbench.jobs.run import Run

seen = []
def emit(event):
    loaded = bool({"torch", "transformers"} & sys.modules.keys())
    seen.append([type(event).__name__, getattr(event, "phase", ""), loaded])
try:
    Generate(model=sys.argv[1], device="cpu", prompt=4, new_tokens=2, warmup=0, max_iterations=1).perform(Run(emit))
    error = {}
except HfbenchError as caught:
    error = caught.parts()
print(json.dumps({"seen": seen, "error": error, "torch": "torch" in sys.modules}))
"""


def index_outside(model: Path) -> None:
    """Weights that are whole, in a folder beside the model's."""
    (model.parent / "ok").mkdir()
    weights = (model / "model.safetensors").rename(model.parent / "ok" / "model.safetensors")
    names = dict.fromkeys(load_file(weights), "../ok/model.safetensors")
    (model / "model.safetensors.index.json").write_text(json.dumps({"weight_map": names}))


def link_outside(model: Path) -> None:
    weights = (model / "model.safetensors").rename(model.parent / "elsewhere.safetensors")
    (model / "model.safetensors").symlink_to(weights)


def in_a_fresh_process(model: Path) -> Any:
    done = subprocess.run([sys.executable, "-c", PROBE, str(model)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize(
    ("damage", "found", "where"),
    [
        (lambda model: (model / "model.safetensors").write_bytes(b"\xff" * 40), "", "model.safetensors"),
        (lambda model: (model / "model.safetensors").unlink(), "the folder holds no weights", ""),
        (lambda model: (model / "config.json").write_text("{"), "", "config.json"),
        (index_outside, "weight_map leads outside the model's folder", "model.safetensors.index.json"),
        (link_outside, "outside the model's folder; it is not followed", "model.safetensors"),
        (lambda model: edit(model / "config.json", vocab_size=10**12), "vocab_size cannot be right", "config.json"),
        (lambda model: edit(model / "config.json", num_hidden_layers=10**9), "num_hidden_layers", "config.json"),
        (lambda model: edit(model / "config.json", intermediate_size=10**9), "intermediate_size", "config.json"),
    ],
    ids=["header", "no weights", "config", "index outside", "link outside", "vocabulary", "layers", "intermediate"],
)
def test_broken_files_are_told_before_torch_is_loaded(
    tiny_copy: Path, damage: Callable[[Path], object], found: str, where: str
) -> None:
    damage(tiny_copy)
    told = in_a_fresh_process(tiny_copy)
    assert (told["torch"], told["seen"]) == (False, [])
    assert found in told["error"]["found"]
    assert told["error"]["where"] == str(tiny_copy / where)
    assert told["error"]["remedy"]
    assert told["error"]["exit"] == 1


def test_the_import_is_told_before_it_begins(tiny_llama: Path) -> None:
    told = in_a_fresh_process(tiny_llama)
    assert told["error"] == {}
    assert told["seen"][:3] == [["Progress", "import", False], ["Log", "", False], ["Progress", "import", True]]


def test_of_several_faults_the_first_is_told_and_the_others_are_counted(tiny_copy: Path) -> None:
    (tiny_copy / "model.safetensors").write_bytes(b"")
    (tiny_copy / "config.json").write_text("{")
    assert "(and 1 more fault)" in refused(tiny_copy)


def test_a_broken_tokenizer_is_in_the_way_of_a_text_only(tiny_copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tiny_copy / "tokenizer.json").write_text("{")
    monkeypatch.setattr(devices, "list_devices", lambda: devices.Inventory(gpus=(), reason="no driver"))
    notes = measured(tiny_copy, device="auto").notes
    assert any("no output text" in note for note in notes)
    assert notes[0] == "device auto took the CPU, as there is no GPU: no driver"
    assert str(tiny_copy / "tokenizer.json") in refused(tiny_copy, prompt_text="hello")


def test_the_output_of_random_tokens_is_said_to_mean_nothing(demo_model: Path) -> None:
    short = {"new_tokens": 2, "max_iterations": 1, "warmup": 0}
    told = "the prompt was random tokens: the output text means nothing"
    assert told in measured(demo_model, **short).notes
    assert told not in measured(demo_model, prompt_text="The capital", **short).notes


def test_one_of_anything_is_singular(tiny_llama: Path) -> None:
    logged: list[Event] = []
    result = measured(tiny_llama, logged.append, prompt=1, max_iterations=1)
    text = "\n".join([*result.lines(), *(event.text for event in logged if isinstance(event, Log))])
    for part in ("1 iteration in", "after 1 iteration:", "1 prompt token,", "1 thread", "of 1 sample "):
        assert part in text
    assert not re.search(r"\b1 (iterations|samples|threads|\w+ tokens)", text)


def test_a_config_of_an_unknown_kind_is_refused_and_its_code_is_not_run(tiny_copy: Path) -> None:
    marker = tiny_copy / "ran"
    (tiny_copy / "custom.py").write_text(f"open({str(marker)!r}, 'w').close()\nclass Config: ...\n")
    edit(tiny_copy / "config.json", model_type="mine", auto_map={"AutoConfig": "custom.Config"})
    assert "transformers cannot read the configuration" in refused(tiny_copy)
    assert not marker.exists()


def test_a_model_that_fills_gaps_is_refused(tiny_copy: Path) -> None:
    edit(tiny_copy / "config.json", architectures=["BertForMaskedLM"])
    assert "is a BertForMaskedLM, which generates no text" in refused(tiny_copy)


def test_an_attention_that_a_model_lacks_is_named_with_the_way_out(tmp_path: Path) -> None:
    config = transformers.BloomConfig(vocab_size=64, hidden_size=16, n_layer=1, n_head=2)
    transformers.BloomForCausalLM(config).save_pretrained(tmp_path)
    assert refused(tmp_path).endswith("transformers has no attention sdpa for this model. Use attention eager")


def test_weights_that_the_model_has_no_place_for_are_told(tiny_copy: Path) -> None:
    edit(tiny_copy / "config.json", num_hidden_layers=1)
    told = "the model as configured has no place for 9 tensors of its files: model.layers.1."
    assert any(note.startswith(told) for note in measured(tiny_copy).notes)


def test_a_text_without_a_tokenizer_is_refused_with_the_way_out(tiny_llama: Path) -> None:
    assert "prompt_text out to use random tokens" in refused(tiny_llama, prompt_text="hello")


def test_a_gpu_that_is_not_there_is_missing(tiny_llama: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with pytest.raises(MissingError, match="there is no GPU 0") as caught:
        measured(tiny_llama, device="cuda:0")
    assert caught.value.exit is Exit.ENVIRONMENT
