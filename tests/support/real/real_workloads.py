"""Workload clusters that the real Cluster API builds in memory, as kubevnfm's VNF instances; docs/real-cluster-api.md."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import aiohttp
from callers.user import GRACEFUL, User
from clusters.memory_clusters import ADDON, MemoryCluster
from patience import until

from real.real_cluster import RealCluster
from real.real_cnfs import VIM

GROUPS: Final = (
    "cluster.x-k8s.io",
    "controlplane.cluster.x-k8s.io",
    "infrastructure.cluster.x-k8s.io",
    "bootstrap.cluster.x-k8s.io",
)
Body = dict[str, Any]
OUT: Final = {"type": "SCALE_OUT", "aspectId": "workers", "numberOfSteps": 1}


@dataclass
class Workload:
    """A workload cluster: a VNF instance, and its objects in a namespace of the management cluster."""

    user: User
    management: RealCluster
    package: MemoryCluster
    namespace: str
    folder: Path
    instance_id: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """More of ``additionalParams.capi``."""

    async def create(self) -> None:
        """Onboard the package and create the instance."""
        self.instance_id = await self.user.create(await self._onboarded(self.package))

    async def instantiate(self, *, level: str = "instantiation_level_1") -> Body:
        """Instantiate, whatever comes of it; return kubevnfm's view of the operation."""
        if not self.instance_id:
            await self.create()
        return await self.user.rest(await self.start("instantiate", await self.request(level=level)))

    async def request(self, *, level: str = "instantiation_level_1") -> Body:
        """Return the request to instantiate."""
        # The API servers in memory make no tokens for service accounts.
        capi = {"credentials": "admin_kubeconfig", "addon-def-files": [ADDON], **self.parameters}
        body = {
            "flavourId": "simple",
            "instantiationLevelId": level,
            "additionalParams": {
                "namespace": self.namespace,
                "lcm-kubernetes-def-files": list(self.package.files),
                "capi": capi,
            },
        }
        found = (await self.user.vims())[VIM]
        return self.user.on_vim(body, {"vimId": found["id"], "vimType": "ETSINFV.KUBERNETES.V_1"})

    async def built(self, *, level: str = "instantiation_level_1") -> Body:
        """Instantiate; return kubevnfm's view of the operation, which must complete."""
        view = await self.instantiate(level=level)
        assert view["state"] == "COMPLETED", json.dumps(view.get("error", view), indent=1)
        return view

    async def start(self, task: str, body: Mapping[str, Any]) -> str:
        """Begin an operation; return the id of its occurrence."""
        return await self.user.start(self.instance_id, task, body)

    async def do(self, task: str, body: Mapping[str, Any]) -> Body:
        """Carry out an operation that must complete."""
        return await self.user.do(self.instance_id, task, body)

    async def change(self, package: MemoryCluster, **parameters: Any) -> Body:
        """Change to another package, whatever comes of it; return kubevnfm's view of the operation."""
        body = {
            "vnfdId": await self._onboarded(package),
            "additionalParams": {"lcm-kubernetes-def-files": list(package.files), **parameters},
        }
        return await self.user.rest(await self.start("change_vnfpkg", body))

    async def terminate(self) -> None:
        """Terminate, and check that nothing of the cluster is left."""
        await self.do("terminate", GRACEFUL)
        await self.is_gone()

    async def is_gone(self) -> None:
        """Return once no object of Cluster API is left in the namespace, and no Secret of the cluster."""
        assert [each for each in await self.everything() if "/kubeadmconfigs" not in each] == []
        # The garbage collector takes what Machines owned a moment after they are gone.

        async def collected() -> bool | None:
            return not await self.everything() or None

        await until(collected, timeout_s=60)

    async def everything(self) -> list[str]:
        """Return the paths of all objects of Cluster API in the namespace, and of the cluster's Secrets."""
        found: list[str] = []
        for group in GROUPS:
            base = f"/apis/{group}/v1beta2"
            for one in (await self.management.get(base) or {})["resources"]:
                if "/" not in one["name"]:
                    listed = await self.management.get(f"{base}/namespaces/{self.namespace}/{one['name']}") or {}
                    found += [f"{base}/{one['name']}/{each['metadata']['name']}" for each in listed.get("items", [])]
        secrets = await self.management.get(f"/api/v1/namespaces/{self.namespace}/secrets") or {}
        return [*found, *(f"secrets/{each['metadata']['name']}" for each in secrets["items"])]

    async def instance(self) -> Body:
        """Return the VNF instance."""
        return await self.user.instance(self.instance_id)

    async def vnfcs(self) -> dict[str, str]:
        """Return the VDU of each VNFC that the instance shows, by the name of its Machine."""
        shown = (await self.instance())["instantiatedVnfInfo"]["vnfcResourceInfo"]
        return {each["computeResource"]["resourceId"]: each["vduId"] for each in shown}

    async def objects(self, kind: str, group: str = "cluster.x-k8s.io", version: str = "v1beta2") -> list[Body]:
        """Return the objects of a kind in the namespace."""
        listed = await self.management.get(f"/apis/{group}/{version}/namespaces/{self.namespace}/{kind}") or {}
        return list(listed["items"])

    async def machines(self) -> dict[str, Body]:
        """Return the Machines that are not being deleted, by name."""
        return {
            each["metadata"]["name"]: each
            for each in await self.objects("machines")
            if not each["metadata"].get("deletionTimestamp")
        }

    async def templates(self) -> set[str]:
        """Return the names of the machine templates."""
        found = await self.objects("devmachinetemplates", "infrastructure.cluster.x-k8s.io")
        return {each["metadata"]["name"] for each in found}

    async def used_templates(self) -> set[str]:
        """Return the names of the machine templates of new Machines."""
        planes = await self.objects("kubeadmcontrolplanes", "controlplane.cluster.x-k8s.io")
        workers = await self.objects("machinedeployments")
        used = [each["spec"]["machineTemplate"] for each in planes] + [each["spec"]["template"] for each in workers]
        return {each["spec"]["infrastructureRef"]["name"] for each in used}

    def path(self, kind: str, name: str, group: str = "cluster.x-k8s.io") -> str:
        """Return the path of an object."""
        return f"/apis/{group}/v1beta2/namespaces/{self.namespace}/{kind}/{name}"

    async def _onboarded(self, package: MemoryCluster) -> str:
        vnfd_id = str(uuid4())
        archive = await asyncio.to_thread(package.package, self.folder, vnfd_id)
        shown = await self.user.upload(archive)
        assert shown["onboardingState"] == "ONBOARDED", shown
        return vnfd_id

    @asynccontextmanager
    async def inside(self) -> AsyncIterator[tuple[aiohttp.ClientSession, str]]:
        """Yield a session and the address of the workload cluster's API server, which accepts everybody."""
        secret = await self.management.get(f"/api/v1/namespaces/{self.namespace}/secrets/{self.package.name}-ca")
        cluster = await self.management.get(self.path("clusters", self.package.name))
        assert secret is not None
        assert cluster is not None
        ca, endpoint = base64.b64decode(secret["data"]["tls.crt"]).decode(), cluster["spec"]["controlPlaneEndpoint"]
        connector = aiohttp.TCPConnector(ssl=ssl.create_default_context(cadata=ca))
        async with aiohttp.ClientSession(connector=connector) as session:
            yield session, f"https://{endpoint['host']}:{endpoint['port']}"
