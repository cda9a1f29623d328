"""Nonces: each may be used once. They are stored for longer than a timestamp is accepted."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_store.port import AlreadyExists, DocumentStore
from kubevnfm_store.query import AllOf, Compare, Index, Op

from kubevnfm_credentials_receiver.domain.errors import NonceUsed
from kubevnfm_credentials_receiver.domain.proof import SKEW_S

COLLECTION: Final = "callback_nonces"
_LIFE: Final = timedelta(seconds=3 * SKEW_S)
"""A timestamp is accepted from SKEW_S before to SKEW_S after the present; a nonce must be stored for longer."""


class Nonces:
    """The used nonces, in the store that all replicas share."""

    def __init__(self, store: DocumentStore, clock: Clock) -> None:
        self._store, self._clock = store, clock

    async def prepare(self) -> None:
        """Make the index."""
        await self._store.ensure_indexes(COLLECTION, [Index(["usedAt"])])

    async def claim(self, vnf_instance_id: str, nonce: str) -> None:
        """Use a nonce. Raises NonceUsed. To be called after the signature is verified (CR-066)."""
        # Otherwise everyone could fill the collection.
        try:
            await self._store.insert(COLLECTION, f"{vnf_instance_id}:{nonce}", {"usedAt": rfc3339(self._clock.now())})
        except AlreadyExists as error:
            raise NonceUsed("X-Vnfm-Nonce: a new nonce expected, this one was used before") from error

    async def purge(self) -> int:
        """Delete the nonces whose timestamps are no longer accepted; return their number."""
        before = rfc3339(self._clock.now() - _LIFE)
        return await self._store.delete_many(COLLECTION, AllOf([Compare("usedAt", Op.LT, [before])]))
