"""A given cluster as a cloud region of the multi-cloud API: registered by a kubeconfig, used, and removed."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from callers.user import Answer, User
from packages.package_variants import variant
from patience import until

from real.real_cluster import Body, RealCluster

API: Final = "/multicloud/v1"
FOLDER: Final = "Files/kubernetes"
LABEL: Final = "kubevnfm.io/vnf-instance-id"
_WAIT: Final = {"Prefer": "wait=50"}
"""Below the limit of the user's client for one answer."""


class RealRegion:
    """The multi-cloud API for one region, and the region's cluster."""

    def __init__(self, user: User, cluster: RealCluster, region_id: str, sriov_namespace: str, folder: Path) -> None:
        self.user, self.cluster, self.id, self.sriov_namespace = user, cluster, region_id, sriov_namespace
        self.namespaces: list[str] = []
        """Those of the VNFs: they are deleted at the end of a test that has failed."""
        self._folder = folder

    def place(self) -> str:
        """Return a name for the namespace of a VNF."""
        name = f"test-{uuid4().hex[:8]}"
        self.namespaces.append(name)
        return name

    async def call(self, method: str, path: str, body: Any = None) -> Answer:
        """Call below ``/multicloud/v1``; wait for the work of a request."""
        return await self.user.call(method, f"{API}{path}", body, headers=_WAIT if method != "GET" else None)

    async def onboard(self, files: Mapping[str, str]) -> str:
        """Onboard the sample ``cnf`` with these files in the folder of its manifests; return the id of the package."""
        named = {f"{FOLDER}/{name}": text for name, text in files.items()}
        package = await self.user.upload(variant(self._folder, vnfd_id=str(uuid4()), files=named))
        assert package["onboardingState"] == "ONBOARDED", package
        return str(package["id"])

    async def start(self, csar_id: str, **members: Any) -> Body:
        """Ask for a VNF; return it as the answer has it, which may be unfinished."""
        body = {"cloud_region_id": self.id, "csar_id": csar_id, **members}
        answer = await self.user.call("POST", f"{API}/vnf_instances", body, headers={"Prefer": "respond-async"})
        made: Body = answer.must(202).json
        return made

    async def bring_up(self, csar_id: str, **members: Any) -> Body:
        """Bring up a VNF that must get ready; return it."""
        return await self.settled(await self.start(csar_id, **members))

    async def settled(self, vnf: Mapping[str, Any], status: str = "READY") -> Body:
        """Return the VNF once it has no work; its status must be this one."""

        async def rests() -> Body | None:
            found: Body = (await self.call("GET", f"/vnf_instances/{vnf['vnf_id']}")).must(200).json
            return None if found["status"] in {"CREATING", "UPDATING", "DELETING"} else found

        found = await until(rests, timeout_s=120)
        assert found["status"] == status, json.dumps(found, indent=1)
        return found

    async def change_later(self, vnf: Mapping[str, Any], patch: Body) -> None:
        """Ask for a change of a VNF, and do not wait for its end."""
        path = f"{API}/vnf_instances/{vnf['vnf_id']}"
        (await self.user.call("PATCH", path, patch, headers={"Prefer": "respond-async"})).must(202)

    async def remove(self, vnf: Mapping[str, Any]) -> None:
        """Bring a VNF down."""
        (await self.call("DELETE", f"/vnf_instances/{vnf['vnf_id']}")).must(204)

    async def is_empty(self, namespace: str) -> bool:
        """Return whether nothing of a VNF is left: neither its namespace nor an object of the inventory."""
        there = await self.cluster.get(f"/api/v1/namespaces/{namespace}")
        return there is None and not await self.inventory(namespace=namespace)

    async def inventory(self, **filters: str) -> list[Body]:
        """Return the objects that the inventory has."""
        query = "&".join(f"{name}={value}" for name, value in filters.items())
        found: list[Body] = (await self.call("GET", f"/inventory/resources?limit=1000&{query}")).must(200).json
        return found

    async def seen(self, count: int, vnf: Mapping[str, Any], *, without: str = "") -> list[Body]:
        """Return the pods of a VNF in the inventory: 2 s after the API server has so many that run, with node and address."""
        listed = f"/api/v1/namespaces/{vnf['namespace']}/pods?labelSelector={LABEL}={vnf['vnf_id']}"

        async def run() -> bool | None:
            pods = (await self.cluster.get(listed) or {})["items"]
            ready = [each for each in pods if each["status"].get("podIP") and each["status"]["phase"] == "Running"]
            names = {each["metadata"]["name"] for each in pods}
            return (len(ready) == len(pods) == count and without not in names) or None

        async def shown() -> list[Body] | None:
            found = await self.inventory(vnf_id=vnf["vnf_id"], kind="Pod")
            ready = [each for each in found if each["node"] and each["networks"] and each["phase"] == "Running"]
            return found if len(ready) == len(found) == count else None

        await until(run, timeout_s=60)
        return await until(shown, timeout_s=2)

    async def read(self, api_version: str, kind: str, **where: str) -> list[Body]:
        """Return objects of the region, as the multi-cloud API shows them."""
        query = "".join(f"&{name}={value}" for name, value in where.items())
        answer = await self.call(
            "GET", f"/cloud-regions/{self.id}/resources?apiVersion={api_version}&kind={kind}{query}"
        )
        found: list[Body] = answer.must(200).json
        return found

    async def write_status(self, path: str, status: Body, *, timeout_s: float = 60) -> None:
        """Do what the controller of a kind does that has none here: wait for the object and write its status."""

        async def written() -> bool | None:
            if await self.cluster.get(path) is None:
                return None
            code, answer = await self.cluster.call(
                "PATCH", f"{path}/status", {"status": status}, kind="application/merge-patch+json"
            )
            assert code in {200, 404}, answer
            return code == 200 or None

        await until(written, timeout_s=timeout_s)


@asynccontextmanager
async def registered(user: User, cluster: RealCluster, folder: Path, *, name: str = "") -> AsyncIterator[RealRegion]:
    """Register the cluster as a region of its own. At the end remove it, which is refused while something is in it."""
    name = name or f"region-{uuid4().hex[:8]}"
    body = {"cloud_owner": "op", "cloud_region": name, "kubeconfig": kubeconfig(cluster), "sriov_namespace": name}
    made = (await user.call("POST", f"{API}/cloud-regions", body)).must(201).json
    assert (made["status"], made["endpoint"], made["kubeconfig"]) == ("ACTIVE", cluster.url, "***")
    region = RealRegion(user, cluster, made["id"], name, folder)
    try:
        yield region
        (await user.call("DELETE", f"{API}/cloud-regions/{region.id}")).must(204)
    finally:
        for each in region.namespaces:
            await cluster.remove(f"/api/v1/namespaces/{each}")


def kubeconfig(cluster: RealCluster, token: str | None = None) -> str:
    """Return the kubeconfig of the cluster's administrator, or with another token, in base64."""
    ca = base64.b64encode(cluster.ca.encode()).decode()
    config = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": cluster.url, "certificate-authority-data": ca}}],
        "users": [{"name": "u", "user": {"token": token or cluster.token}}],
    }
    return base64.b64encode(json.dumps(config).encode()).decode()
