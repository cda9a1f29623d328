"""Verifies the signature of a call-back in the order of CR-065: the cheapest check first.

The signature covers the headers, and the body by its hash. So a stranger's request is refused by its headers alone: neither is its
body read, nor is anything stored.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kubevnfm_clients import callback

from kubevnfm_credentials_receiver.domain.errors import NotSigned

SKEW_S: Final = 300
"""Allowed difference of the sender's clock."""
_NONCE: Final = re.compile(r"[A-Za-z0-9_-]{22,64}")
_KEY_ID: Final = re.compile(r"vnf-(?P<instance>[A-Za-z0-9._~-]{1,128}?)(?:\.k(?P<number>[12]))?")
_HEX: Final = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class VerifiedSender:
    """The sender of a correctly signed request."""

    vnf_instance_id: str
    nonce: str
    """The caller still has to check that it is new."""
    signed_at: int
    """Unix seconds, by the sender's clock."""
    content_sha256: str
    """The hash of the body, which is signed; `check_body` compares it."""


def verify(
    headers: Mapping[str, str], *, method: str, target: str, keys: Sequence[bytes], now: float
) -> VerifiedSender:
    """Check timestamp, key id and signature, before the body is read. ``now``: Unix seconds. Raises NotSigned."""
    names = (callback.KEY_ID, callback.TIMESTAMP, callback.NONCE, callback.CONTENT_SHA256, callback.SIGNATURE)
    for name in names:
        if not headers.get(name):
            raise NotSigned(f"{name} is missing")
    timestamp, nonce = headers[callback.TIMESTAMP], headers[callback.NONCE]
    # Cut before int(), which takes long for thousands of digits.
    signed_at = int(timestamp[:16]) if timestamp.isascii() and timestamp.isdigit() else 0
    if abs(signed_at - now) > SKEW_S:
        raise NotSigned("the timestamp is not within the allowed skew")
    key_id = _KEY_ID.fullmatch(headers[callback.KEY_ID])
    number = int(key_id["number"] or 1) if key_id else 0
    if key_id is None or number > len(keys):
        raise NotSigned("the key id is unknown")
    if not _NONCE.fullmatch(nonce):
        raise NotSigned("the nonce is malformed")
    content_sha256 = headers[callback.CONTENT_SHA256]
    if not _HEX.fullmatch(content_sha256):
        raise NotSigned("the hash of the body is malformed")
    expected = callback.signature(
        callback.instance_key(keys[number - 1], key_id["instance"]),
        method=method,
        target=target,
        timestamp=timestamp,
        nonce=nonce,
        content_sha256=content_sha256,
    )
    if not hmac.compare_digest(headers[callback.SIGNATURE].encode(), expected.encode()):
        raise NotSigned("the signature is wrong")
    return VerifiedSender(key_id["instance"], nonce, signed_at, content_sha256)


def check_body(sender: VerifiedSender, body: bytes) -> None:
    """Raise NotSigned unless the body has the hash that was signed."""
    if not hmac.compare_digest(sender.content_sha256, callback.sha256_hex(body)):
        raise NotSigned("the body does not have the announced hash")
