"""Wall three: what the models are for, side by side: tokens, perplexity, generated text, answers to questions."""

from __future__ import annotations

import math
import random
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hfbench.convert.walls.asking import Judging
from hfbench.convert.walls.questions import Question, read_questions
from hfbench.convert.walls.results import Choices, Greedy, Perplexity, TaskWall, Tokenisation, worst
from hfbench.convert.walls.sides import Sides
from hfbench.errors import HfbenchError, UsageError

PASSAGE = Path(__file__).parent / "data" / "passage.txt"
"""Openings of Carroll, Austen, Melville, Lincoln and Dickens: in the public domain."""
WITHIN = 0.005
"""Share by which perplexities may differ."""
WINDOW, MOST_TOKENS, PROMPT = 512, 4096, 16
"""Tokens scored at once, tokens scored in all, tokens that generation starts from."""
AT_ONCE = 64
"""Sequences of choices scored together: each layer's weights are widened once for all of them."""
TOKENIZER_FILES = ("tokenizer.json", "tokenizer.model", "vocab.json", "spiece.model", "tokenizer_config.json")
ODD = "Zoë’s naïve café: 東京, Москва, 🙂👍🏽\n\n\tdef f(x):  return x**2  # 3.14159 1234567890"
"""What tokenizers treat in ways of their own: accents, other scripts, emoji of several code points, runs of spaces."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What the wall is to look at."""

    text: Path | None = None
    questions: Path | None = None
    new_tokens: int = 32
    most_questions: int = 200


def task_wall(judging: Judging, sides: Sides, asked: Asked) -> TaskWall:
    """The four comparisons; those that need a tokenizer are left out where the reference has none."""
    began = time.perf_counter()
    told = judging.ask("open", **sides.opening())
    passage = asked.text or PASSAGE
    text, named = read_text_of(passage), "the passage of hfbench" if asked.text is None else passage.name
    has_words = has_tokenizer(sides.reference)
    if has_words:
        words = judging.ask("tokens", folder=str(sides.reference.absolute()), texts=[text], special=True)
        tokens, special = words["ids"][0], words["special"]
        tokenisation = compared_tokens(judging, sides, [text, ODD, *joined(special, text)])
    else:
        source = random.Random(1)
        tokens = [source.randrange(told["vocab"]) for _ in range(2 * WINDOW)]
        named = "random tokens: the reference has no tokenizer"
        tokenisation = Tokenisation(verdict="not asked", reason="the reference has no tokenizer")
    perplexity = compared_loss(judging, tokens, told["context"], named)
    greedy = compared_text(judging, sides, tokens, asked.new_tokens, told["context"], has_words)
    choices = compared_answers(judging, sides, asked, told["context"], has_words) if asked.questions else None
    parts = [each for each in (tokenisation, perplexity, greedy, choices) if each]
    return TaskWall(
        verdict=worst([each.verdict for each in parts]),
        tokenisation=tokenisation,
        perplexity=perplexity,
        greedy=greedy,
        choices=choices,
        seconds=time.perf_counter() - began,
    )


def compared_tokens(judging: Judging, sides: Sides, texts: list[str]) -> Tokenisation:
    """Whether both tokenizers give the same tokens, have the same special ones and the same chat template."""
    other = next((each for each in carried(sides.converted) if has_tokenizer(each)), None)
    if other is None:
        return Tokenisation(verdict="not asked", reason="the converted folder carries no tokenizer")
    special, number = 0, 0
    for adding in (True, False):
        asked = {"texts": texts, "special": adding}
        theirs = judging.ask("tokens", folder=str(sides.reference.absolute()), **asked)
        try:
            ours = judging.ask("tokens", folder=str(other.absolute()), **asked)
        except HfbenchError as error:
            return Tokenisation(verdict="differs", reason=str(error))
        special, number = len(theirs["special"]), number + sum(map(len, theirs["ids"]))
        if reason := apart(theirs, ours):
            return Tokenisation(verdict="differs", reason=reason, special=special)
    return Tokenisation(verdict="proven", tokens=number, special=special)


def apart(theirs: dict[str, Any], ours: dict[str, Any]) -> str:
    """The first thing in which two tokenizers differ, in words; empty when they do not."""
    for a, b in zip(theirs["ids"], ours["ids"], strict=True):
        if a != b:
            place = next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
            one, other = (str(each[place]) if place < len(each) else "nothing" for each in (a, b))
            return f"token {place} is {other} instead of {one}"
    if theirs["special"] != ours["special"]:
        odd = sorted(set(theirs["special"]) ^ set(ours["special"]))
        return f"the special token {odd[0]!r} is one on one side only"
    return "" if theirs["template"] == ours["template"] else "the chat templates differ"


