"""The logins to registered OpenStacks that workload clusters are given (capi.md CR-049)."""

from __future__ import annotations

import structlog
from kubevnfm_clients.cloud_identity import CloudIdentity, credential_name

from kubevnfm_vim_registry.domain.errors import NotOpenstack
from kubevnfm_vim_registry.domain.ports import CloudLogins
from kubevnfm_vim_registry.domain.record import VimRecord
from kubevnfm_vim_registry.records import VimRecords

log = structlog.get_logger()


class CloudIdentities:
    """Implements `kubevnfm_clients.ports.CloudIdentities`."""

    def __init__(self, records: VimRecords, logins: CloudLogins) -> None:
        self._records, self._logins = records, logins

    async def give(self, vim_id: str, vnf_instance_id: str, *, present: str | None) -> CloudIdentity:
        vim = await self._openstack(vim_id)
        given = await self._logins.give(vim, credential_name(vnf_instance_id), present=present)
        log.info(
            "cloud_identity_given",
            vim_id=vim_id,
            vnf_instance_id=vnf_instance_id,
            kind=given.kind,
            credential_id=given.credential_id,
            note=given.note,
        )
        return given

    async def take_back(self, vim_id: str, vnf_instance_id: str) -> int:
        vim = await self._openstack(vim_id)
        deleted = await self._logins.take_back(vim, credential_name(vnf_instance_id))
        log.info("cloud_identity_taken_back", vim_id=vim_id, vnf_instance_id=vnf_instance_id, deleted=deleted)
        return deleted

    async def _openstack(self, vim_id: str) -> VimRecord:
        vim = (await self._records.get(vim_id)).vim
        if vim.type != "openstack":
            raise NotOpenstack("openstack_vim_id", f"an OpenStack expected; VIM {vim_id} is of type {vim.type}")
        return vim
