"""The stored hooks of deletions and health checks: their objects are needed when the package may be another one, or gone (multicloud.md MC-141)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from kubevnfm_secrets import KeyRing, Secret
from kubevnfm_store.port import AlreadyExists, DocumentStore, RevisionConflict
from kubevnfm_store.query import Index
from pydantic import TypeAdapter

from kubevnfm_infra_k8s.domain.errors import HooksTooLarge
from kubevnfm_infra_k8s.domain.planned_hook import PlannedHook

HOOKS: Final = "k8s_deletion_hooks"
INDEXES: Final[Sequence[Index]] = ()
_LARGEST: Final = 4 * 2**20
"""Characters. A document of MongoDB has at most 16 MiB, and base64 and encryption add a half."""
_PLANNED: Final = TypeAdapter(tuple[PlannedHook, ...])


class StoredHooks:
    """`ports.LaterHooks`: one document for each instance, encrypted, because an object can be a Secret."""

    def __init__(self, store: DocumentStore, key_ring: KeyRing) -> None:
        self._store, self._key_ring = store, key_ring

    async def get(self, vnf_instance_id: str) -> tuple[Sequence[PlannedHook], Sequence[str]]:
        stored = await self._store.get(HOOKS, vnf_instance_id)
        if stored is None:
            return (), ()
        text = Secret.from_sealed(stored.body["content"]["$sealed"]).reveal(self._key_ring)
        found = json.loads(text)
        return _PLANNED.validate_python(found["hooks"]), tuple(found["secrets"])

    async def save(self, vnf_instance_id: str, hooks: Sequence[PlannedHook], secrets: Sequence[str]) -> None:
        if not hooks:
            await self.forget(vnf_instance_id)
            return
        planned = _PLANNED.dump_python(tuple(hooks), mode="json", by_alias=True)
        text = json.dumps({"hooks": planned, "secrets": list(secrets)})
        if len(text) > _LARGEST:
            raise HooksTooLarge(_LARGEST)
        body = {"content": Secret(text).document(self._key_ring)}
        while True:
            stored = await self._store.get(HOOKS, vnf_instance_id)
            try:
                if stored is None:
                    await self._store.insert(HOOKS, vnf_instance_id, body)
                else:
                    await self._store.replace(HOOKS, vnf_instance_id, body, if_revision=stored.revision)
            except (AlreadyExists, RevisionConflict):
                continue
            return

    async def forget(self, vnf_instance_id: str) -> None:
        # A read costs less than a write, and nearly no instance has any.
        if await self._store.get(HOOKS, vnf_instance_id) is not None:
            await self._store.delete(HOOKS, vnf_instance_id)
