"""Builders of records, requests and messages with defaults; tests pass only the values that matter to them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from kubevnfm_events import ClusterAccess, Envelope, Event, Message, PackageRef, ServiceFacts, VimConnection
from kubevnfm_events.capi import (
    AddonsApplied,
    ClusterReached,
    ClustersChecked,
    ClusterUpdated,
    MachineFacts,
    MachineReplaced,
    MachinesChecked,
    RollOutBegun,
)
from kubevnfm_events.credentials import CredentialsSent, CredentialsWithdrawn, WorkloadCluster
from kubevnfm_events.kuryr import KuryrLogin, KuryrNetwork, KuryrPrepared, KuryrRemoved, TrunksReady
from kubevnfm_events.lcm import OrphansMarked, RemainsRemoved
from kubevnfm_events.mgmt import InstanceForgotten, PhaseDone, ScriptDone
from kubevnfm_events.objects import (
    AttachedLink,
    ClaimedVolume,
    LinksHeld,
    LinksReleased,
    NetworkAttachment,
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
    VolumesHeld,
    VolumesReleased,
)
from kubevnfm_events.snapshots import (
    MachineReverted,
    MachineSnapshot,
    SnapshotForgotten,
    SnapshotRecorded,
    SnapshotRemoved,
    SnapshotTaken,
)
from kubevnfm_events.stacks import (
    PortFacts,
    ResourcesChanged,
    ResourcesCreated,
    ResourcesDeleted,
    ServerFacts,
    ServersOperated,
    StackResources,
)
from kubevnfm_events.vim import CapiProvidersRecorded, VimDeregistered, VimRegistered, VimReleased
from kubevnfm_lcm_api.lifecycle import kinds
from kubevnfm_lcm_api.lifecycle.containers.changing import ChangeCnfDraft, HealCnfDraft, ScaleCnfDraft
from kubevnfm_lcm_api.lifecycle.containers.drafts import InstantiateCnfDraft, TerminateCnfDraft
from kubevnfm_lcm_api.lifecycle.containers.modifying import ModifyCnfDraft
from kubevnfm_lcm_api.lifecycle.containers.replacing import ReplaceCnfDraft
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord, Release
from kubevnfm_lcm_api.lifecycle.core.modifying import ModifyScriptedDraft
from kubevnfm_lcm_api.lifecycle.core.occurrence import OccurrenceRecord
from kubevnfm_lcm_api.lifecycle.core.sequences import SEQUENCES
from kubevnfm_lcm_api.lifecycle.core.workload_cluster import CapiParameters, WorkloadInternals
from kubevnfm_lcm_api.lifecycle.machines.changing import ChangeVmDraft, ConnectVmDraft, OperateVmDraft, ReplaceVmDraft
from kubevnfm_lcm_api.lifecycle.machines.drafts import InstantiateVmDraft, TerminateVmDraft
from kubevnfm_lcm_api.lifecycle.machines.healing import HealVmDraft
from kubevnfm_lcm_api.lifecycle.machines.scaling import ScaleVmDraft
from kubevnfm_lcm_api.lifecycle.machines.snapshots import CreateSnapshotDraft, RevertToSnapshotDraft, Target
from kubevnfm_lcm_api.lifecycle.workloads.drafts import (
    InstantiateWorkloadDraft,
    RollOutWorkloadDraft,
    ScaleWorkloadDraft,
    TerminateWorkloadDraft,
)
from kubevnfm_lcm_api.lifecycle.workloads.healing import HealWorkloadDraft, RepairWorkloadDraft
from kubevnfm_lcm_api.lifecycle.workloads.recreating import RecreateWorkloadDraft
from kubevnfm_lcm_api.lifecycle.workloads.replacing import ReplaceWorkloadDraft
from kubevnfm_secrets import KeyRing, Secret, hide
from kubevnfm_sol.lcm import OperationState, OperationType, VnfInstance, VnfLcmOpOcc
from kubevnfm_sol.vim import VimConnectionInfo

KEY = b"0" * 32
assert kinds.KINDS, "their import fills SEQUENCES"
RING = KeyRing([KEY])
NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
PACKAGE = PackageRef(package_id="pkg-1", vnfd_id="vnfd-1", checksum="00")
VIM = VimConnection(vim_id="vim-1", vim_type="ETSINFV.OPENSTACK_KEYSTONE.V_3")
CLUSTER_PARAMETERS: dict[str, Any] = {
    "k8s_cluster_installation_param": {
        "script_path": "Scripts/install.sh",
        "master_node": {
            "aspect_id": "master_instance",
            "ssh_cp_name": "masterNode_CP1",
            "nic_cp_name": "masterNode_CP1",
            "cluster_cp_name": "masterNode_CP1",
            "username": "ubuntu",
            "password": "ubuntu",
        },
        "worker_node": {
            "aspect_id": "worker_instance",
            "ssh_cp_name": "workerNode_CP2",
            "nic_cp_name": "workerNode_CP2",
            "username": "ubuntu",
            "password": "ubuntu",
        },
    }
}


def a_server(name: str, vdu: str, group: str, address: str) -> ServerFacts:
    port = PortFacts(
        name=f"{vdu}_CP{'1' if vdu == 'masterNode' else '2'}", resource_id=f"port-{name}", addresses=(address,)
    )
    return ServerFacts(
        vnfc_id=f"vnfc-{name}", name=vdu, vdu_id=vdu, server_id=f"server-{name}", stack_id=f"nested/{name}",
        group=group, member=name, ports=(port,),
    )  # fmt: skip


RESOURCES = StackResources(
    stack_id="stack-1",
    stack_name="vnf-inst-1",
    servers=(
        a_server("m1", "masterNode", "master_instance", "10.10.0.4"),
        a_server("w1", "workerNode", "worker_instance", "10.10.0.5"),
        a_server("w2", "workerNode", "worker_instance", "10.10.0.6"),
    ),
)
ACCESS = ClusterAccess(
    server="https://10.10.0.4:6443",
    bearer_token=Secret("token-of-the-cluster"),
    ssl_ca_cert="PEM",
    ssl_ca_cert_hash="sha256:00",
)


def an_instance(**vnf: Any) -> InstanceRecord:
    facts = {
        "id": "inst-1", "vnfd_id": "vnfd-1", "vnf_provider": "p", "vnf_product_name": "n", "vnf_software_version": "1",
        "vnfd_version": "1", "vnf_pkg_id": "pkg-1",
    }  # fmt: skip
    return InstanceRecord(vnf=VnfInstance(**{**facts, **vnf}), created_at="2026-11-20T12:00:00.000Z", updated_at="-")


def an_instantiate_draft(**known: Any) -> InstantiateVmDraft:
    facts: dict[str, Any] = {
        "vnf_instance_id": "inst-1", "package": PACKAGE, "vim_key": "vim1", "vim": VIM,
        "vim_connections": {"vim1": VimConnectionInfo(vim_id="vim-1", vim_type="ETSINFV.OPENSTACK_KEYSTONE.V_3")},
        "flavour_id": "simple", "stack_name": "vnf-inst-1", "request": {"flavourId": "simple"}, "instance": {"id": "inst-1"},
        "parameters": hide(CLUSTER_PARAMETERS),
        "phases": {"instantiate_end": "mgmt-drivers-kubernetes", "terminate_end": "mgmt-drivers-kubernetes"},
        "cluster_vim_name": "cluster-1",
    }  # fmt: skip
    return InstantiateVmDraft(**{**facts, **known})


VOLUME = ClaimedVolume(persistent_volume_id="volume-1", claim_name="data", access_modes=("ReadWriteOnce",))
LINK: dict[str, Any] = {
    "id": "link-1", "cloud_region_id": "op/edge", "name": "protected", "type": "nad", "metadata": {}, "spec": {},
    "use_count": 1, "references": (), "status": "READY", "created_at": "t", "updated_at": "t",
}  # fmt: skip
"""The attributes of the virtual link of NETWORK, as infra-k8s shows them."""
NETWORK = NetworkAttachment(
    vdu_id="web",
    virtual_link_id="link-1",
    interface="net1",
    link=AttachedLink(name="protected", type="nad", definition="protected"),
)


def a_cnf_draft(**known: Any) -> InstantiateCnfDraft:
    facts: dict[str, Any] = {
        "vnf_instance_id": "inst-1", "package": PACKAGE, "vim_key": "k", "vim": VIM, "vim_connections": {},
        "flavour_id": "simple", "def_files": ("Files/kubernetes/a.yaml",),
    }  # fmt: skip
    return InstantiateCnfDraft(**{**facts, **known})


_WITH_ADDON = CapiParameters(addon_def_files=("Files/addons/cni.yaml",))
_CAPI = CapiParameters()
WORKLOAD_CLUSTER = WorkloadCluster(name="workload", namespace="default")
CREDENTIALS_SENT = CredentialsSent(
    cluster_uid="u",
    endpoint="https://192.0.2.10:6443",
    contract="v1beta2",
    content_sha256="00",
    auth_type="bearer_token",
)


def a_workload_draft(**known: Any) -> InstantiateWorkloadDraft:
    facts: dict[str, Any] = {"capi": CapiParameters(addon_def_files=("Files/addons/cni.yaml",))}
    return InstantiateWorkloadDraft(**{**vars(a_cnf_draft()), **facts, **known})


def a_workload_terminate_draft(*, capi: CapiParameters = _CAPI, **known: Any) -> TerminateWorkloadDraft:
    workload = WorkloadInternals(capi=capi, cluster=WORKLOAD_CLUSTER, credentials=CREDENTIALS_SENT, vim_id="vim-2")
    facts = {"workload": workload, "credentials_sent": CREDENTIALS_SENT}
    return TerminateWorkloadDraft(**{**vars(a_cnf_terminate_draft(is_forceful=False)), **facts, **known})


def a_workload_scale_draft(*, capi: CapiParameters = _CAPI, **known: Any) -> ScaleWorkloadDraft:
    facts: dict[str, Any] = {"workload": WorkloadInternals(capi=capi, cluster=WORKLOAD_CLUSTER)}
    return ScaleWorkloadDraft(**{**vars(a_cnf_change(ScaleCnfDraft)), **facts, **known})


def a_workload_roll_out_draft(**known: Any) -> RollOutWorkloadDraft:
    change = {
        name: value for name, value in vars(a_cnf_change(ScaleCnfDraft)).items() if name in ChangeCnfDraft.model_fields
    }
    workload = WorkloadInternals(capi=CapiParameters(), cluster=WORKLOAD_CLUSTER)
    return RollOutWorkloadDraft(**{**change, "workload": workload, "roll_out_after": "2026-11-20T12:00:00Z", **known})


def a_machine(name: str, vdu_id: str = "worker") -> MachineFacts:
    kind = "KubeadmControlPlane" if vdu_id == "controlPlane" else "MachineDeployment"
    return MachineFacts(
        vdu_id=vdu_id, name=name, namespace="default", uid=f"uid-{name}", owner_kind=kind,
        provider_id=f"openstack:///{name}",
    )  # fmt: skip


def a_workload_heal_draft(**known: Any) -> HealWorkloadDraft:
    workload = WorkloadInternals(
        capi=CapiParameters(), cluster=WORKLOAD_CLUSTER, machines=(a_machine("cp-0", "controlPlane"), a_machine("md-0"))
    )
    return a_cnf_change(HealWorkloadDraft, workload=workload, **known)


def a_workload_repair_draft(**known: Any) -> RepairWorkloadDraft:
    workload = WorkloadInternals(capi=CapiParameters(), cluster=WORKLOAD_CLUSTER)
    return a_cnf_change(RepairWorkloadDraft, workload=workload, namespace="default", **known)


def a_workload_recreation_draft(*, capi: CapiParameters = _WITH_ADDON, **known: Any) -> RecreateWorkloadDraft:
    workload = WorkloadInternals(
        capi=capi,
        cluster=WORKLOAD_CLUSTER,
        credentials=CREDENTIALS_SENT,
        vim_id="vim-2",
    )
    facts: dict[str, Any] = {"namespace": "default", "workload": workload}
    return a_cnf_change(RecreateWorkloadDraft, **{**facts, **known})


def a_workload_replacement_draft(**known: Any) -> ReplaceWorkloadDraft:
    facts: dict[str, Any] = {
        **vars(a_cnf_change(ReplaceCnfDraft)),
        "workload": WorkloadInternals(capi=CapiParameters(), cluster=WORKLOAD_CLUSTER),
    }
    return ReplaceWorkloadDraft(**{**facts, **known})


def a_terminate_draft(**known: Any) -> TerminateVmDraft:
    facts: dict[str, Any] = {
        "vnf_instance_id": "inst-1", "vnfd_id": "vnfd-1", "vim_key": "vim1", "vim": VIM, "is_forceful": False,
        "stack_name": "vnf-inst-1", "package": PACKAGE, "resources": RESOURCES, "cluster_vim_key": "cluster-1",
        "phases": {"instantiate_end": "mgmt-drivers-kubernetes"},
    }  # fmt: skip
    return TerminateVmDraft(**{**facts, **known})


def a_cnf_terminate_draft(**known: Any) -> TerminateCnfDraft:
    facts: dict[str, Any] = {
        "vnf_instance_id": "inst-1", "vnfd_id": "vnfd-1", "vim_key": "k", "vim": VIM, "is_forceful": True,
    }  # fmt: skip
    return TerminateCnfDraft(**{**facts, **known})


def a_cnf_modification(**known: Any) -> ModifyCnfDraft:
    facts: dict[str, Any] = {
        "vnf_instance_id": "inst-1", "package": PACKAGE, "vim_key": "k", "vim": VIM,
        "def_files": ("Files/kubernetes/a.yaml",), "config_files": ("Files/kubernetes/b.yaml",),
        "before": Release(namespace="default"),
    }  # fmt: skip
    return ModifyCnfDraft(**{**facts, **known})


CNF_BEFORE = Release(
    namespace="default",
    objects=(
        ObjectFacts(api_version="apps/v1", kind="Deployment", namespace="default", name="web", uid="o", vdu_id="web"),
    ),
    pods=(PodFacts(vdu_id="web", name="web-1", namespace="default", uid="u", owner_kind="Deployment"),),
)
"""A CNF of one Deployment with one pod."""
D = TypeVar("D", bound=ChangeCnfDraft)


def web_count(count: int) -> ObjectCount:
    """Return the wanted number of replicas of the object of `CNF_BEFORE`."""
    return ObjectCount(api_version="apps/v1", kind="Deployment", namespace="default", name="web", count=count)


def a_cnf_change(kind: type[D], **known: Any) -> D:
    """Return a change of the CNF of `CNF_BEFORE`; a scaling adds a pod."""
    facts: dict[str, Any] = {
        "vnf_instance_id": "inst-1", "package": PACKAGE, "vim_key": "k", "vim": VIM, "flavour_id": "simple",
        "def_files": ("Files/kubernetes/a.yaml",), "before": CNF_BEFORE,
    }  # fmt: skip
    if kind is ScaleCnfDraft:
        facts.update(counts=(web_count(2),), counts_before=(web_count(1),), vdu_counts={"web": 1})
    if kind is ReplaceCnfDraft:
        facts.update(before_package=PACKAGE, namespace="default", new_files=("Files/kubernetes/b.yaml",))
    if kind is HealCnfDraft:
        facts.update(namespace="default")
    return kind(**{**facts, **known})


C = TypeVar("C", bound=ChangeVmDraft)


def a_change_draft(kind: type[C], **known: Any) -> C:
    """Return a change of the stack that contains RESOURCES."""
    facts: dict[str, Any] = {
        "vnf_instance_id": "inst-1", "package": PACKAGE, "vim_key": "vim1", "vim": VIM, "stack_name": "vnf-inst-1",
        "flavour_id": "simple", "counts": {"masterNode": 1, "workerNode": 2}, "before": RESOURCES,
    }  # fmt: skip
    if kind is ReplaceVmDraft:
        facts.update(before_package=PACKAGE, before_flavour_id="simple")
    return kind(**{**facts, **known})


def an_operate_draft(**known: Any) -> OperateVmDraft:
    facts: dict[str, Any] = {
        "vnf_instance_id": "inst-1", "vnfd_id": "vnfd-1", "vim_key": "vim1", "vim": VIM, "before": RESOURCES,
        "servers": ("server-w1",), "state": "STOPPED",
    }  # fmt: skip
    return OperateVmDraft(**{**facts, **known})


ONE_MACHINE = RESOURCES.model_copy(update={"servers": RESOURCES.servers[-1:]})
MACHINE_SNAPSHOTS = tuple(
    MachineSnapshot(vnfc_id=server.vnfc_id, server_id=server.server_id, image_id=f"image-of-{server.server_id}")
    for server in ONE_MACHINE.servers
)


def a_snapshot_draft(**known: Any) -> CreateSnapshotDraft:
    return CreateSnapshotDraft(**{**_OF_SNAPSHOT, "occurrence_id": "op-1", **known})


def a_revert_draft(**known: Any) -> RevertToSnapshotDraft:
    targets = tuple(Target(vnfc_id=one.vnfc_id, snapshot=one, state="STARTED") for one in MACHINE_SNAPSHOTS)
    return RevertToSnapshotDraft(**{**_OF_SNAPSHOT, "targets": targets, **known})


_OF_SNAPSHOT: dict[str, Any] = {
    "vnf_instance_id": "inst-1", "vnfd_id": "vnfd-1", "vim_key": "vim1", "vim": VIM, "before": ONE_MACHINE,
    "package": PACKAGE, "snapshot_info_id": "info-1", "snapshot_id": "snapshot-1",
}  # fmt: skip


_OPERATION_BY_PLAN = {
    ScaleVmDraft.plan: OperationType.SCALE,
    HealVmDraft.plan: OperationType.HEAL,
    OperateVmDraft.plan: OperationType.OPERATE,
    CreateSnapshotDraft.plan: OperationType.CREATE_SNAPSHOT,
    RevertToSnapshotDraft.plan: OperationType.REVERT_TO_SNAPSHOT,
    ConnectVmDraft.plan: OperationType.CHANGE_EXT_CONN,
    ReplaceVmDraft.plan: OperationType.CHANGE_FLAVOUR,
    ModifyCnfDraft.plan: OperationType.MODIFY_INFO,
    ModifyScriptedDraft.plan: OperationType.MODIFY_INFO,
    ScaleCnfDraft.plan: OperationType.SCALE,
    ScaleWorkloadDraft.plan: OperationType.SCALE,
    RollOutWorkloadDraft.plan: OperationType.CHANGE_VNFPKG,
    ReplaceWorkloadDraft.plan: OperationType.CHANGE_VNFPKG,
    HealCnfDraft.plan: OperationType.HEAL,
    HealWorkloadDraft.plan: OperationType.HEAL,
    RepairWorkloadDraft.plan: OperationType.HEAL,
    RecreateWorkloadDraft.plan: OperationType.HEAL,
    ReplaceCnfDraft.plan: OperationType.CHANGE_VNFPKG,
}


def an_operation(draft: Any, *, state: OperationState = OperationState.STARTING) -> OccurrenceRecord:
    otherwise = OperationType.INSTANTIATE if draft.plan.startswith("instantiate") else OperationType.TERMINATE
    operation = _OPERATION_BY_PLAN.get(draft.plan, otherwise)
    return OccurrenceRecord(
        occ=VnfLcmOpOcc(
            id="op-1", operation_state=state, state_entered_time="2026-11-20T12:00:00.000Z",
            start_time="2026-11-20T12:00:00.000Z", vnf_instance_id="inst-1", operation=operation,
        ),
        api_version="v2",
        plan=draft.plan,
        steps=SEQUENCES.planned(draft),
        draft=draft.document(RING),
        is_reversible=draft.is_reversible,
    )  # fmt: skip


KURYR_NETWORK = KuryrNetwork(
    project_id="project-1",
    pod_subnets=("pod-subnet",),
    pod_security_groups=("pods",),
    service_subnet="service-subnet",
    worker_nodes_subnet="7d5e2b1a-93a7-4c1c-8f5e-2b1f9f0e6a11",
    external_svc_net="public",
    external_svc_subnet="public-subnet",
    api_address="10.96.0.1",
    tag="kubevnfm-kuryr-1",
    login=KuryrLogin(
        auth_url="https://keystone.example/v3",
        region="RegionOne",
        credential_id="credential-1",
        credential_secret=Secret("secret-of-the-cloud"),
    ),
)
ANSWERS: dict[str, Event] = {
    "infra.openstack.create_resources": ResourcesCreated(resources=RESOURCES),
    "infra.openstack.delete_resources": ResourcesDeleted(stack_name="vnf-inst-1"),
    **{
        f"infra.openstack.{what}": ResourcesChanged(resources=RESOURCES)
        for what in ("scale_resources", "heal_resources", "change_connections", "change_template", "restore_resources")
    },
    "infra.openstack.operate_servers": ServersOperated(servers=("server-w1",), state="STOPPED"),
    "infra.openstack.take_snapshot": SnapshotTaken(machine=MACHINE_SNAPSHOTS[0]),
    "infra.openstack.remove_snapshot": SnapshotRemoved(snapshot_id="snapshot-1", vnfc_id=MACHINE_SNAPSHOTS[0].vnfc_id),
    "infra.openstack.revert_machine": MachineReverted(server_id="server-w1", image_id="image-of-server-w1"),
    "lcm.record_snapshot": SnapshotRecorded(snapshot_info_id="info-1"),
    "lcm.forget_snapshot": SnapshotForgotten(snapshot_info_id="info-1"),
    "infra.openstack.prepare_kuryr": KuryrPrepared(network=KURYR_NETWORK),
    "infra.openstack.remove_kuryr": KuryrRemoved(load_balancers=2, ports=5),
    "infra.openstack.await_trunks": TrunksReady(),
    "infra.k8s.apply_objects": ObjectsApplied(
        namespace="default",
        objects=(
            ObjectFacts(
                api_version="cluster.x-k8s.io/v1beta2", kind="Cluster", namespace="default", name="workload", uid="u"
            ),
        ),
        pods=(PodFacts(vdu_id="web", name="web-1", namespace="default", uid="u", owner_kind="Deployment"),),
    ),
    "infra.k8s.hold_links": LinksHeld(link_ids=("link-1",)),
    "infra.k8s.release_links": LinksReleased(link_ids=("link-1",)),
    "infra.k8s.hold_volumes": VolumesHeld(volume_ids=("volume-1",)),
    "infra.k8s.release_volumes": VolumesReleased(),
    "infra.k8s.update_objects": ObjectsUpdated(
        namespace="default",
        pods=(PodFacts(vdu_id="web", name="web-2", namespace="default", uid="u2", owner_kind="Deployment"),),
        def_files=("Files/kubernetes/b.yaml",),
    ),
    "infra.k8s.scale_objects": ObjectsScaled(
        namespace="default",
        objects=CNF_BEFORE.objects,
        pods=(
            *CNF_BEFORE.pods,
            PodFacts(vdu_id="web", name="web-2", namespace="default", uid="u2", owner_kind="Deployment"),
        ),
    ),
    "infra.k8s.heal_objects": ObjectsHealed(
        namespace="default",
        objects=CNF_BEFORE.objects,
        pods=(PodFacts(vdu_id="web", name="web-2", namespace="default", uid="u2", owner_kind="Deployment"),),
    ),
    "infra.k8s.repair_objects": ObjectsRepaired(
        namespace="default",
        objects=CNF_BEFORE.objects,
        pods=(PodFacts(vdu_id="web", name="web-2", namespace="default", uid="u2", owner_kind="Deployment"),),
        services=(ServiceFacts(namespace="default", name="web", node_ports=(30081,)),),
        repaired=2,
    ),
    "infra.k8s.replace_objects": ObjectsReplaced(
        namespace="default",
        objects=CNF_BEFORE.objects,
        pods=(PodFacts(vdu_id="web", name="web-2", namespace="default", uid="u2", owner_kind="Deployment"),),
    ),
    "infra.k8s.delete_objects": ObjectsDeleted(),
    "infra.k8s.await_cluster": ClusterReached(
        cluster=WORKLOAD_CLUSTER, uid="u", endpoint="https://192.0.2.10:6443", stage="available"
    ),
    "infra.k8s.check_clusters": ClustersChecked(),
    "vim.record_capi_providers": CapiProvidersRecorded(vim_id="vim-1"),
    "infra.k8s.check_machines": MachinesChecked(
        machines=(a_machine("cp-0", "controlPlane"), a_machine("md-0")), chosen=(a_machine("md-0"),)
    ),
    "infra.k8s.replace_machine": MachineReplaced(machines=(a_machine("cp-0", "controlPlane"), a_machine("md-1"))),
    "infra.k8s.apply_addons": AddonsApplied(count=2),
    "infra.k8s.update_cluster": ClusterUpdated(namespace="default"),
    "infra.k8s.roll_out_machines": RollOutBegun(owners=("MachineDeployment workload-md-0",)),
    "mgmt.send_credentials": CREDENTIALS_SENT,
    "mgmt.withdraw_credentials": CredentialsWithdrawn(cluster_uid="u"),
    "vim.register_received": VimRegistered(
        vim_id="vim-2", name="workload", vim_type="k", endpoint="https://192.0.2.10"
    ),
    "mgmt.run_phase": PhaseDone(
        driver="mgmt-drivers-kubernetes", phase="instantiate_end", cluster=ACCESS, node_names={"vnfc-m1": "master4"}
    ),
    "mgmt.run_script": ScriptDone(sent=CREDENTIALS_SENT),
    "mgmt.forget_instance": InstanceForgotten(),
    "vim.register": VimRegistered(vim_id="vim-2", name="cluster-1", vim_type="k", endpoint="https://10.10.0.4:6443"),
    "vim.deregister": VimDeregistered(vim_ids=("vim-2",)),
    "vim.release": VimReleased(vim_ids=("vim-2",)),
    "lcm.remove_remains": RemainsRemoved(vnf_instance_id="inst-1"),
    "lcm.mark_orphans": OrphansMarked(vnf_instance_id="inst-1"),
}
"""The event that a service publishes in reply, by the command's routing key."""


def answer_to(command: Envelope[Message]) -> Envelope[Message]:
    return command.follow_up(ANSWERS[type(command.data).routing_key()], source="/kubevnfm/twin")


def later(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)
