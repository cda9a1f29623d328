"""Stores a stack's definition before an operation changes it, so that a rollback restores exactly that."""

from __future__ import annotations

import json

from kubevnfm_secrets import KeyRing
from kubevnfm_store.port import AlreadyExists, DocumentStore

from kubevnfm_infra_openstack.domain.stack import StackDefinition

COLLECTION = "stacks_before"


class StackSnapshots:
    """One definition for each VNF instance, from the last operation that changed its stack."""

    def __init__(self, store: DocumentStore, ring: KeyRing) -> None:
        self._store, self._ring = store, ring

    async def save(self, instance_id: str, operation_id: str, definition: StackDefinition) -> None:
        """Save the definition unless the operation has saved one already."""
        # A second call of the same operation sees a stack that the operation itself has changed.
        if await self.find(instance_id, operation_id) is not None:
            return
        plain = json.dumps(
            {"template": definition.template, "parameters": definition.parameters, "files": definition.files}
        )
        # Sealed, because parameters may hold passwords.
        body = {"operationId": operation_id, "sealed": self._ring.seal(plain, bound_to=instance_id)}
        await self._store.delete(COLLECTION, instance_id)
        try:
            await self._store.insert(COLLECTION, instance_id, body)
        except AlreadyExists:
            # Another delivery of the same command was faster: only one operation at a time changes an instance.
            return

    async def find(self, instance_id: str, operation_id: str) -> StackDefinition | None:
        """Return what the operation saved; None if it has changed nothing."""
        stored = await self._store.get(COLLECTION, instance_id)
        if stored is None or stored.body["operationId"] != operation_id:
            return None
        found = json.loads(self._ring.open(stored.body["sealed"], bound_to=instance_id))
        return StackDefinition(found["template"], found["parameters"], found["files"])
