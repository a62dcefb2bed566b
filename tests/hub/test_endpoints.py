"""Endpoints: which hub is meant, and that a token is read from its place and goes nowhere else."""

from __future__ import annotations

import os
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hfbench.commands.config import toml_lines
from hfbench.config import ConfigError, read_config
from hfbench.errors import HfbenchError, MissingError, UsageError
from hfbench.hub.endpoints import Endpoint, TokenSource, checked_url, endpoint, endpoints, name_of, offline_reason

Settings = Callable[[str], None]


def test_without_any_setting_the_hub_is_meant() -> None:
    assert endpoint().url == "https://huggingface.co"
    assert endpoint().name == "hub"


def test_hf_endpoint_goes_before_the_configuration_and_a_name_before_both(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings(
        '[hub]\nendpoint = "lab"\n[endpoints.lab]\nurl = "http://lab:8000/"\n[endpoints.far]\nurl = "http://far"\n'
    )
    assert endpoint().url == "http://lab:8000"
    monkeypatch.setenv("HF_ENDPOINT", "http://box:9000")
    assert endpoint().url == "http://box:9000"
    assert endpoint("far").url == "http://far"


def test_an_address_that_is_configured_is_that_endpoint_and_another_gets_no_token(settings: Settings) -> None:
    settings('[endpoints.lab]\nurl = "http://lab:8000"\ntoken_env = "LAB_TOKEN"\n')
    assert endpoint("http://lab:8000/").source == TokenSource("env", "LAB_TOKEN")
    assert endpoint("http://other:8000") == Endpoint("other-8000", "http://other:8000")


def test_the_token_of_one_hub_is_never_that_of_another(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "hf").mkdir()
    (tmp_path / "hf" / "token").write_text("hf_of_the_hub\n")
    assert endpoint("hub").token == "hf_of_the_hub"
    monkeypatch.setenv("HF_ENDPOINT", "http://box:9000")
    monkeypatch.setenv("HF_TOKEN", "box-token")
    known = endpoints()
    assert known["env"].token == "box-token"
    assert known["hub"].token == "hf_of_the_hub"
    monkeypatch.delenv("HF_TOKEN")
    assert endpoints()["env"].token is None
    monkeypatch.delenv("HF_ENDPOINT")
    monkeypatch.setenv("HF_TOKEN", "hf_other")
    assert endpoint("hub").token == "hf_other"


def test_a_token_comes_from_a_variable_or_a_file_and_is_none_where_that_is_empty(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("LAB_TOKEN", " secret\n")
    (tmp_path / "token").write_text("from-file\n")
    assert TokenSource("env", "LAB_TOKEN").read() == "secret"
    assert TokenSource("file", str(tmp_path / "token")).read() == "from-file"
    assert TokenSource("env", "NOT_SET").read() is None
    assert TokenSource("file", str(tmp_path / "none")).read() is None


def test_what_is_no_token_is_told_without_showing_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAB_TOKEN", "two words")
    with pytest.raises(UsageError, match="the variable LAB_TOKEN: holds something that is no token") as caught:
        TokenSource("env", "LAB_TOKEN").read()
    assert "two words" not in str(caught.value)


def test_a_file_that_would_be_waited_for_is_not(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "token")
    assert TokenSource("file", str(tmp_path / "token")).read() is None


def test_a_token_shows_itself_nowhere_by_accident(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAB_TOKEN", "secret")
    at = Endpoint("lab", "http://lab", TokenSource("env", "LAB_TOKEN"))
    assert "secret" not in repr(at)
    assert "secret" not in repr([at.token])


def test_the_keyring_is_asked_where_there_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = TokenSource("keyring", "hfbench/lab")
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(MissingError, match="needs keyring"):
        source.read()
    stand_in = "def get_password(service, user):\n    return f'{service}+{user}'\n"
    (tmp_path / "keyring.py").write_text(stand_in)  # a stand-in: the real one wants a desktop
    monkeypatch.delitem(sys.modules, "keyring")
    monkeypatch.syspath_prepend(tmp_path)
    assert source.read() == "hfbench+lab"
    monkeypatch.delitem(sys.modules, "keyring")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('[endpoints.lab]\ntoken = "hf_x"\n', "a token is never kept here"),
        ('[endpoints.lab]\nurl = "http://lab"\ntoken_fil = "x"\n', "did you mean 'token_file'"),
        ("[endpoints]\nlab = 1\n", "endpoints.lab is 1, not a table"),
    ],
)
def test_a_wrong_table_is_told_and_never_its_secret(settings: Settings, text: str, sentence: str) -> None:
    settings(text)
    with pytest.raises(ConfigError, match=f"(?i){sentence}") as caught:
        read_config()
    assert "hf_x" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('[endpoints.lab]\ntoken_env = "T"\n', "has no url"),
        ('[endpoints.lab]\nurl = "lab:8000"\n', "is not the address of a hub"),
        ('[endpoints.lab]\nurl = "http://me:pass@lab"\n', "holds a name or a password"),
        ('[endpoints.lab]\nurl = "http://lab?x=1"\n', "is not the address of a hub"),
        ('[endpoints.lab]\nurl = "http://lab"\ntoken_env = "A"\ntoken_file = "b"\n', "more than one place"),
        ('[endpoints.lab]\nurl = "http://lab"\ntoken_env = "$(rm -rf ~)"\n', "names no environment variable"),
        ('[endpoints."a:b"]\nurl = "http://lab"\n', "cannot be the name of an endpoint"),
    ],
)
def test_an_endpoint_that_cannot_be_used_is_told(settings: Settings, text: str, sentence: str) -> None:
    settings(text)
    with pytest.raises(UsageError, match=sentence) as caught:
        endpoint()
    assert "pass@" not in str(caught.value)


def test_an_unknown_endpoint_names_the_nearest(settings: Settings) -> None:
    settings('[endpoints.lab]\nurl = "http://lab"\n')
    with pytest.raises(UsageError, match="Did you mean 'lab'"):
        endpoint("labb")


def test_offline_is_told_by_the_environment_and_by_the_configuration(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert offline_reason() == ""
    settings("[hub]\noffline = true\n")
    assert offline_reason().startswith("hub.offline in ")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert offline_reason() == "HF_HUB_OFFLINE"


@given(st.text(max_size=40))
def test_any_address_is_an_origin_that_can_be_named_or_is_refused(text: str) -> None:
    try:
        url = checked_url(f"http://{text}", "here")
    except HfbenchError:
        return
    assert Endpoint(name_of(url), url).origin[0] == "http"
    assert not set(name_of(url)) & set("/:@ \n")


@given(st.dictionaries(st.text(max_size=8), st.fixed_dictionaries({"url": st.text(max_size=8)}), max_size=3))
def test_endpoints_shown_as_toml_read_back(tables: dict[str, dict[str, str]]) -> None:
    shown = "\n".join(toml_lines({"endpoints": tables}))
    assert tomllib.loads(shown)["endpoints"] == tables
