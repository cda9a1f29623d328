"""The parameters of a cluster against VNFD, Base HOT and package, before the request is accepted (sequences.md 2).

Their form, and that they fit each other, is for `kubevnfm_cluster`: an attribute that is absent or malformed is a 400
there. Here everything is a 422, except a name that a group needs and does not have.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from kubevnfm_cluster.parameters import ROOT, ClusterParameters, MasterGroup, NodeGroup
from kubevnfm_cluster.request import RequestedCluster, read_request
from kubevnfm_cluster.rules import check_networks, node_mask
from kubevnfm_cluster.storage import StorageServer
from kubevnfm_csar.hot import BaseHot
from kubevnfm_csar.vnfd.model import Flavour
from kubevnfm_events import ApiVersion
from kubevnfm_kit.errors import InvalidInput, Unprocessable

from kubevnfm_lcm_api.lifecycle.clusters.kuryr import check_kuryr, pod_and_service_subnets
from kubevnfm_lcm_api.lifecycle.clusters.places import FLOATING_IP, PORT, VOLUME, Group, Places, connection_point

_TOP = "the top template"


@dataclass(frozen=True)
class CheckedCluster:
    """A cluster that fits its package and VNFD."""

    parameters: ClusterParameters
    masters: int
    """Machines at the instantiation level."""
    workers: int
    max_nodes: int
    """The most that levels and scaling allow, masters and workers together."""


def check_cluster_parameters(
    additional_params: Mapping[str, object],
    *,
    flavour: Flavour,
    base_hot: BaseHot | None,
    file_names: Collection[str],
    api_version: ApiVersion,
    has_user_data: bool,
    instantiation_level_id: str | None = None,
    has_kuryr_driver: bool = False,
) -> CheckedCluster:
    """Return the cluster that additionalParams ask for; texts may be Secret leaves.

    ``file_names``: the paths of the package's files. ``has_user_data``: whether user data of the package is run.
    ``has_kuryr_driver``: whether the VNFD names the driver of clusters with Kuryr.
    Not checked here: facts that only the stack or the machines have, and whether the VIM's name is taken.
    Raises: InvalidInput, Unprocessable naming the field (``additionalParams/...``) and what was expected.
    """
    cluster = read_request(additional_params)
    _check_file(f"{ROOT}/script_path", cluster.script_path, file_names)
    _check_file(f"{ROOT}/x_cni", cluster.x_cni, file_names)
    _check_key_pair(cluster.x_key_pair_parameter, base_hot)

    places = Places(flavour=flavour, hot=base_hot, level_id=instantiation_level_id)
    check_kuryr(cluster, places, is_driven=has_kuryr_driver)
    needed = _needed_attribute(api_version, has_user_data=has_user_data) if base_hot is not None else None
    masters = places.group(cluster.master_node, "master", needed=needed)
    workers = places.group(cluster.worker_node, "worker", needed=needed)
    _check_ports(cluster.master_node, masters, f"{ROOT}/master_node")
    _check_ports(cluster.worker_node, workers, f"{ROOT}/worker_node")
    _check_endpoint(cluster.master_node, masters, places)
    _check_several(cluster.master_node, masters, places)
    if base_hot is None:
        _check_one(masters, "master")
        _check_one(workers, "worker")
    check_networks(cluster, places.subnets(without=pod_and_service_subnets(cluster)))
    max_nodes = masters.most + workers.most
    node_mask(cluster.master_node.pod_cidr, nodes=max_nodes)
    _check_features(cluster, places, file_names)
    return CheckedCluster(cluster, masters=masters.count, workers=workers.count, max_nodes=max_nodes)


def _check_one(group: Group, role: str) -> None:
    """Refuse what a cluster by TOSCA alone cannot have: several machines of a role (sequences.md 1.9)."""
    if group.most != 1:
        raise Unprocessable(
            f"{ROOT}/{role}_node",
            f"up to {group.most} machines: without a Base HOT, a VDU with one machine at all levels expected",
        )


def _needed_attribute(api_version: str, *, has_user_data: bool) -> str | None:
    """Return the attribute that a group must have; None: TOSCA's names are enough (sequences.md 2.3)."""
    if api_version == "v2":
        return "vdu_id"
    return "aspect_id" if has_user_data else None


def _check_key_pair(parameter: str | None, hot: BaseHot | None) -> None:
    """Refuse a parameter that cannot give the public key to the machines."""
    if parameter is None:
        return
    field = f"{ROOT}/x_key_pair_parameter"
    if hot is None or parameter not in hot.top.parameters:
        raise Unprocessable(field, f"the Base HOT has no parameter {parameter}")
    # User data may leave a parameter with a default out, and the machines would refuse the key much later.
    if not hot.top.is_needed_text(parameter):
        raise Unprocessable(
            field, f"{parameter} of the Base HOT: a parameter of type string without a default expected"
        )


