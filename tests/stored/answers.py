"""The answers of the services in the stories, with the stacks, clusters and objects that they name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from clusters.storage_clusters import PORT, VDU, VOLUME
from kubevnfm_events import CapiKind, CapiProvider, CapiProviders, ClusterAccess, Event, ServiceFacts
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
from kubevnfm_events.mgmt import PhaseDone, ScriptAnswer, ScriptDone, ScriptEdit
from kubevnfm_events.objects import (
    LeftObject,
    LinksHeld,
    LinksReleased,
    ObjectFacts,
    ObjectsApplied,
    ObjectsHealed,
    ObjectsRepaired,
    ObjectsReplaced,
    ObjectsScaled,
    ObjectsUpdated,
    PodFacts,
    VolumesHeld,
    VolumesReleased,
)
from kubevnfm_events.snapshots import MachineReverted, MachineSnapshot, SnapshotRemoved, SnapshotTaken
from kubevnfm_events.stacks import (
    NetworkFacts,
    PortFacts,
    ResourcesChanged,
    ResourcesCreated,
    ResourcesDeleted,
    ServerFacts,
    ServersOperated,
    StackResources,
    StorageFacts,
)
from kubevnfm_events.vim import CapiProvidersRecorded, VimRegistered, VimReleased
from kubevnfm_secrets import Secret
from worlds.lcm_builders import ANSWERS

DRIVER: Final = "mgmt-drivers-kubernetes"
ACCESS: Final = {"username": "tacker", "password": "secret-of-the-cloud", "project": "nfv", "region": "RegionOne"}
"""The VIM in requests; the password is sealed in what is stored."""
VIM: Final = {
    "vimId": "vim-1",
    "vimType": "ETSINFV.OPENSTACK_KEYSTONE.V_3",
    "interfaceInfo": {"endpoint": "http://127.0.0.1:5000/v3"},
    "accessInfo": ACCESS,
}
MADE_AT: Final = datetime(2026, 1, 1, 0, 0, 30, tzinfo=UTC)


def _server(vdu: str, number: int, *, cp: str, group: str | None = None) -> ServerFacts:
    name = f"{vdu}-{number}"
    port = PortFacts(
        name=cp, resource_id=f"port-{name}", addresses=(f"10.10.0.{10 + number}",), mac=f"fa:16:3e:00:00:{number:02x}",
        network_id="net-internal", subnet_ids=("subnet-internal",), subnet_cidrs=("10.10.0.0/24",),
    )  # fmt: skip
    return ServerFacts(
        vnfc_id=f"vnfc-{name}", name=vdu, vdu_id=vdu, server_id=f"server-{name}", server_name=f"vnf-{name}",
        host=f"compute-{number}", zone="nova", stack_id=f"nested/{name}", group=group, member=f"member-{number}",
        created_at=MADE_AT, ports=(port,), image_id="image-1", flavor="m1.tiny",
    )  # fmt: skip


def vm_stack(*numbers: int) -> StackResources:
    """Return what a stack of the sample ``vm`` holds, with these machines."""
    return StackResources(
        stack_id="stack-1", stack_name="vnf-1",
        servers=tuple(_server("VDU1", number, cp="VDU1_CP1", group="VDU1_scale") for number in numbers),
        networks=(NetworkFacts(name="internalVL1", resource_id="net-internal"),),
        volumes=tuple(
            StorageFacts(name="VirtualStorage", resource_id=f"volume-{number}", server_id=f"server-VDU1-{number}")
            for number in numbers
        ),
        images=("image-1",),
    )  # fmt: skip


def cluster_stack(*workers: int, masters: Sequence[int] = (1,)) -> StackResources:
    """Return what a stack of the sample ``cluster`` holds, with these machines, and a virtual address for several masters."""
    vip = PortFacts(name="vip_CP", resource_id="port-vip", addresses=("10.10.0.100",))
    return StackResources(
        stack_id="stack-1",
        stack_name="vnf-1",
        servers=(
            *(_server("masterNode", number, cp="masterNode_CP1", group="master_instance") for number in masters),
            *(_server("workerNode", number, cp="workerNode_CP2", group="worker_instance") for number in workers),
        ),
        ports=(vip,) if len(masters) > 1 else (),
        networks=(NetworkFacts(name="internalVL1", resource_id="net-internal"),),
    )


def with_storage_server(stack: StackResources, number: int) -> StackResources:
    """Return the stack with the storage server of ``storage_clusters``, whose volume stays when it is replaced."""
    server = _server(VDU, number, cp=PORT)
    disk = StorageFacts(name=VOLUME, resource_id="volume-1", server_id=server.server_id)
    # The address belongs to the port, which stays too.
    port = server.ports[0].model_copy(update={"resource_id": "port-storage", "addresses": ("10.10.0.40",)})
    server = server.model_copy(update={"ports": (port,)})
    return stack.model_copy(
        update={"servers": (*stack.servers, server), "ports": (*stack.ports, port), "volumes": (disk,)}
    )


CLUSTER_STACK: Final = cluster_stack(2, 3)
CLUSTER_ACCESS: Final = ClusterAccess(
    server="https://10.10.0.11:6443",
    bearer_token=Secret("token-of-the-cluster"),
    ssl_ca_cert="-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n",
    ssl_ca_cert_hash="sha256:00",
)
NODE_NAMES: Final = {"vnfc-masterNode-1": "master11", "vnfc-workerNode-2": "worker12", "vnfc-workerNode-3": "worker13"}
RELEASE: Final = ObjectsApplied(
    namespace="default",
    objects=(
        ObjectFacts(api_version="v1", kind="ConfigMap", namespace="default", name="web", uid="uid-1"),
        ObjectFacts(api_version="apps/v1", kind="Deployment", namespace="default", name="vdu1", uid="uid-2", vdu_id="VDU1"),
    ),
    pods=(
        PodFacts(
            vdu_id="VDU1", name="vdu1-1", namespace="default", uid="uid-3", owner_kind="Deployment", node="worker12",
            addresses=("192.168.1.5",),
        ),
    ),
)  # fmt: skip

VM_ANSWERS: Final[Mapping[str, Event]] = {
    "infra.openstack.create_resources": ResourcesCreated(resources=vm_stack(1)),
    "infra.openstack.delete_resources": ResourcesDeleted(stack_name="vnf-1"),
    **{
        f"infra.openstack.{what}": ResourcesChanged(resources=vm_stack(1))
        for what in ("scale_resources", "heal_resources", "change_connections", "change_template", "restore_resources")
    },
    "infra.openstack.operate_servers": ServersOperated(servers=("server-VDU1-1",), state="STOPPED"),
    "infra.openstack.take_snapshot": SnapshotTaken(
        machine=MachineSnapshot(
            vnfc_id="vnfc-VDU1-1",
            server_id="server-VDU1-1",
            image_id="image-2",
            started_at=MADE_AT,
            finished_at=MADE_AT,
        )
    ),
    "infra.openstack.remove_snapshot": SnapshotRemoved(snapshot_id="snapshot-1", vnfc_id="vnfc-VDU1-1"),
    "infra.openstack.revert_machine": MachineReverted(server_id="server-VDU1-1", image_id="image-2"),
    "mgmt.run_script": ScriptDone(
        answer=ScriptAnswer(edits=(ScriptEdit(path=("metadata", "configured"), change={"value": "yes"}),))
    ),
}
SCRIPT_LEFT: Final[dict[str, object]] = ScriptAnswer(data={"tried": "yes"}).model_dump(mode="json")
"""The data that a failed step of a script reports."""
CLUSTER_ANSWERS: Final[Mapping[str, Event]] = {
    "infra.openstack.create_resources": ResourcesCreated(resources=CLUSTER_STACK),
    "infra.openstack.delete_resources": ResourcesDeleted(stack_name="vnf-1"),
    "mgmt.run_phase": PhaseDone(driver=DRIVER, phase="instantiate_end", cluster=CLUSTER_ACCESS, node_names=NODE_NAMES),
    "mgmt.run_phase/instantiate_start": PhaseDone(driver=DRIVER, phase="instantiate_start"),
    "mgmt.run_phase/terminate_start": PhaseDone(driver=DRIVER, phase="terminate_start"),
    "vim.register": VimRegistered(
        vim_id="vim-2", name="cluster", vim_type="kubernetes", endpoint="https://10.10.0.11:6443"
    ),
}
RESTARTED: Final = ObjectsUpdated(
    namespace="default",
    objects=RELEASE.objects,
    pods=tuple(pod.model_copy(update={"name": "vdu1-2", "uid": "uid-4"}) for pod in RELEASE.pods),
    def_files=("Files/kubernetes/deployment.yaml",),
)
SCALED: Final = ObjectsScaled(
    namespace="default",
    objects=RELEASE.objects,
    pods=(*RELEASE.pods, *(pod.model_copy(update={"name": "vdu1-2", "uid": "uid-4"}) for pod in RELEASE.pods)),
)
HEALED: Final = ObjectsHealed(namespace="default", objects=RELEASE.objects, pods=SCALED.pods[1:])
REPAIRED: Final = ObjectsRepaired(namespace="default", objects=RELEASE.objects, pods=SCALED.pods[1:], repaired=2)
REPLACED: Final = ObjectsReplaced(namespace="default", objects=RELEASE.objects, pods=RESTARTED.pods)
CNF_ANSWERS: Final[Mapping[str, Event]] = {
    "infra.k8s.replace_objects": REPLACED,
    "infra.k8s.heal_objects": HEALED,
    "infra.k8s.repair_objects": REPAIRED,
    "infra.k8s.scale_objects": SCALED,
    "infra.k8s.apply_objects": RELEASE,
    "infra.k8s.hold_links": LinksHeld(link_ids=("link-1",)),
    "infra.k8s.release_links": LinksReleased(link_ids=("link-1",)),
    "infra.k8s.hold_volumes": VolumesHeld(volume_ids=("volume-1",)),
    "infra.k8s.release_volumes": VolumesReleased(),
    "infra.k8s.update_objects": RESTARTED,
    "mgmt.run_script": VM_ANSWERS["mgmt.run_script"],
}
NODE_PORTS: Final = "mgmt-drivers-cnf-nodeport"
NODE_PORT_ANSWERS: Final[Mapping[str, Event]] = {
    "infra.k8s.apply_objects": RELEASE.model_copy(
        update={"services": (ServiceFacts(namespace="default", name="web", node_ports=(30080,)),)}
    ),
    "infra.k8s.repair_objects": REPAIRED.model_copy(
        update={"services": (ServiceFacts(namespace="default", name="web", node_ports=(30081,)),)}
    ),
    "mgmt.run_phase": PhaseDone(driver=NODE_PORTS, phase="instantiate_end"),
    "mgmt.run_phase/terminate_end": PhaseDone(driver=NODE_PORTS, phase="terminate_end"),
}


KURYR_DRIVER: Final = "kuryr-kubernetes"
KURYR_PARAMETERS: Final = {
    "pod_security_group_ids": ["pods"],
    "pod_subnet_ids": ["pod_subnet"],
    "service_subnet_id": "service_subnet",
    "lbaas_id": "api",
    "worker_nodes_subnet_id": "7d5e2b1a-93a7-4c1c-8f5e-2b1f9f0e6a11",
    "router_id": "router",
}
KURYR_RESOURCES: Final = """\
  pods: {type: OS::Neutron::SecurityGroup}
  pod_subnet: {type: OS::Neutron::Subnet, properties: {network: pod-net, cidr: 10.200.0.0/16}}
  service_subnet: {type: OS::Neutron::Subnet, properties: {network: service-net, cidr: 10.96.0.0/16}}
  router: {type: OS::Neutron::Router}
  api: {type: OS::Octavia::LoadBalancer, properties: {vip_subnet: {get_resource: service_subnet}}}
