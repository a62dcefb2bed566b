"""Where a conversion goes, how far it is, and three walls: each state has words of its own, not a colour alone."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
from textual.app import App, ComposeResult

from hfbench.errors import HfbenchError
from hfbench.jobs.snapshot import PhaseProgress
from hfbench.jobs.state import State
from hfbench.units import GIB
from hfbench.widgets.cells import Span
from hfbench.widgets.convert_panes import RowDetail
from hfbench.widgets.facts_lines import Fact, facts_lines
from hfbench.widgets.glyphs import ASCII, UNICODE
from hfbench.widgets.wall_lines import Doing, Scene, WallTold, progress_words, scene_facts, wall_of

PLANNED = Scene(folder="/out", plan="81 tensors, 135 MiB in 11 files")
CONVERSION = Doing(job="1", action="convert.megatron", about=("/out",), state=State.RUNNING)
PROOF = Doing(job="2", action="verify", about=("/m", "/out"), state=State.RUNNING)


def phase(name: str, done: float, total: float, unit: str = "B", seconds: float = 4.0) -> PhaseProgress:
    return PhaseProgress(phase=name, done=done, total=total, unit=unit, began=0.0, first=0.0, at=seconds)


def told(scene: Scene) -> dict[str, Fact]:
    facts = scene_facts(scene, UNICODE)
    return {fact.label: fact for fact in facts if fact.label}


def test_progress_has_bytes_a_rate_and_what_is_left_of_the_time() -> None:
    words = progress_words(phase("convert", 2 * GIB, 8 * GIB), ASCII)
    assert words == "convert ####............ 25% 2.00 GiB of 8.00 GiB, 512 MiB/s, ~12 s left"
    assert progress_words(phase("compare", 3, 12, "tensors", 0.001), ASCII).endswith("25% 3 of 12 tensors")
    assert progress_words(None, ASCII) == "begins"


@pytest.mark.parametrize(
    ("doing", "state", "words"),
    [
        (None, "muted", "x writes 81 tensors"),
        (replace(CONVERSION, state=State.STARTING), "", "begins"),
        (replace(CONVERSION, state=State.QUEUED, waits_for="3f9a"), "", "waits for 3f9a"),
        (replace(CONVERSION, phases=(phase("convert", 1, 4),)), "", "25%"),
        (replace(CONVERSION, state=State.FINISHED, result=SimpleNamespace(headline="done so")), "ok", "done so"),
        (replace(CONVERSION, state=State.CANCELLED), "warn", "x goes on where it stopped"),
        (replace(CONVERSION, state=State.FAILED, error=HfbenchError("disk full")), "error", "failed: disk full"),
        (replace(CONVERSION, state=State.DIED), "error", "died: no reason was left"),
    ],
)
def test_a_conversion_says_what_it_does_or_did(doing: Doing | None, state: str, words: str) -> None:
    fact = told(replace(PLANNED, conversion=doing))["convert"]
    assert words in fact.value
    assert fact.state == state


def test_jobs_under_way_in_another_folder_are_told_as_such() -> None:
    plain = told(replace(PLANNED, conversion=CONVERSION, proof=PROOF))
    assert "proof" not in plain
    facts = told(
        replace(PLANNED, taken=True, conversion=CONVERSION, made_elsewhere="/a", proof=PROOF, proven_elsewhere="/b")
    )
    assert facts["convert"].value == "into another folder, /a: begins"
    assert facts["proof"].value == "under way of another folder, /b"
    assert "something lies already" in facts["to"].value


def test_notes_are_told_in_full_until_the_plan_is_written() -> None:
    scene = replace(PLANNED, notes=("tied to the embedding", "padded"))
    assert scene_facts(scene, UNICODE)[-2:] == [Fact("note", "tied to the embedding"), Fact("", "padded")]
    assert "note" not in told(replace(scene, conversion=CONVERSION))


def test_nothing_can_be_proven_before_it_is_there() -> None:
    assert told(PLANNED)["weights"].value == "nothing to prove yet"
    assert "V proves it" in told(replace(PLANNED, taken=True))["weights"].value
    asked = told(replace(PLANNED, taken=True, environment="mcore"))["forward"].value
    assert asked == "not asked yet: V proves it, with megatron-core of mcore"
    assert told(replace(PLANNED, taken=True))["to"].state == "warn"


def test_walls_fill_while_the_proof_goes_on() -> None:
    walls = {"weights": WallTold(verdict="proven", words="54 tensors")}
    live = replace(PROOF, phases=(phase("forward reference", 1, 2, "prompts"),), walls=walls)
    facts = told(replace(PLANNED, taken=True, proof=live))
    assert (facts["weights"].value, facts["weights"].state) == ("proven: 54 tensors", "ok")
    assert facts["forward"].value.startswith("reference ")
    assert facts["task"].value == "waits"
    assert "proof" not in facts


def test_a_phase_that_names_no_wall_belongs_to_the_first_that_runs_models_and_has_no_verdict() -> None:
    done = {"weights": WallTold(verdict="proven")}
    assert wall_of("reference logits", done, ("weights", "forward", "task")) == "forward"
    assert wall_of("task perplexity", {}, ("weights", "task")) == "task"
    assert wall_of("reference", {}, ("weights", "forward", "task")) == "forward"
    assert wall_of("reference", done, ("weights",)) == ""
    live = replace(PROOF, phases=(phase("reference", 1, 2, "prompts"),))
    assert "was looked at" in told(replace(PLANNED, taken=True, proof=live))["weights"].value


def over(verdict: str, **walls: WallTold) -> Doing:
    result = SimpleNamespace(
        verdict=verdict, headline=f"{verdict}: some", reports=("/jobs/verify.md", "/jobs/verify.json")
    )
    return replace(PROOF, state=State.FINISHED, result=result, walls=walls)


@pytest.mark.parametrize(
    ("verdict", "state", "sign"), [("proven", "ok", "ok"), ("differs", "error", "x"), ("could not", "unknown", "~")]
)
def test_the_verdict_is_a_word_and_a_sign_and_the_report_has_its_path(verdict: str, state: str, sign: str) -> None:
    wall = WallTold(verdict=verdict, words="54 tensors", details=("linear_qkv differs",))
    scene = replace(PLANNED, taken=True, proof=over(verdict, weights=wall))
    facts = told(scene)
    assert facts["proof"] == Fact("proof", f"{verdict}: some", state)  # type: ignore[arg-type]
    assert facts["weights"].state == state
    assert facts["report"].value == "/jobs/verify.md"
    lines = ["".join(text for text, _ in line) for line in facts_lines(scene_facts(scene, ASCII), 60, ASCII)]
    assert any(line.startswith("weights") and f" {sign} {verdict}: 54 tensors" in line for line in lines)
    assert any(line.strip() == "linear_qkv differs" for line in lines)


def test_a_proof_that_ended_badly_is_told_where_the_first_wall_would_be() -> None:
    failed = replace(PROOF, state=State.FAILED, error=HfbenchError("no such folder"))
    facts = told(replace(PLANNED, taken=True, proof=failed))
    assert "no such folder" in facts["weights"].value
    assert facts["weights"].state == "error"
    assert facts["task"].value == "not looked at"


def test_walls_that_are_not_asked_for_say_why() -> None:
    scene = replace(PLANNED, taken=True, walls=("weights",), why_not_all="needs torch")
    assert told(scene)["forward"].value == "will not be asked: needs torch"


def test_before_it_is_known_what_to_convert_nothing_is_told() -> None:
    assert scene_facts(Scene(folder=""), UNICODE) == []


async def test_nothing_is_hidden_below_the_scrollbar() -> None:
    class Bench(App[None]):
        def compose(self) -> ComposeResult:
            yield RowDetail()

    facts = [Fact(str(number), "x" * 60) for number in range(8)]
    async with Bench().run_test(size=(50, 10)) as pilot:
        detail = pilot.app.query_one(RowDetail)
        detail.display = True
        widths: list[int] = []

        def laid(width: int) -> list[list[Span]]:
            widths.append(width)
            return facts_lines(facts, width, ASCII)

        detail.show(laid)
        await pilot.pause()
        await pilot.pause()
        assert detail.show_vertical_scrollbar
        assert widths[-1] == detail.scrollable_content_region.width == 49
