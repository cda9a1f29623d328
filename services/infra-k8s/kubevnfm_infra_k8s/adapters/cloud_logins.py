"""Logins to registered OpenStacks, in clear for the moment of use (capi.md CR-049)."""

from __future__ import annotations

from kubevnfm_clients.ports import CloudIdentities
from kubevnfm_secrets import KeyRing, revealed

from kubevnfm_infra_k8s.domain.ports import CloudLogin


class RegisteredLogins:
    """`domain.ports.CloudLogins`: those that vim-registry gives."""

    def __init__(self, identities: CloudIdentities, ring: KeyRing) -> None:
        self._identities, self._ring = identities, ring

    async def give(self, vim_id: str, vnf_instance_id: str, *, present: str | None) -> CloudLogin:
        given = await self._identities.give(vim_id, vnf_instance_id, present=present)
        return CloudLogin(given.kind, revealed(given.cloud, self._ring), given.cacert, given.note)

    async def take_back(self, vim_id: str, vnf_instance_id: str) -> int:
        return await self._identities.take_back(vim_id, vnf_instance_id)
