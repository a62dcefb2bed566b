"""Multiple-choice questions from a JSONL file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hfbench.errors import UsageError
from hfbench.models.problem import quoted

LARGEST_FILE = 256 << 20
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True)
class Question:
    """A question, what may be chosen, and the place of the right choice."""

    text: str
    choices: tuple[str, ...]
    answer: int


def read_questions(path: Path, most: int) -> list[Question]:
    """The first `most` questions of a file: one object a line, `question` (or `prompt`, `ctx`), `choices` (or
    `endings`), and `answer` (or `label`) as a place from 0, a letter from A, or the choice itself.

    UsageError names the line that is no question.
    """
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise UsageError(f"is larger than {LARGEST_FILE >> 20} MiB", where=path)
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise UsageError(f"byte {error.start} is not UTF-8", where=path) from None
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror}", where=path) from None
    found = list(_questions(path, lines, most))
    if not found:
        raise UsageError("holds no question", where=path)
    return found


def _questions(path: Path, lines: list[str], most: int) -> Iterator[Question]:
    given = 0
    for number, line in enumerate(lines, 1):
        if line.strip() and given < most:
            given += 1
            try:
                yield question_of(json.loads(line))
            except (ValueError, RecursionError) as error:
                told = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
                remedy = 'write {"question": "...", "choices": ["...", "..."], "answer": 0}'
                raise UsageError(f"line {number} is no question: {told}", where=path, remedy=remedy) from None


def question_of(data: Any) -> Question:
    """One question from plain data; ValueError says what is wrong with it."""
    if not isinstance(data, dict):
        raise ValueError("it is no JSON object")
    text = next((data[name] for name in ("question", "prompt", "ctx") if isinstance(data.get(name), str)), None)
    choices = next((data[name] for name in ("choices", "endings") if name in data), None)
    if text is None:
        raise ValueError("it has no text under 'question'")
    if isinstance(choices, dict):  # of some data sets: {"text": [...], "label": [...]}
        choices = choices.get("text")
    if not isinstance(choices, list) or len(choices) < 2 or not all(isinstance(each, str) for each in choices):
        raise ValueError("'choices' is no list of two or more texts")
    answer = data.get("answer", data.get("label"))
    return Question(text, tuple(choices), _place(answer, choices))


def _place(answer: Any, choices: list[str]) -> int:
    place = answer
    if isinstance(answer, str):
        if answer in choices:
            place = choices.index(answer)
        elif answer.strip().isdecimal():
            place = int(answer)
        else:
            place = LETTERS.find(answer.strip().upper()) if len(answer.strip()) == 1 else -1
    if type(place) is not int or not 0 <= place < len(choices):
        raise ValueError(f"'answer' {quoted(answer)} names none of the {len(choices)} choices")
    return place
