"""The sessions of the web page, as documents: what a user has logged in with, encrypted, under a digest of the cookie's key.

Several gateways share them, and a logout ends one for all of them. They are bounded: each has an end, and a user has so many.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import structlog
from kubevnfm_access.caller import Caller
from kubevnfm_access.credentials import Credentials
from kubevnfm_access.openid import Grant, OpenId
from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_secrets import KeyRing
from kubevnfm_secrets.keyring import UnknownKey
from kubevnfm_store.port import DocumentStore
from kubevnfm_store.query import Compare, Index, Op, Query, Sort, Stored, by

from kubevnfm_lcm_api.page.grants import Grants

log = structlog.get_logger()

COLLECTION: Final = "page_sessions"
INDEXES: Final = {COLLECTION: [Index(["expiresAt"]), Index(["user", "expiresAt"])]}
MOST_OF_ONE: Final = 20
"""The most sessions of one user; a further login ends the oldest."""


@dataclass(frozen=True, repr=False)
class Ended:
    """A session that has ended."""

    caller: Caller
    """The caller that it was begun by; its roles are not known any more."""
    grant: Grant | None
    """The tokens of an issuer that it had."""


class StoredSessions:
    """The sessions. Every method may raise StoreUnavailable. ``openid``: renews the tokens of those that have begun at an issuer."""

    def __init__(
        self, store: DocumentStore, ring: KeyRing, clock: Clock, *, lasts_s: int, openid: OpenId | None = None
    ) -> None:
        self._store, self._ring, self._clock = store, ring, clock
        self._grants = Grants(store, ring, clock, COLLECTION, openid)
        self.lasts_s = lasts_s
        """How long a session lasts, however much it is used."""

    async def begin(self, caller: Caller, credentials: Credentials) -> str:
        """Begin a session of a caller that these credentials have admitted; return its key."""
        key = secrets.token_urlsafe(32)
        plain = json.dumps([[*credentials.authorization], credentials.auth_token])
        sealed = self._ring.seal(plain, bound_to=_id_of(key))
        await self._insert(key, caller, {"credentials": sealed})
        return key

    async def begin_granted(self, caller: Caller, grant: Grant) -> str:
        """Begin a session of a caller that the token of this grant has admitted; return its key."""
        key = secrets.token_urlsafe(32)
        await self._insert(key, caller, self._grants.stored(_id_of(key), grant))
        return key

    async def credentials(self, key: str) -> Credentials | None:
        """Return what its user has logged in with; None if there is no such session, or it has expired."""
        found = await self._found(key)
        if found is None:
            return None
        try:
            if "grant" in found.body:
                grant = await self._grants.present(found)
                return None if grant is None else Credentials(authorization=[f"Bearer {grant.token}"])
            authorization, auth_token = json.loads(self._ring.open(found.body["credentials"], bound_to=found.id))
        except UnknownKey:
            # The key was taken out of the ring, which is how an operator ends what it has encrypted.
            log.warning("session_unreadable")
            return None
        return Credentials(authorization=authorization, auth_token=auth_token)

    async def end(self, key: str) -> None:
        """End the session, if there is one."""
        await self._store.delete(COLLECTION, _id_of(key))

    async def end_known(self, key: str) -> Ended | None:
        """End the session; return what it was, None if there is none."""
        found = await self._found(key)
        if found is None:
            return None
        await self._store.delete(COLLECTION, found.id)
        mode, _, subject = found.body["user"].partition(" ")
        grant = None
        with suppress(UnknownKey):
            grant = self._grants.read(found) if "grant" in found.body else None
        return Ended(Caller(subject, mode, frozenset()), grant)

    async def remove_old(self) -> None:
        """Remove sessions that have expired."""
        await self._store.delete_many(COLLECTION, Compare("expiresAt", Op.LT, [self._in(0)]))

    async def _found(self, key: str) -> Stored | None:
        found = await self._store.get(COLLECTION, _id_of(key))
        # Texts of RFC 3339 in UTC with equal precision sort as their moments do.
        return None if found is None or found.body["expiresAt"] <= self._in(0) else found

    async def _insert(self, key: str, caller: Caller, content: dict[str, object]) -> None:
        user = f"{caller.mode} {caller.subject}"
        body = {"user": user, "expiresAt": self._in(self.lasts_s), **content}
        await self._store.insert(COLLECTION, _id_of(key), body)
        newest = Query(
            by(user=user),
            sort=Sort("expiresAt", descending=True),
            limit=2 * MOST_OF_ONE,
            exclude=["credentials", "grant"],
        )
        for older in (await self._store.find(COLLECTION, newest))[MOST_OF_ONE:]:
            await self._store.delete(COLLECTION, older.id)

    def _in(self, time_s: int) -> str:
        return rfc3339(self._clock.now() + timedelta(seconds=time_s))


def _id_of(key: str) -> str:
    """Return the id of a session's document; a reader of the database cannot make the cookie of it."""
    return hashlib.sha256(key.encode()).hexdigest()
