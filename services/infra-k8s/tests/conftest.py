"""A lab cluster, packages in folders, and the handlers with real adapters and an embedded store."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubevnfm_clients.outbound import AddressRules
from kubevnfm_events import Event, PackageRef, VimConnection
from kubevnfm_events.mgmt import TaskProgressed
from kubevnfm_events.objects import (
    ApplyObjects,
    DeleteObjects,
    HealObjects,
    ObjectCount,
    ObjectFacts,
    ObjectsApplied,
    ObjectsDeleted,
    ObjectsHealed,
    ObjectsRepaired,
    ObjectsReplaced,
    ObjectsScaled,
    ObjectsUpdated,
    PodFacts,
    RepairObjects,
    ReplaceObjects,
    ScaleObjects,
    UpdateObjects,
    VduTarget,
)
from kubevnfm_infra_k8s.adapters import documents, sources
from kubevnfm_infra_k8s.adapters.clusters import KubernetesClusters
from kubevnfm_infra_k8s.adapters.downloads import Downloads
from kubevnfm_infra_k8s.adapters.expressions import CelExpressions
from kubevnfm_infra_k8s.adapters.helm import HelmProgram
from kubevnfm_infra_k8s.adapters.stored_hooks import StoredHooks
from kubevnfm_infra_k8s.domain.outputs.owner import Outputs
from kubevnfm_infra_k8s.domain.ports import Cluster
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
from worlds.link_world import GivenRegionLabels, NoLinks, OneVim
from worlds.output_world import KeptOutputs
from worlds.volume_ground import NoVolumes


@pytest.fixture
def faults() -> FaultBook:
    return FaultBook()


@pytest.fixture
def ledger() -> CallLedger:
    return CallLedger()


@pytest.fixture
async def labs(faults: FaultBook, ledger: CallLedger) -> AsyncIterator[LabClusters]:
    clusters = LabClusters(faults=faults, ledger=ledger)
    await clusters.start()
    yield clusters
    await clusters.close()


@pytest.fixture
async def lab(labs: LabClusters) -> LabCluster:
    """One control plane and two workers."""
    address = next_address()
    cluster = await labs.create(
        address=address, version="v1.31.4", pod_cidr="10.244.0.0/16", service_cidr="10.96.0.0/12"
    )
    await cluster.add_node("master", address=address, control_plane=True)
    await cluster.add_node("worker1", address="127.0.0.8", control_plane=False)
    await cluster.add_node("worker2", address="127.0.0.9", control_plane=False)
    return cluster


@pytest.fixture
def vim(lab: LabCluster) -> VimConnection:
    return VimConnection(
        vim_id="vim",
        vim_type="ETSINFV.KUBERNETES.V_1",
        interface_info={"endpoint": lab.endpoint, "ssl_ca_cert": lab.ca_pem},
        access_info={"bearer_token": Secret(lab.admin_token)},
    )


@dataclass
class FolderPackages:
    """Packages that are folders from the start."""

    root: Path

    async def folder(self, package: PackageRef) -> Path:
        return self.root / package.package_id

    def stream(self, package: PackageRef, path: str) -> AsyncIterator[bytes]:
        raise NotImplementedError

    def add(self, files: Mapping[str, Any], *, package_id: str = "p1") -> PackageRef:
        """Write a package; a value is YAML text, an object, or a list of objects."""
        meta = [
            "TOSCA-Meta-File-Version: 1.0\nCSAR-Version: 1.1\nCreated-by: t\nEntry-Definitions: Definitions/v.yaml\n"
        ]
        folder = self.root / package_id
        for name, content in {"Definitions/v.yaml": "tosca_definitions_version: x\n", **files}.items():
            text = (
                content
                if isinstance(content, str)
                else yaml.safe_dump_all(content if isinstance(content, list) else [content], sort_keys=False)
            )
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            digest = hashlib.sha256(text.encode()).hexdigest()
            meta.append(f"Name: {name}\nContent-Type: application/yaml\nAlgorithm: SHA-256\nHash: {digest}\n")
        (folder / "TOSCA-Metadata").mkdir(exist_ok=True)
        (folder / "TOSCA-Metadata" / "TOSCA.meta").write_text("\n".join(meta))
        return self.named(package_id)

    @staticmethod
    def named(package_id: str) -> PackageRef:
        return PackageRef(package_id=package_id, vnfd_id="d1")


@dataclass
class ClockAheadOnceSaid:
    """A clock that is an hour ahead once the progress has said a text: a time limit ends then, on a machine of any speed."""

    progress: Sequence[TaskProgressed]
    text: str

    def now(self) -> datetime:
        is_said = any(self.text in str(each.message) for each in self.progress)
        return datetime.now(UTC) + timedelta(hours=is_said)


@dataclass
class Site:
    """infra-k8s on a lab cluster as seen by its callers: commands in, events out, calls repeated until the end."""

    handlers: ObjectHandlers
    packages: FolderPackages
    vim: VimConnection
    store: SqliteStore
    clusters: KubernetesClusters
    identities: GivenIdentities
    charts: GivenCharts
    progress: list[TaskProgressed] = field(default_factory=list)
    step: str = "apply"
    deadline: datetime | None = None
    """The deadline of every command."""
    named: VimConnection | None = None
    """Commands have it in the place of the connection."""

    def context(self, *, operation: str = "op1", attempt: int = 1) -> StepContext:
        async def publish(event: Event) -> None:
            assert isinstance(event, TaskProgressed)
            self.progress.append(event)

        return StepContext(
            message_id=f"{operation}/{self.step}/{attempt}",
            operation_id=operation,
            step_id=self.step,
            attempt=attempt,
            subject="i1",
            deadline=self.deadline,
            fencing=1,
            publish=publish,
        )

    async def apply(
        self,
        files: Mapping[str, Any],
        *,
        def_files: Sequence[str] | None = None,
        instance: str = "i1",
        operation: str = "op1",
        attempt: int = 1,
        vdus: Sequence[VduTarget] = (),
        **more: Any,
    ) -> ObjectsApplied:
        package = self.packages.add(files, package_id=f"p-{instance}")
        command = ApplyObjects(
            vnf_instance_id=instance,
            package=package,
            vim=self.named or self.vim,
            def_files=tuple(def_files if def_files is not None else files),
            vdus=tuple(vdus),
            **more,
        )
        while True:
            outcome = await self.handlers.apply_objects(command, self.context(operation=operation, attempt=attempt))
            if isinstance(outcome, Done):
                assert isinstance(outcome.event, ObjectsApplied)
                return outcome.event

    async def update(
        self,
        files: Mapping[str, Any],
        *,
        def_files: Sequence[str],
        config_files: Sequence[str] = (),
        package_id: str = "p-after",
        operation: str = "op2",
        **more: Any,
    ) -> ObjectsUpdated:
        """Change instance ``i1``, made from package ``p-i1``, to these files of another package."""
        self.step = "update"
        package = self.packages.add(files, package_id=package_id) if files else self.packages.named(package_id)
        command = UpdateObjects(
            vnf_instance_id="i1",
            package=package,
            vim=self.named or self.vim,
            def_files=tuple(def_files),
            config_files=tuple(config_files),
            before=self.packages.named("p-i1"),
            namespace="default",
            **more,
        )
        while True:
            outcome = await self.handlers.update_objects(command, self.context(operation=operation))
            if isinstance(outcome, Done):
                assert isinstance(outcome.event, ObjectsUpdated)
                return outcome.event

    async def scale(
        self, counts: Mapping[ObjectFacts, int], *, instance: str = "i1", operation: str = "op2", **more: Any
    ) -> ObjectsScaled:
        """Bring objects to these numbers of replicas."""
        objects = [
            ObjectCount(api_version=one.api_version, kind=one.kind, namespace=one.namespace, name=one.name, count=count)
            for one, count in counts.items()
        ]
        return await self.scale_to(objects, instance=instance, operation=operation, **more)

    async def scale_to(
        self, objects: Sequence[ObjectCount], *, instance: str = "i1", operation: str = "op2", **more: Any
    ) -> ObjectsScaled:
        """Bring objects, or parts of a topology, to their numbers of replicas."""
        self.step = "scale"
        command = ScaleObjects(vnf_instance_id=instance, vim=self.named or self.vim, objects=tuple(objects), **more)
        while True:
            outcome = await self.handlers.scale_objects(command, self.context(operation=operation))
            if isinstance(outcome, Done):
                assert isinstance(outcome.event, ObjectsScaled)
                return outcome.event

    async def heal(
        self,
        pods: Sequence[PodFacts],
        *,
        def_files: Sequence[str] = (),
        instance: str = "i1",
        namespace: str = "default",
        operation: str = "op2",
        **more: Any,
    ) -> ObjectsHealed:
        """Replace pods of an instance."""
        self.step = "heal"
        command = HealObjects(
            vnf_instance_id=instance, package=self.packages.named(f"p-{instance}"), vim=self.named or self.vim, def_files=tuple(def_files),
            namespace=namespace, pods=tuple(pods), **more,
        )  # fmt: skip
        while True:
            outcome = await self.handlers.heal_objects(command, self.context(operation=operation))
            if isinstance(outcome, Done):
                assert isinstance(outcome.event, ObjectsHealed)
                return outcome.event

    async def replace(
        self,
        files: Mapping[str, Any],
        *,
        def_files: Sequence[str] | None = None,
        package_id: str = "p-after",
        instance: str = "i1",
        namespace: str = "default",
        operation: str = "op2",
        attempt: int = 1,
        **more: Any,
    ) -> ObjectsReplaced:
        """Change an instance to the manifests of another package."""
        self.step = "replace"
        package = self.packages.add(files, package_id=package_id)
        command = ReplaceObjects(
            vnf_instance_id=instance, package=package, vim=self.named or self.vim, namespace=namespace,
            def_files=tuple(files if def_files is None else def_files), **more,
        )  # fmt: skip
        while True:
            outcome = await self.handlers.replace_objects(command, self.context(operation=operation, attempt=attempt))
            if isinstance(outcome, Done):
                assert isinstance(outcome.event, ObjectsReplaced)
                return outcome.event

    async def repair(
        self,
        *,
        def_files: Sequence[str],
        instance: str = "i1",
        namespace: str = "default",
        operation: str = "op2",
        attempt: int = 1,
        package_id: str = "",
        **more: Any,
    ) -> ObjectsRepaired:
        """Apply again what others have deleted or changed of an instance."""
        self.step = "repair"
        package = self.packages.named(package_id or f"p-{instance}")
        command = RepairObjects(
            vnf_instance_id=instance, package=package, vim=self.named or self.vim, def_files=tuple(def_files),
            namespace=namespace, **more,
        )  # fmt: skip
        while True:
            outcome = await self.handlers.repair_objects(command, self.context(operation=operation, attempt=attempt))
            if isinstance(outcome, Done):
                assert isinstance(outcome.event, ObjectsRepaired)
                return outcome.event

    async def delete(self, *, instance: str = "i1", operation: str = "op2", **more: Any) -> ObjectsDeleted:
        self.step = "delete"
        command = DeleteObjects(vnf_instance_id=instance, vim=self.named or self.vim, **more)
        while True:
            outcome = await self.handlers.delete_objects(command, self.context(operation=operation))
            if isinstance(outcome, Done):
                assert isinstance(outcome.event, ObjectsDeleted)
                return outcome.event

    def with_changes(self, **changes: Any) -> Site:
        return replace(self, handlers=replace(self.handlers, **changes))

    def registered(self) -> Site:
        """Return the site whose commands name the VIM, which the registry knows."""
        assert self.vim.vim_id is not None
        vims = OneVim({self.vim.vim_id: self.vim})
        return replace(self.with_changes(vims=vims), named=VimConnection(vim_id=self.vim.vim_id))

    def timed_out_once_said(self, text: str) -> Site:
        """Return the site whose time limits are over once the progress has said the text."""
        return self.with_changes(clock=ClockAheadOnceSaid(self.progress, text), wait_s=0.2)

    def cluster(self) -> Any:
        """Return the service's own connection to the cluster."""
        return self.clusters.cluster(self.vim)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    async with SqliteStore.open(tmp_path / "documents.db") as store:
        yield store


