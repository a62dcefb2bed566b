"""What `--on` may say, whatever somebody types."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hfbench.codec import decode, encode
from hfbench.config import ExecutorConfig
from hfbench.errors import HfbenchError, UsageError
from hfbench.jobs.executors.base import Need, Placement
from hfbench.jobs.executors.spec import BadPlace, Where, known_places, parse_on

NAMED = {
    "h100": ExecutorConfig(kind="slurm", partition="gpu", gres="gpu:h100:1"),
    "box": ExecutorConfig(kind="ssh", host="me@box", python="/opt/py"),
    "limited": ExecutorConfig(kind="ray", address="auto", options=("--hold",)),
    "here": ExecutorConfig(kind="local"),
    "odd": ExecutorConfig(kind="slrum"),
    "hostless": ExecutorConfig(kind="ssh"),
}


@pytest.mark.parametrize(
    ("text", "kind", "target"),
    [
        ("", "local", ""),
        ("local", "local", ""),
        ("slurm", "slurm", ""),
        ("slurm:gpu", "slurm", "gpu"),
        ("ray://head:10001", "ray", "ray://head:10001"),
        ("ray:auto", "ray", "auto"),
        ("ssh:me@10.0.0.7", "ssh", "me@10.0.0.7"),
        ("h100", "slurm", "gpu"),
        ("box", "ssh", "me@box"),
        ("here", "local", ""),
    ],
)
def test_each_form_names_its_place(text: str, kind: str, target: str) -> None:
    where = parse_on(text, NAMED)
    assert (where.kind, where.target) == (kind, target)
    assert where.is_local == (kind == "local")


def test_settings_of_a_name_stand_and_those_behind_a_comma_go_before_them() -> None:
    where = parse_on("h100,time=30m,gres=gpu:2,requeue=false,poll=0.5", NAMED)
    settings = where.settings
    assert (settings.gres, settings.time, settings.requeue, settings.poll) == ("gpu:2", "30m", False, 0.5)
    assert where.text == "h100,time=30m,gres=gpu:2,requeue=false,poll=0.5"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("ray://head:10001,time=1m", "time is a setting of slurm alone. Leave it out; ray takes gpus, cpus,"),
        ("ssh:box,gpus=2", "gpus is a setting of slurm and ray alone"),
        ("slurm:gpu,python=/opt/py", "python is a setting of ray and ssh alone"),
        ("limited", "limited: options is a setting of slurm alone"),
        ("slrum:gpu", "did you mean 'slurm'"),
        ("h10", "did you mean 'h100'"),
        ("nowhere at all", "Give local, slurm:PARTITION"),
        ("ssh:", "write ssh:HOST"),
        ("ssh", "no executor is called 'ssh'"),
        ("ssh:-oProxyCommand=reboot", "is no name"),
        ("slurm:gpu;reboot", "is no name"),
        ("slurm:gpu,gers=1", "did you mean 'gres'"),
        ("slurm:gpu,partition=other", "has no setting 'partition'"),
        ("slurm:gpu,requeue=maybe", "not bool"),
        ("slurm:gpu,poll=0", "above 0"),
        ("slurm:gpu,patience=nan", "above 0"),
        ("slurm:gpu,gpus=-1", "below 0"),
        ("local,time=1h", "takes no settings"),
        ("odd", "did you mean 'slurm'"),
        ("hostless", 'add host = "..."'),
    ],
)
def test_what_names_no_place_is_refused_with_what_would(text: str, told: str) -> None:
    with pytest.raises(BadPlace) as refused:
        parse_on(text, NAMED)
    assert told.lower() in str(refused.value).lower()


@given(st.text(max_size=40) | st.from_regex(r"(slurm|ssh|ray):[ -~]{0,20}(,[a-z]+=[ -~]{0,5})*", fullmatch=True))
def test_any_text_is_a_place_or_a_sentence(text: str) -> None:
    with suppress(UsageError):
        where = parse_on(text, NAMED)
        assert not where.target.startswith("-")
        assert not set(where.target) & set(" ;|&$`'\"\\\n")


def test_a_placement_is_read_as_it_was_written_also_by_an_older_version() -> None:
    placed = Placement(
        where=parse_on("h100,time=1h", NAMED), token="t", index=3, id="7_3", node="n1", need=Need(gpus=2)
    )
    assert decode(Placement, encode(placed)) == placed
    assert decode(Placement, {**encode(placed), "from_later": 1}) == placed


def test_what_a_form_offers_is_local_and_the_names_of_the_configuration() -> None:
    assert known_places(NAMED) == ("local", *NAMED)


def test_only_local_and_slurm_share_the_disk() -> None:
    assert [kind for kind in ("local", "slurm", "ray", "ssh") if Where(kind=kind).shares_disk] == ["local", "slurm"]


def test_a_wrong_executor_in_the_configuration_is_told_with_its_place() -> None:
    with pytest.raises(HfbenchError, match=r"executors\.odd\.kind is 'slrum'"):
        parse_on("odd", NAMED)
