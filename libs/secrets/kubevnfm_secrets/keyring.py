"""The key ring: the first key encrypts, every key decrypts, so keys can be rotated while both are in use."""

from __future__ import annotations

import hashlib
import hmac
import os
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from typing import Self

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from kubevnfm_kit.errors import VnfmError

_KEY_BYTES = 32
# 96 bits, the length that NIST SP 800-38D recommends: GCM uses it without hashing.
_NONCE_BYTES = 12
_FINGERPRINT = b"kubevnfm fingerprint"


class UnknownKey(VnfmError, code="unknown-key", title="Secret cannot be opened", status=500):
    """A sealed value names a key that the ring does not have, or it was changed."""


class KeyRing:
    """Seals and opens texts with AES-256-GCM (NIST SP 800-38D).

    A sealed text is ``v1.<key id>.<base64url of nonce and ciphertext>``; the key id is the first 8 hex digits of the
    key's SHA-256, so a ring knows at once which key a text needs.
    """

    def __init__(self, keys: Sequence[bytes]) -> None:
        if not keys:
            raise ValueError("key ring: no key given")
        for key in keys:
            if len(key) != _KEY_BYTES:
                raise ValueError(f"key ring: expected keys of {_KEY_BYTES} bytes, got one of {len(key)}")
        self._ciphers = {hashlib.sha256(key).hexdigest()[:8]: AESGCM(key) for key in keys}
        self._first = next(iter(self._ciphers))
        self._fingerprint_key = hmac.digest(keys[0], _FINGERPRINT, "sha256")

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Read base64 keys, separated by commas; the first encrypts. Raises ValueError, never with the keys."""
        try:
            return cls([urlsafe_b64decode(part.strip()) for part in text.split(",") if part.strip()])
        except ValueError as error:
            raise ValueError("key ring: expected base64 keys of 32 bytes, separated by commas") from error

    @staticmethod
    def new_key() -> str:
        """Return a fresh key as base64 text."""
        return urlsafe_b64encode(os.urandom(_KEY_BYTES)).decode()

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the keys; the first one encrypts."""
        return tuple(self._ciphers)

    def seal(self, plain: str, *, bound_to: str = "") -> str:
        """Encrypt; the result opens only with the same ``bound_to`` (GCM's associated data)."""
        # Random nonces are safe for 2^32 texts of one key (NIST SP 800-38D 8.3).
        nonce = os.urandom(_NONCE_BYTES)
        sealed = self._ciphers[self._first].encrypt(nonce, plain.encode(), bound_to.encode())
        return f"v1.{self._first}.{urlsafe_b64encode(nonce + sealed).decode()}"

    def open(self, sealed: str, *, bound_to: str = "") -> str:
        """Decrypt what any of the ring's keys sealed. Raises UnknownKey."""
        version, _, rest = sealed.partition(".")
        key_id, _, payload = rest.partition(".")
        cipher = self._ciphers.get(key_id)
        if version != "v1" or cipher is None:
            raise UnknownKey(f"no key {key_id or '?'} in the ring")
        try:
            raw = urlsafe_b64decode(payload)
            return cipher.decrypt(raw[:_NONCE_BYTES], raw[_NONCE_BYTES:], bound_to.encode()).decode()
        except (InvalidTag, ValueError) as error:  # ValueError: no base64, or too short for a nonce
            raise UnknownKey(f"the text does not open with key {key_id}") from error

    def fingerprint(self, plain: str) -> str:
        """Return a keyed hash, by which equal texts are recognised; those under another first key differ."""
        return hmac.digest(self._fingerprint_key, plain.encode(), "sha256").hex()

    def is_current(self, sealed: str) -> bool:
        """Return whether the first key sealed the text; if not, a rotation seals it again."""
        return sealed.startswith(f"v1.{self._first}.")
