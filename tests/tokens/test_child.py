"""A process that answers requests: what comes back, and what becomes of one that hangs, dies or talks nonsense."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hfbench.errors import HfbenchError, MissingError
from hfbench.tokens.child import Child, ChildEnded

SERVED = """
import os, signal, sys, time
from hfbench.errors import HfbenchError
from hfbench.tokens.serve import serve

def answer(request, payload):
    do = request["do"]
    if do == "echo":
        print("a library that prints")
        os.write(1, b"and native code that does")
        return {"size": len(payload)}, payload
    if do == "sleep":
        time.sleep(600)
    if do == "loop":
        while True:
            pass
    if do == "eat":
        return {}, bytes(2**30)
    if do == "die":
        os.kill(os.getpid(), getattr(signal, request["by"]))
        time.sleep(600)
    if do == "refuse":
        raise HfbenchError("no", where="here", remedy="go")
    if do == "panic":
        raise type("Panic", (BaseException,), {})("at the end\\nof the world")
    if do == "lack":
        import no_such_package
    if do == "babble":
        os.write(3, b"no JSON\\n")

serve(answer, memory=256 * 2**20)
"""


@pytest.fixture
def child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Child]:
    (tmp_path / "toy_served.py").write_text(SERVED)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    made = Child("toy_served")
    yield made
    made.close()


def echo(child: Child, payload: bytes = b"x") -> bytes:
    told, body = child.ask({"do": "echo"}, payload, seconds=20)
    assert told["size"] == len(payload)
    return body


def test_bytes_go_there_and_back_whatever_the_process_prints(child: Child) -> None:
    for payload in (b"", b"\n\0{}", bytes(range(256)) * 40_000):
        assert echo(child, payload) == payload
    assert child.generation == 1


ENDS: dict[str, tuple[dict[str, str], str]] = {
    "of a loop": ({"do": "loop"}, "timeout"),
    "of a pause": ({"do": "sleep"}, "timeout"),
    "by an abort": ({"do": "die", "by": "SIGABRT"}, "memory"),
    "by the kernel": ({"do": "die", "by": "SIGKILL"}, "memory"),
    "by a fault": ({"do": "die", "by": "SIGSEGV"}, "crash SIGSEGV"),
}


@pytest.mark.parametrize("case", ENDS)
def test_an_end_is_told_and_the_next_request_has_a_new_process(child: Child, case: str) -> None:
    request, ending = ENDS[case]
    echo(child)
    with pytest.raises(ChildEnded, match=ending):
        child.ask(request, seconds=0.2)
    assert not child.alive
    echo(child)
    assert child.generation == 2


def test_an_answer_that_is_none_ends_the_process(child: Child) -> None:
    with pytest.raises(ChildEnded):
        child.ask({"do": "babble"}, seconds=5)
    echo(child)


ERRORS: dict[str, tuple[type[HfbenchError], Callable[[HfbenchError], bool]]] = {
    "refuse": (HfbenchError, lambda error: str(error) == "here: no. Go"),
    "panic": (HfbenchError, lambda error: error.found == "at the end"),
    "lack": (MissingError, lambda error: "no_such_package" in error.found),
    "eat": (HfbenchError, lambda error: error.found == "takes more memory than allowed"),
}


@pytest.mark.parametrize("do", ERRORS)
def test_an_error_crosses_and_the_process_lives_on(child: Child, do: str) -> None:
    kind, right = ERRORS[do]
    with pytest.raises(kind) as caught:
        child.ask({"do": do}, seconds=20)
    assert right(caught.value)
    echo(child)
    assert child.generation == 1


def test_closing_ends_a_request_under_way(child: Child) -> None:
    echo(child)
    told: list[str] = []

    def ask() -> None:
        try:
            child.ask({"do": "sleep"}, seconds=600)
        except ChildEnded as ended:
            told.append(ended.ending)

    thread = threading.Thread(target=ask)
    thread.start()
    process = child._process
    child.close()
    thread.join(60)
    assert told == ["closed"]
    assert process
    assert process.poll() is not None
    with pytest.raises(ChildEnded, match="closed"):
        echo(child)
