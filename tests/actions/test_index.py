"""What is read from action files without running them is what running them would say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hfbench.actions.index import Entry, declared_actions
from hfbench.actions.registry import UnknownAction, actions, discover, find


def test_reading_and_running_agree() -> None:
    import hfbench.actions as package

    told = {entry.name: entry.summary for entry in declared_actions()}
    assert told == {name: spec.summary for name, spec in discover(package).items()}
    assert set(told) == set(actions())


def test_other_classes_and_decorators_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text(
        '@action("a.b", result=str)\n@dataclass\nclass A:\n    """First line.\n\n    More.\n    """\n'
        "@dataclass\nclass B:\n    pass\n@action(name)\nclass C:\n    pass\n@action\nclass D:\n    pass\n"
    )
    (tmp_path / "two.txt").write_text("@action(")
    (tmp_path / "three.py").write_text("this is not even looked at")
    assert declared_actions(str(tmp_path)) == [Entry("a.b", "First line", "one")]


def test_decorators_over_several_lines_and_odd_docstrings_are_read(tmp_path: Path) -> None:
    (tmp_path / "more.py").write_text(
        '@action(\n    "b",\n    result=Result(1),\n)\n@dataclass(frozen=True)\nclass B(Base):\n'
        '    """\n    Say "no".\n\n    @action("inside")\n    """\n'
        '@action("c")\nclass C:\n    x = 1\n\n\n@action("d")\nclass D:\n    """One. Two."""\n'
    )
    told = [("b", 'Say "no"', "more"), ("c", "", "more"), ("d", "One. Two", "more")]
    assert declared_actions(str(tmp_path)) == told


def test_finding_one_action_loads_its_file_alone() -> None:
    code = "import sys; from hfbench.actions.registry import find; find('demo'); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "hfbench.actions.demo" in loaded
    assert "hfbench.actions.gpus" not in loaded


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownAction, match=r"unknown action 'bench.genrate'. Did you mean 'bench.generate'"):
        find("bench.genrate")
