"""Questions in a JSONL file: the spellings of the answer, and what is wrong with a line."""

from __future__ import annotations

from pathlib import Path

import pytest

from hfbench.convert.walls.questions import Question, read_questions
from hfbench.errors import UsageError


@pytest.mark.parametrize(
    ("line", "question"),
    [
        ('{"question": "2+2", "choices": ["3", "four"], "answer": 1}', Question("2+2", ("3", "four"), 1)),
        ('{"question": "2+2", "choices": ["3", "four"], "answer": "b"}', Question("2+2", ("3", "four"), 1)),
        ('{"question": "2+2", "choices": ["3", "four"], "answer": "four"}', Question("2+2", ("3", "four"), 1)),
        ('{"ctx": "A man", "endings": ["sits", "is"], "label": "0"}', Question("A man", ("sits", "is"), 0)),
        (
            '{"question": "Q", "choices": {"text": ["x", "y"], "label": ["A", "B"]}, "answer": "B"}',
            Question("Q", ("x", "y"), 1),
        ),
    ],
)
def test_spellings(line: str, question: Question, tmp_path: Path) -> None:
    (tmp_path / "q.jsonl").write_text(f"\n{line}\n")
    assert read_questions(tmp_path / "q.jsonl", 10) == [question]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("{", "line 2 is no question: Expecting property name"),
        ("[]", "line 2 is no question: it is no JSON object"),
        ('{"choices": ["a", "b"], "answer": 0}', "no text under 'question'"),
        ('{"question": "Q", "choices": ["a"], "answer": 0}', "no list of two or more"),
        ('{"question": "Q", "choices": ["a", "b"], "answer": 2}', "names none of the 2 choices"),
        ('{"question": "Q", "choices": ["a", "b"], "answer": true}', "names none of the 2 choices"),
        ('{"question": "Q", "choices": ["a", "b"]}', "names none of the 2 choices"),
    ],
)
def test_line_that_is_no_question_is_named(line: str, found: str, tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    path.write_text('{"question": "Q", "choices": ["a", "b"], "answer": 0}\n' + line)
    with pytest.raises(UsageError, match=found):
        read_questions(path, 10)


def test_empty_and_foreign_files(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("\n\n")
    (tmp_path / "bytes").write_bytes(b"\xff")
    for name, found in (("empty", "holds no question"), ("bytes", "byte 0 is not UTF-8"), ("none", "cannot be read")):
        with pytest.raises(UsageError, match=found):
            read_questions(tmp_path / name, 10)
