"""When the access data of a VIM expire, and when that is published. Pure functions."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Literal

from cryptography import x509
from kubevnfm_kit.foreign_json import read_foreign

Part = Literal["bearer_token", "client_certificate", "ssl_ca_cert"]

THRESHOLDS_DAYS: Final = (30, 14, 7, 3, 1, 0)
"""Days before the end at which it is published. Cluster API renews its certificates six months ahead, so 30 days are late."""
DAILY: Final = tuple(range(14, -1, -1))
"""The thresholds of cloud regions (multicloud.md MC-081)."""
_DAY_S: Final = 86_400
_CERTIFICATE: Final = re.compile("-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----")
"""Without a dash in between: otherwise the time for many certificates without an end grows with the square of their number."""


@dataclass(frozen=True)
class Expiry:
    """The part of the access data that expires first."""

    part: Part
    at: datetime

    def days_left(self, now: datetime) -> int:
        """Return the whole days that are left; 0 also after the end."""
        return max(int((self.at - now).total_seconds() // _DAY_S), 0)

    def threshold(self, now: datetime, thresholds: Sequence[int] = THRESHOLDS_DAYS) -> int | None:
        """Return the smallest threshold that is reached; None if the end is further away than all."""
        left_s = (self.at - now).total_seconds()
        return min((days for days in thresholds if left_s <= days * _DAY_S), default=None)


def first_expiry(access: Mapping[str, object]) -> Expiry | None:
    """Return what expires first among access data in clear; None if nothing does, or nothing says when."""
    return min(_expiries(access), key=lambda expiry: expiry.at, default=None)


def _expiries(access: Mapping[str, object]) -> Iterator[Expiry]:
    parts: tuple[Part, ...] = ("client_certificate", "ssl_ca_cert")
    for part in parts:
        # A chain or a bundle ends with the first of its certificates that does.
        for pem in _CERTIFICATE.findall(str(access.get(part) or "").replace("\\n", "\n")):
            try:
                yield Expiry(part, x509.load_pem_x509_certificate(pem.encode()).not_valid_after_utc)
            except ValueError:
                continue  # it is verified where it is used
    end = _end_of_token(str(access.get("bearer_token") or ""))
    if end is not None:
        yield Expiry("bearer_token", end)


def _end_of_token(token: str) -> datetime | None:
    """Return when a JWT expires; None for other tokens, and for one without ``exp``."""
    try:
        payload = token.split(".")[1]
        claims = read_foreign(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        return datetime.fromtimestamp(float(claims["exp"]), UTC)
    except (IndexError, KeyError, TypeError, ValueError, OverflowError, OSError):
        return None