"""
KURYR_ANSWERS: Final[Mapping[str, Event]] = {
    "infra.openstack.create_resources": ResourcesCreated(resources=CLUSTER_STACK),
    "infra.openstack.delete_resources": ResourcesDeleted(stack_name="vnf-1"),
    "infra.openstack.prepare_kuryr": ANSWERS["infra.openstack.prepare_kuryr"],
    "infra.openstack.remove_kuryr": ANSWERS["infra.openstack.remove_kuryr"],
    "mgmt.run_phase": PhaseDone(
        driver=KURYR_DRIVER, phase="instantiate_end", cluster=CLUSTER_ACCESS, node_names=NODE_NAMES
    ),
    "mgmt.run_phase/stop_kuryr": PhaseDone(driver=KURYR_DRIVER, phase="terminate_start"),
    "vim.register": CLUSTER_ANSWERS["vim.register"],
    "infra.openstack.await_trunks": ANSWERS["infra.openstack.await_trunks"],
    "mgmt.run_phase/stop_ill_kuryr": PhaseDone(driver=KURYR_DRIVER, phase="terminate_start"),
}


REGISTRY_DRIVER: Final = "mgmt-drivers-private-registry"
REGISTRY_STACK: Final = StackResources(
    stack_id="stack-1",
    stack_name="vnf-1",
    servers=(_server("PrivateRegistryVDU", 1, cp="PrivateRegistryVDU_CP1"),),
    images=("image-1",),
)
"""The stack of the sample ``registry``."""
REGISTRY_ANSWERS: Final[Mapping[str, Event]] = {
    "infra.openstack.create_resources": ResourcesCreated(resources=REGISTRY_STACK),
    "infra.openstack.delete_resources": ResourcesDeleted(stack_name="vnf-1"),
    "infra.openstack.heal_resources": ResourcesChanged(resources=REGISTRY_STACK),
    "mgmt.run_phase": PhaseDone(driver=REGISTRY_DRIVER, phase="instantiate_end"),
    "mgmt.run_phase/heal_end": PhaseDone(driver=REGISTRY_DRIVER, phase="heal_end"),
}

_WORKLOAD: Final = WorkloadCluster(name="workload", namespace="default")


def _machine(number: str) -> MachineFacts:
    name = f"workload-md-0-{number}"
    return MachineFacts(
        vdu_id="worker", name=name, namespace="default", uid=f"uid-2-{number}", owner_kind="MachineDeployment",
        owner="workload-md-0", node=name, provider_id=f"openstack:///{number}", version="v1.33.1",
        addresses=("10.6.0.12",),
    )  # fmt: skip


WORKLOAD_ANSWERS: Final[Mapping[str, Event]] = {
    "infra.k8s.apply_objects": ObjectsApplied(
        namespace="default",
        objects=(
            ObjectFacts(
                api_version="cluster.x-k8s.io/v1beta2", kind="Cluster", namespace="default", name="workload", uid="uid-1"
            ),
        ),
    ),
    "infra.k8s.await_cluster": ClusterReached(
        cluster=_WORKLOAD,
        uid="uid-1",
        endpoint="https://192.0.2.10:6443",
        stage="available",
        machines=(_machine("1"),),
    ),
    "infra.k8s.repair_objects": ObjectsRepaired(
        namespace="default",
        objects=(
            ObjectFacts(
                api_version="cluster.x-k8s.io/v1beta2", kind="Cluster", namespace="default", name="workload", uid="uid-1"
            ),
        ),
        repaired=1,
    ),
    "infra.k8s.check_machines": MachinesChecked(machines=(_machine("1"),), chosen=(_machine("1"),)),
    "infra.k8s.replace_machine": MachineReplaced(machines=(_machine("4"),)),
    "infra.k8s.apply_addons": AddonsApplied(count=2),
    "infra.k8s.update_cluster": ClusterUpdated(namespace="default"),
    "infra.k8s.roll_out_machines": RollOutBegun(owners=("MachineDeployment workload-md-0",)),
    "mgmt.send_credentials": CredentialsSent(
        cluster_uid="uid-1", endpoint="https://192.0.2.10:6443", contract="v1beta2", content_sha256="0" * 64,
        auth_type="bearer_token",
    ),
    "mgmt.withdraw_credentials": CredentialsWithdrawn(cluster_uid="uid-1"),
    "mgmt.run_script": ScriptDone(
        answer=ScriptAnswer(data={"sent": "yes"}),
        sent=CredentialsSent(cluster_uid="uid-1", endpoint="https://192.0.2.10:6443", contract="v1beta2"),
    ),
    "mgmt.run_script/terminate_start": ScriptDone(),
    "vim.release": VimReleased(vim_ids=("vim-w",)),
    "vim.register_received": VimRegistered(
        vim_id="vim-w", name="workload-1", vim_type="ETSINFV.KUBERNETES.V_1", endpoint="https://192.0.2.10:6443"
    ),
}  # fmt: skip

SCALED_WORKLOAD_ANSWERS: Final[Mapping[str, Event]] = {
    **WORKLOAD_ANSWERS,
    "infra.k8s.apply_objects": ObjectsApplied(
        namespace="default",
        objects=(
            ObjectFacts(
                api_version="cluster.x-k8s.io/v1beta2", kind="Cluster", namespace="default", name="workload", uid="uid-1"
            ),
            ObjectFacts(
                api_version="cluster.x-k8s.io/v1beta2", kind="MachineDeployment", namespace="default",
                name="workload-md-0", uid="uid-3",
            ),
        ),
    ),
    "infra.k8s.scale_objects": ObjectsScaled(namespace="default"),
}  # fmt: skip

_MANAGEMENT: Final = ObjectsApplied(
    namespace="default",
    objects=(
        ObjectFacts(
            api_version="apiextensions.k8s.io/v1", kind="CustomResourceDefinition", name="clusters.cluster.x-k8s.io",
            uid="uid-1",
        ),
    ),
    providers=CapiProviders(
        core=CapiProvider(
            name="cluster-api", version="v1.14.2", contract="v1beta2",
            kinds=(CapiKind(group="cluster.x-k8s.io", kind="Cluster", versions=("v1beta1", "v1beta2")),),
        )
    ),
)  # fmt: skip
MANAGEMENT_ANSWERS: Final[Mapping[str, Event]] = {
    "infra.k8s.apply_objects": _MANAGEMENT,
    "infra.k8s.replace_objects": ObjectsReplaced(namespace="default", objects=_MANAGEMENT.objects),
    "infra.k8s.check_clusters": ClustersChecked(
        clusters=(
            LeftObject(
                api_version="cluster.x-k8s.io/v1beta2", kind="Cluster", namespace="default", name="edge", uid="uid-2",
                cluster="https://192.0.2.10:6443",
            ),
        )
    ),
    "vim.record_capi_providers": CapiProvidersRecorded(vim_id="vim-k"),
}  # fmt: skip
