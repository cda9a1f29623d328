"""What a stack was before an operation changed it: kept so that a rollback brings back exactly that."""

from __future__ import annotations

import json

from kubevnfm_secrets import KeyRing
from kubevnfm_store.port import AlreadyExists, DocumentStore

from kubevnfm_infra_openstack.domain.stack import StackDefinition

COLLECTION = "stacks_before"


class StacksBefore:
    """One definition a VNF instance: that of the last operation which changed its stack. Sealed, for parameters may be secret."""

    def __init__(self, store: DocumentStore, ring: KeyRing) -> None:
        self._store, self._ring = store, ring

    async def is_kept(self, instance_id: str, operation_id: str) -> bool:
        """Return whether the operation has kept one already."""
        stored = await self._store.get(COLLECTION, instance_id)
        return stored is not None and stored.body["operationId"] == operation_id

    async def keep(self, instance_id: str, operation_id: str, definition: StackDefinition) -> None:
        """Keep the definition, unless the operation has kept one: what is there then was changed by itself already."""
        if await self.is_kept(instance_id, operation_id):
            return
        plain = json.dumps(
            {"template": definition.template, "parameters": definition.parameters, "files": definition.files}
        )
        body = {"operationId": operation_id, "sealed": self._ring.seal(plain, bound_to=instance_id)}
        await self._store.delete(COLLECTION, instance_id)
        try:
            await self._store.insert(COLLECTION, instance_id, body)
        except AlreadyExists:
            return  # another delivery of the same command: one operation at a time changes an instance

    async def of(self, instance_id: str, operation_id: str) -> StackDefinition | None:
        """Return what the operation kept; None when it has changed nothing."""
        stored = await self._store.get(COLLECTION, instance_id)
        if stored is None or stored.body["operationId"] != operation_id:
            return None
        kept = json.loads(self._ring.open(stored.body["sealed"], bound_to=instance_id))
        return StackDefinition(kept["template"], kept["parameters"], kept["files"])
