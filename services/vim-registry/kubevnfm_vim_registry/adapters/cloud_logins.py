"""Makes application credentials in Keystone, and writes logins as ``clouds.yaml`` has them (capi.md CR-049)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

from keystoneauth1 import exceptions
from kubevnfm_clients.cloud_identity import CloudIdentity, IdentityKind
from kubevnfm_keystone import ApplicationCredentials, KeystoneLogin, KeystoneSession
from kubevnfm_keystone.login import DEFAULT_DOMAIN
from kubevnfm_kit import live_spans
from kubevnfm_secrets import KeyRing, Secret

from kubevnfm_vim_registry.adapters.openstack import new_session, translated_errors
from kubevnfm_vim_registry.domain.errors import VimUnauthorized, VimUnreachable
from kubevnfm_vim_registry.domain.record import VimRecord

T = TypeVar("T")

_DESCRIPTION: Final = "Workload cluster of kubevnfm"
_NOT_NOW: Final = frozenset({401, 409, 429})
"""Answers below 500 that do not mean that Keystone makes no application credentials."""
_NOT_IMPLEMENTED: Final = 501


class OpenstackLogins:
    """`domain.ports.CloudLogins`."""

    def __init__(self, ring: KeyRing, threads: ThreadPoolExecutor, *, timeout_s: float) -> None:
        """``timeout_s``: time limit for one request."""
        self._ring, self._threads, self._timeout_s = ring, threads, timeout_s

    async def give(self, vim: VimRecord, name: str, *, present: str | None) -> CloudIdentity:
        return await self._run(vim, lambda session: _given(session, name, present))

    async def take_back(self, vim: VimRecord, name: str) -> int:
        def work(session: KeystoneSession) -> int:
            mine = ApplicationCredentials(session)
            try:
                if not mine.named(name):
                    return 0
            except exceptions.HttpError as error:
                if not _means_never(error):
                    raise
                # None was made: the cluster has got the password.
                return 0
            try:
                return mine.delete(name)
            except exceptions.Forbidden as error:
                reason = (
                    f"Keystone does not let this login delete the application credential {name}, which an earlier login of the VIM "
                    "has made: delete it in Keystone"
                )
                raise VimUnauthorized(vim.auth_url, reason) from error

        return await self._run(vim, work)

    async def _run(self, vim: VimRecord, work: Callable[[KeystoneSession], T]) -> T:
        """Return what ``work`` returns with a session of its own, in a thread."""

        def run() -> T:
            session = new_session(vim, self._ring, timeout_s=self._timeout_s)
            try:
                with translated_errors(vim):
                    try:
                        session.log_in()
                        return work(session)
                    except exceptions.Conflict as error:
                        # Another process has made one of the same name since ours was deleted.
                        reason = "the application credential was made by another process at the same time"
                        raise VimUnreachable(vim.auth_url, reason) from error
            finally:
                session.close()

        return await asyncio.get_running_loop().run_in_executor(self._threads, live_spans.carried(run))


def _given(session: KeystoneSession, name: str, present: str | None) -> CloudIdentity:
    login = session.login
    if login.credential_secret is not None:
        own = {**_credential(session.credential_id(), login), "application_credential_secret": login.credential_secret}
        return _identity(session, "own", own, credential_id=session.credential_id())
    mine = ApplicationCredentials(session)
    try:
        known = mine.named(name)
        note = ""
        if present is not None:
            if present in known:
                return _identity(session, "kept", {"application_credential_id": present}, credential_id=present)
            if not known:
                note = f"Keystone no longer shows the application credential {present} to this user"
        made = mine.replace(name, description=_DESCRIPTION)
    except exceptions.HttpError as error:
        if not _means_never(error):
            raise
        why = f"Keystone makes no application credential for this user (it answered {error.http_status})"
        return _identity(session, "password", _password(login), note=why)
    auth = {"application_credential_id": made.id, "application_credential_secret": made.secret}
    return _identity(session, "created", auth, credential_id=made.id, note=note)


def _means_never(error: exceptions.HttpError) -> bool:
    status = error.http_status
    return status == _NOT_IMPLEMENTED or (status < 500 and status not in _NOT_NOW)


def _identity(
    session: KeystoneSession,
    kind: IdentityKind,
    auth: dict[str, str],
    *,
    credential_id: str | None = None,
    note: str = "",
) -> CloudIdentity:
    login = session.login
    secrets = ("application_credential_secret", "password")
    cloud: dict[str, Any] = {
        "auth": {
            "auth_url": login.auth_url,
            **{name: Secret(value) if name in secrets else value for name, value in auth.items()},
        },
        "auth_type": "v3password" if kind == "password" else "v3applicationcredential",
        "identity_api_version": 3,
        "interface": login.interface,
        "region_name": session.catalogue().region(),
        "verify": login.check_certificate,
    }
    return CloudIdentity(kind=kind, cloud=cloud, cacert=login.certificates, credential_id=credential_id, note=note)


def _credential(credential_id: str | None, login: KeystoneLogin) -> dict[str, str]:
    """Return how ``clouds.yaml`` names the VIM's application credential: by its id, unless Keystone does not show that."""
    if credential_id is not None:
        return {"application_credential_id": credential_id}
    return _present({"application_credential_name": login.credential_name, **_user(login)})


def _password(login: KeystoneLogin) -> dict[str, str]:
    by_id = bool(login.project_id)
    return _present(
        {
            **_user(login),
            "password": login.password,
            "project_id": login.project_id,
            "project_name": None if by_id else login.project,
            "project_domain_id": None if by_id else login.project_domain_id,
            "project_domain_name": None if by_id or login.project_domain_id else login.project_domain or DEFAULT_DOMAIN,
        }
    )


def _user(login: KeystoneLogin) -> dict[str, str | None]:
    by_id = bool(login.user_id)
    return {
        "user_id": login.user_id,
        "username": None if by_id else login.username,
        "user_domain_id": None if by_id else login.user_domain_id,
        "user_domain_name": None if by_id or login.user_domain_id else login.user_domain or DEFAULT_DOMAIN,
    }


def _present(values: dict[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in values.items() if value}
