"""What the walls found: plain data, the same for JSON, the report and a screen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["proven", "differs", "could not", "not asked"]

OWN_PASS = "hfbench's own pass"


@dataclass(frozen=True, kw_only=True)
class Difference:
    """A tensor that is not what the source says it should be."""

    tensor: str
    """Its name in the converted checkpoint."""
    kind: Literal["missing", "surplus", "shape", "dtype", "values", "padding", "twin"]
    found: str
    """In words, with the first element that differs where elements do."""
    elements: int = 0
    """Elements that differ."""


@dataclass(frozen=True, kw_only=True)
class Fact:
    """An argument of the checkpoint that contradicts the configuration of the source."""

    argument: str
    expected: str
    found: str
    key: str
    """The key of config.json it comes from."""


@dataclass(frozen=True, kw_only=True)
class WeightsWall:
    """Every tensor compared with the source by its bits, and the arguments with the configuration."""

    verdict: Verdict = "not asked"
    reason: str = ""
    tensors: int = 0
    bytes: int = 0
    seconds: float = 0.0
    cast: str = ""
    """`F32 to BF16` where the comparison was with rounded values."""
    differences: tuple[Difference, ...] = ()
    facts: tuple[Fact, ...] = ()
    not_stated: tuple[str, ...] = ()
    """Arguments that Megatron takes from the launch command alone and the checkpoint does not hold."""

    @property
    def rate(self) -> float:
        """Bytes a second of the converted checkpoint."""
        return self.bytes / self.seconds if self.seconds else 0.0


@dataclass(frozen=True, kw_only=True)
class Parting:
    """The first place where two models part, each layer given the reference's own input."""

    layer: int
    """-1 is the embedding, the number of layers the output."""
    tensor: str
    relative: float
    layers: tuple[int, ...]
    """All layers that part."""


@dataclass(frozen=True, kw_only=True)
class Core:
    """The logits of megatron-core itself, run at the checkpoint's own TP x PP."""

    verdict: Verdict
    reason: str = ""
    environment: str = ""
    version: str = ""
    tp: int = 0
    pp: int = 0
    max_abs: float = 0.0
    relative: float = 0.0
    top5: float = 0.0
    seconds: float = 0.0


@dataclass(frozen=True, kw_only=True)
class ForwardWall:
    """Logits in float32 on fixed prompts, against transformers."""

    verdict: Verdict = "not asked"
    reason: str = ""
    max_abs: float = 0.0
    relative: float = 0.0
    """Largest difference as a share of the largest logit."""
    top5: float = 0.0
    """Share of positions whose five likeliest tokens are the same in the same order."""
    positions: int = 0
    first_difference: Parting | None = None
    unequal_copies: tuple[str, ...] = ()
    """Tensors that every rank of a stage should have alike and has not."""
    by: str = ""
    """What ran the converted side: transformers, or hfbench's own pass over the ranks."""
    core: Core | None = None
    seconds: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Tokenisation:
    """One text with every special token, by the tokenizer of each folder."""

    verdict: Verdict
    reason: str = ""
    tokens: int = 0
    special: int = 0


@dataclass(frozen=True, kw_only=True)
class Perplexity:
    """exp of the mean loss in nats over a text."""

    verdict: Verdict
    text: str = ""
    tokens: int = 0
    reference: float = 0.0
    converted: float = 0.0
    relative: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Greedy:
    """Tokens of highest logit, one after the other."""

    verdict: Verdict
    tokens: int = 0
    text: str = ""
    first_difference: str = ""
    """Where the two choose differently, and by how much each prefers its own token."""


@dataclass(frozen=True, kw_only=True)
class Choices:
    """Questions of a JSONL file answered by the likelier choice."""

    verdict: Verdict
    reason: str = ""
    questions: int = 0
    reference: float = 0.0
    """Share answered right."""
    converted: float = 0.0
    other_answers: int = 0
    """Questions that the two answer differently."""


@dataclass(frozen=True, kw_only=True)
class TaskWall:
    """What the models are for: the same tokens, the same perplexity, the same text, the same answers."""

    verdict: Verdict = "not asked"
    reason: str = ""
    tokenisation: Tokenisation | None = None
    perplexity: Perplexity | None = None
    greedy: Greedy | None = None
    choices: Choices | None = None
    seconds: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Walls:
    """The three walls."""

    weights: WeightsWall
    forward: ForwardWall
    task: TaskWall

    @property
    def verdict(self) -> Verdict:
        """`differs` when one wall does, else `could not` when one could not, else `proven`."""
        told = [each.verdict for each in (self.weights, self.forward, self.task)]
        if "differs" in told:
            return "differs"
        return "could not" if "could not" in told or "proven" not in told else "proven"


def worst(verdicts: list[Verdict]) -> Verdict:
    """The verdict of a wall from those of its parts; parts that were not asked do not count."""
    order: tuple[Verdict, ...] = ("differs", "could not", "proven")
    return next((each for each in order if each in verdicts), "not asked")
