"""Packages that ask a cluster for more than a CNF needs: the policy warns, or refuses before anything is made."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubevnfm_clients.outbound import AddressRules
from kubevnfm_events import Event, PackageRef, VimConnection
from kubevnfm_events.mgmt import TaskProgressed
from kubevnfm_events.objects import ApplyObjects
from kubevnfm_infra_k8s.adapters import documents, sources
from kubevnfm_infra_k8s.adapters.clusters import KubernetesClusters
from kubevnfm_infra_k8s.adapters.downloads import Downloads
from kubevnfm_infra_k8s.adapters.expressions import CelExpressions
from kubevnfm_infra_k8s.adapters.helm import HelmProgram
from kubevnfm_infra_k8s.adapters.stored_hooks import StoredHooks
from kubevnfm_infra_k8s.domain.errors import PolicyViolated
from kubevnfm_infra_k8s.domain.outputs.owner import Outputs
from kubevnfm_infra_k8s.handlers.objects import ObjectHandlers
from kubevnfm_infra_k8s.handlers.policy_gate import PolicyGate
from kubevnfm_infra_k8s.policy_settings import policies_of
from kubevnfm_kit.clock import SystemClock
from kubevnfm_lab.faults import CallLedger, FaultBook
from kubevnfm_lab.kubernetes import LabCluster, LabClusters
from kubevnfm_sandbox.runs import Limits
from kubevnfm_secrets import KeyRing, Secret
from kubevnfm_store.sqlite.store import SqliteStore
from kubevnfm_worker.outcome import Done, StepContext
from servers.loopback import next_address
from servers.vnf_networks import networks
from worlds.given_charts import GivenCharts
from worlds.given_identities import GivenIdentities
from worlds.given_vims import GivenVims
from worlds.health_checks import health_check_owner
from worlds.link_world import GivenRegionLabels, NoLinks
from worlds.output_world import KeptOutputs
from worlds.volume_ground import NoVolumes

FILE = "Files/cnf.yaml"


@dataclass
class Folder:
    """One package, in a folder."""

    root: Path

    async def folder(self, _: PackageRef) -> Path:
        return self.root

    def stream(self, package: PackageRef, path: str) -> AsyncIterator[bytes]:
        raise NotImplementedError

    def write(self, objects: Sequence[dict[str, Any]]) -> None:
        text = yaml.safe_dump_all(objects)
        digest = hashlib.sha256(text.encode()).hexdigest()
        head = "TOSCA-Meta-File-Version: 1.0\nCSAR-Version: 1.1\nCreated-by: t\nEntry-Definitions: Definitions/v.yaml\n"
        meta = f"{head}\nName: {FILE}\nContent-Type: application/yaml\nAlgorithm: SHA-256\nHash: {digest}\n"
        for name, content in {
            FILE: text,
            "TOSCA-Metadata/TOSCA.meta": meta,
            "Definitions/v.yaml": "tosca_definitions_version: x\n",
        }.items():
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).write_text(content)


@dataclass
class Victim:
    """A cluster, and infra-k8s with a policy."""

    lab: LabCluster
    handlers: ObjectHandlers
    packages: Folder
    shown: list[TaskProgressed] = field(default_factory=list)

    async def apply(self, *objects: dict[str, Any], instance: str = "attacker") -> None:
        """Apply the objects as a CNF of their own."""
        self.packages.write(objects)

        async def publish(event: Event) -> None:
            assert isinstance(event, TaskProgressed)
            self.shown.append(event)

        context = StepContext(
            message_id=instance,
            operation_id=f"op-{instance}",
            step_id="apply",
            attempt=1,
            subject=instance,
            deadline=None,
            fencing=1,
            publish=publish,
        )
        access = {"bearer_token": Secret(self.lab.admin_token)}
        known = {"endpoint": self.lab.endpoint, "ssl_ca_cert": self.lab.ca_pem}
        command = ApplyObjects(
            vnf_instance_id=instance,
            package=PackageRef(package_id="p", vnfd_id="d"),
            vim=VimConnection(vim_type="ETSINFV.KUBERNETES.V_1", interface_info=known, access_info=access),
            def_files=(FILE,),
            multi_namespace=True,
        )
        while not isinstance(await self.handlers.apply_objects(command, context), Done):
            pass

    @property
    def objects(self) -> dict[str, Any]:
        found: dict[str, Any] = self.lab.inventory()["objects"]
        return found

    @property
    def warnings(self) -> str:
        return "\n".join(one.message for one in self.shown if one.task == "policy")


@asynccontextmanager
async def victim(folder: Path, policy: str) -> AsyncIterator[Victim]:
    """Yield a cluster of two nodes, and infra-k8s with this setting."""
    labs, ring, clock = (
        LabClusters(faults=FaultBook(), ledger=CallLedger()),
        KeyRing.from_text(KeyRing.new_key()),
        SystemClock(),
    )
    await labs.start()
    try:
        address = next_address()
        lab = await labs.create(
            address=address, version="v1.34.1", pod_cidr="10.244.0.0/16", service_cidr="10.96.0.0/12"
        )
        await lab.add_node("master", address=address, control_plane=True)
        await lab.add_node("worker", address="127.0.0.8", control_plane=False)
        async with (
            SqliteStore.open(folder / "documents.db") as store,
            KubernetesClusters.open(ring, networks()) as clusters,
            Downloads.open(AddressRules()) as downloads,
            health_check_owner(store, ring, clusters, {}) as checks,
        ):
            for collection, indexes in {**documents.INDEXES, sources.FETCHED: sources.INDEXES}.items():
                await store.ensure_indexes(collection, indexes)
            packages, releases = Folder(folder / "package"), documents.StoredReleases(store)
            helm = HelmProgram("no-helm", ring, Limits())
            handlers = ObjectHandlers(
                clusters=clusters,
                vims=GivenVims(),
                identities=GivenIdentities(),
                key_ring=ring,
                sources=sources.PackageSources(packages, downloads, GivenCharts(), helm, store, ring),
                releases=releases,
                shared=documents.StoredSharedObjects(store),
                start_times=documents.StoredStartTimes(store, clock),
                deletions=documents.StoredDeletions(store, clock),
                policy=PolicyGate(policies_of(policy), releases),
                links=NoLinks(),
                volumes=NoVolumes(),
                outputs=Outputs(KeptOutputs(), clock),
                hooks=StoredHooks(store, ring),
                checks=checks,
                region_labels=GivenRegionLabels(),
                expressions=CelExpressions(),
                clock=clock,
                settle_s=0.1,
            )
            yield Victim(lab, handlers, packages)
    finally:
        await labs.close()


def an_object(kind: str, name: str, api_version: str = "v1", **body: Any) -> dict[str, Any]:
    metadata = {"name": name, **body.pop("metadata", {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **body}


def a_deployment(**pod: Any) -> dict[str, Any]:
    labels = {"app": "web"}
    container = {"name": "main", "image": "nginx:1.27", **pod.pop("container", {})}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container], **pod}}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    return an_object("Deployment", "web", "apps/v1", spec=spec)


RBAC = "rbac.authorization.k8s.io/v1"
ALL = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
CONTAINER = r"Deployment default/web: spec\.template\.spec\.containers\[0\]\.securityContext\."
ATTACKS: dict[str, tuple[list[dict[str, Any]], str]] = {
    "host-path": (
        [a_deployment(volumes=[{"name": "v", "hostPath": {"path": "/etc/kubernetes"}}])],
        r"hostPathVolumes: Deployment default/web: spec\.template\.spec\.volumes\[0\]\.hostPath \(/etc/kubernetes\)",
    ),
    "privileged": (
        [a_deployment(container={"securityContext": {"privileged": True}})],
        rf"privileged: {CONTAINER}privileged \(true\)",
    ),
    "capability": (
        [a_deployment(container={"securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}}})],
        rf"capabilities_baseline: {CONTAINER}capabilities\.add \(SYS_ADMIN\)",
    ),
    "host-network": ([a_deployment(hostNetwork=True)], r"hostNamespaces: .*spec\.hostNetwork \(true\)"),
    "cluster-admin": (
        [
            an_object(
                "ClusterRoleBinding",
                "mine",
                RBAC,
                roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
                subjects=[{"kind": "ServiceAccount", "name": "default", "namespace": "default"}],
            )
        ],
        r"clusterAdmin: ClusterRoleBinding mine: roleRef \(ClusterRole cluster-admin\)",
    ),
    "own-admin": (
        [an_object("ClusterRole", "mine", RBAC, rules=[ALL])],
        r"clusterAdmin: ClusterRole mine: rules\[0\] \(allows everything\)",
    ),
    "kube-system": (
        [an_object("ConfigMap", "mine", metadata={"namespace": "kube-system"})],
        r"namespace: ConfigMap kube-system/mine: metadata\.namespace \(kube-system\)",
    ),
}


async def test_strict_refuses_each_attack_before_anything_is_made(tmp_path: Path) -> None:
    """CR-126."""
    async with victim(tmp_path, "strict") as attacked:
        before = attacked.objects
        for name, (objects, said) in ATTACKS.items():
            with pytest.raises(PolicyViolated, match=said) as error:
                await attacked.apply(an_object("ConfigMap", "harmless"), *objects, instance=name)
            assert error.value.status == 422
            assert error.value.made_nothing
            assert len(str(error.value)) < 4096
        assert attacked.objects == before


async def test_strict_applies_what_asks_for_nothing_special(tmp_path: Path) -> None:
    async with victim(tmp_path, "strict") as attacked:
        space = an_object("Namespace", "cnf-a")
        inside = an_object("ConfigMap", "settings", metadata={"namespace": "cnf-a"})
        await attacked.apply(a_deployment(), space, inside, instance="good")
        assert attacked.warnings == ""
        assert "Deployment/default/web" in attacked.objects
        with pytest.raises(
            PolicyViolated, match=r"otherVnfNamespace: ConfigMap cnf-a/settings: .*used by VNF instance good"
        ):
            await attacked.apply(inside)


async def test_by_default_attacks_are_applied_and_shown_in_the_view(tmp_path: Path) -> None:
    """CR-126."""
    async with victim(tmp_path, "warn") as attacked:
        await attacked.apply(*ATTACKS["privileged"][0], *ATTACKS["own-admin"][0])
        assert {"Deployment/default/web", "ClusterRole//mine"} <= attacked.objects.keys()
        assert attacked.warnings.startswith("warning: 3 findings of cnf_policy (baseline): privileged: ")
        assert "clusterScoped: ClusterRole mine: kind" in attacked.warnings
