"""Keys, certificates and a model to sign."""

from __future__ import annotations

import datetime
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

pytest.importorskip("model_signing")
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

PASSWORD = b"open sesame"


@dataclass(frozen=True)
class Keys:
    """Files of keys and certificates."""

    folder: Path

    def __getattr__(self, name: str) -> Path:
        """`keys.own_pub` is the file own.pub."""
        return self.folder / name.replace("_", ".")


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    """own.pem with own.pub, other.pem with other.pub, locked.pem (own, encrypted), rsa.pem, odd.pem of another curve;
    root.crt, leaf.crt of own signed by it, and evil.crt, another root."""
    folder = tmp_path_factory.mktemp("keys")
    own, other = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    write = {
        "own.pem": private(own),
        "own.pub": public(own),
        "other.pem": private(other),
        "other.pub": public(other),
        "locked.pem": private(own, serialization.BestAvailableEncryption(PASSWORD)),
        "rsa.pem": private(rsa.generate_private_key(65537, 2048)),
        "odd.pem": private(ec.generate_private_key(ec.SECP256K1())),
        "broken.pem": private(own)[:80] + b"\n-----END PRIVATE KEY-----\n",
        "text.pem": b"no key at all\n",
        "root.crt": certificate("Acme Root", other, "Acme Root", other, authority=True),
        "leaf.crt": certificate("Release team", own, "Acme Root", other, authority=False),
        "evil.crt": certificate("Acme Root", own, "Acme Root", own, authority=True),
    }
    for name, data in write.items():
        (folder / name).write_bytes(data)
    return Keys(folder)


def private(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey, encryption: object = None) -> bytes:
    """A private key in PEM."""
    how = encryption or serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, how)  # type: ignore[arg-type]


def public(key: ec.EllipticCurvePrivateKey) -> bytes:
    """Its public part in PEM."""
    return key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


def certificate(
    subject: str, key: ec.EllipticCurvePrivateKey, issuer: str, signer: ec.EllipticCurvePrivateKey, *, authority: bool
) -> bytes:
    """A certificate in PEM, valid for a month."""

    def name(text: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])

    now = datetime.datetime.now(datetime.UTC)
    usage = dict.fromkeys(
        (
            "content_commitment",
            "key_encipherment",
            "data_encipherment",
            "key_agreement",
            "encipher_only",
            "decipher_only",
        ),
        False,
    )
    made = (
        x509.CertificateBuilder()
        .subject_name(name(subject))
        .issuer_name(name(issuer))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=30))
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        .add_extension(
            x509.KeyUsage(digital_signature=not authority, key_cert_sign=authority, crl_sign=authority, **usage), True
        )
        .sign(signer, hashes.SHA256())
    )
    return made.public_bytes(serialization.Encoding.PEM)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A folder with the files of a model, and what git and a download leave beside them."""
    folder = tmp_path / "model"
    for name, text in {
        "config.json": json.dumps({"model_type": "llama"}),
        "model.safetensors": "weights",
        "sub/tokenizer.json": "{}",
        "README.md": "---\nlicense: apache-2.0\n---\n# A model\n",
        ".cache/huggingface/download/config.json.metadata": "x",
        ".gitattributes": "*.safetensors filter=lfs\n",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def cached(model: Path, tmp_path: Path) -> Callable[[], Path]:
    """Puts the model into the layout of a Hugging Face cache: links to blobs; the folder of the snapshot."""

    def made() -> Path:
        repo = tmp_path / "hub" / "models--acme--tiny"
        snapshot = repo / "snapshots" / ("a" * 40)
        (repo / "blobs").mkdir(parents=True)
        for number, file in enumerate(sorted(each for each in model.rglob("*") if each.is_file())):
            name = file.relative_to(model)
            if name.parts[0] == ".cache":
                continue
            blob = repo / "blobs" / f"{number:040x}"
            shutil.copy(file, blob)
            link = snapshot / name
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(blob)
        return snapshot

    return made
