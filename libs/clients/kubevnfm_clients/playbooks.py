"""Ansible playbooks of packages: whether they can be run, which mgmt-executor knows."""

from __future__ import annotations

from typing import Protocol

import aiohttp
from kubevnfm_kit.errors import Unprocessable

from kubevnfm_clients.http import InternalApi


class AnsibleMissing(Unprocessable, code="ansible-missing", title="Ansible playbooks not run"):
    """The package has Ansible playbooks, and this installation has no ansible-core."""


class PlaybookPrograms(Protocol):
    """Served by mgmt-executor: ``/internal/v1/playbook-program``. May raise OutsideUnavailable."""

    async def why_missing(self) -> str:
        """Return why no playbook can be run; "" if ansible-core is there."""
        ...


class HttpPlaybookPrograms:
    """`PlaybookPrograms` over HTTP."""

    def __init__(self, base_url: str, token: str, session: aiohttp.ClientSession) -> None:
        self._api = InternalApi("mgmt-executor", base_url, token, session)

    async def why_missing(self) -> str:
        return str((await self._api.call("GET", "playbook-program"))["whyMissing"])
