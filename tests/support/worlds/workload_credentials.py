"""A management cluster and a workload cluster of the lab, as Cluster API leaves them when the control plane answers."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
import yaml
from kubevnfm_clients.cluster_api import ClusterApi
from kubevnfm_events import VimConnection
from kubevnfm_events.credentials import WorkloadCluster
from kubevnfm_kit.json_types import JsonObject
from kubevnfm_lab.faults import CallLedger, FaultBook
from kubevnfm_lab.kubernetes import LabCluster, LabClusters
from kubevnfm_secrets import KeyRing, Secret
from servers.ports import free_port

GROUP = "cluster.x-k8s.io"
CLUSTER = WorkloadCluster(name="edge", namespace="default", api_version=f"{GROUP}/v1beta2")
SECRET = "edge-kubeconfig"
_PLACE = "/api/v1/namespaces/default/secrets"


def a_crd(version: str) -> JsonObject:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    # Without a subresource for it, each write of a status would be a new generation, about which a controller writes again.
    served = {"name": version, "served": True, "storage": True, "schema": schema, "subresources": {"status": {}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"clusters.{GROUP}", "labels": {f"{GROUP}/{version}": version}},
        "spec": {
            "group": GROUP,
            "names": {"kind": "Cluster", "plural": "clusters", "singular": "cluster", "listKind": "ClusterList"},
            "scope": "Namespaced",
            "versions": [served],
        },
    }


@dataclass
class CapiSite:
    """Both clusters, and the objects of Cluster API in the first one."""

    clusters: LabClusters
    faults: FaultBook
    management: LabCluster
    workload: LabCluster
    api: ClusterApi
    """The API of the management cluster."""

    @classmethod
    @asynccontextmanager
    async def start(cls, ring: KeyRing) -> AsyncIterator[CapiSite]:
        """Yield the site; the workload cluster exists, its Cluster object does not."""
        faults = FaultBook()
        clusters = LabClusters(faults=faults, ledger=CallLedger())
        await clusters.start()
        try:
            management, workload = [
                await clusters.create(
                    address="127.0.0.1",
                    port=free_port(),
                    version="v1.31.4",
                    pod_cidr="10.244.0.0/16",
                    service_cidr="10.96.0.0/12",
                    san=["127.0.0.1"],
                )
                for _ in range(2)
            ]
            async with aiohttp.ClientSession() as session:
                api = ClusterApi(session, connection_to(management), ring, timeout_s=30.0)
                yield cls(clusters, faults, management, workload, api)
        finally:
            faults.clear()
            await clusters.close()

    @property
    def vim(self) -> VimConnection:
        """The management cluster, with its access data."""
        return connection_to(self.management)

    def kubeconfig(self, **changes: Any) -> str:
        """Return the administrator's kubeconfig of the workload cluster, as Cluster API writes it."""
        config = yaml.safe_load(self.workload.kubeconfig_admin())
        return yaml.safe_dump({**config, **changes})

    async def make_cluster(self, *, version: str = "v1beta2", host: str = "127.0.0.1", **spec: Any) -> None:
        """Create the Cluster object whose infrastructure is provisioned."""
        crd = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/clusters.{GROUP}"
        if not (await self.api.get(crd)).is_success:
            assert (await self.api.call("POST", crd.rpartition("/")[0], body=a_crd(version))).is_success
        path = f"/apis/{GROUP}/{version}/namespaces/default/clusters"
        body = {
            "apiVersion": f"{GROUP}/{version}",
            "kind": "Cluster",
            "metadata": {"name": "edge", "namespace": "default"},
            "spec": {
                "infrastructureRef": {"kind": "OpenStackCluster", "name": "edge"},
                "controlPlaneEndpoint": {"host": host, "port": self.workload.port},
                **spec,
            },
        }
        while True:
            # A new resource is served a moment after its definition.
            answer = await self.api.call("POST", path, body=body)
            if answer.status != 404:
                break
        assert answer.is_success, answer.message

    async def make_cluster_again(self) -> None:
        """Delete the Cluster object, and create another one of the same name."""
        answer = await self.api.call("DELETE", f"/apis/{GROUP}/v1beta2/namespaces/default/clusters/edge")
        assert answer.is_success, answer.message
        await self.make_cluster()

    async def make_secret(self, kubeconfig: str | None = None, **changes: Any) -> None:
        """Create the kubeconfig Secret."""
        text = self.kubeconfig() if kubeconfig is None else kubeconfig
        secret = {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": f"{GROUP}/secret",
            "metadata": {"name": SECRET, "namespace": "default", "labels": {f"{GROUP}/cluster-name": "edge"}},
            "data": {"value": base64.b64encode(text.encode()).decode()},
            **changes,
        }
        answer = await self.api.call("POST", _PLACE, body=secret)
        assert answer.is_success, answer.message

    async def touch_secret(self) -> None:
        """Change the resourceVersion of the Secret and nothing of its content, as a controller that writes a label does."""
        await self._put(lambda secret: secret["metadata"]["labels"].update(touched="yes"))

    async def renew_secret(self) -> str:
        """Write a kubeconfig with a new client certificate, as Cluster API does half a year before the end; return it."""
        text = self.workload.new_admin_kubeconfig()
        await self._put(lambda secret: secret["data"].update(value=base64.b64encode(text.encode()).decode()))
        return text

    async def version(self) -> str:
        """Return the resourceVersion of the Secret."""
        return str((await self.api.get(f"{_PLACE}/{SECRET}")).body["metadata"]["resourceVersion"])

    async def _put(self, change: Callable[[JsonObject], None]) -> None:
        secret = (await self.api.get(f"{_PLACE}/{SECRET}")).body
        change(secret)
        answer = await self.api.call("PUT", f"{_PLACE}/{SECRET}", body=secret)
        assert answer.is_success, answer.message


def connection_to(cluster: LabCluster) -> VimConnection:
    return VimConnection(
        vim_id="vim-management",
        vim_type="ETSINFV.KUBERNETES.V_1",
        interface_info={"endpoint": cluster.endpoint, "ssl_ca_cert": cluster.ca_pem},
        access_info={"bearer_token": Secret(cluster.admin_token)},
    )
