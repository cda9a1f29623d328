"""Kubernetes objects: the commands of infra-k8s on those of a CNF, and the events that answer them."""

from __future__ import annotations

from typing import Literal

from kubevnfm_kit.error_text import ErrorText
from kubevnfm_secrets import Secret, SecretParams
from pydantic import Field

from kubevnfm_events.base import Command, Event, Facts
from kubevnfm_events.common import CancelStep, CapiProviders, DriftState, PackageRef, ServiceFacts, VimConnection
from kubevnfm_events.compute_profiles import ComputeProfile
from kubevnfm_events.outputs import OutputsRead, WantedOutput

Variables = dict[str, Secret]
"""``additionalParams.capi.variables``: the values of the placeholders in manifests, secret because any of them may be."""


class VduTarget(Facts):
    """A VDU that is a Kubernetes workload (capi.md CR-030, CR-031)."""

    vdu_id: str
    name: str
    """``metadata.name`` of the workload: ``properties.name`` of the VDU, or the name that the request maps to it."""
    kind: str | None = None
    """The workload's kind, if the request maps the VDU to a workload (``vdu_mapping``); None: a workload of any kind."""
    replicas: int | None = None
    """From the instantiation level; None: as in the manifest."""
    is_in_chart: bool = False
    """Whether a Helm chart makes the workload: then its name up to the last dash is ``name`` too."""
    release_name: str | None = None
    """The Helm release that makes the workload, if the request says it; None: any."""


class AttachedLink(Facts):
    """The facts of a virtual link that its pods need; its spec does not change (multicloud.md chapter 12)."""

    name: str
    type: str
    definition: str = ""
    """The NetworkAttachmentDefinition that pods name; empty: the link is the primary network of all pods of a namespace."""
    definition_namespace: str = ""
    """Where it is; empty: in the namespace of the pod."""
    is_definition_by_namespace: bool = False
    """Whether a dash and the namespace of the pod follow in its name."""
    gateways: tuple[str, ...] = ()
    """The gateways of its subnets, as far as they are known."""


class NetworkAttachment(Facts):
    """An interface of the pods or machines of a VDU on a virtual link (multicloud.md MC-065 to MC-068)."""

    vdu_id: str
    virtual_link_id: str
    interface: str
    """Its name in the pod; of a KubeVirt machine the name of its network."""
    ip_address: str | None = None
    mac_address: str | None = None
    default_gateway: bool = False
    """Whether the default route of the pod leads to the link."""
    binding: str | None = None
    """KubeVirt: ``bridge``, ``masquerade`` or ``sriov``."""
    plugin: str | None = None
    """KubeVirt: the network binding plug-in in its place."""
    link: AttachedLink


class ClaimedVolume(Facts):
    """A persistent volume that an instance uses by a claim in its namespace (multicloud.md MC-101)."""

    persistent_volume_id: str
    claim_name: str
    """The name by which its workloads mount it."""
    access_modes: tuple[str, ...] = ()


class HelmChart(Facts):
    """A chart of the package in the place of manifests (capi.md CR-005)."""

    path: str
    """In the package: a folder with ``Chart.yaml``, or an archive (``.tgz``). With a ``digest``: the URL of an archive."""
    digest: str = ""
    """``sha256:`` and the digest of the archive that a repository has; "" for a chart of the package."""
    release_name: str
    values: SecretParams = Field(default_factory=dict)
    """They take precedence over the chart's own."""


class ObjectFacts(Facts):
    """One object of a release."""

    api_version: str
    kind: str
    namespace: str | None = None
    name: str
    uid: str
    vdu_id: str | None = None
    topology_vdus: tuple[str, ...] = ()
    """A Cluster of Cluster API: the ids of the VDUs for which parts of its ``spec.topology`` stand."""
    restart_required: bool = False
    """A virtual machine of KubeVirt: whether a change waits for its next start (multicloud.md MC-063)."""


class HookFacts(ObjectFacts):
    """The object of a hook, which counts for nothing else (multicloud.md MC-141)."""

    hook: str
    """The point at which it ran last: ``pre-apply`` ..."""
    has_succeeded: bool = False


class LeftObject(ObjectFacts):
    """An object that may still exist, or without whose finalizers what it stands for may still exist elsewhere."""

    cluster: str = ""
    """Endpoint of its API server: that of the VIM, or of the workload cluster for addons."""
    finalizers: tuple[str, ...] = ()
    """Those that were removed from it, so that it is gone without the work of their controllers."""
    provider_id: str | None = None
    """``spec.providerID`` of a machine: the server in the cloud."""
    reason: str | None = None
    """Why it is not deleted: others need it, or its artifact keeps it."""


