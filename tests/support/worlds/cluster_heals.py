"""Heals of a cluster: their drafts, and the stack in which machines are replaced."""

from __future__ import annotations

from typing import Any

from kubevnfm_cluster.request import read_cluster_parameters
from kubevnfm_events import Message
from kubevnfm_events.stacks import HealResources, PortFacts, StackResources, StorageFacts
from kubevnfm_lcm_api.lifecycle.clusters.healing import HealClusterDraft

from worlds.cluster_moves import NAMES, a_cluster_change
from worlds.lcm_builders import CLUSTER_PARAMETERS, RESOURCES, a_server


def replaced(*names: str, stack: StackResources = RESOURCES) -> StackResources:
    """Return the stack after these machines were replaced: other ids at the same addresses."""
    servers = tuple(
        server.model_copy(update={"vnfc_id": f"{server.vnfc_id}b", "server_id": f"{server.server_id}b"})
        if server.vnfc_id in names
        else server
        for server in stack.servers
    )
    new_id = {old.server_id: new.server_id for old, new in zip(stack.servers, servers, strict=True)}
    volumes = tuple(one.model_copy(update={"server_id": new_id[one.server_id or ""]}) for one in stack.volumes)
    return stack.model_copy(update={"servers": servers, "volumes": volumes})


def a_heal(**known: Any) -> HealClusterDraft:
    return a_cluster_change(HealClusterDraft, **{"servers": ("server-w1", "server-w2"), **known})


HA = RESOURCES.model_copy(
    update={
        "servers": (
            RESOURCES.servers[0],
            a_server("m2", "masterNode", "master_instance", "10.10.0.8"),
            a_server("m3", "masterNode", "master_instance", "10.10.0.9"),
            *RESOURCES.servers[1:],
        ),
        "ports": (PortFacts(name="masterNode_CP1", resource_id="port-vip", addresses=("10.10.0.100",)),),
    }
)
HA_NAMES = {**NAMES, "vnfc-m2": "master8", "vnfc-m3": "master9"}


class Machines:
    """The stack of a cluster with three masters, in which machines are replaced as commands ask."""

    def __init__(self, stack: StackResources = HA) -> None:
        self.stack = stack
        self.asked: list[tuple[str, ...]] = []
        self.new_volumes: list[tuple[str, ...]] = []

    def __call__(self, command: Message) -> StackResources:
        if isinstance(command, HealResources):
            self.asked.append(command.servers)
            self.new_volumes.append(command.volumes)
            names = [one.vnfc_id for one in self.stack.servers if one.server_id in command.servers]
            self.stack = replaced(*names, stack=self.stack)
        return self.stack


def a_heal_of_masters(*servers: str) -> HealClusterDraft:
    masters = tuple(one for one in servers if "-m" in one)
    return a_heal(before=HA, node_names=HA_NAMES, masters=masters, servers=servers)


def with_storage(stack: StackResources) -> StackResources:
    """Return the stack with a storage server and its volume."""
    server = a_server("s1", "storage_server", "storage", "10.10.0.20")
    server = server.model_copy(update={"ports": (server.ports[0].model_copy(update={"name": "storage_CP"}),)})
    disk = StorageFacts(name="disk", resource_id="volume-1", server_id=server.server_id)
    return stack.model_copy(
        update={
            "servers": (*stack.servers, server),
            "ports": (*stack.ports, *server.ports),
            "volumes": (disk,),
        }
    )


STORAGE: dict[str, Any] = {
    "storage_server": {
        "ssh_cp_name": "storage_CP",
        "username": "u",
        "password": "p",
        "cinder_volume_setup_params": [{"volume_resource_id": "disk", "mount_to": "/volume"}],
        "nfs_server_setup_params": [{"export_dir": "/volume/a", "export_to": "10.10.0.0/24"}],
    }
}


def a_mixed_heal(*servers: str) -> HealClusterDraft:
    """Return the heal of a storage server and other machines."""
    given = {**CLUSTER_PARAMETERS["k8s_cluster_installation_param"], **STORAGE}
    cluster = read_cluster_parameters({"k8s_cluster_installation_param": given})
    known: dict[str, Any] = {"cluster_parameters": cluster, "storage": "server-s1", "volumes": ("volume-1",)}
    return a_heal_of_masters(*servers).model_copy(update={"before": with_storage(HA), **known})


def a_whole_heal(**known: Any) -> HealClusterDraft:
    facts: dict[str, Any] = {
        "is_whole": True,
        "cluster_vim_id": "vim-2",
        "cluster_vim_name": "cluster-1",
        "max_nodes": 7,
        "servers": tuple(server.server_id for server in RESOURCES.servers),
    }
    return a_heal(**{**facts, **known})
