"""Identifiers and time stamps, in each OpenStack service's format."""

from __future__ import annotations

import random
import time
from uuid import UUID

_BASE32 = "abcdefghijklmnopqrstuvwxyz234567"
_source = random.SystemRandom()
# Seeded once from the system, then a fast generator: ids must be unique here, not secret.
_fast = random.Random(_source.getrandbits(256))


def new_uuid() -> str:
    """Return a fresh UUID in its dashed form."""
    return str(UUID(int=_fast.getrandbits(128), version=4))


def new_hex() -> str:
    """Return a fresh UUID in Keystone's form, without dashes."""
    return UUID(int=_fast.getrandbits(128), version=4).hex


def new_request_id() -> str:
    """Return what services put in ``X-OpenStack-Request-ID``."""
    return f"req-{new_uuid()}"


def short_id() -> str:
    """Return twelve characters of a-z and 2-7: Heat's suffix of names and its names of group members."""
    return "".join(_fast.choices(_BASE32, k=12))


def new_mac() -> str:
    """Return a MAC address with Neutron's base."""
    return "fa:16:3e:{:02x}:{:02x}:{:02x}".format(*_fast.randbytes(3))


def new_secret(length: int, alphabet: str) -> str:
    """Return a random string of characters of ``alphabet``, from the system's source since it may be a password."""
    return "".join(_source.choices(alphabet, k=length))


def now_z() -> str:
    """Return now in UTC to the second: ``2026-11-20T11:51:26Z``."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def now_micro() -> str:
    """Return now in UTC as Nova's and Cinder's databases do: ``2026-11-20T11:51:28.000000``."""
    return time.strftime("%Y-%m-%dT%H:%M:%S.000000", time.gmtime())
