"""infra-k8s on a lab cluster in which Cluster API is installed, for tests of workload clusters."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from kubevnfm_events.capi import (
    AddonsApplied,
    ApplyAddons,
    AwaitCluster,
    CheckMachines,
    ClusterReached,
    ClusterStage,
    ClusterUpdated,
    MachineFacts,
    MachineReplaced,
    MachinesChecked,
    ReplaceMachine,
    RollOutBegun,
    RollOutMachines,
    UpdateCluster,
    UpdatePart,
)
from kubevnfm_events.credentials import WorkloadCluster
from kubevnfm_events.objects import ObjectCount, ObjectFacts, VduTarget
from kubevnfm_infra_k8s.domain.workload_clusters.cluster_watches import ClusterWatches
from kubevnfm_infra_k8s.handlers.clusters import CapiHandlers
from kubevnfm_infra_k8s.handlers.machines import MachineHandlers
from kubevnfm_lab.kubernetes import LabCluster
from kubevnfm_lab.kubernetes.controllers.capi.objects import add_finalizer
from kubevnfm_lab.kubernetes.objects import Key, value_at
from kubevnfm_worker.outcome import Done
from patience import until_true

SAMPLES = Path(__file__).parents[3] / "deploy" / "samples"
VDUS = (
    VduTarget(vdu_id="controlPlane", name="workload-control-plane", replicas=1),
    VduTarget(vdu_id="worker", name="workload-md-0", replicas=2),
)
CLASS_VDUS = (
    VduTarget(vdu_id="controlPlane", name="controlPlane", replicas=1),
    VduTarget(vdu_id="worker", name="md-0", replicas=2),
)
MACHINES = "machines.cluster.x-k8s.io"
ADDON = "Files/addons/cni.yaml"


def files_of(sample: str, *, addons: bool = False) -> dict[str, str]:
    """The manifests of a sample by their path in the package, the class of a cluster before the cluster."""
    folder = SAMPLES / sample
    found = sorted((folder / "Files" / ("addons" if addons else "kubernetes")).glob("*.yaml"))
    return {str(path.relative_to(folder)): path.read_text() for path in found}


@dataclass
class Management:
    """infra-k8s on a lab cluster in which Cluster API is installed."""

    site: Any
    handlers: CapiHandlers
    lab: LabCluster
    version: str = "v1beta2"
    progress: list[Any] = field(default_factory=list)

    def cluster_of(self, name: str = "workload", namespace: str = "default") -> WorkloadCluster:
        return WorkloadCluster(name=name, namespace=namespace, api_version=f"cluster.x-k8s.io/{self.version}")

    async def apply(self, sample: str = "capi-workload", *, instance: str = "i1", **more: Any) -> Any:
        self.version = "v1beta1" if sample.endswith("v1beta1") else "v1beta2"
        more = {"vdus": self.vdus_of(sample), **more}
        files = more.pop("files", None) or files_of(sample)
        package = {**files, **files_of("capi-workload", addons=True)}
        self.site.step = "apply"
        return await self.site.apply(package, def_files=list(files), instance=instance, cluster_apart=True, **more)

    async def wait(self, stage: ClusterStage, *, instance: str = "i1", attempt: int = 1, **more: Any) -> ClusterReached:
        self.site.step = f"await/{stage}"
        command = AwaitCluster(
            vnf_instance_id=instance,
            vim=self.site.vim,
            cluster=more.pop("cluster", self.cluster_of()),
            stage=stage,
            **{"vdus": VDUS, **more},
        )
        while True:
            outcome = await self.handlers.await_cluster(command, self.site.context(operation=instance, attempt=attempt))
            if isinstance(outcome, Done):
                assert isinstance(outcome.event, ClusterReached)
                return outcome.event

    async def addons(self, *names: str, instance: str = "i1", **more: Any) -> AddonsApplied:
        """Apply addons of the package ``p-<instance>``, the sample's by default; ``more``: another package or part."""
        self.site.step = f"addons/{more.get('part', 'apply')}"
        operation = more.pop("operation", instance)
        facts = {"package": self.site.packages.named(f"p-{instance}"), "def_files": names or (ADDON,)}
        command = ApplyAddons(
            vnf_instance_id=instance, vim=self.site.vim, cluster=self.cluster_of(), **{**facts, **more}
        )
        while True:
            outcome = await self.handlers.apply_addons(command, self.site.context(operation=operation))
            if isinstance(outcome, Done):
                assert isinstance(outcome.event, AddonsApplied)
                return outcome.event

    async def update(
        self, files: Mapping[str, str], part: UpdatePart, *, operation: str = "op2", **more: Any
    ) -> ClusterUpdated:
        """Do one part of an update to these files."""
        self.site.step = f"update/{part}"
        command = UpdateCluster(
            vnf_instance_id="i1", vim=self.site.vim, cluster=self.cluster_of(),
            package=self.site.packages.add(files, package_id=f"p-{operation}"), def_files=tuple(files),
            namespace="default", part=part, **{"vdus": VDUS, **more},
        )  # fmt: skip
        handlers = self.site.handlers
        while True:
            outcome = await handlers.update_cluster(command, self.site.context(operation=operation))
            if isinstance(outcome, Done):
                assert isinstance(outcome.event, ClusterUpdated)
                return outcome.event

    async def check(self, *chosen: MachineFacts, **more: Any) -> MachinesChecked:
        """Have the Machines to replace found; ``chosen``: those that the request of a heal names."""
        self.site.step = "check_machines"
        command = CheckMachines(
            vnf_instance_id="i1", vim=self.site.vim, cluster=self.cluster_of(), chosen=chosen, **{"vdus": VDUS, **more}
        )
        outcome = await self._machine_handlers.check_machines(command, self.site.context(operation="heal"))
        assert isinstance(outcome, Done)
        assert isinstance(outcome.event, MachinesChecked)
        return outcome.event

    async def replaced(self, machine: MachineFacts, known: Sequence[MachineFacts], **more: Any) -> Any:
        """Return the answer to one call for the replacement of a Machine."""
        self.site.step = f"replace_machine/{machine.name}"
        command = ReplaceMachine(
            vnf_instance_id="i1", vim=self.site.vim, cluster=self.cluster_of(), machine=machine,
            known=tuple(each.uid for each in known), **{"wait_timeout_s": 60.0, "vdus": VDUS, **more},
        )  # fmt: skip
        return await self._machine_handlers.replace_machine(command, self.site.context(operation="heal"))

    async def replace(self, machine: MachineFacts, known: Sequence[MachineFacts], **more: Any) -> MachineReplaced:
        """Have a Machine replaced; return the Machines afterwards."""
        while True:
            outcome = await self.replaced(machine, known, **more)
            if isinstance(outcome, Done):
                assert isinstance(outcome.event, MachineReplaced)
                return outcome.event

    @property
    def _machine_handlers(self) -> MachineHandlers:
        return MachineHandlers(**vars(self.handlers))

    def deletions(self) -> list[str]:
        """Note the name of each Machine whose deletion begins from now on; return the list, which grows."""
        found: list[str] = []

        def look(change: Any) -> None:
            if change.resource == MACHINES and change.obj["metadata"].get("deletionTimestamp"):
                # Otherwise the garbage collector would take the server away before Cluster API has drained the node, and
                # before the control plane has removed its member of etcd.
                assert "foregroundDeletion" not in change.obj["metadata"]["finalizers"]
                found.append(change.key.name)

        self.lab.store.subscribe(look)
        return found

    async def roll_out(self, after: str) -> tuple[str, ...]:
        self.site.step = "roll-out"
        command = RollOutMachines(
            vnf_instance_id="i1", vim=self.site.vim, cluster=self.cluster_of(), roll_out_after=after
        )
        outcome = await self.handlers.roll_out_machines(command, self.site.context(operation="op2"))
        assert isinstance(outcome, Done)
        assert isinstance(outcome.event, RollOutBegun)
        return outcome.event.owners

    async def built(self, sample: str = "capi-workload", **more: Any) -> ClusterReached:
        """Return the cluster of a sample, available: one Machine of the control plane, and two workers as written."""
        vdus = {name: value for name, value in more.items() if name == "vdus"}
        await self.apply(sample, **more)
        await self.wait("initialized", **vdus)
        await self.addons()
        return await self.wait("available", **vdus)

    def with_wait(self, seconds: float) -> CapiHandlers:
        """Return the handlers with another time after which they give their worker back."""
        return replace(self.handlers, wait_s=seconds)

    @staticmethod
    def vdus_of(sample: str) -> tuple[VduTarget, ...]:
        """Return the VDUs of a sample."""
        return CLASS_VDUS if sample.endswith("class") else VDUS

    async def scale_control_plane(self, count: int) -> None:
        """Ask for another number of Machines of the control plane, and wait until its controller has seen that."""
        key = Key("default", "workload-control-plane")
        planes = "kubeadmcontrolplanes.controlplane.cluster.x-k8s.io"
        self.lab.registry.change(planes, key, lambda plane: plane["spec"].update(replicas=count))

        async def is_ready() -> bool:
            return bool(value_at(self.lab.store.get(planes, key), "status", "readyReplicas") == count)

        await until_true(is_ready, timeout_s=60, pause_s=0.02)

    def hold(self, resource: str, name: str, finalizer: str) -> None:
        """Add a finalizer that no controller removes."""
        add_finalizer(self.lab.plane, resource, Key("default", name), finalizer)

    async def scale_workers(self, count: int, *leaving: MachineFacts, operation: str = "op2", **more: Any) -> None:
        """Ask for another number of workers; ``leaving``: those that go first."""
        version = f"cluster.x-k8s.io/{self.version}"
        workers = ObjectFacts(
            api_version=version, kind="MachineDeployment", namespace="default", name="workload-md-0", uid=""
        )
        chosen = tuple(map(self._as_object, leaving))
        await self.site.scale({workers: count}, operation=operation, leaving=chosen, **more)

    async def scale_topology(
        self, counts: Mapping[str, int], *leaving: MachineFacts, operation: str = "op2", **more: Any
    ) -> None:
        """Ask for other numbers in parts of the topology of the Cluster; ``leaving``: the Machines that go first."""
        version = f"cluster.x-k8s.io/{self.version}"
        parts = [
            ObjectCount(
                api_version=version, kind="Cluster", namespace="default", name="workload", count=count, topology=name
            )
            for name, count in counts.items()
        ]
        await self.site.scale_to(parts, operation=operation, leaving=tuple(map(self._as_object, leaving)), **more)

    def _as_object(self, machine: MachineFacts) -> ObjectFacts:
        return ObjectFacts(
            api_version=f"cluster.x-k8s.io/{self.version}", kind="Machine", namespace="default", name=machine.name,
            uid=machine.uid,
        )  # fmt: skip

    async def health_check(self, selector: dict[str, Any]) -> None:
        """Add a MachineHealthCheck for the cluster."""
        spec = {"clusterName": "workload", "selector": selector}
        check = {"metadata": {"name": "workers", "namespace": "default"}, "spec": spec}
        self.lab.plane.create("machinehealthchecks.cluster.x-k8s.io", check)

    @asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        """Hold open the shared watches of the cluster, as a step that runs beside would."""
        command = CheckMachines(vnf_instance_id="i1", vim=self.site.vim, cluster=self.cluster_of(), vdus=VDUS)
        async with self.handlers.viewed(command):
            yield

    async def seen(self, type: str, status: str, machine: str) -> None:
        """Wait until a Machine has a condition of this status."""

        async def is_so() -> bool:
            conditions = value_at(self.lab.store.get(MACHINES, Key("default", machine)), "status", "conditions")
            return (type, status) in [(each["type"], each["status"]) for each in conditions]

        await until_true(is_so, timeout_s=60, pause_s=0.02)

    def messages(self) -> Sequence[str]:
        return [str(each.message) for each in self.site.progress]


@cache
def _definitions() -> Mapping[str, str]:
    """Return the definitions of the sample by file. They are some thousand lines, which takes a while to read."""
    found: dict[str, str] = {}
    for name, text in files_of("capi-management").items():
        documents = [each for each in yaml.safe_load_all(text) if each["kind"] == "CustomResourceDefinition"]
        for each in documents:
            # Its certificate is not installed here; the lab converts without a webhook.
            each["spec"].pop("conversion", None)
        found[name] = yaml.safe_dump_all(documents)
    return found


@asynccontextmanager
async def managed(site: Any, lab: LabCluster) -> AsyncIterator[Management]:
    """Yield the management cluster: the definitions of Cluster API are applied to the lab cluster."""
    await site.apply(_definitions(), instance="mgmt", operation="op0")
    async with ClusterWatches.open(site.clusters) as watches:
        yield Management(site, CapiHandlers(**vars(site.handlers), watches=watches), lab)
