"""Private keys for SSH: reading those of requests, and making one for an instance.

Sources: OpenSSH's PROTOCOL.key (the form of ``ssh-keygen``); RFC 1421 and RFC 5958 (PEM); RFC 8709 (Ed25519).
"""

from __future__ import annotations

import base64
import binascii
import re
import struct
from typing import Final, Literal, NamedTuple

from cryptography.exceptions import InvalidTag, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_ssh_private_key,
)

LONGEST_KEY: Final = 8192
"""Characters. An RSA key of 8,192 bits has 6,500."""
MOST_ROUNDS: Final = 256
"""Each round of bcrypt takes 15 ms of processor time. ``ssh-keygen`` uses 24; a key's author may choose any number."""
_ENVELOPE: Final = re.compile(
    r"-----BEGIN (?P<kind>(?:[A-Z]+ )*PRIVATE KEY)-----\n(?P<body>.*)\n-----END (?P=kind)-----", re.DOTALL
)
_OPENSSH: Final = "OPENSSH PRIVATE KEY"
_MAGIC: Final = b"openssh-key-v1\0"
_CURVES: Final = ("secp256r1", "secp384r1", "secp521r1")

Place = Literal["private_key", "private_key_passphrase"]


class KeyUnusable(Exception):
    """A key or its passphrase is not as ``expected``. The text never holds any part of either."""

    def __init__(self, place: Place, expected: str) -> None:
        super().__init__(f"{place}: {expected} expected")
        self.place, self.expected = place, expected


class KeyPair(NamedTuple):
    """A key pair in OpenSSH's form."""

    private_key: str
    public_key: str
    """One line, as in ``authorized_keys``."""


def new_key_pair(comment: str) -> KeyPair:
    """Return a new Ed25519 key pair."""
    key = Ed25519PrivateKey.generate()
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
    return KeyPair(_in_clear(key), f"{public} {comment}")


def read_private_key(text: str, passphrase: str | None) -> str:
    """Return the key without a passphrase; a key that has none is returned as it is, with normal line ends.

    To open a key takes up to seconds of processor time, so this is not for the event loop.
    Raises: KeyUnusable naming what is wrong.
    """
    plain = "\n".join(line.rstrip() for line in text.strip().splitlines()) + "\n"
    found = _ENVELOPE.fullmatch(plain.rstrip("\n")) if len(text) <= LONGEST_KEY else None
    if found is None:
        raise KeyUnusable("private_key", "a private key in OpenSSH's form or PEM")
    if found["kind"] == "ENCRYPTED PRIVATE KEY":
        # The number of rounds of such a key is not bounded, and only its library could read it.
        raise KeyUnusable(
            "private_key", "an encrypted key in OpenSSH's form (ssh-keygen -p -f FILE writes it), not PKCS #8,"
        )
    is_openssh = found["kind"] == _OPENSSH
    is_encrypted = _is_encrypted(found["body"]) if is_openssh else "ENCRYPTED" in found["body"]
    if is_encrypted and passphrase is None:
        raise KeyUnusable("private_key_passphrase", "the passphrase of the key, which is encrypted,")
    if not is_encrypted and passphrase is not None:
        raise KeyUnusable("private_key_passphrase", "no passphrase, because the key is not encrypted,")
    key = _loaded(plain.encode(), passphrase, is_openssh=is_openssh)
    return _in_clear(key) if is_encrypted else plain


def _loaded(
    key: bytes, passphrase: str | None, *, is_openssh: bool
) -> Ed25519PrivateKey | RSAPrivateKey | EllipticCurvePrivateKey:
    load = load_ssh_private_key if is_openssh else load_pem_private_key
    try:
        # An RSA key is not tested for its mathematics, which takes up to 5 s: one that is wrong is refused at the login.
        loaded = load(key, passphrase.encode() if passphrase is not None else None, unsafe_skip_rsa_key_validation=True)
    except UnsupportedAlgorithm:
        raise _kind_unsupported() from None
    # Without the cause: a library's text may quote the key.
    except (ValueError, TypeError, InvalidTag):
        if passphrase is not None:
            raise KeyUnusable("private_key_passphrase", "a passphrase that opens the key") from None
        raise KeyUnusable("private_key", "a private key that can be read") from None
    if isinstance(loaded, Ed25519PrivateKey):
        return loaded
    if isinstance(loaded, RSAPrivateKey) and 2048 <= loaded.key_size <= 8192:
        return loaded
    if isinstance(loaded, EllipticCurvePrivateKey) and loaded.curve.name in _CURVES:
        return loaded
    raise _kind_unsupported()


def _kind_unsupported() -> KeyUnusable:
    return KeyUnusable("private_key", "an Ed25519, ECDSA (P-256, P-384, P-521) or RSA (2,048 to 8,192 bits) key")


def _is_encrypted(body: str) -> bool:
    """Return whether a key of OpenSSH's form is encrypted. Raises KeyUnusable."""
    try:
        raw = base64.b64decode(body)
        if not raw.startswith(_MAGIC):
            raise KeyUnusable("private_key", "a private key that can be read")
        _, rest = _string(raw.removeprefix(_MAGIC))
        derivation, rest = _string(rest)
        options, _ = _string(rest)
        if derivation == b"none":
            return False
        _, rounds = _string(options)
        if struct.unpack(">I", rounds)[0] > MOST_ROUNDS:
            raise KeyUnusable(
                "private_key", f"a key that is encrypted with at most {MOST_ROUNDS} rounds (ssh-keygen -a)"
            )
    except (struct.error, binascii.Error):
        raise KeyUnusable("private_key", "a private key that can be read") from None
    return True


def _string(data: bytes) -> tuple[bytes, bytes]:
    """Return a string of RFC 4251, and what follows it."""
    (length,) = struct.unpack_from(">I", data)
    return data[4 : 4 + length], data[4 + length :]


def _in_clear(key: Ed25519PrivateKey | RSAPrivateKey | EllipticCurvePrivateKey) -> str:
    return key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()).decode()
