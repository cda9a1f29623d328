"""SSH keys for tests."""

from __future__ import annotations

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    KeySerializationEncryption,
    PrivateFormat,
    PublicFormat,
)


def quick(passphrase: str) -> KeySerializationEncryption:
    """Return an encryption of keys that is opened at once: ``ssh-keygen`` makes it take a third of a second."""
    return PrivateFormat.OpenSSH.encryption_builder().kdf_rounds(1).build(passphrase.encode())


def encrypted_key(passphrase: str) -> tuple[str, str]:
    """Return a new private key and its public key, a line of ``authorized_keys``."""
    key = Ed25519PrivateKey.generate()
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
    return key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, quick(passphrase)).decode(), public
