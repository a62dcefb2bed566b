"""A hub whose database or key is gone is not taken for an empty one: nothing of it is served, called sound or swept."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hub_process import free_port
from sqlalchemy import create_engine, text

from hfbench.commands import registry as command
from hfbench.errors import HfbenchError, MissingError, UsageError
from hfbench.registry.administration import list_users, revoke_token
from hfbench.registry.founding import found
from hfbench.registry.serve import require_free, serve
from hfbench.registry.settings import Settings, checked
from hfbench.registry.storage.layout import Layout
from hfbench.registry.upkeep.collecting import collect
from hfbench.registry.upkeep.fsck import check
from hfbench.registry.upkeep.session import on_hub

BLOB = "ab" * 32


@pytest.fixture
def hub(tmp_path: Path) -> Settings:
    """A hub with the content of a file."""
    settings = Settings(folder=str(tmp_path / "hub"))
    found(settings, "boss")
    settings.layout.blob(BLOB).write_bytes(b"weights")
    return settings


def deeds(settings: Settings) -> dict[str, Callable[[], object]]:
    """What must not be done without the database."""

    def tell(*_told: object) -> None:
        return

    def sweep() -> object:
        return on_hub(settings, lambda hub: collect(hub, 0, unreachable=True, dry_run=False, tell=tell))

    return {
        "serve": lambda: serve(settings, lambda: None),
        "fsck": lambda: on_hub(settings, lambda hub: check(hub, quick=True, repair=False, tell=tell)),
        "gc": sweep,
        "users": lambda: list_users(settings),
    }


def gone(settings: Settings) -> None:
    settings.layout.database.unlink()


def of_no_bytes(settings: Settings) -> None:
    settings.layout.database.write_bytes(b"")


def of_no_table(settings: Settings) -> None:
    gone(settings)
    engine = create_engine(f"sqlite:///{settings.layout.database}")
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE x (y)"))
    engine.dispose()


def of_nobody(settings: Settings) -> None:
    engine = create_engine(f"sqlite:///{settings.layout.database}")
    with engine.begin() as connection:
        connection.execute(text("DELETE FROM account"))
    engine.dispose()


@pytest.mark.parametrize("harm", [gone, of_no_bytes, of_no_table, of_nobody])
@pytest.mark.parametrize("deed", ["serve", "fsck", "gc", "users"])
def test_without_its_database_nothing_is_done_and_nothing_lost(
    hub: Settings, harm: Callable[[Settings], None], deed: str
) -> None:
    harm(hub)
    before = hub.layout.database.exists()
    with pytest.raises(MissingError, match=r"the database of this hub is .*put back the database of a backup"):
        deeds(hub)[deed]()
    assert hub.layout.blob(BLOB).exists()
    assert hub.layout.database.exists() == before, "an empty one that is made would be taken for the hub's"


def test_a_fresh_database_of_postgresql_is_not_the_hubs(hub: Settings, new_database: Callable[[], str]) -> None:
    moved = replace(hub, database=new_database())
    for deed in deeds(moved).values():
        with pytest.raises(MissingError, match="is empty: it is not the one it had"):
            deed()
    assert hub.layout.blob(BLOB).exists()


def test_the_database_of_another_hub_is_not_the_folders(hub: Settings, tmp_path: Path) -> None:
    other = Settings(folder=str(tmp_path / "other"))
    found(other, "boss")
    own = hub.layout.database.read_bytes()
    hub.layout.database.write_bytes(other.layout.database.read_bytes())
    for deed in deeds(hub).values():
        with pytest.raises(HfbenchError, match="is of another hub than this folder"):
            deed()
    assert hub.layout.blob(BLOB).exists()
    hub.layout.database.write_bytes(own)
    assert [user.name for user in list_users(hub)] == ["boss"]


def test_no_hub_is_made_over_the_content_of_another(hub: Settings) -> None:
    hub.layout.settings.unlink()
    with pytest.raises(HfbenchError, match="holds content of a hub whose settings are gone"):
        found(hub, "boss")


@pytest.mark.parametrize("key", [None, b"", b"x" * 31])
def test_a_key_that_is_gone_or_could_be_guessed_signs_nothing(hub: Settings, key: bytes | None) -> None:
    hub.layout.secret.unlink()
    if key is not None:
        hub.layout.secret.write_bytes(key)
    for name, deed in deeds(hub).items():
        with pytest.raises(HfbenchError, match="the key of this hub"):
            deed()
        assert name


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"database": "garbage"}, "is no URL"),
        ({"database": "mysql://u:sesame@h/x"}, "keeps nothing in 'mysql'"),
        ({"database": "postgresql://u:sesame@h:port/x"}, "is no URL"),
        ({"default_quota": -1}, "default_quota is -1"),
        ({"multipart_bytes": -1}, "multipart_bytes is -1"),
        ({"workers": 10**9}, "workers is"),
        ({"slow_seconds": 0}, "slow_seconds is 0"),
    ],
)
def test_settings_that_cannot_be_meant_are_sentences(given: dict[str, object], why: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=why) as told:
        checked(replace(Settings(folder=str(tmp_path)), **given))  # type: ignore[arg-type]
    assert "sesame" not in str(told.value)


def test_what_is_no_name_of_an_administrator_makes_nothing(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"'\.\./x' is no name"):
        found(Settings(folder=str(tmp_path / "hub")), "../x")
    assert not (tmp_path / "hub").exists()


def test_a_number_that_no_token_has_is_a_sentence(hub: Settings) -> None:
    with pytest.raises(UsageError, match="there is no token"):
        revoke_token(hub, 10**30)


def test_files_for_tls_that_are_none_are_sentences(hub: Settings, tmp_path: Path) -> None:
    (tmp_path / "x.pem").write_text("no certificate")
    for path, why in (("/nope", "cannot be read"), (str(tmp_path / "x.pem"), "is no certificate")):
        with pytest.raises(UsageError, match=why):
            serve(hub.changed(tls_certificate=path, tls_key=path), lambda: None)


def test_an_address_that_is_none_is_not_said_to_be_taken(hub: Settings) -> None:
    with pytest.raises(UsageError, match=r"'no\.such\.invalid' is no address.*--host"):
        require_free(hub.changed(host="no.such.invalid"))
    with pytest.raises(UsageError, match=r"cannot listen.*--host is an address of this machine"):
        require_free(hub.changed(host="203.0.113.9", port=free_port()))


def test_serve_makes_no_hub_where_it_cannot_listen(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    with pytest.raises(UsageError, match="cannot listen"):
        command.main(["serve", "--folder", str(folder), "--host", "203.0.113.9"])
    assert not folder.exists()


def test_the_token_of_a_hub_that_was_made_is_told_even_when_serving_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["serve", "--json", "--folder", str(tmp_path / "new"), "--port", str(free_port())]
    with pytest.raises(UsageError, match="cannot be read"):
        command.main([*words, "--tls-certificate", "/nope", "--tls-key", "/nope"])
    told = json.loads(capsys.readouterr().out)
    assert told["token"].startswith("hfb_")
    assert Layout(tmp_path / "new").settings.exists()
