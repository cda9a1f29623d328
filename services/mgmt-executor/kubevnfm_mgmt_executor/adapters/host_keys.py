"""Pinned SSH host keys in the store's collection ``host_keys``: one for each VNFC, so a rebuilt server has none yet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_kit.ids import derived_id
from kubevnfm_store.port import AlreadyExists, DocumentStore
from kubevnfm_store.query import Index

from kubevnfm_mgmt_executor.adapters.journal import of_instance

HOST_KEYS: Final = "host_keys"
INDEXES: Final = (Index(["vnfInstanceId", "vnfcId"]),)


class StoredHostKeys:
    """Stores the first key that any worker saw."""

    def __init__(self, store: DocumentStore, clock: Clock) -> None:
        self._store, self._clock = store, clock

    async def pinned(self, vnf_instance_id: str, vnfc_id: str) -> str | None:
        stored = await self._store.get(HOST_KEYS, _id(vnf_instance_id, vnfc_id))
        return None if stored is None else str(stored.body["publicKey"])

    async def pin(self, vnf_instance_id: str, vnfc_id: str, key: str) -> str:
        # Every session pins, but only a machine's first one finds nothing: read before trying to insert.
        known = await self.pinned(vnf_instance_id, vnfc_id)
        if known is not None:
            return known
        body = {
            "vnfInstanceId": vnf_instance_id,
            "vnfcId": vnfc_id,
            "publicKey": key,
            "pinnedAt": rfc3339(self._clock.now()),
        }
        try:
            await self._store.insert(HOST_KEYS, _id(vnf_instance_id, vnfc_id), body)
        except AlreadyExists:  # another worker was faster: its key is the first one
            # The instance may be forgotten between the two calls; then the machine's own answer is the only one.
            return await self.pinned(vnf_instance_id, vnfc_id) or key
        return key

    async def forget(self, vnf_instance_id: str, *, vnfc_ids: Sequence[str] | None = None) -> None:
        await self._store.delete_many(HOST_KEYS, of_instance(vnf_instance_id, vnfc_ids))


def _id(vnf_instance_id: str, vnfc_id: str) -> str:
    # Derived, not random: two workers that pin at the same time meet at the insert, so only one key is stored.
    return derived_id("host-key", vnf_instance_id, vnfc_id)
