"""HTTP Basic (RFC 7617), against the users file."""

from __future__ import annotations

import asyncio
import binascii
import hashlib
import hmac
import secrets
from base64 import b64decode
from typing import Final

from kubevnfm_kit.errors import InvalidInput

from kubevnfm_access.caller import Caller
from kubevnfm_access.credentials import Credentials
from kubevnfm_access.errors import TooManyRequests, Unauthenticated
from kubevnfm_access.passwords import PasswordHash
from kubevnfm_access.users import UsersFile

_AT_A_TIME: Final = 2
"""Passwords checked at a time: each takes 32 MiB and one processor."""
_WAITING: Final = 32
"""Callers waiting for a check; more are rejected, otherwise wrong passwords could exhaust the memory."""


class BasicUsers:
    """`Authenticator` by name and password."""

    challenge = 'Basic realm="kubevnfm", charset="UTF-8"'

    def __init__(self, users: UsersFile) -> None:
        self._users = users
        self._dummy = PasswordHash.unmatched()
        self._checking = asyncio.Semaphore(_AT_A_TIME)
        self._waiting = 0
        self._secret = secrets.token_bytes(32)
        self._known: dict[str, tuple[PasswordHash, bytes]] = {}
        """Hash and keyed digest of each user's last correct password: scrypt runs once a password, not once a request."""

    async def caller(self, credentials: Credentials) -> Caller | None:
        given = credentials.of_scheme("basic")
        if given is None:
            return None
        name, password = _parsed(given)
        user = self._users.users().get(name)
        # For an unknown user a dummy hash is checked, so that the response time does not show which users exist.
        expected = user.password if user is not None and user.password is not None else self._dummy
        if not await self._fits(name, password, expected) or user is None:
            raise Unauthenticated("user or password is wrong")
        return Caller(user.name, "basic", user.roles)

    async def _fits(self, name: str, password: str, expected: PasswordHash) -> bool:
        mark = hmac.digest(self._secret, password.encode(), hashlib.sha256)
        known = self._known.get(name)
        # Compared with the present hash: a password that was changed in the file must be checked again.
        if known is not None and known[0] == expected and hmac.compare_digest(known[1], mark):
            return True
        if self._waiting >= _WAITING:
            raise TooManyRequests("too many passwords to check", retry_after_s=5)
        self._waiting += 1
        try:
            async with self._checking:
                fits = await asyncio.to_thread(expected.fits, password)
        finally:
            self._waiting -= 1
        if fits:
            self._known[name] = (expected, mark)
        return fits


def _parsed(given: str) -> tuple[str, str]:
    try:
        name, colon, password = b64decode(given.strip(), validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        colon = ""
    if not colon:
        raise InvalidInput("Authorization", "base64 of name:password expected after Basic")
    return name, password
