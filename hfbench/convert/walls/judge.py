"""What the process of the walls answers: two models on the same tokens, compared. Runs in a child process: torch."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from hfbench.convert.formats.open import megatron_facts, open_tensors
from hfbench.convert.walls.forward_pass import MegatronModel
from hfbench.convert.walls.parting import first_difference
from hfbench.convert.walls.reference import Reference
from hfbench.convert.walls.shards import open_shards
from hfbench.errors import HfbenchError

Tell = Callable[[str, float, float], None]
TOP = 5


class Judge:
    """Both models of one comparison, loaded with the first request that needs them and kept for the next."""

    def __init__(self, tell: Tell) -> None:
        torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS") or len(os.sched_getaffinity(0))))
        torch.set_grad_enabled(False)
        self._tell = tell
        self._opened: tuple[str, ...] = ()

    def open(self, model: str, dtype: str, rounded: bool, converted: str, megatron: bool) -> dict[str, Any]:
        """Load the reference, and open what was converted from it; its vocabulary and its longest sequence."""
        key = (model, dtype, str(rounded))
        if self._opened != key:
            self._opened = ()
            self._tell("reference", 0, 1)
            self._reference = Reference(Path(model), dtype, rounded=rounded)
            self._tell("reference", 1, 1)
            self._opened = key
        self._other: MegatronModel | Reference
        self._other = opened(Path(converted)) if megatron else Reference(Path(converted), dtype)
        return {"vocab": self._reference.vocab, "context": self._reference.context}

    def forward(self, sequences: list[list[int]], limit: float) -> dict[str, Any]:
        """Logits compared; where they part further than `limit` of the largest logit, also the place they part at."""
        tokens = [torch.tensor(each) for each in sequences]
        self._logits = list(self._reference.logits(tokens, lambda *done: self._tell("reference logits", *done)))
        found = self._compared(self._other.logits(tokens, lambda *done: self._tell("converted logits", *done)))
        found |= {"first_difference": None, "unequal_copies": []}
        if not isinstance(self._other, MegatronModel):
            return found
        found["unequal_copies"] = sorted(self._other.shards.unequal)
        if not found["relative"] < limit:
            self._tell("where they part", 0, 1)
            worst = tokens[found["worst"]]
            found["first_difference"] = first_difference(self._reference, self._other, worst, limit)
        return found

    def compare(self, file: str) -> dict[str, Any]:
        """Logits another program wrote (torch.save of a list of tensors), against those of the last `forward`."""
        return self._compared(iter(torch.load(file, weights_only=True)))

    def _compared(self, others: Iterator[torch.Tensor]) -> dict[str, Any]:
        """Largest difference, absolute and as a share of the largest logit, and the share of equal top-5 lists."""
        apart, scale, equal, positions, worst = 0.0, 0.0, 0, 0, (-1.0, 0)
        for place, (theirs, ours) in enumerate(zip(self._logits, others, strict=True)):
            if ours.shape[-1] < theirs.shape[-1]:
                found = f"the converted model has {ours.shape[-1]} logits, the vocabulary {theirs.shape[-1]}"
                raise HfbenchError(found, remedy="convert again: rows of the embedding are missing")
            ours = ours[:, : theirs.shape[-1]].float()
            here = largest(theirs - ours)
            apart, scale = max(apart, here), max(scale, float(theirs.abs().max()))
            worst = max(worst, (here, -place))
            top = min(TOP, theirs.shape[-1])
            same = theirs.topk(top).indices == ours.nan_to_num(float("-inf")).topk(top).indices
            equal, positions = equal + int(same.all(-1).sum()), positions + len(theirs)
        return {
            "max_abs": apart,
            "relative": apart / max(scale, 1e-30),
            "largest_logit": scale,
            "top5": equal / max(positions, 1),
            "positions": positions,
            "worst": -worst[1],
        }

    def loss(self, sequences: list[list[int]]) -> dict[str, Any]:
        """The sum of -log p of each token but the first, by both models, in nats."""
        tokens = [torch.tensor(each) for each in sequences]
        both = self._both(tokens)
        sums = [0.0, 0.0]
        for each, logits in zip(tokens, both, strict=True):
            for place, one in enumerate(logits):
                sums[place] += float(spent(one, each).sum())
        return {"reference": sums[0], "converted": sums[1], "tokens": sum(len(each) - 1 for each in tokens)}

    def greedy(self, prompt: list[int], count: int) -> dict[str, Any]:
        """Whether the converted model chooses each of the tokens that the reference generates.

        Being given the reference's tokens, it chooses the same ones all along exactly when it generates the same.
        """
        tokens = self._reference.greedy(torch.tensor(prompt), count)
        (theirs, ours) = next(self._both([tokens[:-1]]))
        ours = ours.nan_to_num(float("-inf"))
        wanted, chosen = tokens[len(prompt) :], ours.argmax(-1)[len(prompt) - 1 :]
        wrong = (wanted != chosen).nonzero()
        found: dict[str, Any] = {"tokens": wanted.tolist(), "first_difference": None}
        if len(wrong):
            step = int(wrong[0])
            here, there = theirs[len(prompt) - 1 + step], ours[len(prompt) - 1 + step]
            a, b = int(wanted[step]), int(chosen[step])
            margins = float(here[a] - here[b]), float(there[b] - there[a])
            found["first_difference"] = {"step": step, "reference": a, "converted": b}
            found["first_difference"] |= {"reference_margin": margins[0], "converted_margin": margins[1]}
        return found

    def scores(self, pairs: list[tuple[list[int], int]]) -> list[list[float]]:
        """For each (tokens, first): log p of the tokens from `first` on, by the reference and by the converted."""
        tokens = [torch.tensor(each) for each, _ in pairs]
        return [
            [-float(spent(one, each)[first - 1 :].sum()) for one in logits]
            for each, (_, first), logits in zip(tokens, pairs, self._both(tokens), strict=True)
        ]

    def tokens(self, folder: str, texts: list[str], special: bool) -> dict[str, Any]:
        """Token ids of texts by the tokenizer of a folder, its special tokens, and its chat template."""
        from transformers import AutoTokenizer

        try:
            tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
        except Exception as error:  # the Rust part of tokenizers raises Exception itself
            first = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise HfbenchError(f"transformers cannot read the tokenizer: {first}", where=folder) from None
        added = sorted(
            {str(each) for each in tokenizer.added_tokens_decoder.values()} | set(tokenizer.all_special_tokens)
        )
        return {
            "ids": [tokenizer(text, add_special_tokens=special)["input_ids"] for text in texts],
            "special": added,
            "template": tokenizer.chat_template if isinstance(tokenizer.chat_template, str) else None,
            "bos": tokenizer.bos_token_id,
        }

    def words(self, folder: str, ids: list[int]) -> str:
        """The text of tokens."""
        from transformers import AutoTokenizer

        return str(AutoTokenizer.from_pretrained(folder, local_files_only=True).decode(ids))

    def _both(self, tokens: Sequence[torch.Tensor]) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Logits of both models, those of padding cut off: Megatron counts them, and the reference has none."""
        reference = self._reference.logits(tokens, lambda *done: self._tell("reference", *done))
        converted = self._other.logits(tokens, lambda *done: self._tell("converted", *done))
        for theirs, ours in zip(reference, converted, strict=True):
            yield theirs, ours[:, : theirs.shape[-1]]


def opened(folder: Path) -> MegatronModel:
    """The model of a Megatron checkpoint, its files mapped and none of them loaded."""
    return MegatronModel(open_shards(open_tensors(folder), megatron_facts(folder).args))


def spent(logits: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """-log p of each token but the first, in nats."""
    return torch.nn.functional.cross_entropy(logits[:-1].float(), tokens[1:], reduction="none")


def largest(difference: torch.Tensor) -> float:
    """The largest magnitude; infinite where there is NaN, which compares with nothing."""
    found = float(difference.abs().max())
    return found if found == found else float("inf")