def _check_ports(nodes: NodeGroup, group: Group, field: str) -> None:
    ssh_field, nic_field = f"{field}/ssh_cp_name", f"{field}/nic_cp_name"
    connection_point(ssh_field, nodes.ssh_cp_name, group.types, where=group.where, kinds=(PORT, FLOATING_IP))
    if nodes.nic_cp_name is not None:
        connection_point(nic_field, nodes.nic_cp_name, group.types, where=group.where, kinds=(PORT,))
    elif group.types[nodes.ssh_cp_name] != PORT:
        # A floating IP is not in the cluster's own network, so it cannot stand for the missing name.
        raise InvalidInput(nic_field, "missing: the port in the cluster's own network expected")


def _check_endpoint(master: MasterGroup, group: Group, places: Places) -> None:
    """Check where the API answers: the master's port, or with several masters the VIP's port in the top template."""
    field, is_vip = f"{ROOT}/master_node", group.count > 1
    types, where = (places.top, _TOP) if is_vip else (group.types, group.where)
    connection_point(f"{field}/cluster_cp_name", master.cluster_cp_name, types, where=where, kinds=(PORT,))
    fip_field = f"{field}/cluster_fip_name"
    if master.cluster_fip_name is not None:
        kinds = (FLOATING_IP,)
        connection_point(fip_field, master.cluster_fip_name, places.top, where=_TOP, kinds=kinds)
    elif is_vip and group.types[master.ssh_cp_name] == FLOATING_IP:
        raise InvalidInput(fip_field, "missing: the floating IP of the Kubernetes API expected")


def _check_several(master: MasterGroup, group: Group, places: Places) -> None:
    """Check that several masters keep a majority when one is down, and can have the virtual address (sequences.md 2.3)."""
    if group.count <= 1:
        return
    if group.count % 2 == 0:
        raise Unprocessable(
            f"{ROOT}/master_node",
            f"{group.count} masters at this instantiation level: an odd number expected, as etcd needs a majority of them",
        )
    port = places.resource(group, master.cluster_port).get("properties") or {}
    if (
        places.hot is not None
        and not port.get("allowed_address_pairs")
        and port.get("port_security_enabled") is not False
    ):
        raise Unprocessable(
            f"{ROOT}/master_node/nic_cp_name",
            f"{master.cluster_port} of {group.where}: allowed_address_pairs with the address of {master.cluster_cp_name} "
            "expected; without it Neutron lets no master have the virtual address",
        )


def _check_features(cluster: RequestedCluster, places: Places, file_names: Collection[str]) -> None:
    """Refuse names that package and templates do not have."""
    for index, registry in enumerate(cluster.private_registry_connection_info):
        field = f"{ROOT}/private_registry_connection_info/{index}/certificate_path"
        _check_file(field, registry.certificate_path, file_names)
    if cluster.storage_server is not None:
        _check_storage(cluster.storage_server, places)
    for index, volume in enumerate(cluster.pv_registration_params):
        field = f"{ROOT}/pv_registration_params/{index}"
        _check_file(f"{field}/pv_manifest_file_path", volume.pv_manifest_file_path, file_names)
        connection_point(f"{field}/nfs_server_cp", volume.nfs_server_cp, places.top, where=_TOP, kinds=(PORT,))
    helm = "helm_installation_script_path"
    _check_file(f"{ROOT}/{helm}", cluster.helm_installation_script_path, file_names)


def _check_file(field: str, path: str | None, file_names: Collection[str]) -> None:
    """Raise Unprocessable if the package does not have the file that the request names."""
    if path is not None and path not in file_names:
        raise Unprocessable(field, f"the package has no file {path}")


def _check_storage(storage: StorageServer, places: Places) -> None:
    """Check that all volumes belong to one machine of the top template (sequences.md 3.3), and its ports."""
    field, top = f"{ROOT}/storage_server", places.top
    connection_point(f"{field}/ssh_cp_name", storage.ssh_cp_name, top, where=_TOP, kinds=(PORT, FLOATING_IP))
    if storage.nic_cp_name is not None:
        connection_point(f"{field}/nic_cp_name", storage.nic_cp_name, top, where=_TOP, kinds=(PORT,))
    owner: str | None = None
    for index, volume in enumerate(storage.cinder_volume_setup_params):
        place, name = f"{field}/cinder_volume_setup_params/{index}/volume_resource_id", volume.volume_resource_id
        connection_point(place, name, top, where=_TOP, kinds=(VOLUME,))
        servers = places.servers_with(name)
        if len(servers) != 1:
            raise Unprocessable(place, f"{name} is attached to {len(servers)} servers of {_TOP}: one expected")
        if owner is not None and servers[0] != owner:
            raise Unprocessable(place, f"{name} is attached to {servers[0]}, and another volume to {owner}")
        owner = servers[0]
    for attribute, port in (("ssh_cp_name", storage.ssh_cp_name), ("nic_cp_name", storage.nic_cp_name)):
        if owner is not None and port is not None and top[port] == PORT and not places.is_port_of(port, owner):
            raise Unprocessable(f"{field}/{attribute}", f"{port} is no port of {owner}, which has the volumes")