class PodFacts(Facts):
    """A Pod, or a virtual machine of KubeVirt, that runs a VDU: one VNFC."""

    vdu_id: str
    name: str
    namespace: str
    uid: str
    owner_kind: str
    """The kind of its workload, which is its own kind if it is in a manifest itself."""
    node: str | None = None
    addresses: tuple[str, ...] = ()


class DriftedObject(Facts):
    """An object of a CNF or of a workload cluster that another party has deleted or changed."""

    kind: str
    namespace: str | None = None
    name: str
    what: Literal["missing", "replaced", "changed"]
    """``replaced``: another object of the name exists; ``changed``: fields that kubevnfm has applied have another owner."""


class ObjectsDrift(Facts):
    """A difference between the objects that kubevnfm has applied for an instance and those that exist."""

    state: DriftState
    missing: int = 0
    replaced: int = 0
    changed: int = 0
    """Numbers of objects."""
    objects: tuple[DriftedObject, ...] = ()
    """The first ones, workloads of VDUs before others, what is gone before what was changed."""


class ExpectedObjects(Facts):
    """An instance whose objects are to be compared; infra-k8s knows them."""

    vnf_instance_id: str
    revision: int
    """The revision of the instance's document; the finding repeats it, and counts only if it still holds."""
    known: ObjectsDrift | None = None
    """The drift that the instance shows already."""


class CompareObjects(Command, kind="infra.k8s.compare_objects", service="infra-k8s"):
    """Compare the objects of instances on one VIM with those that exist; answered by ObjectsCompared if there is news."""

    vim: VimConnection
    expected: tuple[ExpectedObjects, ...]


class ObjectsFinding(Facts):
    """An instance whose drift is not the one that is known."""

    vnf_instance_id: str
    revision: int
    drift: ObjectsDrift | None = None
    """None: the objects exist again as they were applied."""
    reason: ErrorText = ""
    """One sentence for a person."""


class ObjectsCompared(Event, kind="infra.objects.compared", by="infra-k8s"):
    """Objects were found deleted or changed, or are again as they were applied. Only what was not known is reported."""

    findings: tuple[ObjectsFinding, ...]


class ObjectsApplied(Event, kind="infra.resources.applied"):
    """Every object of the CNF is ready."""

    namespace: str
    objects: tuple[ObjectFacts, ...] = ()
    hooks: tuple[HookFacts, ...] = ()
    """The objects of hooks that exist; they are none of ``objects``."""
    pods: tuple[PodFacts, ...] = ()
    services: tuple[ServiceFacts, ...] = ()
    providers: CapiProviders | None = None
    """The providers of Cluster API among the objects; None: there are none."""
    outputs: OutputsRead | None = None
    """The values of the instance's outputs; None: it has none."""
    kept_objects: tuple[LeftObject, ...] = ()
    """The objects that changes of the CNF have kept, which belong to no instance any more."""


class ObjectsOrder(Facts):
    """The Kubernetes objects that are to exist: commands carry it, and lcm-api keeps it with the operation."""

    package: PackageRef
    vim: VimConnection
    def_files: tuple[str, ...]
    """Package paths or URLs of the manifests, in order. Empty if there is a chart."""
    namespace: str | None = None
    """The namespace of objects that name none."""
    multi_namespace: bool = False
    vdus: tuple[VduTarget, ...] = ()
    """The workloads of VDUs, with their replicas at the present scale levels."""
    variables: Variables | None = None
    """None: the manifests have no placeholders."""
    order_artifact: str | None = None
    """The file of the package that says in which order ``def_files`` are applied (multicloud.md chapter 4); None: in theirs."""
    values: SecretParams = Field(default_factory=dict)
    """The values of variables in manifests that have an order artifact (multicloud.md chapter 5)."""
    networks: tuple[NetworkAttachment, ...] = ()
    """The interfaces on virtual links, in their order; the instance holds each of these links."""
    compute_profiles: tuple[ComputeProfile, ...] = ()
    """Resources and placement of workloads beside what their manifests say."""
    volumes: tuple[ClaimedVolume, ...] = ()
    """The persistent volumes that the instance uses, each by a claim in ``namespace``."""
    outputs: tuple[WantedOutput, ...] = ()
    """The values of objects that the instance shows."""
    release_name: str | None = None
    """The name of the release of the charts that ``order_artifact`` lists; None: ``vnf`` and the id of the instance."""
    kubernetes_version: str | None = None
    """The version that the templates of these charts see; None: that of the cluster."""


class ChartOrder(ObjectsOrder):
    """The same, where a Helm chart can take the place of manifests."""

    chart: HelmChart | None = None
    releases: tuple[HelmChart, ...] = ()
    """Several releases in the place of one, in order."""

    @property
    def charts(self) -> tuple[HelmChart, ...]:
        """All of them, in order; none: the files make the objects."""
        return self.releases if self.chart is None else (self.chart,)


