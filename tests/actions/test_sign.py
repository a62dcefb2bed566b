"""`hfbench sign` and `hfbench verify-signature` as jobs of real processes."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("model_signing")
Hfbench = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A folder with a configuration and weights, and keys beside it."""
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"\2\0\0\0\0\0\0\0{}")
    for name in ("own", "other"):
        key = tmp_path / f"{name}.pem"
        make = ["openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", str(key)]
        subprocess.run(make, check=True, capture_output=True)
        write = ["openssl", "ec", "-in", str(key), "-pubout", "-out", str(tmp_path / f"{name}.pub")]
        subprocess.run(write, check=True, capture_output=True)
    return folder


def test_a_model_is_signed_verified_tampered_with_and_refused(hfbench: Hfbench, model: Path, home: Path) -> None:
    beside = model.parent
    made = hfbench("sign", model, "--key", beside / "own.pem")
    assert made.returncode == 0, made.stderr
    assert "covers     2 files" in made.stdout

    (home / "config").mkdir(parents=True, exist_ok=True)
    (home / "config" / "config.toml").write_text(f'[signatures]\nkeys = ["{beside / "own.pub"}"]\n')
    right = hfbench("verify-signature", model, "--json")  # the key of the configuration
    told = json.loads(right.stdout)
    assert (right.returncode, told["verdict"], told["signer"]["how"]) == (0, "signed", "key")

    other = hfbench("verify_signature", model, "--key", beside / "other.pub")
    assert other.returncode == 1
    assert "signed with another key" in other.stderr
    assert other.stdout == ""

    (model / "config.json").write_text('{"auto_map": {}}')
    differs = hfbench("verify-signature", model, "--key", beside / "own.pub")
    assert differs.returncode == 1
    assert "differs: 1 changed" in differs.stdout
    assert "changed    config.json" in differs.stdout


def test_help_spells_the_command_with_a_hyphen(hfbench: Hfbench) -> None:
    assert "usage: hfbench verify-signature" in hfbench("verify-signature", "--help").stdout
    assert "verify-signature" in hfbench("--help").stdout
    assert "Did you mean 'hfbench verify_signature'?" not in hfbench("--help").stdout


def test_a_key_that_is_none_is_a_wrong_request(hfbench: Hfbench, model: Path) -> None:
    done = hfbench("sign", model, "--key", model / "config.json")
    assert (done.returncode, done.stdout) == (2, "")
    assert "no private key in PEM" in done.stderr
    assert not (model / "model.sig").exists()
