"""Passwords as scrypt hashes (RFC 7914)."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from base64 import b64decode, b64encode
from dataclasses import dataclass
from typing import Final, Self

_LOG_N: Final = 15
_R: Final = 8
_P: Final = 3
"""32 MiB and some tenths of a second for each guess; the values of OWASP's cheat sheet for scrypt."""
_LENGTH: Final = 32
_LARGEST_LOG_N: Final = 20
_LARGEST_R: Final = 32
_LARGEST_P: Final = 16


@dataclass(frozen=True, repr=False)
class PasswordHash:
    """One password's hash; as text ``scrypt$<log2 n>$<r>$<p>$<salt>$<hash>``, the last two base64."""

    log_n: int
    r: int
    p: int
    salt: bytes
    digest: bytes

    @classmethod
    def from_password(cls, password: str) -> Self:
        """Hash a password with a new salt."""
        salt = secrets.token_bytes(16)
        return cls(_LOG_N, _R, _P, salt, _scrypt(password, salt, _LOG_N, _R, _P))

    @classmethod
    def unmatched(cls) -> Self:
        """Return a hash that no password has. A check of it takes as long as one of `from_password`; making it takes no time."""
        return cls(_LOG_N, _R, _P, secrets.token_bytes(16), secrets.token_bytes(_LENGTH))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the text form. Raises ValueError."""
        kind, *numbers, salt, digest = text.split("$")
        if kind != "scrypt" or len(numbers) != 3:
            raise ValueError("must have the form scrypt$<log2 n>$<r>$<p>$<salt>$<hash>")
        log_n, r, p = (int(number) for number in numbers)
        # Bounded: a mistyped parameter would take all memory at the first log-in.
        if not (10 <= log_n <= _LARGEST_LOG_N and 1 <= r <= _LARGEST_R and 1 <= p <= _LARGEST_P):
            raise ValueError("scrypt: parameters out of range")
        return cls(log_n, r, p, b64decode(salt, validate=True), b64decode(digest, validate=True))

    def __str__(self) -> str:
        salt, digest = b64encode(self.salt).decode(), b64encode(self.digest).decode()
        return f"scrypt${self.log_n}${self.r}${self.p}${salt}${digest}"

    def fits(self, password: str) -> bool:
        """Return whether it is the hash of the password. It is slow on purpose: call it in a thread."""
        return hmac.compare_digest(_scrypt(password, self.salt, self.log_n, self.r, self.p), self.digest)


def _scrypt(password: str, salt: bytes, log_n: int, r: int, p: int) -> bytes:
    n = 1 << log_n
    # scrypt needs 128 * n * r bytes and a little; OpenSSL refuses more than 32 MiB unless maxmem says otherwise.
    return hashlib.scrypt(password.encode(), salt=salt, n=n, r=r, p=p, maxmem=2 * 128 * n * r + 2**20, dklen=_LENGTH)
