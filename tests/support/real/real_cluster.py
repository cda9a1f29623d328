"""A Kubernetes cluster that people give: kubevnfm deploys CNFs on it, and the tests read it from outside."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, Self
from uuid import uuid4

import aiohttp
from patience import until, until_true

from real.real_kubernetes import RealKubernetes

GIVEN: Final = RealKubernetes.from_environment()
"""The cluster that the environment names; the tests of tests/kubernetes are skipped without one."""
_FLEETING: Final = frozenset(
    {"events", "leases", "endpoints", "endpointslices", "pods", "componentstatuses", "bindings", "apiservices", "nodes"}
)
"""Resources of which a cluster makes and removes objects by itself all the time."""
Body = dict[str, Any]


class RealCluster:
    """The cluster's API with the rights of an administrator: the given one, or another. An async context manager."""

    def __init__(self, access: RealKubernetes | None = GIVEN) -> None:
        assert access is not None
        self.url, self.token, self.ca = access.endpoint, access.token, access.ca_pem
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        context = ssl.create_default_context(cadata=self.ca)
        self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context, force_close=True))
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._session is not None
        await self._session.close()

    def vim(self, name: str, token: str | None = None) -> Body:
        """Return the body that registers the cluster as a VIM; ``token``: another one than the administrator's."""
        return {
            "name": name,
            "type": "kubernetes",
            "auth_url": self.url,
            "vim_project": {"name": "default"},
            "auth_cred": {"bearer_token": token or self.token, "ssl_ca_cert": self.ca},
        }

    async def call(
        self, method: str, path: str, body: Any = None, *, kind: str = "application/json"
    ) -> tuple[int, Any]:
        """Send one request; return status and body."""
        assert self._session is not None
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": kind}
        async with self._session.request(method, f"{self.url}{path}", json=body, headers=headers) as answer:
            # A path of a group that is not served is answered with a line of text.
            is_json = answer.content_type == "application/json"
            return answer.status, await answer.json() if is_json else {"message": await answer.text()}

    async def watched(self, path: str) -> AsyncIterator[tuple[str, Body]]:
        """Yield the events of the collection at ``path`` with their types until the watch ends; first what is there, as ADDED."""
        assert self._session is not None
        headers = {"Authorization": f"Bearer {self.token}"}
        endless = aiohttp.ClientTimeout(total=None, sock_connect=5)
        async with self._session.get(f"{self.url}{path}?watch=true", headers=headers, timeout=endless) as answer:
            async for line in answer.content:
                event = json.loads(line)
                yield event["type"], event["object"]

    async def make(self, path: str, body: Body) -> Body:
        """Create an object in the collection at ``path``. Raises AssertionError if it is refused."""
        status, made = await self.call("POST", path, body)
        assert status == 201, made
        return dict(made)

    async def get(self, path: str) -> Body | None:
        """Return an object or a list; None if there is none."""
        status, found = await self.call("GET", path)
        assert status in {200, 404}, found
        return found if status == 200 else None

    async def change(self, path: str, body: Body) -> None:
        """Merge into an object."""
        status, found = await self.call("PATCH", path, body, kind="application/merge-patch+json")
        assert status == 200, found

    async def merge_lists(self, path: str, body: Body) -> None:
        """Merge into an object; an element of a list is found by name."""
        status, found = await self.call("PATCH", path, body, kind="application/strategic-merge-patch+json")
        assert status == 200, found

    async def remove(self, path: str) -> None:
        """Delete an object and return once it is gone; none is no fault."""
        status, found = await self.call("DELETE", path)
        assert status in {200, 202, 404}, found

        async def gone() -> bool | None:
            return await self.get(path) is None or None

        await until(gone, timeout_s=120)

    async def account(self, namespace: str, rules: list[Body]) -> str:
        """Make a ServiceAccount with these rules in one namespace; return its token. It is named ``limited``."""
        core, rbac = f"/api/v1/namespaces/{namespace}", f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"
        await self.make(f"{core}/serviceaccounts", {"metadata": {"name": "limited"}})
        await self.make(f"{rbac}/roles", {"metadata": {"name": "limited"}, "rules": rules})
        subject = {"kind": "ServiceAccount", "name": "limited", "namespace": namespace}
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "limited"}
        body = {"metadata": {"name": "limited"}, "subjects": [subject], "roleRef": role}
        await self.make(f"{rbac}/rolebindings", body)
        marked = {"name": "limited", "annotations": {"kubernetes.io/service-account.name": "limited"}}
        kind = "kubernetes.io/service-account-token"
        await self.make(f"{core}/secrets", {"metadata": marked, "type": kind})

        async def filled() -> str | None:
            found = await self.get(f"{core}/secrets/limited")
            token = ((found or {}).get("data") or {}).get("token")
            return base64.b64decode(token).decode() if token else None

        return await until(filled, timeout_s=120)

    @asynccontextmanager
    async def namespace(self) -> AsyncIterator[str]:
        """Yield a new namespace, which is deleted with all that is in it."""
        name = f"test-{uuid4().hex[:8]}"
        await self.make("/api/v1/namespaces", {"metadata": {"name": name}})
        try:
            yield name
        finally:
            await self.remove(f"/api/v1/namespaces/{name}")

    async def everything(self) -> Mapping[str, str]:
        """Return the uid of each object of every kind that can be listed, by resource, namespace and name.

        Without the objects that a cluster makes and removes by itself (`_FLEETING`).
        """
        found: dict[str, str] = {}
        for base in await self._groups():
            resources = (await self.get(base) or {}).get("resources", [])
            for one in resources:
                if "list" not in one["verbs"] or "/" in one["name"] or one["name"] in _FLEETING:
                    continue
                listed = await self.get(f"{base}/{one['name']}") or {}
                for item in listed.get("items") or []:
                    metadata = item["metadata"]
                    place = f"{base}/{one['name']}/{metadata.get('namespace', '')}/{metadata['name']}"
                    found[place] = metadata["uid"]
        return found

    async def _groups(self) -> list[str]:
        groups = (await self.get("/apis") or {})["groups"]
        return ["/api/v1", *(f"/apis/{each['preferredVersion']['groupVersion']}" for each in groups)]

    async def power(self, *, is_on: bool) -> None:
        """Start the API server and return once it is ready, or end it as a power cut does."""
        assert GIVEN is not None
        process = await asyncio.create_subprocess_exec(
            *(GIVEN.start if is_on else GIVEN.kill), stdout=asyncio.subprocess.DEVNULL
        )
        assert await process.wait() == 0

        async def is_ready() -> bool:
            with suppress(aiohttp.ClientError):
                status, _ = await self.call("GET", "/readyz")
                return status == 200
            return False

        if is_on:
            await until_true(is_ready, timeout_s=180)
