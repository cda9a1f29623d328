"""Compares the resources that a VNF instance shows with those that the cloud has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Inventory = Mapping[str, Sequence[Mapping[str, Any]]]
"""The answers of `LabControl.inventory` and `RealCloud.inventory`."""


def disagreements(instance: Mapping[str, Any], cloud: Inventory) -> list[str]:
    """Return a line for each difference; none for an instance that has nothing in the cloud and shows nothing of it.

    Compared are the machines (Nova), their ports with MAC and addresses and the external ones among them (Neutron), their
    volumes with attachments (Cinder), the networks of the VNF, and whether machines that are shown as started run.
    """
    info = instance.get("instantiatedVnfInfo") or {}
    return [*_machines(instance, info, cloud), *_ports(info, cloud), *_storage(instance, info, cloud)]


def _own(instance: Mapping[str, Any], cloud: Inventory, kind: str) -> dict[str, Mapping[str, Any]]:
    """Return the resources of the instance's stacks, whose names contain its id."""
    return {thing["id"]: thing for thing in cloud.get(kind, ()) if instance["id"] in thing["name"]}


def _own_servers(instance: Mapping[str, Any], cloud: Inventory) -> dict[str, Mapping[str, Any]]:
    """Return the servers of the instance's stacks; where a template names its servers, their ports still have the id."""
    bound = {port["device_id"] for port in _own(instance, cloud, "ports").values()}
    named = _own(instance, cloud, "servers")
    return {server["id"]: server for server in cloud.get("servers", ()) if server["id"] in bound | set(named)}


def _handles(info: Mapping[str, Any], listed: str, handle: str, kind: str) -> set[str]:
    handles = [one[handle] for one in info.get(listed, ())]
    return {one["resourceId"] for one in handles if one.get("vimLevelResourceType") == kind}


def _unequal(what: str, shown: object, there: object) -> Iterator[str]:
    if shown != there:
        yield f"{what}: shown {shown}, in the cloud {there}"


def _machines(instance: Mapping[str, Any], info: Mapping[str, Any], cloud: Inventory) -> Iterator[str]:
    servers = _own_servers(instance, cloud)
    shown = _handles(info, "vnfcResourceInfo", "computeResource", "OS::Nova::Server")
    yield from _unequal("machines", shown, set(servers))
    if shown and shown == set(servers):
        running = {server["status"] == "ACTIVE" for server in servers.values()}
        yield from _unequal("vnfState", {info.get("vnfState") == "STARTED"}, running)


def _shown_at(cp: Mapping[str, Any]) -> tuple[str, list[str]]:
    """Return the MAC and the addresses of a connection point."""
    (protocol,) = cp["cpProtocolInfo"]
    ethernet = protocol["ipOverEthernet"]
    return ethernet["macAddress"], [one for group in ethernet["ipAddresses"] for one in group["addresses"]]


def _ports(info: Mapping[str, Any], cloud: Inventory) -> Iterator[str]:
    bound: dict[str, dict[str, list[str]]] = {}
    for port in cloud.get("ports", ()):
        bound.setdefault(port["device_id"], {})[port["mac"]] = port["addresses"]
    of_vnfcs: dict[str, tuple[str, list[str]]] = {}
    for vnfc in info.get("vnfcResourceInfo", ()):
        if vnfc["computeResource"].get("vimLevelResourceType") != "OS::Nova::Server":
            continue
        server_id = vnfc["computeResource"]["resourceId"]
        cps = {cp["id"]: _shown_at(cp) for cp in vnfc.get("vnfcCpInfo", ())}
        yield from _unequal(f"ports of {server_id}", dict(cps.values()), bound.get(server_id, {}))
        of_vnfcs |= cps
    for cp in info.get("extCpInfo", ()):
        if "associatedVnfcCpId" in cp:
            internal = of_vnfcs.get(cp["associatedVnfcCpId"])
            yield from _unequal(f"extCpInfo {cp['id']}", _shown_at(cp), internal)
    ids = {port["id"] for port in cloud.get("ports", ())}
    for link in info.get("extVirtualLinkInfo", ()):
        for port in link.get("extLinkPorts", ()):
            resource_id = port["resourceHandle"]["resourceId"]
            yield from _unequal(f"link port {port['id']}", {resource_id}, ids & {resource_id})


def _storage(instance: Mapping[str, Any], info: Mapping[str, Any], cloud: Inventory) -> Iterator[str]:
    volumes = _own(instance, cloud, "volumes")
    shown = _handles(info, "virtualStorageResourceInfo", "storageResource", "OS::Cinder::Volume")
    yield from _unequal("volumes", shown, set(volumes))
    for vnfc in info.get("vnfcResourceInfo", ()):
        server_id = vnfc["computeResource"]["resourceId"]
        attached = {volume_id for volume_id, volume in volumes.items() if server_id in volume["servers"]}
        yield from _unequal(f"volumes of {server_id}", set(vnfc.get("storageResourceIds", ())), attached)
    networks = _handles(info, "vnfVirtualLinkResourceInfo", "networkResource", "OS::Neutron::Net")
    yield from _unequal("networks", networks, set(_own(instance, cloud, "networks")))
