"""Workload clusters of Cluster API: the wait for one, and the objects that are applied inside it (capi.md 7 and 8)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from kubevnfm_events.base import Command, Event, Facts
from kubevnfm_events.common import PackageRef, VimConnection
from kubevnfm_events.credentials import WorkloadCluster
from kubevnfm_events.objects import LeftObject, ObjectsApplied, ObjectsOrder, Variables, VduTarget

ClusterStage = Literal["initialized", "available"]


class MachineFacts(Facts):
    """A Machine that implements a VDU: one VNFC."""

    vdu_id: str | None = None
    """None: the VNFD has no VDU for its control plane, MachineDeployment or MachinePool."""
    name: str
    namespace: str
    uid: str
    owner_kind: str
    """KubeadmControlPlane, MachineDeployment or MachinePool."""
    owner: str | None = None
    """The name of that object, which makes another Machine if this one is deleted; None: not known."""
    node: str | None = None
    provider_id: str | None = None
    version: str | None = None
    addresses: tuple[str, ...] = ()


class ClusterTimeouts(Facts):
    """``additionalParams.capi.timeouts``: how long each phase may take, in seconds."""

    infrastructure: float = Field(default=900.0, gt=0)
    control_plane: float = Field(default=1800.0, gt=0)
    workers: float = Field(default=1800.0, gt=0)
    delete: float = Field(default=1800.0, gt=0)


class ClusterReached(Event, kind="infra.cluster.reached"):
    """A workload cluster has come as far as was asked for."""

    cluster: WorkloadCluster
    uid: str
    endpoint: str
    """``https://host:port`` of its API server."""
    stage: ClusterStage
    machines: tuple[MachineFacts, ...] = ()


class ClusterCommand(Command, service="infra-k8s"):
    """The attributes of the commands on a workload cluster."""

    vnf_instance_id: str
    vim: VimConnection
    """The management cluster."""
    cluster: WorkloadCluster


class AwaitCluster(ClusterCommand, kind="infra.k8s.await_cluster", reply=ClusterReached):
    """Wait for a workload cluster; a repeat continues."""

    stage: ClusterStage
    """``initialized``: the API server has answered; ``available``: control plane and workers are complete too."""
    timeouts: ClusterTimeouts = ClusterTimeouts()
    vdus: tuple[VduTarget, ...] = ()
    is_settled: bool = False
    """Also wait until no Machine is being deleted, as after a scale in."""
    made_after: str | None = None
    """RFC 3339: also wait until every Machine that was made earlier is replaced, as in a roll-out."""
    uid: str | None = None
    """The uid of the Cluster object; None: whichever has the name. One with another uid is an earlier one."""


AddonsPart = Literal["apply", "prune", "replace"]


class AddonsApplied(Event, kind="infra.addons.applied"):
    """The addons are applied inside the workload cluster; the nodes that they need may still come."""

    count: int = 0
    """How many objects the manifests have."""


class ApplyAddons(Command, kind="infra.k8s.apply_addons", service="infra-k8s", reply=AddonsApplied):
    """Apply manifests of the package inside a workload cluster, with an inventory of their own; a repeat continues."""

    vnf_instance_id: str
    vim: VimConnection
    """The management cluster, which has the Secret with the kubeconfig."""
    cluster: WorkloadCluster
    package: PackageRef
    def_files: tuple[str, ...]
    """``additionalParams.capi.addon-def-files``: package paths or URLs, in order."""
    variables: Variables | None = None
    """None: the manifests have no placeholders."""
    part: AddonsPart = "apply"
    """``apply``: apply all objects; ``prune``: delete those of the inventory that the manifests lack; ``replace``: both."""


class RollOutBegun(Event, kind="infra.cluster.roll_out_begun"):
    """Cluster API replaces every Machine of a workload cluster that was made before a time."""

    owners: tuple[str, ...] = ()
    """The KubeadmControlPlane and the MachineDeployments, as ``<kind> <name>``."""


class RollOutMachines(ClusterCommand, kind="infra.k8s.roll_out_machines", reply=RollOutBegun):
    """Have Cluster API replace the Machines of a workload cluster without another change; a repeat changes nothing."""

    roll_out_after: str
    """RFC 3339, whole seconds: Machines that were made before it are replaced. A repeat has the same value."""


class MachinesChecked(Event, kind="infra.machines.checked"):
    """The Machines of a workload cluster, and which of them are to be replaced."""

    machines: tuple[MachineFacts, ...] = ()
    """All that are not being deleted."""
    chosen: tuple[MachineFacts, ...] = ()
    """Those to replace, in this order: workers first. They exist, and the control plane can lose them."""


class CheckMachines(ClusterCommand, kind="infra.k8s.check_machines", reply=MachinesChecked):
    """Find the Machines to replace; nothing is changed."""

    chosen: tuple[MachineFacts, ...] = ()
    """The Machines that the request names; none: those that are not healthy."""
    is_forced: bool = False
    """Also Machines without which etcd has no majority."""
    timeouts: ClusterTimeouts = ClusterTimeouts()
    """A Machine that has not joined within the time of its phase is not healthy; until then it is being built."""
    vdus: tuple[VduTarget, ...] = ()


