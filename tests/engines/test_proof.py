"""The proof of an engine: what it finds in one that is wrong in one step, and what it cannot tell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hfbench.engines.manifest import Proof, ShapeProfile
from hfbench.engines.proof import prove
from hfbench.engines.running.decoder import EngineDecoder
from hfbench.gpu.generate_model import Loaded, Words
from hfbench.jobs.run import Run

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

SHAPES = ShapeProfile(batch=2, min_prompt=3, max_prompt=6, context=12)
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def loaded() -> Loaded:
    torch.manual_seed(2)
    config = transformers.LlamaConfig(
        vocab_size=64, hidden_size=32, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=2, max_position_embeddings=32, initializer_range=0.5,
    )  # fmt: skip
    model = transformers.LlamaForCausalLM(config).eval()
    return Loaded(model=model, device=CPU, dtype="fp32", seconds=0.0)


class Faulty:
    """The eager model over a static cache, whose logits after a position are changed."""

    def __init__(self, model: Any, change: Callable[[Any, int], Any]) -> None:
        from hfbench.gpu.graphs.step import DecodeStep

        self.held, self.change = DecodeStep(model, CPU, batch=SHAPES.batch, room=SHAPES.context), change

    def prefill(self, ids: Any) -> Any:
        return self.change(self.held.prefill(ids).clone(), 0)

    def step(self, tokens: Any, position: int) -> Any:
        self.held.write(tokens)
        return self.change(self.held.run().clone(), position)


def proof_of(loaded: Loaded, change: Callable[[Any, int], Any]) -> Proof:
    engine = EngineDecoder(Faulty(loaded.model, change), SHAPES, CPU, "faulty")
    return prove(engine, loaded, Words(None), Run())


def test_an_engine_that_changes_nothing_is_proven_at_both_ends_of_its_profile(loaded: Loaded) -> None:
    proof = proof_of(loaded, lambda logits, position: logits)
    assert (proof.verdict, proof.why) == ("proven", "")
    assert [(case.prompt, case.steps) for case in proof.cases] == [(3, 8), (6, 6)]
    assert len({case.prompt_sha256 for case in proof.cases}) == 2
    again = proof_of(loaded, lambda logits, position: logits)
    assert [case.prompt_sha256 for case in again.cases] == [case.prompt_sha256 for case in proof.cases]


def test_one_wrong_step_in_the_middle_is_found(loaded: Loaded) -> None:
    def spoilt(logits: Any, position: int) -> Any:
        return logits * 1.01 if position == 7 else logits

    proof = proof_of(loaded, spoilt)
    assert proof.verdict == "differs"
    assert "at 2 x 3 logits are off by" in proof.why
    assert all(case.relative == pytest.approx(0.01, rel=0.5) for case in proof.cases)


def test_other_tokens_that_come_of_a_near_tie_are_told_and_not_refused(loaded: Loaded) -> None:
    proof = proof_of(loaded, lambda logits, position: logits + 1e-6 * torch.randn_like(logits))
    assert proof.verdict == "proven"


def test_logits_that_are_not_finite_are_never_proven(loaded: Loaded) -> None:
    def nan(logits: Any, position: int) -> Any:
        logits[0, 0] = float("nan") if position == 5 else logits[0, 0]
        return logits

    proof = proof_of(loaded, nan)
    assert proof.verdict == "differs"
    assert "NaN or infinite" in proof.why
    assert not proof.cases[0].finite


def test_an_eager_model_whose_logits_are_nan_proves_nothing(loaded: Loaded) -> None:
    import copy

    broken = copy.deepcopy(loaded.model)
    with torch.no_grad():
        broken.lm_head.weight[0] = float("nan")
    engine = EngineDecoder(Faulty(loaded.model, lambda logits, position: logits), SHAPES, CPU, "faulty")
    proof = prove(engine, Loaded(model=broken, device=CPU, dtype="fp32", seconds=0.0), Words(None), Run())
    assert (proof.verdict, proof.cases[0].finite) == ("differs", False)
