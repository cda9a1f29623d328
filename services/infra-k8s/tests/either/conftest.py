"""The same tests on the lab's cluster and on a real one: where `make test-kubernetes` names a cluster, they use that.

Each test has a namespace of its own, and a prefix for the names of cluster-scoped objects.
"""

from __future__ import annotations

import base64
import secrets
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from kubevnfm_clients.cluster_access import read_access
from kubevnfm_events import VimConnection
from kubevnfm_events.objects import ObjectsApplied, ObjectsDeleted, ObjectsRepaired
from kubevnfm_infra_k8s.adapters.transport import Transport
from kubevnfm_infra_k8s.domain.objects import Body, ObjectKey, Resource
from kubevnfm_infra_k8s.domain.ports import Cluster
from kubevnfm_lab.faults import CallLedger, FaultBook
from kubevnfm_lab.kubernetes import LabCluster, LabClusters
from kubevnfm_secrets import KeyRing, Secret
from patience import until_true
from real.real_kubernetes import RealKubernetes
from servers.vnf_networks import networks
from worlds.volume_ground import VolumeGround, volume_ground

REAL = RealKubernetes.from_environment()
_RBAC = "rbac.authorization.k8s.io/v1"
_NAMESPACES = Resource("v1", "Namespace", "namespaces", namespaced=False)
_ACCOUNTS = Resource("v1", "ServiceAccount", "serviceaccounts", namespaced=True)
_BINDINGS = Resource("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings", namespaced=True)
_SECRETS = Resource("v1", "Secret", "secrets", namespaced=True)
_LAB_FATES = {"image": "fail", "stuck": "hang"}


@pytest.fixture
async def bed(faults: FaultBook, ledger: CallLedger) -> AsyncIterator[RealKubernetes | LabCluster]:
    """The cluster: one control plane and two workers in the lab."""
    if REAL is not None:
        yield REAL
        return
    labs = LabClusters(faults=faults, ledger=ledger)
    await labs.start()
    address = f"127.{secrets.randbelow(100) + 20}.{secrets.randbelow(250)}.{secrets.randbelow(250) + 1}"
    cluster = await labs.create(
        address=address, version="v1.34.10", pod_cidr="10.244.0.0/16", service_cidr="10.96.0.0/12"
    )
    await cluster.add_node("master", address=address, control_plane=True)
    for name, host in (("worker1", "127.0.0.8"), ("worker2", "127.0.0.9")):
        await cluster.add_node(name, address=host, control_plane=False)
    yield cluster
    await labs.close()


@pytest.fixture
def vim(bed: RealKubernetes | LabCluster) -> VimConnection:
    if isinstance(bed, RealKubernetes):
        return bed.vim()
    return RealKubernetes(bed.endpoint, bed.admin_token, bed.ca_pem).vim()


