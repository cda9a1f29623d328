"""Servers and flavors in Nova's answers, by the micro-version that the client requested."""

from __future__ import annotations

import hashlib
from typing import Any

from kubevnfm_lab.openstack.compute.nova import Nova
from kubevnfm_lab.openstack.compute.records import Server
from kubevnfm_lab.openstack.network.neutron import Neutron
from kubevnfm_lab.openstack.settings import Flavor

Json = dict[str, Any]
NEWEST_MINOR = 93
"""Zed's newest micro-version, 2.93."""


class ServerViews:
    """The API form of servers, with the addresses of their ports."""

    def __init__(self, nova: Nova, neutron: Neutron) -> None:
        self._nova, self._neutron = nova, neutron

    def addresses(self, server: Server) -> dict[str, list[Json]]:
        """Return the addresses of a server by network name, floating ones after the fixed one they lead to."""
        by_network: dict[str, list[Json]] = {}
        for port in self._nova.ports_of(server):
            shown = by_network.setdefault(self._neutron.networks[port.network_id].name, [])
            for ip in port.fixed_ips:
                shown.append(_address(ip.address, "fixed", port.mac))
            # Most clouds of tests have no floating IPs, and this runs for every server in every list.
            if self._neutron.floating_ips:
                shown.extend(
                    _address(floating.address, "floating", port.mac)
                    for floating in self._neutron.floating_ips.values()
                    if floating.port_id == port.record_id
                )
        return by_network

    def show(self, server: Server, base: str, minor: int) -> Json:
        """Return a server as its own route shows it: with its groups."""
        groups = [server.group_id] if server.group_id else []
        return {**self.detail(server, base, minor), **({"server_groups": groups} if minor >= 71 else {})}

    def detail(self, server: Server, base: str, minor: int) -> Json:
        """Return a server in full; ``base`` starts its links, ``minor`` is the micro-version's second number."""
        shown: Json = {
            "id": server.server_id,
            "name": server.name,
            "status": server.status,
            "tenant_id": server.project_id,
            "user_id": server.user_id,
            "metadata": server.metadata,
            "hostId": _host_id(server),
            "image": _image(server, base),
            "flavor": _flavor_of(server.flavor, base, minor),
            "created": server.created,
            "updated": server.updated,
            "addresses": self.addresses(server),
            "accessIPv4": "",
            "accessIPv6": "",
            "links": links(server, base),
            "OS-DCF:diskConfig": "MANUAL",
            "OS-EXT-AZ:availability_zone": server.availability_zone,
            "config_drive": "True" if server.config_drive else "",
            "key_name": server.key_name,
            "OS-SRV-USG:launched_at": server.launched_at,
            "OS-SRV-USG:terminated_at": None,
            # Most clouds hide it from members; the lab shows it to every user, since nodes are labelled with it.
            "OS-EXT-SRV-ATTR:host": server.host,
            "OS-EXT-STS:task_state": server.task_state,
            "OS-EXT-STS:vm_state": server.vm_state,
            "OS-EXT-STS:power_state": server.power_state,
            "os-extended-volumes:volumes_attached": [
                {"id": one.volume_id, **({"delete_on_termination": one.delete_on_termination} if minor >= 3 else {})}
                for one in server.volumes
            ],
        }
        # Nova shows these two only for servers that exist on a host.
        if server.status not in ("ERROR", "DELETED"):
            shown["progress"] = 0
            shown["security_groups"] = [{"name": name} for name in server.security_groups]
        if server.fault is not None:
            shown["fault"] = server.fault
        newer: tuple[tuple[int, str, Any], ...] = (
            (9, "locked", server.locked),
            (19, "description", None),
            (26, "tags", server.tags),
            (63, "trusted_image_certificates", None),
            (73, "locked_reason", None),
            (90, "OS-EXT-SRV-ATTR:hostname", server.hostname),
        )
        shown.update({key: value for since, key, value in newer if minor >= since})
        return shown


def links(server: Server, base: str) -> list[Json]:
    """Return the links that every answer about a server has."""
    return [
        {"rel": "self", "href": f"{base}/compute/v2.1/servers/{server.server_id}"},
        {"rel": "bookmark", "href": f"{base}/compute/servers/{server.server_id}"},
    ]


def flavor_detail(flavor: Flavor, base: str, minor: int) -> Json:
    """Return a flavor in full."""
    shown: Json = {
        "id": flavor.flavor_id,
        "name": flavor.name,
        "ram": flavor.ram_mib,
        "disk": flavor.disk_gib,
        # An empty string means no swap before 2.75.
        "swap": 0 if minor >= 75 else "",
        "OS-FLV-EXT-DATA:ephemeral": 0,
        "OS-FLV-DISABLED:disabled": False,
        "vcpus": flavor.vcpus,
        "os-flavor-access:is_public": True,
        "rxtx_factor": 1.0,
        "links": flavor_links(flavor, base),
    }
    if minor >= 55:
        shown["description"] = None
    if minor >= 61:
        shown["extra_specs"] = dict(flavor.extra_specs)
    return shown


def flavor_links(flavor: Flavor, base: str) -> list[Json]:
    """Return the links of a flavor."""
    return [
        {"rel": "self", "href": f"{base}/compute/v2.1/flavors/{flavor.flavor_id}"},
        {"rel": "bookmark", "href": f"{base}/compute/flavors/{flavor.flavor_id}"},
    ]


def _address(address: str, kind: str, mac: str) -> Json:
    version = 6 if ":" in address else 4
    return {"version": version, "addr": address, "OS-EXT-IPS:type": kind, "OS-EXT-IPS-MAC:mac_addr": mac}


def _host_id(server: Server) -> str:
    if server.host is None:
        return ""
    # Per project, so that tenants cannot compare hosts, as in Nova.
    return hashlib.sha224(f"{server.project_id}{server.host}".encode()).hexdigest()


def _image(server: Server, base: str) -> Json | str:
    if server.image_id is None:
        return ""
    link = {"rel": "bookmark", "href": f"{base}/compute/images/{server.image_id}"}
    return {"id": server.image_id, "links": [link]}


def _flavor_of(flavor: Flavor, base: str, minor: int) -> Json:
    if minor >= 47:
        return {
            "vcpus": flavor.vcpus,
            "ram": flavor.ram_mib,
            "disk": flavor.disk_gib,
            "ephemeral": 0,
            "swap": 0,
            "original_name": flavor.name,
            "extra_specs": dict(flavor.extra_specs),
        }
    return {"id": flavor.flavor_id, "links": [flavor_links(flavor, base)[1]]}
