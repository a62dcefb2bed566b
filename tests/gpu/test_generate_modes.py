"""Modes of bench.generate: the same tokens as eager, compared before anything is timed."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hfbench.actions.bench_generate import Generate
from hfbench.codec import decode, encode
from hfbench.errors import HfbenchError, MissingError
from hfbench.exits import Exit
from hfbench.gpu.generate_result import GenerateResult
from hfbench.gpu.reading import Unavailable
from hfbench.jobs.events import Event, Progress
from hfbench.jobs.run import Run

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
load_file = pytest.importorskip("safetensors.torch").load_file
save_file = pytest.importorskip("safetensors.torch").save_file


def measured(model: Path, emit: Callable[[Event], None] = lambda event: None, **values: Any) -> GenerateResult:
    short = {
        "device": "cpu",
        "prompt": 8,
        "new_tokens": 6,
        "warmup": 1,
        "max_iterations": 2,
        "budget": 60.0,
        "threads": 1,
    }
    return Generate.spec.build({"model": str(model)} | short | values).perform(Run(emit))  # type: ignore[attr-defined, no-any-return]


def loaded(folder: Path) -> Any:
    return transformers.AutoModelForCausalLM.from_pretrained(folder).eval()


@pytest.mark.parametrize("batch", [1, 3])
def test_a_static_cache_gives_the_tokens_of_eager_and_says_what_it_was_compared_with(
    tiny_llama: Path, batch: int
) -> None:
    eager, static = (measured(tiny_llama, mode=mode, batch=batch) for mode in ("eager", "static-cache"))
    assert static.output_ids == eager.output_ids
    assert (eager.verified, eager.compiled, static.mode) == (None, None, "static-cache")
    verified = static.verified
    assert verified is not None
    assert (verified.steps, verified.same_tokens, verified.of_tokens) == (6, 6 * batch, 6 * batch)
    assert isinstance(verified.largest_error, float)
    assert 0 < verified.largest_error < verified.allowed
    assert decode(GenerateResult, encode(static)) == static
    assert any(line.startswith("checked  eager: the same tokens") for line in static.lines())


def test_every_iteration_begins_with_an_empty_cache(tiny_llama: Path) -> None:
    result = measured(tiny_llama, mode="static-cache", max_iterations=5)
    assert "output-varies" not in {verdict.word for verdict in result.verdicts}


def test_the_comparison_is_a_phase_before_the_warm_up(tiny_llama: Path) -> None:
    events: list[Event] = []
    measured(tiny_llama, events.append, mode="static-cache")
    phases = list(dict.fromkeys(event.phase for event in events if isinstance(event, Progress)))
    assert phases == ["import", "configure", "load", "verify", "warm-up", "measure"]


def test_a_mode_with_other_logits_is_never_timed(tiny_llama: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from hfbench.gpu import generate_modes

    class Late(generate_modes.DecodeStep):
        """Reads the token before the one that was written last."""

        def write(self, tokens: Any) -> None:
            self.cache.layers[0].cumulative_length.sub_(1)
            super().write(tokens)

    monkeypatch.setattr(generate_modes, "DecodeStep", Late)
    with pytest.raises(HfbenchError, match="mode static-cache gives other logits than eager: off by"):
        measured(tiny_llama, mode="static-cache")


def test_logits_that_eager_overflows_as_well_are_told_and_not_taken_for_a_fault(tiny_copy: Path) -> None:
    weights = load_file(tiny_copy / "model.safetensors")
    weights["model.norm.weight"][:] = torch.inf
    save_file(weights, tiny_copy / "model.safetensors", metadata={"format": "pt"})
    result = measured(tiny_copy, mode="static-cache")
    assert "not-finite" in {verdict.word for verdict in result.verdicts}
    assert result.verified is not None
    assert result.verified.largest_error == Unavailable("eager's own logits are not finite")


def test_a_graph_without_cuda_is_missing_and_nothing_is_loaded() -> None:
    with pytest.raises(MissingError, match="mode cudagraph needs a GPU with CUDA") as caught:
        measured(Path("nowhere"), mode="cudagraph")
    assert caught.value.exit is Exit.ENVIRONMENT


@pytest.mark.parametrize("new_tokens", [2, 7])
def test_a_recorded_step_generates_what_eager_does(tiny_llama: Path, new_tokens: int) -> None:
    """The code of mode cudagraph, with a tape in the place of a graph; it is never timed so."""
    from hfbench.gpu.decoding import Decoder
    from hfbench.gpu.generate_modes import prepare

    model, device = loaded(tiny_llama), torch.device("cpu")
    prompt = torch.tensor([[5, 9, 17], [44, 3, 80]])
    eager = Decoder(model, device).generate(prompt, new_tokens)
    told = {"dtype": "fp32", "prompt": prompt, "new_tokens": new_tokens, "compile_mode": "default"}
    ready = prepare("cudagraph", model, device, **told)
    assert ready.decoder.generate(prompt, new_tokens).output_ids == eager.output_ids
    assert ready.decoder.generate(prompt, new_tokens).output_ids == eager.output_ids
    assert ready.verified is not None
    assert ready.verified.graph.startswith("the graph passed 4 steps")


def test_a_graph_that_is_wrong_is_refused_by_the_name_of_its_fault(
    tiny_llama: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hfbench.gpu import generate_modes

    class Forgets(generate_modes.DecodeStep):
        def rewind(self) -> None:
            pass

    monkeypatch.setattr(generate_modes, "DecodeStep", Forgets)
    told = {"dtype": "fp32", "prompt": torch.tensor([[5, 9, 17]]), "new_tokens": 4, "compile_mode": "default"}
    with pytest.raises(HfbenchError, match=r"is wrong \(cache not reset after warm-up\)"):
        generate_modes.prepare("cudagraph", loaded(tiny_llama), torch.device("cpu"), **told)


@pytest.mark.slow
def test_compiling_cold_and_warm_are_told_apart(
    tiniest_llama: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "inductor"))
    eager = measured(tiniest_llama)
    first, again = (measured(tiniest_llama, mode="compile") for _ in range(2))
    assert first.output_ids == again.output_ids == eager.output_ids
    assert first.compiled is not None
    assert again.compiled is not None
    cold, warm = first.compiled.cold_seconds, first.compiled.warm_seconds
    assert isinstance(cold, float)
    assert isinstance(warm, float)
    assert warm < cold
    assert (first.compiled.mode, first.compiled.graphs, first.compiled.graph_breaks) == ("default", 1, 0)
    assert isinstance(again.compiled.cold_seconds, Unavailable)
    assert isinstance(again.compiled.warm_seconds, float)
    assert any(line.startswith("compiled mode default: cold") for line in first.lines())


@pytest.mark.slow
def test_without_a_compiler_there_is_one_sentence(
    tiniest_llama: Path, tmp_path: Path, hfbench: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    words = ["bench", "generate", tiniest_llama, "--mode", "compile", "--prompt", "8", "--new-tokens", "4"]
    told = {"CXX": str(tmp_path / "none"), "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "inductor")}
    done = hfbench(*words, env=told, timeout=250)
    assert done.returncode == Exit.ENVIRONMENT
    assert done.stderr.splitlines()[-1].startswith("hfbench: mode compile: torch.compile finds no C++ compiler.")
    assert "Traceback" not in done.stderr