@dataclass
class Ground:
    """A namespace of a cluster, the service infra-k8s that works there, and the cluster as it is seen from outside."""

    site: Any
    cluster: Cluster
    namespace: str
    faults: FaultBook
    instances: set[str] = field(default_factory=set)

    async def apply(self, *objects: Body, instance: str = "", **more: Any) -> ObjectsApplied:
        """Apply a package with these objects in one file."""
        self.site.step = "apply"
        instance = instance or self.namespace
        self.instances.add(instance)
        done: ObjectsApplied = await self.site.apply(
            {"f.yaml": list(objects)}, instance=instance, **{"namespace": self.namespace, **more}
        )
        return done

    async def repair(self, *, instance: str = "", **more: Any) -> ObjectsRepaired:
        """Apply again what others have deleted or changed."""
        done: ObjectsRepaired = await self.site.repair(
            def_files=["f.yaml"], instance=instance or self.namespace, **{"namespace": self.namespace, **more}
        )
        return done

    async def delete(self, *, instance: str = "", **more: Any) -> ObjectsDeleted:
        """Terminate."""
        operation = more.pop("operation", f"delete-{secrets.token_hex(4)}")
        done: ObjectsDeleted = await self.site.delete(instance=instance or self.namespace, operation=operation, **more)
        return done

    async def shown(self, api_version: str, kind: str, name: str) -> Body | None:
        """Return an object, in the namespace unless its kind is cluster-scoped."""
        resource = await self.cluster.resource(api_version, kind)
        if resource is None:
            return None
        place = self.namespace if resource.namespaced else ""
        return await self.cluster.get(resource, ObjectKey(api_version, kind, place, name))

    async def create(self, body: Body) -> Body:
        """Create an object as another client does."""
        api_version, kind = str(body["apiVersion"]), str(body["kind"])
        resource = await self.cluster.resource(api_version, kind)
        assert resource is not None
        place = self.namespace if resource.namespaced else ""
        return await self.cluster.apply(
            resource, ObjectKey(api_version, kind, place, str(body["metadata"]["name"])), body
        )

    async def as_other(
        self, api_version: str, kind: str, name: str, patch: Body, *, manager: str = "kubectl-edit", at: str = ""
    ) -> None:
        """Change an object, or the subresource ``at`` of it, as another client does."""
        resource = await self.cluster.resource(api_version, kind)
        assert resource is not None
        base = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        place = f"/namespaces/{self.namespace}" if resource.namespaced else ""
        transport = await Transport.connect(
            read_access(self.site.vim, KeyRing.from_text(KeyRing.new_key())), networks()
        )
        try:
            answer = await transport.call(
                "PATCH", f"{base}{place}/{resource.plural}/{name}{at}", query={"fieldManager": manager}, body=patch,
                content_type="application/merge-patch+json",
            )  # fmt: skip
        finally:
            await transport.close()
        assert answer.status == 200, answer.message

    async def scale_as_other(self, name: str, replicas: int, *, manager: str = "kubectl") -> None:
        """Scale a Deployment as ``kubectl scale`` does."""
        await self.as_other(
            "apps/v1", "Deployment", name, {"spec": {"replicas": replicas}}, manager=manager, at="/scale"
        )

    async def autoscale(self, name: str, *, least: int) -> None:
        """Have a HorizontalPodAutoscaler of others raise the number of a Deployment."""
        await self.create(an_autoscaler(name, least=least, most=least + 1, namespace=self.namespace))

        async def is_raised() -> bool:
            found = await self.shown("apps/v1", "Deployment", name)
            return bool(found and found["spec"]["replicas"] == least)

        await until_true(is_raised)

    def own_name(self, text: str) -> str:
        """Return a name for a cluster-scoped object that no other test uses."""
        return f"{text}-{self.namespace}"

    def fate(self, name: str) -> Mapping[str, str]:
        """Return the annotations of a pod template whose pods never become ready: ``image`` or ``stuck``."""
        self.faults.add(
            part="program", verb=f"image stage/{name}", effect=_LAB_FATES[name], status=404, message="not found"
        )
        return {"stage": name}

    async def limited(
        self, *, verbs: Sequence[str] = (), resources: Sequence[str] = (), groups: Sequence[str] = ("",)
    ) -> Ground:
        """Return the same with credentials that are limited to the namespace: ClusterRole ``admin``, or only these verbs."""
        name = {"name": "limited"}
        account = await self.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": name})
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin"}
        if verbs:
            rules = [{"apiGroups": list(groups), "resources": list(resources), "verbs": list(verbs)}]
            await self.create({"apiVersion": _RBAC, "kind": "Role", "metadata": name, "rules": rules})
            role |= {"kind": "Role", "name": "limited"}
        subject = {"kind": "ServiceAccount", "name": "limited", "namespace": self.namespace}
        await self.create(
            {
                "apiVersion": _RBAC,
                "kind": "RoleBinding",
                "metadata": name,
                "roleRef": role,
                "subjects": [subject],
            }
        )
        note = {"kubernetes.io/service-account.name": "limited"}
        token = {"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token"}
        await self.create({**token, "metadata": {"name": "limited-token", "annotations": note}})
        assert account["metadata"]["uid"]

        async def is_filled() -> bool:
            found = await self.shown("v1", "Secret", "limited-token")
            return bool(found and found.get("data", {}).get("token"))

        await until_true(is_filled)
        found = await self.shown("v1", "Secret", "limited-token")
        assert found is not None
        text = base64.b64decode(found["data"]["token"]).decode()
        vim = self.site.vim.model_copy(update={"access_info": {"bearer_token": Secret(text)}})
        return replace(self, site=replace(self.site, vim=vim))


def an_autoscaler(name: str, *, least: int = 1, most: int = 9, kind: str = "Deployment", namespace: str = "") -> Body:
    """Return a HorizontalPodAutoscaler for the workload of its name; without metrics it holds the limits alone."""
    target = {"apiVersion": "apps/v1", "kind": kind, "name": name}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name, **({"namespace": namespace} if namespace else {})},
        "spec": {"scaleTargetRef": target, "minReplicas": least, "maxReplicas": most},
    }


@pytest.fixture
def autoscaler() -> Callable[..., Body]:
    return an_autoscaler


@pytest.fixture
async def ground(site: Any, cluster: Cluster, faults: FaultBook) -> AsyncIterator[Ground]:
    namespace = f"t{secrets.token_hex(5)}"
    key = ObjectKey("v1", "Namespace", "", namespace)
    await cluster.apply(_NAMESPACES, key, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    patient = site.with_changes(ready_timeout_s=120.0, gone_timeout_s=120.0)
    ground = Ground(patient, cluster, namespace, faults)
    await until_true(lambda: _has_account(cluster, namespace))
    yield ground
    faults.clear()
    for instance in ground.instances:
        with suppress(Exception):  # the test has failed already, or has checked the deletion itself
            await ground.delete(instance=instance)
    await cluster.delete(_NAMESPACES, key)


async def _has_account(cluster: Cluster, namespace: str) -> bool:
    return await cluster.get(_ACCOUNTS, ObjectKey("v1", "ServiceAccount", namespace, "default")) is not None


@pytest.fixture
async def volumes(ground: Any) -> AsyncIterator[VolumeGround]:
    site = ground.site
    async with volume_ground(
        site.store, site.clusters, site.vim, ground.cluster, ground.namespace, is_real=REAL is not None
    ) as found:
        yield found