class ApplyObjects(ChartOrder, Command, kind="infra.k8s.apply_objects", service="infra-k8s", reply=ObjectsApplied):
    """Apply the manifests of a CNF in order and wait until all are ready; a repeat continues where it stopped."""

    vnf_instance_id: str
    adopt: bool = False
    parameters: SecretParams = Field(default_factory=dict)
    """additionalParams."""
    wait_timeout_s: float | None = None
    cluster_apart: bool = False
    """Whether objects of Cluster API are applied and not awaited: AwaitCluster waits for their cluster."""
    cluster_name: str | None = None
    """``additionalParams.capi.cluster_name``: which Cluster it is, if the files have several."""
    openstack_vim_id: str | None = None
    """``additionalParams.capi.openstack_vim_id``: the registered OpenStack whose login becomes the Secrets that the objects name as
    their identity; None: the files have them."""


class LinksHeld(Event, kind="infra.links.held"):
    """The instance holds the virtual links of its networks."""

    link_ids: tuple[str, ...] = ()


class HoldLinks(ChartOrder, Command, kind="infra.k8s.hold_links", service="infra-k8s", reply=LinksHeld):
    """Hold the virtual links of an order's networks in the namespaces of their VDUs; a repeat counts once (multicloud.md MC-086)."""

    vnf_instance_id: str
    before: tuple[NetworkAttachment, ...] = ()
    """Networks that the objects have so far: their links are held too."""


class LinksReleased(Event, kind="infra.links.released"):
    """The instance holds no other virtual links than it needs."""

    link_ids: tuple[str, ...] = ()
    """Those that it holds no more."""


class ReleaseLinks(Command, kind="infra.k8s.release_links", service="infra-k8s", reply=LinksReleased):
    """Release the virtual links that an instance holds, but for those of some networks; safe to repeat (multicloud.md MC-086)."""

    vnf_instance_id: str
    kept_networks: tuple[NetworkAttachment, ...] = ()


class VolumesHeld(Event, kind="infra.volumes.held"):
    """The instance is a user of its persistent volumes; their claims are bound before its objects are applied."""

    volume_ids: tuple[str, ...] = ()


class HoldVolumes(ChartOrder, Command, kind="infra.k8s.hold_volumes", service="infra-k8s", reply=VolumesHeld):
    """Make an instance a user of an order's persistent volumes; a repeat counts once (multicloud.md MC-101)."""

    vnf_instance_id: str


class VolumesReleased(Event, kind="infra.volumes.released"):
    """The instance uses no other persistent volumes than it needs; the data of the others are kept."""

    volume_ids: tuple[str, ...] = ()
    """Those whose claims may still exist, because the release was forced: infra-k8s removes them once the region lets it."""


class ReleaseVolumes(Command, kind="infra.k8s.release_volumes", service="infra-k8s", reply=VolumesReleased):
    """Remove the claims of an instance's persistent volumes, but for some of them; safe to repeat (multicloud.md MC-060, MC-101)."""

    vnf_instance_id: str
    kept_volumes: tuple[ClaimedVolume, ...] = ()
    force: bool = False
    """Whether it does not wait until the claims are gone."""


class ObjectsUpdated(ObjectsApplied, kind="infra.resources.updated"):
    """The CNF has the configuration and the images of a package; every workload that was restarted is ready."""

    def_files: tuple[str, ...] = ()
    """The files that describe the CNF from now on, in order."""


class UpdateObjects(ObjectsOrder, Command, kind="infra.k8s.update_objects", service="infra-k8s", reply=ObjectsUpdated):
    """Give a CNF's ConfigMaps, Secrets and containers the contents and images that the files of a package have.

    Workloads with a new image or a changed ConfigMap or Secret restart; all other objects stay. A repeat continues.
    """

    vnf_instance_id: str
    config_files: tuple[str, ...] = ()
    """Files of ``package`` with ConfigMaps and Secrets; each takes the place of the file with the same objects."""
    before: PackageRef
    """The package whose ``def_files`` the ``config_files`` replace."""
    images_of: tuple[str, ...] = ()
    """VDUs whose images alone change, all else stays; then ``config_files`` may have objects of any kind. Empty: the
    contents and images of all objects."""
    namespace: str
    """The namespace of objects that name none."""
    wait_timeout_s: float | None = None


class ObjectCount(Facts):
    """An object and its wanted number of replicas."""

    api_version: str
    kind: str
    namespace: str | None = None
    name: str
    count: int = Field(ge=0)
    topology: str | None = None
    """A Cluster of Cluster API: the part of its ``spec.topology`` that has the number: ``controlPlane``, or the name of a
    MachineDeployment or MachinePool there. None: the object itself has it."""
    is_change: bool = True
    """Whether the request gives the object another number than its scale levels so far. If not, an autoscaler's number stays."""


