"""The gate before a build: what passes, and the sentence for what does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hfbench.config import Config, LicencesConfig, SignaturesConfig, read_config
from hfbench.errors import UsageError
from hfbench.jobs.run import Run
from hfbench.provenance.bundle import Unsigned
from hfbench.provenance.facts import SIGNATURE
from hfbench.provenance.gate import GateClosed, require
from hfbench.provenance.licence import LicenceRefused
from hfbench.provenance.sign import sign
from hfbench.provenance.verify import NotTrusted


def trusting(*keys: Path) -> Config:
    return Config(signatures=SignaturesConfig(keys=tuple(map(str, keys))))


def test_a_signed_model_passes_and_its_signer_and_licence_are_known(model: Path, keys: Any) -> None:
    signer, _ = sign(model, model / SIGNATURE, keys.own_pem, Run())
    found = require(model, require_signature=True, config=trusting(keys.own_pub), run=Run())
    assert (found.signed_by, found.licence, found.licence_source) == (str(signer), "Apache-2.0", "README.md")


def test_without_the_wish_for_a_signature_only_the_licence_is_read(model: Path) -> None:
    found = require(model, require_signature=False, config=Config(), run=Run())
    assert (found.signed_by, found.licence) == ("", "Apache-2.0")


def test_an_unsigned_model_is_refused(model: Path, keys: Any) -> None:
    told = "the model is not signed: .*`hfbench sign MODEL --key KEY`, or put its signature there as model.sig"
    with pytest.raises(Unsigned, match=told):
        require(model, require_signature=True, config=trusting(keys.own_pub), run=Run())


def test_a_key_that_is_not_trusted_is_refused(model: Path, keys: Any) -> None:
    sign(model, model / SIGNATURE, keys.own_pem, Run())
    with pytest.raises(NotTrusted):
        require(model, require_signature=True, config=trusting(keys.other_pub), run=Run())


def test_a_key_that_was_given_takes_the_place_of_the_configured(model: Path, keys: Any) -> None:
    sign(model, model / SIGNATURE, keys.own_pem, Run())
    found = require(model, require_signature=True, config=trusting(keys.other_pub), run=Run(), keys=[keys.own_pub])
    assert found.signed_by


def test_no_key_at_all_is_a_wrong_request(model: Path, keys: Any) -> None:
    sign(model, model / SIGNATURE, keys.own_pem, Run())
    with pytest.raises(UsageError, match=r"names no key.*keys or certificates under \[signatures\]"):
        require(model, require_signature=True, config=Config(), run=Run())


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("model.safetensors", "other", "model.safetensors changed since it was signed"),
        ("modeling_new.py", "import os", "modeling_new.py is not signed"),
        ("config.json", None, "config.json is missing, and was signed"),
    ],
)
def test_files_that_differ_close_the_gate(model: Path, keys: Any, name: str, text: str | None, told: str) -> None:
    sign(model, model / SIGNATURE, keys.own_pem, Run())
    if text is None:
        (model / name).unlink()
    else:
        (model / name).write_text(text)
    with pytest.raises(GateClosed, match=told):
        require(model, require_signature=True, config=trusting(keys.own_pub), run=Run())


def test_weights_that_the_signature_leaves_out_close_the_gate(model: Path, keys: Any) -> None:
    from model_signing import hashing, signing

    config = hashing.Config().set_ignored_paths(paths=["model.safetensors", ".cache", SIGNATURE])
    signer = signing.Config().set_hashing_config(config).use_elliptic_key_signer(private_key=keys.own_pem)
    signer.sign(model, model / SIGNATURE)
    with pytest.raises(GateClosed, match=r"model\.safetensors is not signed"):
        require(model, require_signature=True, config=trusting(keys.own_pub), run=Run())


def test_the_lists_are_read_from_the_configuration(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('[licences]\nallow = ["mit"]\ndeny = ["cc-*"]\n[signatures]\nkeys = ["~/release.pub"]\n')
    config = read_config(file)
    assert (config.licences.allow, config.licences.deny) == (("mit",), ("cc-*",))
    assert (config.signatures.keys, config.signatures.certificates) == (("~/release.pub",), ())


def test_a_licence_that_is_denied_is_refused_before_anything_is_hashed(model: Path) -> None:
    config = Config(licences=LicencesConfig(deny=("apache-*",)))
    with pytest.raises(LicenceRefused, match="denied by 'apache-\\*'"):
        require(model, require_signature=True, config=config, run=Run())
