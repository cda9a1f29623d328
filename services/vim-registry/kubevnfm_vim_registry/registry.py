"""The VIMs of operators: registered, changed and deleted through the API (ports Vims and VimDirectory)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from typing import Final, TypeVar

from kubevnfm_clients.ports import RevisedVim, VimUsers
from kubevnfm_events import Event, VimConnection
from kubevnfm_events.vim import (
    VimBecameReachable,
    VimDeregistered,
    VimRegistered,
    VimStatusChanged,
    VimWentUnreachable,
)
from kubevnfm_kit.errors import InvalidInput, PreconditionFailed
from kubevnfm_kit.ids import new_id
from kubevnfm_secrets import KeyRing, hide, revealed
from kubevnfm_sol.secret_destinations import moved_secret
from kubevnfm_store.races import repeat_lost_writes

from kubevnfm_vim_registry.domain import requests
from kubevnfm_vim_registry.domain.errors import VimInUse, VimTooSlow
from kubevnfm_vim_registry.domain.ports import Probes, Verified
from kubevnfm_vim_registry.domain.record import VimRecord, field_of
from kubevnfm_vim_registry.domain.region import with_access
from kubevnfm_vim_registry.records import StoredVim, VimRecords

T = TypeVar("T")

DEFAULT_TENANT: Final = "default"
"""The tenant of VIMs that name none. Callers are not distinguished by tenant, so usually it is the only one."""


class VimRegistry:
    """Implements `kubevnfm_clients.ports.Vims` and `VimDirectory`."""

    def __init__(
        self, records: VimRecords, probes: Probes, users: VimUsers, ring: KeyRing, *, verify_timeout_s: float
    ) -> None:
        self._records, self._probes, self._users, self._ring = records, probes, users, ring
        self._verify_timeout_s = verify_timeout_s

    async def create(self, vim: Mapping[str, object]) -> Mapping[str, object]:
        requests.check_names(vim)
        kind = requests.vim_type(vim)
        tenant = requests.text(vim, "tenant_id", default=DEFAULT_TENANT)
        is_default = requests.flag(vim, "is_default")
        extra = requests.extra_attributes(vim, kind)
        credentials = requests.auth_cred(vim, kind)
        now = self._records.now()
        record = VimRecord(
            id=new_id(),
            name=requests.text(vim, "name"),
            description=requests.text(vim, "description", default=""),
            tenant_id=tenant,
            type=kind,
            is_default=is_default,
            default_of=tenant if is_default else None,
            auth_url=requests.auth_url(vim, kind),
            auth_cred=credentials,
            vim_project=requests.vim_project(vim, kind, credentials),
            extra=hide(extra),
            created_at=now,
            updated_at=now,
        )
        if extra.get("use_helm") and record.is_tls_unverified:
            raise InvalidInput("vim.auth_cred.ssl_ca_cert", "the CA of the Kubernetes API is required with use_helm")
        record = with_facts(record, await self.verified(record))
        await self._records.insert(record, [registered(record)])
        return record.shown()

    async def list(self, filters: Mapping[str, Sequence[str]]) -> Sequence[Mapping[str, object]]:
        wanted: dict[str, Sequence[str | bool]] = {}
        for name, values in filters.items():
            if name not in requests.FILTERS:
                raise InvalidInput(name, "unknown filter")
            path = "owner" if name == requests.OWNER else name
            wanted[path] = [value.lower() == "true" for value in values] if name == "is_default" else values
        # The id is the document's key and not one of its attributes, so the store cannot filter by it.
        by_id = wanted.pop("id", None)
        found = await self._records.find(wanted)
        return [vim.shown() for vim in found if by_id is None or vim.id in by_id]

    async def get(self, vim_id: str) -> Mapping[str, object]:
        return (await self.revised(vim_id)).record

    async def revised(self, vim_id: str) -> RevisedVim:
        stored = await self._records.get(vim_id)
        return RevisedVim(vim_id, stored.revision, stored.vim.shown())

    async def default(self) -> Mapping[str, object] | None:
        found = await self._records.find({"is_default": [True]})
        return found[0].shown() if found else None

    @repeat_lost_writes
    async def update(
        self, vim_id: str, changes: Mapping[str, object], *, if_revision: int | None = None
    ) -> Mapping[str, object]:
        """Change a VIM; new access data are verified before they are stored. Raises InvalidInput, VimInUse, PreconditionFailed."""
        stored = await self._at(vim_id, if_revision)
        vim = stored.vim
        for name, value in changes.items():
            # Clients that edit a record send its unchanged attributes back.
            if name in requests.FIXED:
                if value not in (getattr(vim, name), None):
                    raise InvalidInput(f"vim.{name}", "cannot be changed")
            elif name not in requests.CHANGEABLE:
                raise InvalidInput(f"vim.{name}", "cannot be changed")
        is_default = requests.flag(changes, "is_default") if "is_default" in changes else vim.is_default
        changed = vim.model_copy(
            update={
                "name": requests.text(changes, "name", default=vim.name) or vim.name,
                "description": requests.text(changes, "description", default=vim.description),
                "is_default": is_default,
                "default_of": vim.tenant_id if is_default else None,
                "updated_at": self._records.now(),
            }
        )
        if "extra" in changes:
            changed = changed.model_copy(update={"extra": requests.marked_extra(changes, vim.extra)})
        credentials = vim.auth_cred
        if "auth_cred" in changes:
            credentials = requests.merged_credentials(credentials, requests.given_credentials(changes, vim.type))
            requests.check_credentials(credentials, vim.type, vim.auth_url)
            # The new data have an end of their own, and are not those that a cluster has called back with.
            changed = changed.model_copy(
                update={"auth_cred": credentials, "expiry_reported_days": None, "content_sha256": ""}
            )
        if "vim_project" in changes:
            project = {**vim.vim_project, **requests.mapping(changes, "vim_project")}
            # In another project, the present stacks of these users could not be found again.
            if project != vim.vim_project and (users := await self._users.users(vim_id)):
                raise VimInUse(vim_id, users)
            changed = changed.model_copy(
                update={"vim_project": requests.vim_project({"vim_project": project}, vim.type, credentials)}
            )
        if {"auth_cred", "vim_project"} & set(changes):
            check_secrets_stay(vim, changed)
            changed = with_facts(changed, await self.verified(changed))
        if changed.region is not None:
            facts = with_access(changed.region, revealed(changed.auth_cred, self._ring))
            changed = changed.model_copy(update={"region": facts})
        await self._records.replace(stored, changed, status_events(vim, changed))
        return changed.shown()

    @repeat_lost_writes
    async def delete(self, vim_id: str, *, if_revision: int | None = None) -> None:
        """Remove a VIM. Raises VimInUse, PreconditionFailed."""
        stored = await self._at(vim_id, if_revision)
        await self.remove(stored, if_revision=if_revision)

    async def _at(self, vim_id: str, revision: int | None) -> StoredVim:
        stored = await self._records.get(vim_id)
        if revision not in (None, stored.revision):
            raise PreconditionFailed("the VIM has changed since it was read")
        return stored

    async def connection(self, vim: VimConnection) -> VimConnection:
        """Return the connection with its access data, from the record if ``vim`` only refers to it."""
        if not vim.is_reference:
            return vim
        assert vim.vim_id is not None
        return vim.resolved(await self.connection_of(vim.vim_id))

    async def connection_of(self, vim_id: str) -> VimConnection:
        """Return the connection of a registered VIM. Raises VimUnknown."""
        return (await self._records.get(vim_id)).vim.connection

    async def remove(
        self,
        stored: StoredVim,
        *,
        except_for: str | None = None,
        publishes: bool = True,
        if_revision: int | None = None,
    ) -> None:
        """Remove a VIM. Raises VimInUse if other instances than ``except_for`` use it; RevisionConflict.

        ``publishes``: whether this publishes VimDeregistered, which otherwise is the answer to a command; ``if_revision``: None for
        any.
        """
        await self.check_unused(stored.vim.id, except_for=except_for)
        events = [VimDeregistered(vim_ids=(stored.vim.id,))] if publishes else []
        await self._records.delete(stored.vim.id, events, if_revision=if_revision)

    async def check_unused(self, vim_id: str, *, except_for: str | None) -> None:
        """Raise VimInUse if other instances than ``except_for`` use the VIM."""
        users = [user for user in await self._users.users(vim_id) if user != except_for]
        if users:
            raise VimInUse(vim_id, users)

    async def verified(self, vim: VimRecord) -> Verified:
        """Log in to the VIM within the time limit for a registration. Raises what VimProbe raises, and VimTooSlow."""
        return await self.in_time(vim, self._probes[vim.type].verify(vim))

    async def in_time(self, vim: VimRecord, work: Awaitable[T]) -> T:
        """Return the result of calls of the VIM within the time limit for a registration. Raises VimTooSlow."""
        try:
            async with asyncio.timeout(self._verify_timeout_s):
                return await work
        except TimeoutError as error:
            raise VimTooSlow(f"VIM {vim.auth_url} did not answer within {self._verify_timeout_s:g} s") from error


def check_secrets_stay(vim: VimRecord, changed: VimRecord) -> None:
    """Raise InvalidInput for a stored secret that would go to another destination than the one that it was given for."""
    moved = moved_secret(vim.connection, changed.connection)
    if moved is not None:
        raise InvalidInput(field_of(moved.place), moved.reason(field_of(moved.changed)))


def with_facts(vim: VimRecord, facts: Verified) -> VimRecord:
    """Return the record with the facts of a successful log-in."""
    return vim.model_copy(
        update={
            "status": "ACTIVE",
            "status_reason": "",
            "placement_attr": {"regions": list(facts.regions)},
            "kubernetes_version": facts.kubernetes_version,
        }
    )


def registered(vim: VimRecord) -> VimRegistered:
    """Return the event for a registered VIM."""
    return VimRegistered(
        vim_id=vim.id,
        name=vim.name,
        vim_type=vim.connection.vim_type,
        endpoint=vim.auth_url,
        kubernetes_version=vim.kubernetes_version,
    )


def status_events(old: VimRecord, new: VimRecord) -> Sequence[Event]:
    """Return the events for a changed status; empty if it has not changed."""
    if old.status == new.status:
        return []
    changed = VimStatusChanged(
        vim_id=new.id, name=new.name, old_status=old.status, status=new.status, reason=new.status_reason
    )
    if new.region is None or "UNREACHABLE" not in (old.status, new.status):
        return [changed]
    if new.status == "UNREACHABLE":
        return [changed, VimWentUnreachable(vim_id=new.id, region=new.region.id, reason=new.status_reason)]
    return [changed, VimBecameReachable(vim_id=new.id, region=new.region.id)]