class MachineReplaced(Event, kind="infra.machine.replaced"):
    """A Machine is gone, and the one in its place is ready."""

    machines: tuple[MachineFacts, ...] = ()
    """All that are not being deleted."""


class ReplaceMachine(ClusterCommand, kind="infra.k8s.replace_machine", reply=MachineReplaced):
    """Have Cluster API replace a Machine; a repeat waits, because the Machine is known by its uid."""

    machine: MachineFacts
    known: tuple[str, ...] = ()
    """The uids of the Machines that existed before: others are new."""
    is_forced: bool = False
    wait_timeout_s: float = Field(gt=0)
    vdus: tuple[VduTarget, ...] = ()


UpdatePart = Literal["check", "control_plane", "all", "prune"]


class ClusterUpdated(ObjectsApplied, kind="infra.cluster.updated"):
    """A part of the update of a workload cluster is sent, or was found possible; a later step waits for its Machines."""

    version_step: str | None = None
    """The Kubernetes version that the cluster is brought to; None if it keeps the one that it has."""


class UpdateCluster(ObjectsOrder, Command, kind="infra.k8s.update_cluster", service="infra-k8s", reply=ClusterUpdated):
    """Bring the objects of a workload cluster to the manifests of another package; a repeat continues."""

    vnf_instance_id: str
    vim: VimConnection
    """The management cluster."""
    cluster: WorkloadCluster
    def_files: tuple[str, ...]
    """Package paths or URLs, in order: all that describes the cluster from now on."""
    namespace: str
    """The namespace of objects that name none."""
    part: UpdatePart
    """``check``: send nothing, only find out whether the update is possible; ``control_plane``: apply all but the workers
    whose Kubernetes version changes; ``all``: apply everything; ``prune``: delete what the manifests lack."""


class ExpectedMachines(Facts):
    """The Machines of a workload cluster as its instance shows them."""

    vnf_instance_id: str
    revision: int
    """The revision of the instance's document; the finding repeats it, and counts only if it still holds."""
    cluster: WorkloadCluster
    vdus: tuple[VduTarget, ...] = ()
    machines: tuple[MachineFacts, ...] = ()


class WatchMachines(Command, kind="infra.k8s.watch_machines", service="infra-k8s"):
    """Watch workload clusters of one management cluster until the deadline; answered by MachinesChanged once there is news."""

    vim: VimConnection
    """The management cluster."""
    expected: tuple[ExpectedMachines, ...]


class MachinesFinding(Facts):
    """A workload cluster whose Machines are not those that are expected."""

    vnf_instance_id: str
    revision: int
    machines: tuple[MachineFacts, ...] = ()
    """All that are not being deleted."""
    added: tuple[str, ...] = ()
    """Names of new Machines, such as those that a MachineHealthCheck has had made."""
    removed: tuple[str, ...] = ()
    """Names of those that are gone or are being deleted."""


class MachinesChanged(Event, kind="infra.machines.changed", by="infra-k8s"):
    """Workload clusters have other Machines than WatchMachines expected, such as new ones after a self-healing."""

    findings: tuple[MachinesFinding, ...]


class ClustersChecked(Event, kind="infra.clusters.checked"):
    """The providers of a management cluster can be deleted: it has no Clusters, or they are given up."""

    clusters: tuple[LeftObject, ...] = ()
    """The Clusters that lose their controllers, each with what Cluster API has made for it; none unless forced."""


class CheckClusters(Command, kind="infra.k8s.check_clusters", service="infra-k8s", reply=ClustersChecked):
    """Find out whether a management cluster has Clusters of anyone, except the instance's own; nothing is changed."""

    vnf_instance_id: str
    vim: VimConnection
    """The management cluster."""
    force: bool = False
    """Whether Clusters are reported and not refused; then a cluster that does not answer counts as one without any."""


class ExpectedKubeconfig(Facts):
    """The kubeconfig Secret of a workload cluster whose credentials were sent."""

    vnf_instance_id: str
    revision: int
    """The revision of the instance's document; the finding repeats it, and counts only if it still holds."""
    cluster: WorkloadCluster
    resource_version: str = ""
    """That of the Secret which was read last; "": not known, so that each is news."""


class WatchKubeconfigs(Command, kind="infra.k8s.watch_kubeconfigs", service="infra-k8s"):
    """Watch the kubeconfig Secrets of one management cluster until the deadline; answered by KubeconfigsChanged once there is
    news. Only metadata of Secrets are read.
    """

    vim: VimConnection
    """The management cluster."""
    expected: tuple[ExpectedKubeconfig, ...]


class KubeconfigFinding(Facts):
    """A kubeconfig Secret that was written since it was read; its content may be the same."""

    vnf_instance_id: str
    revision: int
    resource_version: str


class KubeconfigsChanged(Event, kind="infra.kubeconfigs.changed", by="infra-k8s"):
    """Kubeconfig Secrets were written since WatchKubeconfigs expected them, such as by a renewal of their certificate."""

    findings: tuple[KubeconfigFinding, ...]
