"""Encrypted files are recognised in each form of CMS, and nothing else is taken for one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.hazmat.primitives.serialization.pkcs7 import (
    PKCS7EnvelopeBuilder,
    PKCS7Options,
    PKCS7SignatureBuilder,
)
from kubevnfm_csar.encryption import encrypted_files

CONTENT = b"an artifact" * 1000
FORMS = [Encoding.DER, Encoding.PEM, Encoding.SMIME]
Signer = tuple[x509.Certificate, rsa.RSAPrivateKey]


@pytest.fixture(scope="module")
def signer() -> Signer:
    key = rsa.generate_private_key(65537, 2048)
    name, now = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "recipient")]), datetime.now(UTC)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).serial_number(1)
    builder = builder.not_valid_before(now).not_valid_after(now + timedelta(hours=1)).public_key(key.public_key())
    return builder.sign(key, hashes.SHA256()), key


def found(folder: Path, content: bytes) -> bool:
    (folder / "a.bin").write_bytes(content)
    return encrypted_files(folder, ["a.bin"]) == {"a.bin"}


@pytest.mark.parametrize("form", FORMS)
def test_an_encrypted_file_is_recognised(tmp_path: Path, signer: Signer, form: Encoding) -> None:
    builder = PKCS7EnvelopeBuilder().set_data(CONTENT).add_recipient(signer[0])
    encrypted = builder.encrypt(form, [PKCS7Options.Binary])
    assert found(tmp_path, encrypted)
    assert found(tmp_path, encrypted.replace(b" PKCS7-----", b" CMS-----"))


@pytest.mark.parametrize("head", ["308006092a864886f70d010703a080", "3082ffff060b2a864886f70d0109100117a082"])
def test_indefinite_lengths_and_authenticated_encryption_are_recognised(tmp_path: Path, head: str) -> None:
    assert found(tmp_path, bytes.fromhex(head) + CONTENT)


@pytest.mark.parametrize("form", FORMS)
def test_a_signed_file_is_not_encrypted(tmp_path: Path, signer: Signer, form: Encoding) -> None:
    builder = PKCS7SignatureBuilder().set_data(CONTENT).add_signer(*signer, hashes.SHA256())
    assert not found(tmp_path, builder.sign(form, []))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"0",
        CONTENT,
        bytes.fromhex("06092a864886f70d010703"),
        b"-----BEGIN CMS-----",
        b"-----BEGIN CMS-----\nno base64!\n",
        b"\x30\xff",
        b"MIME-Version: 1.0\nContent-Type: text/plain\n",
    ],
)
def test_other_content_is_not_encrypted(tmp_path: Path, content: bytes) -> None:
    assert not found(tmp_path, content)
