"""OpenStack: log in to Keystone and read the regions of its catalogue. The client blocks, so it runs in threads."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from keystoneauth1 import exceptions
from keystoneauth1.identity import v3
from keystoneauth1.session import Session
from kubevnfm_secrets import KeyRing, Secret

from kubevnfm_vim_registry.domain.ports import Found, VimRefused, VimUnavailable
from kubevnfm_vim_registry.domain.vim import Vim


class OpenstackProbe:
    """`domain.ports.VimProbe` for OpenStack."""

    def __init__(self, ring: KeyRing, threads: ThreadPoolExecutor, *, timeout_s: float) -> None:
        self._ring, self._threads, self._timeout_s = ring, threads, timeout_s

    async def look(self, vim: Vim) -> Found:
        """See the port."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._log_in, vim)

    async def answers(self, vim: Vim) -> None:
        """See the port: a log-in proves both that Keystone answers and that the credentials hold."""
        await self.look(vim)

    def _log_in(self, vim: Vim) -> Found:
        cred, project = vim.auth_cred, vim.vim_project
        password = cred.get("password")
        auth = v3.Password(
            auth_url=vim.auth_url,
            username=cred.get("username"),
            password=password.reveal(self._ring) if isinstance(password, Secret) else str(password),
            user_domain_name=cred.get("user_domain_name"),
            project_name=project.get("name"),
            project_domain_name=project.get("project_domain_name"),
        )
        verify = str(cred.get("cert_verify", "True")).lower() != "false"
        session = Session(auth=auth, verify=verify, timeout=self._timeout_s)
        try:
            access = auth.get_access(session)
        except exceptions.Unauthorized as error:
            raise VimRefused(f"{vim.auth_url}: unauthorized for VIM {vim.name}") from error
        except (exceptions.ConnectFailure, exceptions.ConnectTimeout, exceptions.HttpServerError) as error:
            raise VimUnavailable(f"{vim.auth_url} does not answer ({type(error).__name__})") from error
        except exceptions.ClientException as error:
            raise VimRefused(f"{vim.auth_url}: {type(error).__name__}") from error
        return Found(_regions(access.service_catalog.catalog), "v3")


def _regions(catalog: Any) -> tuple[str, ...]:
    found = {endpoint.get("region_id") or endpoint.get("region") for one in catalog for endpoint in one["endpoints"]}
    return tuple(sorted(region for region in found if region))