def compared_loss(judging: Judging, tokens: list[int], context: int, named: str) -> Perplexity:
    """Perplexities over windows that do not overlap, each token but the first of a window scored."""
    size = max(2, min(WINDOW, context))
    windows = [tokens[at : at + size] for at in range(0, min(len(tokens), MOST_TOKENS), size)]
    windows = [each for each in windows if len(each) > 1]
    if not windows:
        raise UsageError("the text has less than two tokens", remedy="give a longer one")
    found = judging.ask("loss", sequences=windows)
    reference, converted = (perplexity_of(found[side], found["tokens"]) for side in ("reference", "converted"))
    relative = abs(converted - reference) / reference if math.isfinite(converted) else math.inf
    return Perplexity(
        verdict="proven" if relative <= WITHIN else "differs",
        text=named,
        tokens=found["tokens"],
        reference=reference,
        converted=converted,
        relative=relative,
    )


def compared_text(
    judging: Judging, sides: Sides, tokens: list[int], count: int, context: int, has_words: bool
) -> Greedy:
    """Whether both generate the same tokens behind the beginning of the text."""
    prompt = tokens[: max(1, min(PROMPT, context - count))]
    found = judging.ask("greedy", prompt=prompt, count=min(count, context - len(prompt)))
    folder, first = str(sides.reference.absolute()), found["first_difference"]
    told = ""
    if first:
        a, b = first["reference"], first["converted"]
        names = [repr(judging.ask("words", folder=folder, ids=[each])) if has_words else str(each) for each in (a, b)]
        told = (
            f"token {first['step']} is {names[1]} instead of {names[0]}, which the reference prefers by"
            f" {first['reference_margin']:.3g}; the converted model prefers its own by {first['converted_margin']:.3g}"
        )
    return Greedy(
        verdict="differs" if first else "proven",
        tokens=len(found["tokens"]),
        text=judging.ask("words", folder=folder, ids=found["tokens"]) if has_words else "",
        first_difference=told,
    )


def compared_answers(judging: Judging, sides: Sides, asked: Asked, context: int, has_words: bool) -> Choices:
    """Answers by the choice of the highest log p behind the question; equal when each question is answered alike."""
    assert asked.questions
    questions = read_questions(asked.questions, asked.most_questions)
    if not has_words:
        return Choices(verdict="could not", reason="the reference has no tokenizer")
    pairs, owners = scored(judging, sides.reference, questions, context)
    found: list[list[float]] = []
    for at in range(0, len(pairs), AT_ONCE):
        found += judging.ask("scores", pairs=pairs[at : at + AT_ONCE])
    answers: list[list[int]] = [[], []]
    for number in range(len(questions)):
        own = [score for score, owner in zip(found, owners, strict=True) if owner == number]
        for side in (0, 1):
            answers[side].append(max(range(len(own)), key=lambda place, side=side, own=own: own[place][side]))  # type: ignore[misc]
    right = [sum(a == each.answer for a, each in zip(side, questions, strict=True)) for side in answers]
    other = sum(a != b for a, b in zip(*answers, strict=True))
    return Choices(
        verdict="differs" if other else "proven",
        questions=len(questions),
        reference=right[0] / len(questions),
        converted=right[1] / len(questions),
        other_answers=other,
    )


def scored(
    judging: Judging, folder: Path, questions: list[Question], context: int
) -> tuple[list[tuple[list[int], int]], list[int]]:
    """Tokens of each question with each choice, the first token of the choice, and the question's number."""
    texts = [each.text.rstrip() for each in questions]
    whole = [f"{text} {choice}" for text, each in zip(texts, questions, strict=True) for choice in each.choices]
    told = judging.ask("tokens", folder=str(folder.absolute()), texts=[*texts, *whole], special=True)["ids"]
    owners = [number for number, each in enumerate(questions) for _ in each.choices]
    pairs = []
    for tokens, owner in zip(told[len(texts) :], owners, strict=True):
        before = told[owner]
        first = next((n for n, (a, b) in enumerate(zip(before, tokens, strict=False)) if a != b), len(before))
        first = max(1, min(first, len(tokens) - 1))
        cut = max(0, len(tokens) - context)
        pairs.append((tokens[cut:], max(1, first - cut)))
    return pairs, owners


def joined(special: list[str], text: str) -> list[str]:
    """Every special token between words, and all of them in a row."""
    words = text.split()
    between = " ".join(f"{words[n % len(words)]} {each}{words[(n + 1) % len(words)]}" for n, each in enumerate(special))
    return [between, "".join(special)] if special else []


def carried(folder: Path) -> list[Path]:
    """Where a Megatron checkpoint may carry the tokenizer of its source."""
    return [folder, folder / "tokenizer", folder / "hf", folder.parent]


def has_tokenizer(folder: Path) -> bool:
    """Whether a folder has files of a tokenizer."""
    return any((folder / name).is_file() for name in TOKENIZER_FILES)


def read_text_of(path: Path) -> str:
    """A text file. UsageError when it cannot be read as UTF-8."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"byte {error.start} is not UTF-8", where=path) from None
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror}", where=path) from None


def perplexity_of(loss: float, tokens: int) -> float:
    """exp of the mean loss; infinite where that is too large or no number."""
    mean = loss / max(tokens, 1)
    return math.exp(mean) if mean < 700 else math.inf
