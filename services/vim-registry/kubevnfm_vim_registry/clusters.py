"""The VIMs of clusters that kubevnfm built: registered and removed by commands of operations.

Called-back credentials change the access data of a VIM that is registered, and their deletion removes it. They register none: a
package signs call-backs, and what becomes a VIM is the decision of an operation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import structlog
from kubevnfm_clients.callback import credentials_id, sha256_hex
from kubevnfm_clients.kubeconfig import kubeconfig_connection
from kubevnfm_clients.ports import CredentialsStore
from kubevnfm_events import VimConnection
from kubevnfm_events.credentials import CredentialsDeleted, CredentialsReceived, CredentialsRotated
from kubevnfm_events.vim import DeregisterVim, RecordCapiProviders, RegisterReceived, RegisterVim, ReleaseVim
from kubevnfm_kit.errors import InvalidInput, NotFound
from kubevnfm_kit.ids import derived_id, new_id
from kubevnfm_secrets import KeyRing
from kubevnfm_sol.vim import KUBERNETES, long_vim_type
from kubevnfm_store.port import AlreadyExists, RevisionConflict

from kubevnfm_vim_registry.domain.errors import CredentialsMissing, NameTaken
from kubevnfm_vim_registry.domain.record import VimRecord, auth_cred_of
from kubevnfm_vim_registry.records import StoredVim, VimRecords
from kubevnfm_vim_registry.registry import DEFAULT_TENANT, VimRegistry, registered, status_events, with_facts

log = structlog.get_logger()


class ClusterVims:
    """One VIM for each cluster. A repeat updates it in place, so the VNFs on it keep their VIM."""

    def __init__(
        self, records: VimRecords, registry: VimRegistry, credentials: CredentialsStore, key_ring: KeyRing
    ) -> None:
        self._records, self._registry = records, registry
        self._credentials, self._ring = credentials, key_ring

    async def register(self, command: RegisterVim) -> VimRecord:
        """Verify and register, or update the VIM of the same owner and name (sequences.md 4.4).

        Raises what VimProbe raises, InvalidInput and NameTaken.
        """
        if long_vim_type(command.connection.vim_type) != KUBERNETES:
            raise InvalidInput("connection.vim_type", f"{KUBERNETES} expected")
        namesake = await self._records.find_by_name(DEFAULT_TENANT, command.name)
        # A name is how a repeated command finds its VIM, so a name of another owner must not be updated.
        if namesake is not None and namesake.vim.owner != command.vnf_instance_id:
            raise NameTaken(f"another VIM is named {command.name} ({namesake.vim.id})")
        vim = self._record(
            await self._new_id(command.vim_id) if namesake is None else namesake.vim.id,
            name=command.name,
            owner=command.vnf_instance_id,
            connection=command.connection,
            extra={**command.connection.extra, **command.extra},
            is_default=command.is_default,
        )
        return await self._store(namesake, vim)

    async def _new_id(self, wanted: str | None) -> str:
        """Return the wanted id, or a random one if a VIM has that: an operator may have given the VIM another name."""
        is_free = wanted is not None and await self._records.find_one(wanted) is None
        return wanted if is_free and wanted is not None else new_id()

    async def register_received(self, command: RegisterReceived) -> VimRecord:
        """Register the cluster whose credentials were received, or update its VIM (capi.md CR-079, CR-081).

        Raises what VimProbe raises, NameTaken, CredentialsMissing and Unprocessable (the kubeconfig).
        """
        owner, cluster = command.vnf_instance_id, command.cluster_name
        credentials = credentials_id(owner, command.cluster_uid)
        sha256, connection = await self._received(credentials, cluster)
        found = await self._vim_of(command)
        name = command.vim_name or cluster
        # A repeat, or the event of the same call-back has brought the access data already.
        if found is not None and found.vim.is_registered_with(sha256, name):
            return found.vim
        extra = {"vnf_instance_id": owner, "cluster": cluster}
        if command.management_vim_id is not None:
            extra["management_vim_id"] = command.management_vim_id
        vim = self._record(
            found.vim.id if found is not None else vim_id_of(owner, command.cluster_uid),
            name=name,
            owner=owner,
            connection=connection,
            extra=extra,
            is_default=command.vim_default,
        ).model_copy(
            update={"cluster_uid": command.cluster_uid, "credentials_id": credentials, "content_sha256": sha256}
        )
        vim = await self._store(found, vim)
        await self._check_not_erased(vim, cluster)
        return vim

    async def update(self, event: CredentialsReceived | CredentialsRotated) -> None:
        """Give the VIM of a cluster that has called back its new access data (capi.md CR-081); nothing else of it changes.

        A cluster without a VIM gets none: an operation registers it (`register_received`), if it is to become one.
        Raises what VimProbe raises, CredentialsMissing and Unprocessable (the kubeconfig).
        """
        owned = await self._records.owned_by(event.vnf_instance_id, None)
        found = next((each for each in owned if each.vim.cluster_uid == event.cluster_uid), None)
        if found is None:
            return
        sha256, connection = await self._received(event.credentials_id, event.cluster_name)
        # The command of the same call-back, or an earlier delivery: nothing is left to do.
        if found.vim.is_registered_with(sha256, found.vim.name):
            return
        vim = found.vim.model_copy(
            update={
                "auth_url": _endpoint(connection),
                "auth_cred": auth_cred_of(connection),
                "content_sha256": sha256,
                "expiry_reported_days": None,
                "updated_at": self._records.now(),
            }
        )
        # Verified first, so that wrong new access data do not replace the working ones.
        vim = with_facts(vim, await self._registry.verified(vim))
        await self._records.replace(found, vim, [registered(vim)])
        log.info("vim_updated", vim_id=vim.id, name=vim.name, endpoint=vim.auth_url)
        await self._check_not_erased(vim, event.cluster_name)

    async def _vim_of(self, command: RegisterReceived) -> StoredVim | None:
        """Return the VIM of a cluster: its own one, or one that waits for a cluster of its name.

        Raises CredentialsMissing for the cluster in whose place another is awaited.
        """
        owned = await self._records.owned_by(command.vnf_instance_id, None)
        mine = [each for each in owned if each.vim.cluster_uid == command.cluster_uid]
        awaiting = [each for each in owned if each.vim.awaited_cluster == command.cluster_name]
        if any(each.vim.former_cluster_uid == command.cluster_uid for each in awaiting):
            # Its credentials are being erased. A command about them that comes late does not give the VIM back.
            raise CredentialsMissing(command.cluster_name)
        return next(iter([*mine, *awaiting]), None)

    async def _received(self, credentials_id: str, cluster: str) -> tuple[str, VimConnection]:
        """Return the hash of the kubeconfig that the receiver has, and its access data. Raises CredentialsMissing, Unprocessable (the kubeconfig)."""
        kubeconfig = await self._kubeconfig(credentials_id, cluster)
        # Every call-back passes here before its server is connected to. A record that an earlier version has stored
        # unchecked is refused here too.
        connection = await asyncio.to_thread(kubeconfig_connection, kubeconfig)
        return sha256_hex(kubeconfig.encode()), connection

    async def _check_not_erased(self, vim: VimRecord, cluster: str) -> None:
        """Remove the VIM and raise CredentialsMissing if the credentials were erased while they were verified.

        That takes time, and the deletion had no VIM to remove then.
        """
        assert vim.credentials_id is not None
        try:
            await self._kubeconfig(vim.credentials_id, cluster)
        except CredentialsMissing:
            await self._records.delete(vim.id)
            raise

    async def _kubeconfig(self, credentials_id: str, cluster: str) -> str:
        try:
            return (await self._credentials.kubeconfig(credentials_id)).reveal(self._ring)
        except NotFound as error:
            raise CredentialsMissing(cluster) from error

    async def deregister(self, command: DeregisterVim) -> Sequence[str]:
        """Remove the owner's VIMs; return their ids. Raises VimInUse unless forced."""
        owned = await self._records.owned_by(command.vnf_instance_id, command.name)
        for vim in owned:
            # The cluster is deleted with the instance, so other users of the VIM are lost anyway.
            if command.force:
                await self._records.delete(vim.vim.id)
            else:
                await self._registry.remove(vim, except_for=command.vnf_instance_id, publishes=False)
        return [vim.vim.id for vim in owned]

    async def record_capi_providers(self, command: RecordCapiProviders) -> None:
        """Show which providers of Cluster API a VNF has in its cluster. Raises VimUnknown if it has some."""
        stored = await self._records.find_one(command.vim_id)
        if stored is None and command.providers is None:
            return
        stored = stored or await self._records.get(command.vim_id)
        vim = stored.vim.with_capi_providers(command.vnf_instance_id, command.providers)
        if vim != stored.vim:
            await self._records.replace(stored, vim.model_copy(update={"updated_at": self._records.now()}))

    async def release(self, command: ReleaseVim) -> Sequence[str]:
        """Have the VIM of a workload cluster wait for the next one of its name; return its id. Raises VimInUse."""
        released: list[str] = []
        for stored in await self._records.owned_by(command.vnf_instance_id, None):
            vim = stored.vim
            is_its = vim.cluster_uid is not None and vim.extra.get("cluster") == command.cluster_name
            if not is_its and vim.awaited_cluster != command.cluster_name:
                continue
            await self._registry.check_unused(vim.id, except_for=command.vnf_instance_id)
            if is_its:
                # Without the uid, the deletion of the earlier credentials finds no VIM to remove.
                facts = {
                    "awaited_cluster": command.cluster_name,
                    "former_cluster_uid": vim.cluster_uid,
                    "cluster_uid": None,
                    "credentials_id": None,
                    "content_sha256": "",
                }
                await self._records.replace(stored, vim.model_copy(update=facts))
                log.info("vim_released", vim_id=vim.id, cluster=command.cluster_name)
            released.append(vim.id)
        return released

    async def forget(self, event: CredentialsDeleted) -> None:
        """Remove the VIM of a deleted cluster. Raises VimInUse, OutsideUnavailable."""
        for stored in await self._records.owned_by(event.vnf_instance_id, None):
            if stored.vim.cluster_uid != event.cluster_uid:
                continue
            try:
                await self._credentials.kubeconfig(event.credentials_id)
            except NotFound:
                await self._registry.remove(stored, except_for=event.vnf_instance_id)
            else:
                # An old event, delivered again or late: the cluster has called back since.
                log.info("deletion_outdated", vim_id=stored.vim.id, credentials_id=event.credentials_id)

    def _record(
        self,
        vim_id: str,
        *,
        name: str,
        owner: str,
        connection: VimConnection,
        extra: dict[str, Any],
        is_default: bool,
    ) -> VimRecord:
        now = self._records.now()
        return VimRecord(
            id=vim_id,
            name=name,
            tenant_id=DEFAULT_TENANT,
            type="kubernetes",
            is_default=is_default,
            default_of=DEFAULT_TENANT if is_default else None,
            auth_url=_endpoint(connection),
            auth_cred=auth_cred_of(connection),
            extra=extra,
            created_at=now,
            updated_at=now,
            owner=owner,
        )

    async def _store(self, stored: StoredVim | None, vim: VimRecord) -> VimRecord:
        """Verify the record and write it."""
        # Verified first, so that wrong new access data do not replace the working ones.
        vim = with_facts(vim, await self._registry.verified(vim))
        namesake = await self._records.find_by_name(vim.tenant_id, vim.name)
        # Before the default is removed, which would otherwise be lost with a registration that fails.
        if namesake is not None and namesake.vim.id != vim.id:
            raise NameTaken(f"another VIM is named {vim.name} ({namesake.vim.id})")
        # In this order, because the unique index allows only one default at any time.
        if vim.is_default:
            await self._records.remove_default(vim.tenant_id, new_default=vim.id)
        if stored is None:
            await self._records.insert(vim)
        else:
            # An operator may have made it the default or described it, and VNFs may have installed providers of Cluster API in
            # it; a repeated registration must not undo that.
            was_default = stored.vim.is_default
            vim = vim.model_copy(
                update={
                    "created_at": stored.vim.created_at,
                    "description": stored.vim.description,
                    "capi_providers": stored.vim.capi_providers,
                    "is_default": vim.is_default or was_default,
                    "default_of": vim.default_of or stored.vim.default_of,
                }
            )
            await self._records.replace(stored, vim, status_events(stored.vim, vim))
        log.info("vim_registered", vim_id=vim.id, name=vim.name, endpoint=vim.auth_url)
        return vim


def _endpoint(connection: VimConnection) -> str:
    return str(connection.interface_info.get("endpoint", ""))


def vim_id_of(vnf_instance_id: str, cluster_uid: str) -> str:
    """Return the id of a new VIM for a called-back cluster, which is the same for every call-back (capi.md CR-079)."""
    return derived_id("vim", vnf_instance_id, cluster_uid)


LOST_RACES = (RevisionConflict, AlreadyExists)
"""Another process has written the same record meanwhile. The caller should repeat the whole action."""
