"""Private keys of requests: each form that people have, and the reasons for which one is refused."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Final

import pytest
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed448, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_ssh_private_key,
    load_ssh_public_key,
)
from cryptography.hazmat.primitives.serialization.ssh import SSHPrivateKeyTypes
from kubevnfm_cluster.ssh_keys import LONGEST_KEY, MOST_ROUNDS, KeyUnusable, new_key_pair, read_private_key
from servers.ssh_keys import quick

PHRASE: Final = "open sesame"
ED25519: Final = ed25519.Ed25519PrivateKey.generate()
CURVE: Final = ec.generate_private_key(ec.SECP256R1())
RSA: Final = rsa.generate_private_key(65_537, 2048)
KEYS: Final[list[SSHPrivateKeyTypes]] = [ED25519, CURVE, RSA]


def text(
    key: SSHPrivateKeyTypes | ed448.Ed448PrivateKey,
    form: PrivateFormat = PrivateFormat.OpenSSH,
    protection: KeySerializationEncryption | None = None,
) -> str:
    return key.private_bytes(Encoding.PEM, form, protection or NoEncryption()).decode()


def public(key: SSHPrivateKeyTypes) -> bytes:
    return key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)


@pytest.mark.parametrize("key", KEYS, ids=["ed25519", "ecdsa", "rsa"])
def test_a_key_without_passphrase_is_kept_as_it_is(key: SSHPrivateKeyTypes) -> None:
    forms = [PrivateFormat.OpenSSH, PrivateFormat.PKCS8]
    if key is not ED25519:  # OpenSSL has no traditional form of it
        forms.append(PrivateFormat.TraditionalOpenSSL)
    for form in forms:
        written = text(key, form)
        assert read_private_key(written, None) == written
        # As a copy through a form of a browser arrives.
        assert read_private_key("\r\n" + written.replace("\n", " \r\n"), None) == written


@pytest.mark.parametrize("key", KEYS, ids=["ed25519", "ecdsa", "rsa"])
def test_an_encrypted_key_is_opened_once_and_for_all(key: SSHPrivateKeyTypes) -> None:
    written = [text(key, PrivateFormat.OpenSSH, quick(PHRASE))]
    if key is not ED25519:
        written.append(text(key, PrivateFormat.TraditionalOpenSSL, BestAvailableEncryption(PHRASE.encode())))
    for one in written:
        opened = read_private_key(one, PHRASE)
        assert public(load_ssh_private_key(opened.encode(), None)) == public(key)
        assert read_private_key(opened, None) == opened


def encrypted() -> str:
    return text(ED25519, PrivateFormat.OpenSSH, quick(PHRASE))


def with_rounds(rounds: int) -> str:
    """Return an encrypted key whose header names another number of rounds."""
    head, *body, tail = encrypted().strip().splitlines()
    raw = base64.b64decode("".join(body))
    at = raw.index(b"bcrypt") + len("bcrypt") + 4 + 4 + 16
    changed = base64.encodebytes(raw[:at] + rounds.to_bytes(4) + raw[at + 4 :]).decode()
    return f"{head}\n{changed}{tail}\n"


UNUSABLE: Final[dict[str, tuple[Callable[[], str], str | None, str, str]]] = {
    "no key": (lambda: "ubuntu", None, "private_key", "OpenSSH's form or PEM"),
    "a public key": (lambda: public(ED25519).decode(), None, "private_key", "OpenSSH's form or PEM"),
    "cut off": (lambda: text(RSA)[:-60], None, "private_key", "OpenSSH's form or PEM"),
    "damaged": (lambda: text(ED25519).replace("AAAA", "AAAB", 1), None, "private_key", "can be read"),
    "damaged in PEM": (lambda: text(RSA, PrivateFormat.PKCS8).replace("MII", "MIJ"), None, "private_key", "can be read"),
    "empty": (
        lambda: "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----",
        None,
        "private_key",
        "can be read",
    ),
    "too long": (lambda: text(ED25519).replace("\n", "\n" * LONGEST_KEY, 1), None, "private_key", "OpenSSH's form"),
    "no passphrase": (encrypted, None, "private_key_passphrase", "which is encrypted"),
    "no passphrase of PEM": (
        lambda: text(RSA, PrivateFormat.TraditionalOpenSSL, BestAvailableEncryption(b"x")),
        None,
        "private_key_passphrase",
        "which is encrypted",
    ),
    "wrong passphrase": (encrypted, "open barley", "private_key_passphrase", "that opens the key"),
    "needless passphrase": (lambda: text(ED25519), PHRASE, "private_key_passphrase", "is not encrypted"),
    "PKCS 8": (
        lambda: text(RSA, PrivateFormat.PKCS8, BestAvailableEncryption(PHRASE.encode())),
        PHRASE,
        "private_key",
        "not PKCS #8",
    ),
    "small RSA": (lambda: text(rsa.generate_private_key(65_537, 1024)), None, "private_key", "2,048 to 8,192 bits"),
    "DSA": (
        lambda: text(dsa.generate_private_key(1024), PrivateFormat.TraditionalOpenSSL),
        None,
        "private_key",
        "an Ed25519, ECDSA",
    ),
    "Ed448": (
        lambda: text(ed448.Ed448PrivateKey.generate(), PrivateFormat.PKCS8), None, "private_key", "an Ed25519, ECDSA"
    ),
    "other curve": (
        lambda: text(ec.generate_private_key(ec.SECP256K1()), PrivateFormat.PKCS8),
        None,
        "private_key",
        "an Ed25519, ECDSA",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", UNUSABLE)
def test_an_unusable_key_is_refused_with_the_reason_and_without_the_key(case: str) -> None:
    make, passphrase, place, reason = UNUSABLE[case]
    given = make()
    with pytest.raises(KeyUnusable, match=reason) as caught:
        read_private_key(given, passphrase)
    assert caught.value.place == place
    body = [line for line in given.splitlines() if len(line) > 8 and "-----" not in line]
    assert not any(secret in str(caught.value) for secret in [*body, PHRASE])
    assert caught.value.__cause__ is None


def test_the_rounds_of_a_key_cannot_occupy_the_service() -> None:
    with pytest.raises(KeyUnusable, match=f"at most {MOST_ROUNDS} rounds"):
        read_private_key(with_rounds(2**31), PHRASE)
    # The header that the test writes is understood: with the right number of rounds the key opens.
    assert read_private_key(with_rounds(1), PHRASE)


def test_a_new_pair_fits_and_is_another_one_each_time() -> None:
    pairs = [new_key_pair("vnf-1") for _ in range(2)]
    assert pairs[0] != pairs[1]
    for pair in pairs:
        assert read_private_key(pair.private_key, None) == pair.private_key
        key = load_ssh_private_key(pair.private_key.encode(), None)
        line = pair.public_key.rpartition(" ")
        assert line[2] == "vnf-1"
        shown = load_ssh_public_key(pair.public_key.encode())
        assert shown.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH) == public(key) == line[0].encode()
