"""The tokens of sessions that have begun at an issuer, and their renewal.

The rule: a refresh token is used once, because issuers rotate them and end the whole login when an old one comes back. So one
gateway claims a renewal by a write that only one can win; the others use the present token meanwhile, or wait for the new one.
A claim of a gateway that was killed ends by itself; what the issuer then answers to the refresh token decides.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict
from datetime import timedelta
from functools import partial
from typing import Final

import structlog
from kubevnfm_access.errors import IdentityUnavailable, LoginRefused
from kubevnfm_access.openid import Grant, OpenId
from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_secrets import KeyRing
from kubevnfm_store.port import DocumentStore, RevisionConflict, StoreUnavailable
from kubevnfm_store.query import Stored

log = structlog.get_logger()

_EARLY_S: Final = 60.0
"""How long before the end of a token it is renewed, so that a short outage of the issuer ends no session."""
_LEAST_S: Final = 1.0
"""The least time from one renewal to the next, of an issuer whose tokens have ended when they come, too."""
_CLAIM_S: Final = 60.0
"""Longer than the issuer may take to answer and the database to store it."""
_AGAIN_S: Final = 10.0
"""An issuer that is away is not asked more often for one session."""
_WAIT_S: Final = 20.0
"""How long a request waits for the renewal of another gateway."""
_LOOK_S: Final = 0.25
_WRITE_S: Final = 15.0
"""How long new tokens are tried to be stored: without them the session is lost."""


class Grants:
    """The grants of sessions, encrypted in their documents. Methods may raise StoreUnavailable."""

    def __init__(
        self, store: DocumentStore, ring: KeyRing, clock: Clock, collection: str, openid: OpenId | None
    ) -> None:
        self._store, self._ring, self._clock, self._collection = store, ring, clock, collection
        self._openid = openid
        self._renewing: dict[str, asyncio.Task[Stored | None]] = {}

    def stored(self, record_id: str, grant: Grant) -> dict[str, object]:
        """Return the fields of a session's document."""
        fields: dict[str, object] = {"grant": self._ring.seal(json.dumps(asdict(grant)), bound_to=record_id)}
        if grant.lasts_s is not None:
            fields["tokenEndsAt"] = self._in(grant.lasts_s)
            if grant.refresh_token is not None:
                fields["renewFrom"] = self._in(max(_LEAST_S, grant.lasts_s - min(_EARLY_S, grant.lasts_s / 3)))
        return fields

    def read(self, session: Stored) -> Grant:
        """Return the grant of a session. Raises UnknownKey."""
        return Grant(**json.loads(self._ring.open(session.body["grant"], bound_to=session.id)))

    async def present(self, session: Stored) -> Grant | None:
        """Return the grant of a session with a token that has not ended, renewed if it is time; None if the issuer has ended it.

        Raises UnknownKey; IdentityUnavailable if the token has ended and the issuer does not answer.
        """
        loop = asyncio.get_running_loop()
        waits_until = loop.time() + _WAIT_S
        while self._is_past(session, "renewFrom") and self._openid is not None:
            if session.id in self._renewing or not self._is_past(session, "claimedUntil", default=True):
                if not self._is_past(session, "tokenEndsAt"):
                    break
                if "isIssuerAway" in session.body or loop.time() > waits_until:
                    raise IdentityUnavailable("the login cannot be renewed: the identity server does not answer")
                found = await self._renewed_elsewhere(session.id)
            else:
                # The request may be given up meanwhile; the new refresh token must not be lost with it.
                task = self._renewing[session.id] = asyncio.create_task(self._renew(session, self._openid))
                task.add_done_callback(partial(self._forget, session.id))
                found = await asyncio.shield(task)
            if found is None:
                return None
            session = found
        return self.read(session)

    def _forget(self, session_id: str, ended: asyncio.Task[Stored | None]) -> None:
        del self._renewing[session_id]
        if not ended.cancelled():
            ended.exception()  # the requests that wait have it

    async def _renewed_elsewhere(self, session_id: str) -> Stored | None:
        """Wait a while for a renewal that someone else has begun; return the session as it is then."""
        task = self._renewing.get(session_id)
        await (asyncio.sleep(_LOOK_S) if task is None else asyncio.wait([task], timeout=_LOOK_S))
        return await self._store.get(self._collection, session_id)

    async def _renew(self, session: Stored, openid: OpenId) -> Stored | None:
        """Claim the renewal and do it; return the session as it is then stored, None if it has ended."""
        try:
            claimed = await self._store.update(
                self._collection,
                session.id,
                {"claimedUntil": self._in(_CLAIM_S)},
                unset=["isIssuerAway"],
                if_revision=session.revision,
            )
        except RevisionConflict:
            return await self._store.get(self._collection, session.id)
        try:
            grant = await openid.renew(self.read(claimed))
        except LoginRefused as refusal:
            log.info("session_ended_by_issuer", reason=str(refusal))
            await self._store.delete(self._collection, session.id)
            return None
        except IdentityUnavailable:
            fields, gone = {"claimedUntil": self._in(_AGAIN_S), "isIssuerAway": True}, []
        else:
            fields = self.stored(session.id, grant)
            gone = [name for name in ("tokenEndsAt", "renewFrom", "claimedUntil") if name not in fields]
        return await self._write(session.id, fields, gone)

    async def _write(self, session_id: str, fields: dict[str, object], gone: list[str]) -> Stored | None:
        """Write to a session; return it as it is then, None if a logout has ended it."""
        loop = asyncio.get_running_loop()
        until = loop.time() + _WRITE_S
        while True:
            try:
                return await self._store.update(self._collection, session_id, fields, unset=gone)
            except StoreUnavailable:
                if loop.time() > until:
                    raise
                await asyncio.sleep(_LOOK_S)
            except RevisionConflict:
                return None

    def _is_past(self, session: Stored, name: str, *, default: bool = False) -> bool:
        at = session.body.get(name)
        # Texts of RFC 3339 in UTC with equal precision sort as their moments do.
        return default if at is None else at <= self._in(0)

    def _in(self, time_s: float) -> str:
        return rfc3339(self._clock.now() + timedelta(seconds=time_s))