@pytest.fixture
async def site(tmp_path: Path, vim: VimConnection, store: SqliteStore) -> AsyncIterator[Site]:
    ring = KeyRing.from_text(KeyRing.new_key())
    packages, identities, charts = FolderPackages(tmp_path / "packages"), GivenIdentities(), GivenCharts()
    for collection, indexes in {**documents.INDEXES, sources.FETCHED: sources.INDEXES}.items():
        await store.ensure_indexes(collection, indexes)
    async with (
        KubernetesClusters.open(ring, networks()) as clusters,
        Downloads.open(AddressRules.from_text("127.0.0.0/8")) as downloads,
        health_check_owner(store, ring, clusters, {str(vim.vim_id): vim}) as checks,
    ):
        clock, releases = SystemClock(), documents.StoredReleases(store)
        # The tests must run on every kernel.
        helm = HelmProgram(str(tmp_path / "helm"), ring, Limits(timeout_s=20, trust_packages=True))
        handlers = ObjectHandlers(
            clusters=clusters,
            vims=GivenVims(),
            identities=identities,
            key_ring=ring,
            sources=sources.PackageSources(packages, downloads, charts, helm, store, ring),
            releases=releases,
            shared=documents.StoredSharedObjects(store),
            start_times=documents.StoredStartTimes(store, clock),
            expressions=CelExpressions(),
            deletions=documents.StoredDeletions(store, clock),
            policy=PolicyGate(policies_of("warn"), releases),
            links=NoLinks(),
            volumes=NoVolumes(),
            outputs=Outputs(KeptOutputs(), clock),
            hooks=StoredHooks(store, ring),
            checks=checks,
            region_labels=GivenRegionLabels(),
            clock=clock,
            wait_s=5.0,
            settle_s=0.1,
            ready_timeout_s=20.0,
            gone_timeout_s=20.0,
        )
        yield Site(handlers, packages, vim, store, clusters, identities, charts)


@pytest.fixture
async def cluster(site: Site) -> AsyncIterator[Cluster]:
    async with site.cluster() as cluster:
        yield cluster


def an_object(
    kind: str, name: str, *, api_version: str = "v1", namespace: str | None = None, **rest: Any
) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name, **({"namespace": namespace} if namespace else {})}
    metadata |= rest.pop("metadata", {})
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **rest}


def a_workload(kind: str = "Deployment", name: str = "web", *, replicas: int = 2, **spec: Any) -> dict[str, Any]:
    pod = {"containers": [{"name": "main", "image": spec.pop("image", "nginx:1.27")}]}
    pod |= spec.pop("pod", {})
    template = {"metadata": {"labels": {"app": name}}, "spec": pod}
    counted = {} if kind == "DaemonSet" else {"replicas": replicas}
    full = {**counted, "selector": {"matchLabels": {"app": name}}, "template": template, **spec}
    return an_object(kind, name, api_version="apps/v1", spec=full)


@pytest.fixture
def make() -> Callable[..., dict[str, Any]]:
    return an_object


@pytest.fixture
def workload() -> Callable[..., dict[str, Any]]:
    return a_workload