class ObjectsScaled(ObjectsApplied, kind="infra.resources.scaled"):
    """Each object has the number of replicas that was asked for, and all of them are ready."""


class ScaleObjects(Command, kind="infra.k8s.scale_objects", service="infra-k8s", reply=ObjectsScaled):
    """Set the number of replicas of objects of any kind that has a ``scale`` subresource; a repeat changes nothing more."""

    vnf_instance_id: str
    vim: VimConnection
    objects: tuple[ObjectCount, ...]
    """Objects of the instance's inventory."""
    leaving: tuple[ObjectFacts, ...] = ()
    """Machines of Cluster API that leave first; each is annotated before the count of its owner goes down."""
    is_undo: bool = False
    """Whether earlier numbers are restored: an object that has an autoscaler by now keeps its number, and is not refused."""
    wait_timeout_s: float | None = None


class ObjectsHealed(ObjectsApplied, kind="infra.resources.healed"):
    """The pods were replaced by as many new ones, which are ready."""


class HealObjects(ChartOrder, Command, kind="infra.k8s.heal_objects", service="infra-k8s", reply=ObjectsHealed):
    """Delete pods and wait for as many new ready ones; a pod without a workload is created again from its manifest.

    A repeat replaces those that are left: a pod with another uid is a new one.
    """

    vnf_instance_id: str
    namespace: str
    """The namespace of objects that name none."""
    pods: tuple[PodFacts, ...]
    """The pods to replace."""
    wait_timeout_s: float | None = None


class ObjectsRepaired(ObjectsApplied, kind="infra.resources.repaired"):
    """Every object of the instance exists as its manifest says and is ready; objects of Cluster API are awaited later."""

    repaired: int = 0
    """How many were missing or changed; 0: there was nothing to do."""


class RepairObjects(ChartOrder, Command, kind="infra.k8s.repair_objects", service="infra-k8s", reply=ObjectsRepaired):
    """Apply the objects of an instance again that others have deleted or changed, and wait until all are ready.

    A repeat continues.
    """

    vnf_instance_id: str
    namespace: str
    """The namespace of objects that name none."""
    wait_timeout_s: float | None = None
    cluster_apart: bool = False
    """Whether objects of Cluster API are not awaited: AwaitCluster waits for their cluster."""


class ObjectsReplaced(ObjectsApplied, kind="infra.resources.replaced"):
    """Every object of the wanted manifests is ready, and what they lack is deleted."""


class ReplaceObjects(
    ObjectsOrder, Command, kind="infra.k8s.replace_objects", service="infra-k8s", reply=ObjectsReplaced
):
    """Apply other manifests of a CNF in order, wait until all are ready, then delete what they lack; a repeat continues."""

    vnf_instance_id: str
    def_files: tuple[str, ...]
    """Package paths or URLs, in order: all that describes the CNF from now on."""
    namespace: str
    """The namespace of objects that name none."""
    wait_timeout_s: float | None = None
    is_rollback: bool = False
    """Whether objects of an earlier state are applied again: hooks may run then, or then alone."""
    is_undo: bool = False
    """Whether this takes back what the same operation has changed."""
    replace_kinds: tuple[str, ...] = ()
    """The kinds of objects that may be deleted and created again, if a field of them cannot be changed; Jobs that have ended always."""


class ObjectsDeleted(Event, kind="infra.resources.removed"):
    """The CNF's inventory is empty; nothing of it is left unless ``left`` names it."""

    count: int = 0
    left: tuple[LeftObject, ...] = ()
    """The objects that may still exist, because a FORCEFUL termination gave up on their cluster: those of the CNF, and
    the addons inside its workload cluster. Also those whose finalizers were removed, and what they may have left; and
    cluster-scoped ones that others need."""


class DeleteObjects(Command, kind="infra.k8s.delete_objects", service="infra-k8s", reply=ObjectsDeleted):
    """Delete everything in the instance's inventory, in reverse order, and wait until it is gone."""

    vnf_instance_id: str
    vim: VimConnection
    grace_period_s: float | None = None
    """GRACEFUL: pods' grace period; None: the grace period of each pod; 0: FORCEFUL."""
    force: bool = False
    """The cluster may be gone or unreachable: give up on objects that cannot be reached (FORCEFUL termination)."""
    cluster_gone_timeout_s: float | None = None
    """How long a workload cluster among the objects may take to go; None: infra-k8s' own limit."""
    force_remove_finalizers: bool = False
    """Whether finalizers that hold an object are removed: those of an earlier attempt at once, others near the limit."""
    gives_up_waiting: bool = False
    """Whether objects that are not gone after a short time are left, with the finalizers that hold them, and named in the answer."""


class CancelK8sStep(CancelStep, kind="infra.k8s.cancel_step", service="infra-k8s"):
    """Stop working on a command of infra-k8s."""
