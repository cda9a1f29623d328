"""The registry: VIMs that operators register, and those that operations do; one owner of their access data."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

import structlog
import yaml
from kubevnfm_bus.port import Ack, Delivery, Verdict
from kubevnfm_clients.ports import CredentialsStore, VimUsers
from kubevnfm_events import Envelope, Message
from kubevnfm_events.credentials import CredentialsDeleted, CredentialsReceived, CredentialsRotated
from kubevnfm_events.vim import (
    DeregisterVim,
    RegisterVim,
    VimDeregistered,
    VimRegistered,
    VimRegistrationFailed,
    VimStatusChanged,
)
from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_kit.errors import Conflict, InvalidInput, NotFound, TimedOut, VnfmError
from kubevnfm_kit.ids import derived_id, new_id
from kubevnfm_secrets import KeyRing, hide
from kubevnfm_store.port import AlreadyExists, DocumentStore, RevisionConflict
from kubevnfm_store.query import AllOf, Compare, Filter, Index, Op, Query, Sort, Stored, by
from kubevnfm_worker import Done, Outbox, Outcome, StepContext

from kubevnfm_vim_registry.domain.kubeconfig import access_of
from kubevnfm_vim_registry.domain.ports import Found, VimProbe, VimRefused, VimUnavailable
from kubevnfm_vim_registry.domain.vim import COLLECTION, Kind, Status, Vim, check_credentials, checked, read_flag

log = structlog.get_logger()

SOURCE: Final = "/kubevnfm/vim-registry"
INDEXES: Final = (
    Index(["tenant_id", "name"], unique=True),
    Index(["default_of"], unique=True),
    Index(["owner"]),
    Index(["type"]),
)
_FILTERS: Final = {"id": "id", "name": "name", "type": "type", "status": "status", "tenant_id": "tenant_id"}
_RACES: Final = 20


class NameTaken(Conflict):
    """Another VIM of the tenant has the name."""

    code = "vim-name-taken"

    def __init__(self, name: str) -> None:
        super().__init__(f"name: a VIM named {name} is registered already")


class DefaultTaken(Conflict):
    """Another VIM of the tenant is the default one."""

    code = "default-vim-exists"

    def __init__(self) -> None:
        super().__init__("is_default: another VIM is the default one already")


class VimInUse(Conflict):
    """VNF instances live on the VIM."""

    code = "vim-in-use"

    def __init__(self, name: str, users: Sequence[str]) -> None:
        super().__init__(f"VIM {name} is used by VNF instance {', '.join(users[:5])}")
        self.users = tuple(users)


class Registry:
    """Registers, verifies, watches and removes VIMs."""

    def __init__(
        self,
        *,
        store: DocumentStore,
        outbox: Outbox,
        probes: Mapping[Kind, VimProbe],
        users: VimUsers,
        credentials: CredentialsStore,
        ring: KeyRing,
        clock: Clock,
        probe_timeout_s: float,
    ) -> None:
        self._store, self._outbox, self._probes, self._users = store, outbox, probes, users
        self._credentials, self._ring, self._clock = credentials, ring, clock
        self._probe_timeout_s = probe_timeout_s

    # --- operators ----------------------------------------------------------------------------------------------------

    async def create(self, request: Mapping[str, Any]) -> Vim:
        """Verify and store. Raises InvalidInput, VimRefused, VimUnavailable, TimedOut, NameTaken, DefaultTaken."""
        now = rfc3339(self._clock.now())
        vim = Vim(id=new_id(), created_at=now, updated_at=now, **checked(request))
        if not vim.name:
            vim = vim.model_copy(update={"name": f"vim-{vim.id[:8]}"})
        await self._refuse_taken(vim)
        vim = _seen(vim, await self._look(vim))
        await self._insert(vim)
        log.info("vim_registered", vim_id=vim.id, name=vim.name, kind=vim.type)
        return vim

    async def find(self, filters: Mapping[str, Sequence[str]]) -> Sequence[Vim]:
        """Return the VIMs that equal one of the values for each name. Raises InvalidInput for an unknown name."""
        wanted: list[Filter] = []
        for name, values in filters.items():
            if name == "is_default":
                wanted.append(Compare("is_default", Op.IN, [read_flag(value) for value in values]))
            elif name in _FILTERS:
                wanted.append(Compare(_FILTERS[name], Op.IN, list(values)))
            else:
                raise InvalidInput(name, f"one of {', '.join((*_FILTERS, 'is_default'))} expected")
        found = await self._store.find(COLLECTION, Query(AllOf(wanted), sort=Sort("created_at")))
        return [Vim.model_validate(stored.body) for stored in found]

    async def get(self, vim_id: str) -> Vim:
        """Return the VIM. Raises NotFound."""
        return Vim.model_validate((await self._stored(vim_id)).body)

    async def update(self, vim_id: str, changes: Mapping[str, Any]) -> Vim:
        """Change what may be changed; new access data are verified first. Raises as ``create``, and NotFound."""
        stored = await self._stored(vim_id)
        vim = Vim.model_validate(stored.body)
        for name in ("type", "auth_url"):
            if name in changes and changes[name] != getattr(vim, name):
                raise InvalidInput(f"vim/{name}", "cannot be changed: register another VIM")
        hidden = hide(dict(changes))
        new: dict[str, Any] = {name: str(hidden[name]) for name in ("name", "description") if name in hidden}
        if "is_default" in hidden:
            new["is_default"] = read_flag(hidden["is_default"])
        for name in ("auth_cred", "vim_project", "extra"):
            if name in hidden:
                if not isinstance(hidden[name], Mapping):
                    raise InvalidInput(f"vim/{name}", "an object expected")
                new[name] = {**getattr(vim, name), **hidden[name]}
        changed = vim.model_copy(update={**new, "updated_at": rfc3339(self._clock.now())})
        check_credentials(changed.type, changed.auth_cred, changed.vim_project)
        if "auth_cred" in new or "vim_project" in new:
            changed = _seen(changed, await self._look(changed))
        await self._replace(stored, changed)
        return changed

    async def delete(self, vim_id: str) -> None:
        """Remove. Raises NotFound, VimInUse."""
        stored = await self._stored(vim_id)
        users = await self._users.users(vim_id)
        if users:
            raise VimInUse(stored.body["name"], users)
        await self._store.delete(COLLECTION, vim_id)
        log.info("vim_deleted", vim_id=vim_id)

    # --- operations ---------------------------------------------------------------------------------------------------

    async def register_vim(self, command: RegisterVim, _: StepContext) -> Outcome:
        """Register the cluster that an operation built; again: the same VIM, its access data renewed."""
        connection = command.connection
        vim_id = derived_id("vim", command.vnf_instance_id, command.name)
        cred = dict(connection.access_info)
        if connection.interface_info.get("ssl_ca_cert"):
            cred["ssl_ca_cert"] = connection.interface_info["ssl_ca_cert"]
        check_credentials("kubernetes", cred, {})
        now = rfc3339(self._clock.now())
        vim = Vim(
            id=vim_id,
            name=command.name,
            type="kubernetes",
            auth_url=str(connection.interface_info["endpoint"]),
            auth_cred=cred,
            vim_project={"name": "default"},
            is_default=command.is_default,
            extra={**command.extra, "vnf_instance_id": command.vnf_instance_id},
            owner=command.vnf_instance_id,
            created_at=now,
            updated_at=now,
        )
        found = await self._look(vim)
        await self._upsert(_seen(vim, found))
        return Done(
            VimRegistered(
                vim_id=vim_id,
                name=vim.name,
                vim_type=connection.vim_type,
                endpoint=vim.auth_url,
                kubernetes_version=found.version,
            )
        )

    async def deregister_vim(self, command: DeregisterVim, _: StepContext) -> Outcome:
        """Remove what the instance owns; what is gone already is gone."""
        wanted = by(owner=command.vnf_instance_id)
        removed: list[str] = []
        for stored in await self._store.find(COLLECTION, Query(wanted)):
            if command.name is not None and stored.body["name"] != command.name:
                continue
            if not command.force:
                users = [user for user in await self._users.users(stored.id) if user != command.vnf_instance_id]
                if users:
                    raise VimInUse(stored.body["name"], users)
            await self._store.delete(COLLECTION, stored.id)
            removed.append(stored.id)
        return Done(VimDeregistered(vim_ids=tuple(removed)))

    # --- credentials that were called back ----------------------------------------------------------------------------

    async def take_credentials(self, delivery: Delivery) -> Verdict:
        """Register, renew or remove the VIM of a workload cluster (capi.md chapter 11)."""
        event = delivery.envelope.data
        if isinstance(event, CredentialsDeleted):
            await self._store.delete(COLLECTION, _workload_id(event.vnf_instance_id, event.cluster_uid))
        elif isinstance(event, CredentialsReceived | CredentialsRotated) and event.register_vim:
            try:
                await self._register_workload(event)
            except VimUnavailable:
                raise  # the bus delivers again, with growing pauses
            except VnfmError as error:
                log.warning("vim_registration_failed", credentials_id=event.credentials_id, reason=str(error))
                failed = VimRegistrationFailed(credentials_id=event.credentials_id, reason=str(error))
                await self._tell(delivery.envelope.follow_up(failed, source=SOURCE))
        return Ack()

    async def _register_workload(self, event: CredentialsReceived | CredentialsRotated) -> None:
        kubeconfig = (await self._credentials.kubeconfig(event.credentials_id)).reveal(self._ring)
        endpoint, cred = access_of(yaml.safe_load(kubeconfig))
        vim_id = _workload_id(event.vnf_instance_id, event.cluster_uid)
        now = rfc3339(self._clock.now())
        vim = Vim(
            id=vim_id,
            name=event.vim_name or f"{event.cluster_name}-{event.vnf_instance_id[:8]}",
            type="kubernetes",
            auth_url=endpoint,
            auth_cred=hide(cred),
            vim_project={"name": "default"},
            is_default=event.vim_default,
            extra={"vnf_instance_id": event.vnf_instance_id, "cluster": event.cluster_name},
            owner=event.vnf_instance_id,
            created_at=now,
            updated_at=now,
        )
        found = await self._look(vim)
        await self._upsert(_seen(vim, found))
        registered = VimRegistered(
            vim_id=vim_id,
            name=vim.name,
            vim_type="ETSINFV.KUBERNETES.V_1",
            endpoint=endpoint,
            kubernetes_version=found.version,
        )
        await self._tell(Envelope(data=registered, source=SOURCE, subject=event.vnf_instance_id))

    async def _tell(self, envelope: Envelope[Message]) -> None:
        """Events about no document of ours travel in one that is deleted when they have left."""
        key = derived_id("news", envelope.id)
        try:
            await self._store.insert(NEWS, key, {})
        except AlreadyExists:
            return
        await self._outbox.delete(NEWS, key, events=[envelope])

    # --- monitoring ---------------------------------------------------------------------------------------------------

    async def watch(self, *, every_s: float, parallel: int) -> None:
        """Make a light call to every VIM, again and again; tell when one's status changes. Runs until cancelled."""
        slots = asyncio.Semaphore(parallel)

        async def check(stored: Stored) -> None:
            async with slots:
                await self._check(stored)

        while True:
            await asyncio.sleep(every_s)
            async with asyncio.TaskGroup() as group:
                for stored in await self._store.find(COLLECTION, Query()):
                    group.create_task(check(stored))

    async def _check(self, stored: Stored) -> None:
        vim = Vim.model_validate(stored.body)
        status: Status = "ACTIVE"
        reason = ""
        try:
            async with asyncio.timeout(self._probe_timeout_s):
                await self._probes[vim.type].answers(vim)
        except (VimUnavailable, TimeoutError) as error:
            status, reason = "UNREACHABLE", str(error) or "no answer in time"
        except VimRefused as error:
            status, reason = "ERROR", str(error)
        if status == vim.status:
            return
        changed = VimStatusChanged(vim_id=vim.id, name=vim.name, old_status=vim.status, status=status, reason=reason)
        fields = {"status": status, "status_reason": reason}
        envelope = Envelope[Message](data=changed, source=SOURCE, subject=vim.id)
        try:
            await self._outbox.update(COLLECTION, vim.id, fields, if_revision=stored.revision, events=[envelope])
        except RevisionConflict:
            return  # changed or deleted meanwhile: the next round sees it as it is
        log.warning("vim_status_changed", vim_id=vim.id, status=status, reason=reason)

    # --- storing ------------------------------------------------------------------------------------------------------

    async def _look(self, vim: Vim) -> Found:
        try:
            async with asyncio.timeout(self._probe_timeout_s):
                return await self._probes[vim.type].look(vim)
        except TimeoutError as error:
            raise TimedOut(f"{vim.auth_url} did not answer within {self._probe_timeout_s:g} s") from error

    async def _stored(self, vim_id: str) -> Stored:
        stored = await self._store.get(COLLECTION, vim_id)
        if stored is None:
            raise NotFound(f"VIM {vim_id} does not exist")
        return stored

    async def _refuse_taken(self, vim: Vim) -> None:
        """Raise NameTaken or DefaultTaken; the unique indexes decide races, this gives the better error first."""
        same_name = by(tenant_id=vim.tenant_id, name=vim.name)
        if any(stored.id != vim.id for stored in await self._store.find(COLLECTION, Query(same_name, limit=2))):
            raise NameTaken(vim.name)
        if vim.is_default:
            defaults = await self._store.find(COLLECTION, Query(by(default_of=vim.tenant_id), limit=2))
            if any(stored.id != vim.id for stored in defaults):
                raise DefaultTaken

    async def _insert(self, vim: Vim) -> None:
        try:
            await self._store.insert(COLLECTION, vim.id, vim.document(self._ring))
        except AlreadyExists:
            await self._refuse_taken(vim)
            raise

    async def _replace(self, stored: Stored, vim: Vim) -> None:
        await self._refuse_taken(vim)
        try:
            await self._store.replace(COLLECTION, stored.id, vim.document(self._ring), if_revision=stored.revision)
        except RevisionConflict as error:
            raise Conflict("the VIM was changed by another request meanwhile: try again") from error
        except AlreadyExists:
            await self._refuse_taken(vim)
            raise

    async def _upsert(self, vim: Vim) -> None:
        for _ in range(_RACES):
            await self._refuse_taken(vim)
            stored = await self._store.get(COLLECTION, vim.id)
            try:
                if stored is None:
                    await self._store.insert(COLLECTION, vim.id, vim.document(self._ring))
                else:
                    kept = vim.model_copy(update={"created_at": stored.body["created_at"]})
                    await self._store.replace(
                        COLLECTION, vim.id, kept.document(self._ring), if_revision=stored.revision
                    )
            except (AlreadyExists, RevisionConflict):
                continue
            return
        raise RuntimeError(f"VIM {vim.id}: {_RACES} writes lost in a row")


NEWS: Final = "vim_news"


def _seen(vim: Vim, found: Found) -> Vim:
    return vim.model_copy(
        update={
            "status": "ACTIVE",
            "status_reason": "",
            "placement_attr": {"regions": list(found.regions)},
            "kubernetes_version": found.version if vim.type == "kubernetes" else "",
        }
    )


def _workload_id(instance_id: str, cluster_uid: str) -> str:
    """capi.md CR-079: the same cluster, the same VIM."""
    return derived_id("workload-vim", instance_id, cluster_uid)
