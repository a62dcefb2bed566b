"""Signing and verifying with the real library: who signed, what differs, and a sentence for what cannot be used."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hfbench.errors import HfbenchError, UsageError
from hfbench.jobs.run import Run
from hfbench.provenance.bundle import SignatureDamaged, Unsigned, read_bundle
from hfbench.provenance.facts import SIGNATURE
from hfbench.provenance.keys import KeyUnusable
from hfbench.provenance.sign import put_whole, sign
from hfbench.provenance.verify import NotTrusted, verify

SIGNED = ("README.md", "config.json", "model.safetensors", "sub/tokenizer.json")


def signed(model: Path, keys: Any, **more: Any) -> Path:
    sign(model, model / SIGNATURE, keys.own_pem, Run(), **more)
    return model / SIGNATURE


def test_what_was_signed_is_verified_and_names_its_key(model: Path, keys: Any) -> None:
    signer, files = sign(model, model / SIGNATURE, keys.own_pem, Run())
    found = verify(model, model / SIGNATURE, Run(), keys=[keys.own_pub])
    assert files == set(SIGNED)
    assert found.files.same == SIGNED
    assert (found.files.whole, found.files.left_out) == (True, ())
    assert found.signer == signer
    pem = keys.own_pub.read_bytes()
    digest = subprocess.run(["sha256sum"], input=pem, capture_output=True, check=True).stdout.split()[0].decode()
    assert str(found.signer) == f"key sha256:{digest}"


def test_the_librarys_own_command_takes_our_signature_and_we_take_its(model: Path, keys: Any) -> None:
    ours = signed(model, keys)
    tool = [sys.executable, "-m", "model_signing"]
    done = subprocess.run(
        [*tool, "verify", "key", str(model), "--signature", str(ours), "--public_key", str(keys.own_pub)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Verification succeeded" in done.stdout, done.stdout + done.stderr
    ours.unlink()
    theirs = model.with_name("theirs.sig")
    made = [*tool, "sign", "key", str(model), "--signature", str(theirs), "--private_key", str(keys.own_pem)]
    subprocess.run(made, check=True, capture_output=True)
    found = verify(model, theirs, Run(), keys=[keys.own_pub])
    assert found.files.whole
    assert ".cache/huggingface/download/config.json.metadata" in found.files.same  # it signs what we leave out


def test_every_kind_of_difference_is_named(model: Path, keys: Any) -> None:
    signature = signed(model, keys)
    (model / "config.json").write_text("{}")
    (model / "README.md").unlink()
    (model / "modeling_evil.py").write_text("import os")
    found = verify(model, signature, Run(), keys=[keys.own_pub]).files
    assert (found.changed, found.missing, found.extra) == (("config.json",), ("README.md",), ("modeling_evil.py",))
    assert found.same == ("model.safetensors", "sub/tokenizer.json")
    assert not found.whole


def test_links_of_a_hugging_face_cache_are_followed(cached: Callable[[], Path], keys: Any) -> None:
    snapshot = cached()
    signature = snapshot.parents[1] / "tiny.sig"
    sign(snapshot, signature, keys.own_pem, Run())
    assert verify(snapshot, signature, Run(), keys=[keys.own_pub]).files.whole
    blob = (snapshot / "model.safetensors").resolve()
    blob.write_text("other weights")
    assert verify(snapshot, signature, Run(), keys=[keys.own_pub]).files.changed == ("model.safetensors",)


def test_a_model_that_was_signed_as_files_is_verified_as_links(
    model: Path, cached: Callable[[], Path], keys: Any
) -> None:
    signature = signed(model, keys)
    elsewhere = signature.rename(model.with_name("moved.sig"))
    assert verify(cached(), elsewhere, Run(), keys=[keys.own_pub]).files.whole


def test_what_a_signature_leaves_out_is_told(model: Path, keys: Any, tmp_path: Path) -> None:
    from model_signing import hashing, signing

    config = hashing.Config().set_ignored_paths(paths=["model.safetensors", ".cache"])
    signature = tmp_path / "partial.sig"
    signing.Config().set_hashing_config(config).use_elliptic_key_signer(private_key=keys.own_pem).sign(model, signature)
    found = verify(model, signature, Run(), keys=[keys.own_pub]).files
    assert found.whole
    assert found.left_out == ("model.safetensors",)


def test_files_behind_a_linked_folder_are_told_as_left_out(model: Path, keys: Any, tmp_path: Path) -> None:
    signature = signed(model, keys)
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "modeling.py").write_text("import os")
    (model / "code").symlink_to(tmp_path / "code")
    assert verify(model, signature, Run(), keys=[keys.own_pub]).files.left_out == ("code/modeling.py",)


def test_a_signature_of_shards_names_files(model: Path, keys: Any, tmp_path: Path) -> None:
    from model_signing import hashing, signing

    config = hashing.Config().use_shard_serialization(shard_size=4).set_ignored_paths(paths=[".cache"])
    signature = tmp_path / "shards.sig"
    signing.Config().set_hashing_config(config).use_elliptic_key_signer(private_key=keys.own_pem).sign(model, signature)
    assert verify(model, signature, Run(), keys=[keys.own_pub]).files.same == SIGNED
    (model / "model.safetensors").write_text("weightX")
    found = verify(model, signature, Run(), keys=[keys.own_pub]).files
    assert (found.changed, found.missing, found.extra) == (("model.safetensors",), (), ())


def test_a_signature_may_have_a_name_as_long_as_names_can_be(tmp_path: Path) -> None:
    put_whole(tmp_path / ("n" * 255), b"signed")
    assert [(len(each.name), each.read_bytes()) for each in tmp_path.iterdir()] == [(255, b"signed")]


def test_a_certificate_names_its_subject_and_issuer(model: Path, keys: Any) -> None:
    signature = signed(model, keys, certificate=keys.leaf_crt, chain=[keys.root_crt])
    found = verify(model, signature, Run(), certificates=[keys.root_crt])
    assert (found.files.whole, found.signer.how) == (True, "certificate")
    assert (found.signer.subject, found.signer.issuer) == ("CN=Release team", "CN=Acme Root")


def test_a_certificate_of_another_root_of_the_same_name_is_not_trusted(model: Path, keys: Any) -> None:
    signature = signed(model, keys, certificate=keys.leaf_crt, chain=[keys.root_crt])
    with pytest.raises(NotTrusted, match="not one of those certificates"):
        verify(model, signature, Run(), certificates=[keys.evil_crt])


def test_another_key_is_not_trusted_and_both_are_named(model: Path, keys: Any) -> None:
    signature = signed(model, keys)
    with pytest.raises(NotTrusted, match=r"another key, sha256:[0-9a-f]{16}, than those given: sha256:[0-9a-f]{16}"):
        verify(model, signature, Run(), keys=[keys.other_pub])


def test_one_of_several_keys_is_enough(model: Path, keys: Any) -> None:
    signature = signed(model, keys)
    assert verify(model, signature, Run(), keys=[keys.other_pub, keys.own_pub]).files.whole


def test_a_key_and_a_certificate_are_not_taken_for_one_another(model: Path, keys: Any) -> None:
    signature = signed(model, keys)
    with pytest.raises(NotTrusted, match="certificates were given"):
        verify(model, signature, Run(), certificates=[keys.root_crt])
    signature = signed(model, keys, certificate=keys.leaf_crt, chain=[keys.root_crt], replace=True)
    with pytest.raises(NotTrusted, match="a certificate of CN=Release team, and keys were given"):
        verify(model, signature, Run(), keys=[keys.own_pub])


def test_a_list_of_files_that_was_edited_is_not_trusted(model: Path, keys: Any) -> None:
    signature = signed(model, keys)
    data = json.loads(signature.read_text())
    statement = json.loads(base64.b64decode(data["dsseEnvelope"]["payload"]))
    (model / "config.json").write_text("{}")
    statement["predicate"]["resources"] = [
        each for each in statement["predicate"]["resources"] if each["name"] != "config.json"
    ]
    data["dsseEnvelope"]["payload"] = base64.b64encode(json.dumps(statement).encode()).decode()
    signature.write_text(json.dumps(data))
    with pytest.raises(NotTrusted, match="its signed part was changed"):
        verify(model, signature, Run(), keys=[keys.own_pub])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "is not JSON"),
        ('{"mediaType": ', "is not JSON"),
        ("[1]", "is not JSON"),
        ("{}", "no signature of a model"),
        ('{"verificationMaterial": {}, "dsseEnvelope": {}}', "no readable list"),
        ('{"verificationMaterial": {}, "dsseEnvelope": {"payload": "###"}}', "no readable list"),
        ('{"verificationMaterial": {}, "dsseEnvelope": {"payload": "e30="}}', "not laid out as one"),
        ('{"verificationMaterial": {}, "dsseEnvelope": {"payload": "e30"}}', "no readable list"),
        ("[" * 100_000, "is not JSON"),
    ],
)
def test_a_damaged_signature_is_a_sentence(model: Path, keys: Any, text: str, told: str) -> None:
    (model / SIGNATURE).write_text(text)
    with pytest.raises(SignatureDamaged, match=told):
        verify(model, model / SIGNATURE, Run(), keys=[keys.own_pub])


def test_every_truncation_of_a_signature_is_a_sentence(model: Path, keys: Any) -> None:
    signature = signed(model, keys)
    whole = signature.read_bytes()
    for length in range(0, len(whole), 97):
        signature.write_bytes(whole[:length])
        with pytest.raises(SignatureDamaged):
            read_bundle(signature)


def test_a_bundle_without_parts_that_the_library_needs_is_a_sentence(model: Path, keys: Any) -> None:
    signature = signed(model, keys)
    whole = json.loads(signature.read_text())
    for part, name in (("dsseEnvelope", "signatures"), ("dsseEnvelope", "payloadType")):
        data = json.loads(json.dumps(whole))
        del data[part][name]
        signature.write_text(json.dumps(data))
        with pytest.raises(HfbenchError):
            verify(model, signature, Run(), keys=[keys.own_pub])


def test_a_signature_without_a_key_of_sigstore_says_that_it_needs_the_network(model: Path, keys: Any) -> None:
    (model / SIGNATURE).write_text('{"verificationMaterial": {"certificate": {}}, "dsseEnvelope": {}}')
    with pytest.raises(HfbenchError, match="over the network"):
        verify(model, model / SIGNATURE, Run(), keys=[keys.own_pub])


def test_an_unsigned_model_says_how_to_sign_it(model: Path, keys: Any) -> None:
    with pytest.raises(Unsigned, match=r"is not signed.*hfbench sign"):
        verify(model, model / SIGNATURE, Run(), keys=[keys.own_pub])


def test_without_a_key_nothing_is_verified(model: Path, keys: Any) -> None:
    signed(model, keys)
    with pytest.raises(UsageError, match="no key to verify with"):
        verify(model, model / SIGNATURE, Run())


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("absent_pem", "cannot be read: No such file"),
        ("text_pem", "no private key in PEM"),
        ("broken_pem", "no private key that can be read"),
        ("own_pub", "is a public key, not a private key"),
        ("root_crt", "is a certificate, not a private key"),
        ("rsa_pem", "of the kind RSA, .*P-256, P-384, P-521"),
        ("odd_pem", "of the curve secp256k1"),
        ("locked_pem", "the key is encrypted.*--password-from"),
    ],
)
def test_a_file_that_cannot_sign_says_why(model: Path, keys: Any, name: str, told: str) -> None:
    with pytest.raises(KeyUnusable, match=told):
        sign(model, model / SIGNATURE, getattr(keys, name), Run())
    assert not (model / SIGNATURE).exists()


@pytest.mark.parametrize(
    ("name", "told"),
    [("own_pem", "is a private key"), ("root_crt", "give it with|Give it with"), ("text_pem", "no public key in PEM")],
)
def test_a_file_that_cannot_verify_says_why(model: Path, keys: Any, name: str, told: str) -> None:
    signed(model, keys)
    with pytest.raises(KeyUnusable, match=told):
        verify(model, model / SIGNATURE, Run(), keys=[getattr(keys, name)])


def test_a_certificate_file_without_one_is_refused(model: Path, keys: Any) -> None:
    with pytest.raises(KeyUnusable, match="holds no certificate"):
        verify(model, model / SIGNATURE, Run(), certificates=[keys.own_pub])


def test_a_pipe_in_place_of_a_key_or_a_signature_is_told_and_not_waited_for(
    model: Path, keys: Any, tmp_path: Path
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(KeyUnusable, match="it is no plain file"):
        sign(model, model / SIGNATURE, pipe, Run())
    signed(model, keys)
    with pytest.raises(KeyUnusable, match="it is no plain file"):
        verify(model, model / SIGNATURE, Run(), keys=[pipe])
    with pytest.raises(SignatureDamaged, match="cannot be read: it is no plain file"):
        read_bundle(pipe)
    with pytest.raises(SignatureDamaged, match="cannot be read: it is a folder"):
        read_bundle(model)


def test_the_password_of_a_key_comes_from_a_variable(model: Path, keys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="'KEY_WORD' is not set"):
        sign(model, model / SIGNATURE, keys.locked_pem, Run(), password_from="KEY_WORD")
    monkeypatch.setenv("KEY_WORD", "wrong")
    with pytest.raises(KeyUnusable, match="cannot be decrypted"):
        sign(model, model / SIGNATURE, keys.locked_pem, Run(), password_from="KEY_WORD")
    monkeypatch.setenv("KEY_WORD", "open sesame")
    sign(model, model / SIGNATURE, keys.locked_pem, Run(), password_from="KEY_WORD")
    assert verify(model, model / SIGNATURE, Run(), keys=[keys.own_pub]).files.whole


def test_an_encrypted_key_signs_with_a_certificate_too(model: Path, keys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY_WORD", "open sesame")
    more: dict[str, Any] = {"certificate": keys.leaf_crt, "chain": [keys.root_crt], "password_from": "KEY_WORD"}
    sign(model, model / SIGNATURE, keys.locked_pem, Run(), **more)
    assert verify(model, model / SIGNATURE, Run(), certificates=[keys.root_crt]).files.whole


def test_a_certificate_of_another_key_is_refused(model: Path, keys: Any) -> None:
    with pytest.raises(UsageError, match="does not match"):
        sign(model, model / SIGNATURE, keys.other_pem, Run(), certificate=keys.leaf_crt)


def test_a_signature_is_replaced_only_when_asked_and_never_covers_the_old_one(model: Path, keys: Any) -> None:
    signature = signed(model, keys)
    before = signature.read_bytes()
    with pytest.raises(UsageError, match="a signature already"):
        signed(model, keys)
    assert signature.read_bytes() == before
    signed(model, keys, replace=True)
    assert verify(model, signature, Run(), keys=[keys.own_pub]).files.same == SIGNED


def test_a_link_that_leads_nowhere_is_a_sentence_and_leaves_no_signature(model: Path, keys: Any) -> None:
    (model / "lost.bin").symlink_to(model / "nowhere")
    with pytest.raises(HfbenchError, match=r"lost\.bin"):
        signed(model, keys)
    assert sorted(each.name for each in model.iterdir() if "sig" in each.name) == []


def test_a_folder_that_cannot_take_the_signature_is_a_sentence(model: Path, keys: Any) -> None:
    with pytest.raises(HfbenchError, match=r"cannot be written.*--signature"):
        sign(model, model / "absent" / SIGNATURE, keys.own_pem, Run())


def test_progress_grows_with_the_bytes_that_are_read(model: Path, keys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hfbench.provenance.progress.EVERY", 0.001)
    (model / "big.safetensors").write_bytes(b"x" * (64 << 20))
    told: list[Any] = []
    sign(model, model / SIGNATURE, keys.own_pem, Run(emit=told.append))
    steps = [(each.done, each.total) for each in told if each.kind == "progress"]
    assert steps[0][0] == 0
    assert steps[-1][0] == steps[-1][1] > 64 << 20
    assert [done for done, _ in steps] == sorted(done for done, _ in steps)
