"""Where a job runs: what was asked for, what is here, and the first environment that has what is needed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from worker_venv import make_worker_venv

from hfbench.actions.registry import find as find_action
from hfbench.environments import Place, place_for
from hfbench.environments.choose import refuse_inline, unfit_for
from hfbench.environments.probed import Probed, Torch
from hfbench.errors import MissingError, UsageError
from hfbench.paths import config_file

Declare = Callable[..., None]


@pytest.fixture(scope="session")
def with_needed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python with the module that toy.alone needs, and nothing else."""
    return make_worker_venv(tmp_path_factory.mktemp("needed") / "venv", names=(), modules=["needed_by_toy"])


@pytest.fixture
def declare(home: Path) -> Declare:
    """Write environments into the configuration."""

    def write(**pythons: Path | str) -> None:
        config_file().parent.mkdir(parents=True, exist_ok=True)
        tables = (f'[environments.{name}]\npython = "{python}"\n' for name, python in pythons.items())
        config_file().write_text("".join(tables))

    return write


@pytest.fixture(scope="session")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python without any package."""
    return make_worker_venv(tmp_path_factory.mktemp("bare") / "venv", names=())


pytestmark = pytest.mark.usefixtures("toy_actions")


def test_without_environments_a_job_runs_here_and_says_itself_what_it_lacks() -> None:
    assert place_for(find_action("toy.alone")) == place_for(find_action("toy.count")) == Place()


def test_what_this_python_has_runs_here_whatever_is_declared(declare: Declare) -> None:
    declare(broken="/no/such/python")
    assert place_for(find_action("toy.count")) == Place()


def test_the_first_environment_that_has_what_is_missing_is_taken_and_told(
    declare: Declare, bare: Path, with_needed: Path
) -> None:
    declare(gone="/no/python", bare=bare, good=with_needed, later=with_needed)
    place = place_for(find_action("toy.alone"))
    assert (place.environment, place.command) == ("good", (str(with_needed),))
    assert place.why == "this Python lacks needed_by_toy: it runs in the environment 'good'"


def test_where_none_has_it_every_one_is_named_with_its_reason(declare: Declare, bare: Path) -> None:
    declare(gone="/no/python", bare=bare)
    with pytest.raises(MissingError) as caught:
        place_for(find_action("toy.alone"))
    assert str(caught.value) == (
        "toy.alone: needs needed_by_toy, which this Python lacks; environments looked at: gone (/no/python cannot be "
        "started: No such file or directory), bare (no needed_by_toy). Install it"
    )


def test_one_that_was_asked_for_is_judged_before_a_job_begins(declare: Declare, bare: Path, with_needed: Path) -> None:
    declare(bare=bare, good=with_needed)
    toy = find_action("toy.alone")
    assert place_for(toy, "good") == Place(environment="good", command=(str(with_needed),))
    assert place_for(toy, str(with_needed)).command == (str(with_needed),)
    assert place_for(toy, "here") == Place()
    with pytest.raises(MissingError, match=r"'bare' cannot run toy.alone: no needed_by_toy. Install them with: /.* -m"):
        place_for(toy, "bare")
    with pytest.raises(UsageError, match=r"no environment is called 'godo'. Did you mean 'good'\?"):
        place_for(toy, "godo")


def test_an_old_python_and_a_broken_torch_are_reasons() -> None:
    generate, toy = find_action("bench.generate"), find_action("toy.alone")
    old = Probed(python="3.9.1", modules=("needed_by_toy",))
    assert unfit_for(toy, old) == "Python 3.9.1, and hfbench needs 3.11"
    broken = Probed(
        python="3.12.1",
        modules=("needed_by_toy", "torch", "transformers", "safetensors"),
        torch=Torch(version="2.8"),
        trouble="torch cannot be imported: OSError",
    )
    assert unfit_for(generate, broken) == "torch cannot be imported: OSError"
    assert unfit_for(toy, broken) == ""


def test_an_action_of_this_process_takes_no_environment() -> None:
    refuse_inline(find_action("inspect"), "", "")
    with pytest.raises(
        UsageError, match=r"inspect: it only reads, in this process, and cannot run in .* Give --detach"
    ):
        refuse_inline(find_action("inspect"), "trtllm", "give --detach")
