"""The machines of a cluster are found by the names that a request gives."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from kubevnfm_cluster.parameters import ClusterParameters
from kubevnfm_cluster.rules import SharedAddress
from kubevnfm_events.stacks import PortFacts, ServerFacts, StackResources, StorageFacts
from kubevnfm_lcm_api.lifecycle.clusters.nodes import find_nodes
from kubevnfm_lcm_api.lifecycle.machines.addresses import NodeNotFound, connection_address

FLOATING_IP = "OS::Neutron::FloatingIP"


def a_port(name: str, address: str) -> PortFacts:
    return PortFacts(name=name, resource_id=f"id-{name}", addresses=(address,), subnet_cidrs=("10.10.0.0/24",))


def a_floating_ip(name: str, address: str | None) -> PortFacts:
    return PortFacts(name=name, resource_id=f"id-{name}", resource_type=FLOATING_IP, floating_address=address)


def a_server(
    role: str, number: int, *ports: PortFacts, group: str | None = "", created: int | None = None
) -> ServerFacts:
    vdu = f"{role}Node"
    return ServerFacts(
        vnfc_id=f"{role}-{number}",
        name=vdu,
        vdu_id=vdu,
        server_id=f"server-{role}-{number}",
        server_name=f"{role}{number}",
        host=f"compute{number}",
        zone="nova",
        stack_id=f"stack-{role}-{number}",
        group=f"{role}_instance" if group == "" else group,
        member=f"member{number}",
        created_at=datetime(2026, 1, 1, 0, number if created is None else created, tzinfo=UTC),
        ports=ports or (a_port(f"{vdu}_CP1", f"10.10.0.{(10 if role == 'master' else 20) + number}"),),
    )


def a_stack(*servers: ServerFacts, ports: tuple[PortFacts, ...] = ()) -> StackResources:
    return StackResources(stack_id="s", stack_name="vnf-1", servers=servers, ports=ports)


def cluster(*, by: str = "aspect_id", master: dict[str, Any] | None = None, **worker: Any) -> ClusterParameters:
    ids = {
        "aspect_id": ({"aspect_id": "master_instance"}, {"aspect_id": "worker_instance"}),
        "vdu_id": ({"vdu_id": "masterNode"}, {"vdu_id": "workerNode"}),
        "": ({}, {}),
    }[by]
    login = {"username": "ubuntu", "password": "ubuntu"}
    master_ports = dict.fromkeys(("ssh_cp_name", "nic_cp_name", "cluster_cp_name"), "masterNode_CP1")
    worker_ports = dict.fromkeys(("ssh_cp_name", "nic_cp_name"), "workerNode_CP1")
    return ClusterParameters.model_validate(
        {
            "script_path": "Scripts/install.sh",
            "master_node": {**login, **ids[0], **master_ports, **(master or {})},
            "worker_node": {**login, **ids[1], **worker_ports, **worker},
        }
    )


@pytest.mark.parametrize("by", ["aspect_id", "vdu_id"])
def test_groups_and_vdus_lead_to_the_same_nodes_masters_first_and_oldest_first(by: str) -> None:
    stack = a_stack(a_server("worker", 2), a_server("worker", 1), a_server("master", 1, created=9))
    found = find_nodes(stack, cluster(by=by))
    assert [(node.role, node.vnfc_id, node.ssh_address) for node in found.nodes] == [
        ("master", "master-1", "10.10.0.11"),
        ("worker", "worker-1", "10.10.0.21"),
        ("worker", "worker-2", "10.10.0.22"),
    ]
    first = found.nodes[0]
    assert (first.nic_address, first.subnet_cidr, first.host, first.zone) == (
        "10.10.0.11",
        "10.10.0.0/24",
        "compute1",
        "nova",
    )
    assert (first.server_id, first.is_target) == ("server-master-1", True)
    assert (found.cluster_address, found.cluster_public_address) == ("10.10.0.11", None)


def test_without_groups_the_top_stack_is_searched_and_roles_come_from_names() -> None:
    """SEQ-027."""
    ports = (a_port("masterNode_CP1", "10.10.0.11"), a_port("workerNode_CP1", "10.10.0.21"))
    stack = a_stack(a_server("master", 1, *ports, group=None), a_server("worker", 1, *ports, group=None), ports=ports)
    found = find_nodes(stack, cluster(by=""))
    assert [(node.role, node.ssh_address) for node in found.nodes] == [
        ("master", "10.10.0.11"),
        ("worker", "10.10.0.21"),
    ]
    assert found.cluster_address == "10.10.0.11"


def test_ssh_goes_to_the_floating_ip_and_the_cluster_to_the_port() -> None:
    """SEQ-026."""

    def ports(role: str, number: int) -> tuple[PortFacts, ...]:
        return a_port(f"{role}Node_CP1", f"10.10.0.{number}"), a_floating_ip(f"{role}_fip", f"203.0.113.{number}")

    stack = a_stack(a_server("master", 1, *ports("master", 1)), a_server("worker", 1, *ports("worker", 2)))
    found = find_nodes(stack, cluster(master={"ssh_cp_name": "master_fip"}, ssh_cp_name="worker_fip"))
    assert [(node.ssh_address, node.nic_address) for node in found.nodes] == [
        ("203.0.113.1", "10.10.0.1"),
        ("203.0.113.2", "10.10.0.2"),
    ]
    assert (found.cluster_address, found.cluster_public_address) == ("10.10.0.1", "203.0.113.1")


def test_several_masters_are_reached_by_the_vip_of_the_top_stack() -> None:
    masters = [a_server("master", number) for number in (1, 2, 3)]
    vip = (a_port("vip_CP", "10.10.0.100"), a_floating_ip("vip_CP_floating_ip", "203.0.113.100"))
    named = {"cluster_cp_name": "vip_CP", "cluster_fip_name": "vip_CP_floating_ip"}
    found = find_nodes(a_stack(*masters, a_server("worker", 1), ports=vip), cluster(master=named))
    assert (found.cluster_address, found.cluster_public_address) == ("10.10.0.100", "203.0.113.100")


def test_a_nic_that_is_not_named_is_the_ssh_port() -> None:
    parameters = cluster(nic_cp_name=None)
    assert find_nodes(a_stack(a_server("master", 1), a_server("worker", 1)), parameters).nodes[1].nic_address


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (cluster(master={"aspect_id": "masters"}), r"master_node.aspect_id: .* group masters; groups: master_instance"),
        (cluster(by="vdu_id", vdu_id="nodes"), r"worker_node.vdu_id: .* VDU nodes; VDUs: masterNode, workerNode"),
        (cluster(ssh_cp_name="CP9"), r"worker_node.ssh_cp_name: .* CP9 beside worker1; there are: workerNode_CP1"),
        (cluster(nic_cp_name="CP9"), r"worker_node.nic_cp_name: .* CP9"),
        (cluster(master={"cluster_cp_name": "vip"}), r"master_node.cluster_cp_name: .* vip beside master1"),
        (cluster(master={"cluster_fip_name": "fip"}), r"master_node.cluster_fip_name: .* fip in the top stack"),
    ],
)
def test_a_name_that_the_stack_lacks_is_refused_with_the_names_that_it_has(
    parameters: ClusterParameters, message: str
) -> None:
    with pytest.raises(NodeNotFound, match=message):
        find_nodes(a_stack(a_server("master", 1), a_server("worker", 1)), parameters)


def test_names_that_begin_with_neither_role_are_refused() -> None:
    with pytest.raises(NodeNotFound, match="begins with worker; servers: masterNode"):
        find_nodes(a_stack(a_server("master", 1, group=None)), cluster(by=""))


def test_a_connection_point_without_address_is_refused() -> None:
    bare = PortFacts(name="workerNode_CP1", resource_id="p")
    with pytest.raises(NodeNotFound, match="port workerNode_CP1 of worker1 has no address"):
        find_nodes(a_stack(a_server("master", 1), a_server("worker", 1, bare)), cluster())


@pytest.mark.parametrize("name", ["VDU1_CP1", "VDU1_CP1-1", "fip"])
def test_a_connection_point_of_a_numbered_machine_has_its_name_of_the_vnfd(name: str) -> None:
    """One name is for all machines of a VDU."""
    servers = [
        a_server("worker", number, a_port(f"VDU1_CP1-{number}", f"10.10.0.{number}"), group=None).model_copy(
            update={"name": f"VDU1-{number}", "vdu_id": "VDU1"}
        )
        for number in range(2)
    ]
    fip = a_floating_ip("fip", "192.0.2.1")
    stack = a_stack(*servers, ports=(fip, *(port for server in servers for port in server.ports)))
    found = [connection_address(server, stack, name, field="cp_name") for server in servers]
    expected = {"VDU1_CP1": ["10.10.0.0", "10.10.0.1"], "VDU1_CP1-1": ["10.10.0.1"] * 2, "fip": ["192.0.2.1"] * 2}
    assert found == expected[name]


def test_a_floating_ip_is_refused_as_a_nic_and_without_address_for_ssh() -> None:
    fip = a_floating_ip("fip", None)
    stack = a_stack(a_server("master", 1), a_server("worker", 1, a_port("workerNode_CP1", "10.10.0.2"), fip))
    with pytest.raises(NodeNotFound, match="fip is a floating IP"):
        find_nodes(stack, cluster(nic_cp_name="fip"))
    with pytest.raises(NodeNotFound, match="floating IP fip of worker1 has no address"):
        find_nodes(stack, cluster(ssh_cp_name="fip"))


def test_two_nodes_with_one_address_are_refused() -> None:
    twin = a_server("worker", 1, a_port("workerNode_CP1", "10.10.0.11"))
    with pytest.raises(SharedAddress, match=r"10\.10\.0\.11 is the address of master master1 and worker worker1"):
        find_nodes(a_stack(a_server("master", 1), twin), cluster())


def test_one_vdu_in_both_roles_is_refused() -> None:
    with pytest.raises(SharedAddress):
        find_nodes(
            a_stack(a_server("master", 1)),
            cluster(by="vdu_id", vdu_id="masterNode", ssh_cp_name="masterNode_CP1", nic_cp_name="masterNode_CP1"),
        )


def test_a_vnf_that_is_no_cluster_has_its_servers_as_others() -> None:
    found = find_nodes(a_stack(a_server("master", 1)), None)
    assert [(node.role, node.ssh_address) for node in found.nodes] == [("other", "10.10.0.11")]
    assert found.cluster_address is None


def with_storage(**changes: Any) -> ClusterParameters:
    server = {
        "ssh_cp_name": "storage_CP",
        "username": "ubuntu",
        "password": "ubuntu",
        "cinder_volume_setup_params": [{"volume_resource_id": "disk", "mount_to": "/volume"}],
        "nfs_server_setup_params": [{"export_dir": "/volume/a", "export_to": "10.10.0.0/24"}],
    }
    volumes = [{"pv_manifest_file_path": "pv.yaml", "nfs_server_cp": "storage_CP"}]
    parts = {"storage_server": {**server, **changes}, "pv_registration_params": volumes}
    return ClusterParameters.model_validate({**cluster().model_dump(), **parts})


def a_storage_stack(*volumes: StorageFacts) -> StackResources:
    port = a_port("storage_CP", "10.10.0.31")
    server = a_server("storage", 1, port, group=None).model_copy(update={"name": "nfs", "vdu_id": "nfs"})
    stack = a_stack(
        server, a_server("worker", 1), a_server("master", 1), ports=(port, a_floating_ip("fip", "172.24.4.9"))
    )
    return stack.model_copy(update={"volumes": volumes})


def test_the_storage_server_is_the_machine_that_has_the_volumes() -> None:
    """SEQ-084, W-30: without nic_cp_name, and whatever the name of its VDU."""
    other = StorageFacts(name="other", resource_id="v2", server_id="server-worker-1")
    stack = a_storage_stack(other, StorageFacts(name="disk", resource_id="v1", server_id="server-storage-1"))
    found = find_nodes(stack, with_storage())
    assert [(node.role, node.vnfc_id) for node in found.nodes] == [
        ("master", "master-1"),
        ("worker", "worker-1"),
        ("storage", "storage-1"),
    ]
    assert (found.nodes[2].ssh_address, found.nodes[2].nic_address) == ("10.10.0.31", "10.10.0.31")
    assert (found.volumes, found.nfs_addresses) == ({"disk": "v1"}, {"storage_CP": "10.10.0.31"})
    by_floating_ip = find_nodes(stack, with_storage(ssh_cp_name="fip")).nodes[2]
    assert (by_floating_ip.ssh_address, by_floating_ip.nic_address) == ("172.24.4.9", "10.10.0.31")


def test_a_volume_that_no_machine_has_yet_belongs_to_the_machine_with_its_port() -> None:
    """A heal that failed has detached it, and the next one finds the machine all the same."""
    found = find_nodes(a_storage_stack(StorageFacts(name="disk", resource_id="v1")), with_storage())
    assert (found.nodes[2].vnfc_id, found.volumes) == ("storage-1", {"disk": "v1"})
    with pytest.raises(NodeNotFound, match="the stack has no volume disk; volumes: none") as caught:
        find_nodes(a_storage_stack(), with_storage())
    assert caught.value.field.startswith("storage_server.cinder_volume_setup_params")
