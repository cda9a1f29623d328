"""How the call-back of a workload cluster's credentials is signed (capi.md chapter 10): for sender and receiver.

The receiver has a master key. Each VNF instance has a key that is derived from it and that only its sender gets.
"""

from __future__ import annotations

import hashlib
import hmac
from base64 import urlsafe_b64decode
from collections.abc import Mapping, Sequence
from typing import Final

from kubevnfm_kit.ids import derived_id

PATH: Final = "/credentials/v1/workload-clusters"
LARGEST_BODY: Final = 256 * 1024

KEY_ID: Final = "X-Vnfm-Key-Id"
TIMESTAMP: Final = "X-Vnfm-Timestamp"
NONCE: Final = "X-Vnfm-Nonce"
CONTENT_SHA256: Final = "X-Vnfm-Content-SHA256"
SIGNATURE: Final = "X-Vnfm-Signature"
IDEMPOTENCY_KEY: Final = "Idempotency-Key"

_SCHEME: Final = "VNFM-HMAC-SHA256"
_VERSION: Final = "v1="
_KEY_BYTES: Final = 32


def credentials_id(vnf_instance_id: str, cluster_uid: str) -> str:
    """Return the id that credentials-receiver gives the credentials of a cluster, which is the same for every call-back."""
    # Derived, so that two replicas that store the same cluster at the same time write the same document.
    return derived_id("credentials", vnf_instance_id, cluster_uid)


def instance_key(master_key: bytes, vnf_instance_id: str) -> bytes:
    """Return the key of one VNF instance: HKDF-SHA256 with empty salt, one block (RFC 5869)."""
    pseudo_random = hmac.digest(bytes(32), master_key, "sha256")
    info = f"kubevnfm/callback/v1|{vnf_instance_id}".encode()
    # One block of 32 bytes is the whole key, so the block counter of HKDF-Expand is the single byte 1.
    return hmac.digest(pseudo_random, info + b"\x01", "sha256")


def key_id(vnf_instance_id: str, key_number: int) -> str:
    """Return the value of X-Vnfm-Key-Id: ``vnf-<id>``, or ``vnf-<id>.k2`` for the second master key."""
    return f"vnf-{vnf_instance_id}" + (f".k{key_number}" if key_number > 1 else "")


def master_keys(text: str) -> Sequence[bytes]:
    """Read one or two base64 keys of 32 bytes, separated by a comma. Raises ValueError without showing them."""
    try:
        keys = [urlsafe_b64decode(part.strip()) for part in text.split(",") if part.strip()]
    except ValueError as error:
        raise ValueError("master keys: base64 expected") from error
    if not 1 <= len(keys) <= 2 or any(len(key) != _KEY_BYTES for key in keys):
        raise ValueError(f"master keys: one or two keys of {_KEY_BYTES} bytes expected")
    return keys


def sha256_hex(body: bytes) -> str:
    """Return the hash of a body as the headers carry it."""
    return hashlib.sha256(body).hexdigest()


def signature(key: bytes, *, method: str, target: str, timestamp: str, nonce: str, content_sha256: str) -> str:
    """Return the value of X-Vnfm-Signature. ``target`` is the path, with the query as it is sent."""
    text = f"{_SCHEME}\n{method}\n{target}\n{timestamp}\n{nonce}\n{content_sha256}"
    return _VERSION + hmac.digest(key, text.encode(), "sha256").hex()


def signed_headers(
    key: bytes,
    body: bytes,
    *,
    vnf_instance_id: str,
    timestamp: int,
    nonce: str,
    idempotency_key: str,
    method: str = "POST",
    target: str = PATH,
    key_number: int = 1,
) -> Mapping[str, str]:
    """Return the headers of a call-back; a repeated try has a new timestamp and nonce and the same idempotency key.

    ``key_number``: which of the receiver's master keys ``key`` is derived from, 1 or 2 (CR-070).
    """
    content_sha256 = sha256_hex(body)
    return {
        "Content-Type": "application/json",
        IDEMPOTENCY_KEY: idempotency_key,
        KEY_ID: key_id(vnf_instance_id, key_number),
        TIMESTAMP: str(timestamp),
        NONCE: nonce,
        CONTENT_SHA256: content_sha256,
        SIGNATURE: signature(
            key,
            method=method,
            target=target,
            timestamp=str(timestamp),
            nonce=nonce,
            content_sha256=content_sha256,
        ),
    }
