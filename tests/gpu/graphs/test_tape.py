"""The tape obeys the rules of CUDA graphs: it records without computing, and replays at fixed addresses."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from hfbench.gpu.graphs.recording import SyncDuringCapture  # noqa: E402 - it needs torch
from hfbench.gpu.graphs.tape import Tape  # noqa: E402


def test_recording_leaves_memory_from_outside_as_it_was_and_its_output_unreadable() -> None:
    total, tape = torch.zeros(3), Tape()

    def run() -> torch.Tensor:
        total.add_(1)
        total[1:].mul_(2)
        return total + 1

    tape.record(run)
    assert total.tolist() == [0, 0, 0]
    assert tape.output.isnan().all()
    tape.replay()
    assert total.tolist() == [1, 2, 2]
    assert tape.output.tolist() == [2, 3, 3]


def test_a_replay_reads_inputs_where_they_were_captured_and_writes_its_output_there() -> None:
    given, tape = torch.zeros(2, 2), Tape()
    tape.record(lambda: (given.transpose(0, 1).reshape(-1) @ torch.ones(4)).exp())
    place = tape.output.data_ptr()
    for value in (0.0, 1.0, 0.5):
        given.fill_(value)
        tape.replay()
        assert tape.output.item() == pytest.approx(torch.tensor(4 * value).exp().item())
        assert tape.output.data_ptr() == place


def test_python_runs_once() -> None:
    calls: list[int] = []
    tape = Tape()
    tape.record(lambda: calls.append(1) or torch.ones(1) * len(calls))
    tape.replay()
    tape.replay()
    assert (len(calls), tape.output.item()) == (1, 1.0)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize(
    ("read", "told"),
    [
        (lambda given: given.sum().item(), ".item()"),
        (lambda given: 1 if given.sum() > 0 else 2, "bool("),
        (lambda given: int(given.sum()), ".item()"),
        (lambda given: given.tolist(), ".tolist()"),
        (lambda given: given.numpy(), ".numpy()"),
        (lambda given: given.cpu(), ".cpu()"),
        (lambda given: given[given > 0], "boolean mask"),
        (lambda given: given.nonzero(), "nonzero"),
        (lambda given: torch.where(given > 0), "whose shape depends on the values"),
        (lambda given: torch.equal(given, given), "torch.equal"),
        (lambda given: torch.unique(given), "unique"),
        (lambda given: torch.repeat_interleave(torch.ones(2, dtype=torch.long)), "repeat_interleave"),
        (lambda given: given.masked_select(given > 0), "masked_select"),
    ],
)
def test_what_makes_the_host_wait_is_refused(mode, read, told) -> None:  # type: ignore[no-untyped-def]
    given = torch.ones(2)
    with mode(), pytest.raises(SyncDuringCapture, match=r".*") as refused:
        Tape().record(lambda: read(given))
    assert told in str(refused.value)


def test_an_index_by_places_is_no_wait() -> None:
    given, places, tape = torch.arange(4.0), torch.tensor([3, 1]), Tape()
    tape.record(lambda: given[places])
    places.copy_(torch.tensor([0, 2]))
    tape.replay()
    assert tape.output.tolist() == [0, 2]
