"""The VIMs of operators: registered, changed and deleted through the API (ports Vims and VimDirectory)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

from kubevnfm_clients.ports import VimUsers
from kubevnfm_events import VimConnection
from kubevnfm_events.vim import VimDeregistered, VimRegistered, VimStatusChanged
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_kit.ids import new_id
from kubevnfm_secrets import hide

from kubevnfm_vim_registry.domain import requests
from kubevnfm_vim_registry.domain.errors import VimInUse, VimTooSlow
from kubevnfm_vim_registry.domain.ports import Probes, Verified
from kubevnfm_vim_registry.domain.record import VimRecord
from kubevnfm_vim_registry.records import Kept, VimRecords

DEFAULT_TENANT: Final = "default"
"""Of VIMs that name none: there is one tenant as long as callers are not told apart."""


class VimRegistry:
    """Answers as `kubevnfm_clients.ports.Vims` and `VimDirectory` say."""

    def __init__(self, records: VimRecords, probes: Probes, users: VimUsers, *, verify_timeout_s: float) -> None:
        self._records, self._probes, self._users = records, probes, users
        self._verify_timeout_s = verify_timeout_s

    async def create(self, vim: Mapping[str, Any]) -> Mapping[str, Any]:
        """Verify and register an operator's VIM."""
        requests.check_names(vim)
        kind = requests.vim_type(vim)
        tenant = requests.text(vim, "tenant_id", default=DEFAULT_TENANT)
        is_default = requests.flag(vim, "is_default")
        extra = requests.mapping(vim, "extra")
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
            auth_cred=requests.auth_cred(vim, kind),
            vim_project=requests.vim_project(vim, kind),
            extra=hide(extra),
            created_at=now,
            updated_at=now,
        )
        if kind == "kubernetes" and extra.get("use_helm") and not record.auth_cred.get("ssl_ca_cert"):
            raise InvalidInput("vim.auth_cred.ssl_ca_cert", "required with use_helm")
        record = proven(record, await self.verified(record))
        await self._records.insert(record, [registered(record)])
        return record.shown()

    async def list(self, filters: Mapping[str, Sequence[str]]) -> Sequence[Mapping[str, Any]]:
        """Return the records that equal one of the values for each name."""
        wanted: dict[str, Sequence[str | bool]] = {}
        for name, values in filters.items():
            if name not in requests.FILTERS:
                raise InvalidInput(name, "unknown filter")
            wanted[name] = [value.lower() == "true" for value in values] if name == "is_default" else values
        by_id = wanted.pop("id", None)
        found = await self._records.find(wanted)
        return [vim.shown() for vim in found if by_id is None or vim.id in by_id]

    async def get(self, vim_id: str) -> Mapping[str, Any]:
        """Return one record."""
        return (await self._records.get(vim_id)).vim.shown()

    async def default(self) -> Mapping[str, Any] | None:
        """Return the default VIM's record."""
        found = await self._records.find({"is_default": [True]})
        return found[0].shown() if found else None

    async def update(self, vim_id: str, changes: Mapping[str, Any]) -> Mapping[str, Any]:
        """Change what may change; new access data are verified before they are stored."""
        kept = await self._records.get(vim_id)
        vim = kept.vim
        for name, value in changes.items():
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
        if "vim_project" in changes:
            project = {**vim.vim_project, **requests.mapping(changes, "vim_project")}
            if project != vim.vim_project and (users := await self._users.users(vim_id)):
                raise VimInUse(vim_id, users)
            changed = changed.model_copy(
                update={"vim_project": requests.vim_project({"vim_project": project}, vim.type)}
            )
        if "auth_cred" in changes:
            credentials = requests.merged_credentials(vim.auth_cred, requests.given_credentials(changes))
            requests.check_credentials(credentials, vim.type)
            changed = changed.model_copy(update={"auth_cred": credentials})
        if {"auth_cred", "vim_project"} & set(changes):
            changed = proven(changed, await self.verified(changed))
        await self._records.replace(kept, changed, became(vim, changed))
        return changed.shown()

    async def delete(self, vim_id: str) -> None:
        """Remove a VIM that no instance uses."""
        kept = await self._records.get(vim_id)
        await self.remove(kept)

    async def connection(self, vim: VimConnection) -> VimConnection:
        """Return the connection with its access data, from the record if ``vim`` only refers to it."""
        if not vim.is_reference:
            return vim
        assert vim.vim_id is not None
        return await self.connection_of(vim.vim_id)

    async def connection_of(self, vim_id: str) -> VimConnection:
        """Return how to reach a registered VIM. Raises VimUnknown."""
        return (await self._records.get(vim_id)).vim.connection

    async def remove(self, kept: Kept, *, but: str | None = None, tells: bool = True) -> None:
        """Remove a VIM, unless instances other than ``but`` use it; ``tells``: publish it. Raises VimInUse."""
        users = [user for user in await self._users.users(kept.vim.id) if user != but]
        if users:
            raise VimInUse(kept.vim.id, users)
        await self._records.delete(kept.vim.id, [VimDeregistered(vim_ids=(kept.vim.id,))] if tells else [])

    async def verified(self, vim: VimRecord) -> Verified:
        """Ask the VIM, within the time that a registration may take. Raises what VimProbe does, and VimTooSlow."""
        try:
            async with asyncio.timeout(self._verify_timeout_s):
                return await self._probes[vim.type].verify(vim)
        except TimeoutError as error:
            raise VimTooSlow(f"VIM {vim.auth_url} did not answer within {self._verify_timeout_s:g} s") from error


def proven(vim: VimRecord, facts: Verified) -> VimRecord:
    """Return the record of a VIM that has answered."""
    return vim.model_copy(
        update={
            "status": "ACTIVE",
            "status_reason": "",
            "placement_attr": {"regions": sorted(facts.regions)},
            "kubernetes_version": facts.kubernetes_version,
        }
    )


def registered(vim: VimRecord) -> VimRegistered:
    """Return the event of a VIM that exists and answers."""
    return VimRegistered(
        vim_id=vim.id,
        name=vim.name,
        vim_type=vim.connection.vim_type,
        endpoint=vim.auth_url,
        kubernetes_version=vim.kubernetes_version,
    )


def became(old: VimRecord, new: VimRecord) -> Sequence[VimStatusChanged]:
    """Return the event of a changed status, if it changed."""
    if old.status == new.status:
        return []
    return [
        VimStatusChanged(
            vim_id=new.id, name=new.name, old_status=old.status, status=new.status, reason=new.status_reason
        )
    ]
