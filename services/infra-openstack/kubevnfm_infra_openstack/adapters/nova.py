"""NovaServers: starts, stops and deletes servers (Compute API v2.1)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

import requests

from kubevnfm_infra_openstack.adapters.tenants import Tenant, reads, reason_of
from kubevnfm_infra_openstack.adapters.together import together
from kubevnfm_infra_openstack.domain.errors import ServerNotOperable

_PAGE: Final = 1000
"""Nova's own default for the largest page."""
_MOST_PAGES: Final = 100
"""A list that has no end must not hold a worker."""
_IN_ANOTHER_STATE: Final = "while it is in"
"""Part of Nova's 409 for a server that is busy or already in the wanted state. It is no error: the next poll decides."""


class NovaServers:
    """The servers of one tenant."""

    def __init__(self, tenant: Tenant) -> None:
        self._tenant = tenant

    @reads("Nova")
    async def statuses(self, ids: Sequence[str]) -> Mapping[str, str]:
        answers = await together(
            self._tenant.call("compute", "GET", f"/servers/{one}", fine=frozenset({404})) for one in ids
        )
        servers = [answer.json()["server"] for answer in answers if answer.ok]
        return {server["id"]: server["status"] for server in servers}

    @reads("Nova")
    async def all_statuses(self) -> Mapping[str, str]:
        # The list without details has no status, so those in ERROR are a list of their own, usually an empty one.
        every, failed = await asyncio.gather(self._ids({}), self._ids({"status": "ERROR"}))
        return {**dict.fromkeys(every, ""), **dict.fromkeys(failed, "ERROR")}

    async def _ids(self, filters: Mapping[str, str]) -> Sequence[str]:
        found: list[str] = []
        query = {"limit": str(_PAGE), **filters}
        for _ in range(_MOST_PAGES):
            answer = (await self._tenant.call("compute", "GET", "/servers", query=query)).json()
            found += [server["id"] for server in answer["servers"]]
            # The link too: an administrator may allow smaller pages than we ask for.
            if not answer["servers"] or (len(answer["servers"]) < _PAGE and not answer.get("servers_links")):
                break
            query["marker"] = found[-1]
        return found

    async def start(self, id: str) -> None:
        await self._act(id, "os-start")

    async def stop(self, id: str) -> None:
        await self._act(id, "os-stop")

    async def delete(self, id: str) -> None:
        response = await self._tenant.call("compute", "DELETE", f"/servers/{id}", fine=frozenset({404, 409}))
        if response.status_code != 404:
            _check(response, f"server {id}: delete")

    async def delete_finally(self, id: str) -> None:
        await self._act(id, "forceDelete")

    async def _act(self, id: str, action: str) -> None:
        path, body = f"/servers/{id}/action", {action: None}
        response = await self._tenant.call("compute", "POST", path, body=body, fine=frozenset({404, 409}))
        _check(response, f"server {id}: {action}")


def is_busy(response: requests.Response) -> bool:
    """Return whether Nova refuses an action because of the state that the server is in now."""
    return response.status_code == 409 and _IN_ANOTHER_STATE in reason_of(response)


def _check(response: requests.Response, what: str) -> None:
    if response.ok:
        return
    reason = reason_of(response)
    if not is_busy(response):
        raise ServerNotOperable(f"{what}: {reason}")
