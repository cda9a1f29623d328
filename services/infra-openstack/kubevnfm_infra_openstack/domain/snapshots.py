"""Stores a stack's definition and its servers before an operation changes it, so that a rollback restores exactly that."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from kubevnfm_events.stacks import ServerFacts
from kubevnfm_secrets import KeyRing
from kubevnfm_store.port import AlreadyExists, DocumentStore

from kubevnfm_infra_openstack.domain.stack import NovaServer, StackDefinition

COLLECTION = "stacks_before"
Slot = tuple[str, str]
"""The id of a (nested) stack and the name of a resource in it: a server and the one that replaces it have the same."""


@dataclass(frozen=True)
class StackBefore:
    """A stack as an operation has found it."""

    definition: StackDefinition
    slot_by_server: Mapping[str, Slot] = field(default_factory=dict)
    """By Nova id; version 0.1.0 has stored none."""
    running: Collection[str] = ()
    """Ids of the servers that were ACTIVE."""

    def stopped(self, servers: Mapping[str, NovaServer]) -> list[str]:
        """Return the servers that were running and are stopped now. ``servers``: those of now, by id."""
        return [one for one in self.running if one in servers and servers[one].status == "SHUTOFF"]


NOTHING_SAVED: Final = StackBefore(StackDefinition({}, {}, {}))


def slot_of(server: ServerFacts) -> Slot:
    """Return the place of a server in its stack."""
    return server.stack_id, server.name


class StackSnapshots:
    """One snapshot for each VNF instance, from the last operation that changed its stack."""

    def __init__(self, store: DocumentStore, ring: KeyRing) -> None:
        self._store, self._ring = store, ring

    async def save(
        self,
        instance_id: str,
        operation_id: str,
        definition: StackDefinition,
        servers: Sequence[ServerFacts],
        running: Collection[str],
    ) -> None:
        """Save the stack unless the operation has saved it already."""
        # A second call of the same operation sees a stack that the operation itself has changed.
        if await self.find(instance_id, operation_id) is not None:
            return
        plain = json.dumps(
            {
                "template": definition.template,
                "parameters": definition.parameters,
                "files": definition.files,
                "servers": {server.server_id: slot_of(server) for server in servers},
                "running": [*running],
            }
        )
        # Sealed, because parameters may hold passwords.
        body = {"operationId": operation_id, "sealed": self._ring.seal(plain, bound_to=instance_id)}
        await self._store.delete(COLLECTION, instance_id)
        try:
            await self._store.insert(COLLECTION, instance_id, body)
        except AlreadyExists:
            # Another delivery of the same command was faster: only one operation at a time changes an instance.
            return

    async def find(self, instance_id: str, operation_id: str) -> StackBefore | None:
        """Return what the operation saved; None if it has changed nothing."""
        stored = await self._store.get(COLLECTION, instance_id)
        if stored is None or stored.body["operationId"] != operation_id:
            return None
        found = json.loads(self._ring.open(stored.body["sealed"], bound_to=instance_id))
        slots = {server: (stack, name) for server, (stack, name) in found.get("servers", {}).items()}
        definition = StackDefinition(found["template"], found["parameters"], found["files"])
        return StackBefore(definition, slots, found.get("running", ()))
