"""Reads from request and grant, in SOL003 v3 form (maps, camelCase), what applies to a VDU or connection point."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from kubevnfm_csar.vnfd.clones import node_of, number_of
from kubevnfm_csar.vnfd.model import Flavour
from kubevnfm_sol.connection_points import AskedPort

from kubevnfm_infra_openstack.domain.asked_ports import AskedPorts, FixedIp, NetworkView
from kubevnfm_infra_openstack.domain.request import SolObject

COMPUTE: Final = "COMPUTE"
_TACKERS_ZONE: Final = "nova"


@dataclass(frozen=True)
class Granted:
    """Everything that decides Heat's parameters, in addition to templates and VNFD."""

    request: SolObject
    """InstantiateVnfRequest."""
    grant: SolObject = field(default_factory=dict)
    grant_request: SolObject = field(default_factory=dict)
    image_by_node: Mapping[str, str] = field(default_factory=dict)
    """Glance ids of the images that were uploaded from the package, by VDU or storage."""
    instance: SolObject = field(default_factory=dict)
    """VnfInstance before the operation."""
    networks: Mapping[str, NetworkView] = field(default_factory=dict)
    """The networks in which addresses have to be chosen (`AskedPorts.networks_to_choose_in`), by name or id."""
    default_zone: str | None = None
    """The zone of every machine where the grant has no zones; None: none is known, or nothing reads it."""
    present_ips: Mapping[str, Sequence[FixedIp]] = field(default_factory=dict)
    """``fixed_ips`` of the stack that is changed, by the name of the connection point in its template."""
    present_cidrs: Mapping[str, str] = field(default_factory=dict)
    """Ranges of the subnets of the stack that is changed, by resource name."""
    used_cidrs: Collection[str] = ()
    """Ranges of the networks outside the stack, if a range has to be chosen for one of the stack."""

    @cached_property
    def ports(self) -> AskedPorts:
        """The ports that are asked for."""
        return AskedPorts.from_documents(self.grant, self.request, self.instance).in_networks(self.networks)

    @property
    def request_params(self) -> SolObject:
        return self.request.get("additionalParams") or {}

    @property
    def grant_params(self) -> SolObject:
        return self.grant.get("additionalParams") or {}


def granted_images(grant: SolObject) -> Mapping[str, str]:
    """Return Glance ids by vnfdSoftwareImageId."""
    assets = grant.get("vimAssets") or {}
    return {i["vnfdSoftwareImageId"]: i["vimSoftwareImageId"] for i in assets.get("softwareImages") or ()}


def granted_flavors(grant: SolObject) -> Mapping[str, str]:
    """Return Nova flavor ids by vnfdVirtualComputeDescId."""
    assets = grant.get("vimAssets") or {}
    return {f["vnfdVirtualComputeDescId"]: f["vimFlavourId"] for f in assets.get("computeResourceFlavours") or ()}


def flavor_of(vdu: str, vnfd: Flavour, given: Granted) -> str | None:
    """Return the granted Nova flavor, else the one that the VNFD names."""
    granted = granted_flavors(given.grant).get(vdu)
    return granted or (vnfd.vdus[vdu].compute.capability_name if vdu in vnfd.vdus else None)


def image_of(node: str, vnfd: Flavour, given: Granted) -> str | None:
    """Return the granted image, else the one uploaded from the package, else the name in the VNFD."""
    found = granted_images(given.grant).get(node) or given.image_by_node.get(node)
    part = vnfd.vdus.get(node) or vnfd.storages.get(node)
    return found or (part.image.name if part is not None and part.image is not None else None)


def zone_of(vdu: str, vnfd: Flavour, given: Granted) -> str | None:
    """Return the zone granted to (the first resource of) the VDU, or by the VNFM itself if the grant has no zones."""
    return next(iter(zones_of(vdu, given)), None) if given.grant.get("zones") else given.default_zone


def zones_of(vdu: str, given: Granted) -> Sequence[str]:
    """Return the zones granted to the VDU's resources, in the order of the grant."""
    wanted = {resource.get("id") for resource in _asked(vdu, given)}
    zone_by_id = {zone.get("id"): zone.get("zoneId") for zone in given.grant.get("zones") or ()}
    return [
        str(zone_by_id[resource["zoneId"]])
        for resource in given.grant.get("addResources") or ()
        if resource.get("resourceDefinitionId") in wanted and resource.get("zoneId") in zone_by_id
    ]


def zone_among(available: Collection[str]) -> str | None:
    """Return the zone that a VNFM without an NFVO grants in a cloud: ``nova``, as Tacker does, or the only one."""
    if _TACKERS_ZONE in available:
        return _TACKERS_ZONE
    return next(iter(available)) if len(available) == 1 else None


def adds_machines(given: Granted) -> bool:
    """Return whether the grant request adds a machine, which needs a zone."""
    return any(resource.get("type") == COMPUTE for resource in given.grant_request.get("addResources") or ())


def capacity_of(vdu: str, vnfd: Flavour, given: Granted) -> int | None:
    """Return how many instances of the VDU were granted, else the number of the instantiation level."""
    # The grant request was calculated from the VNFD and the request's own levels, so it takes precedence.
    asked = sum(1 for resource in _asked(vdu, given) if resource.get("type") == COMPUTE)
    return asked or vnfd.initial_counts(given.request.get("instantiationLevelId")).get(vdu)


def aspect_capacity(aspect: str, vnfd: Flavour, given: Granted) -> int | None:
    """Return the capacity of the VDU that a scaling aspect (or a group named after one) scales."""
    for name in (aspect, aspect.removesuffix("_group")):
        for vdu in vnfd.scaled_vdus(name):
            return capacity_of(vdu, vnfd, given)
    return None


def _asked(vdu: str, given: Granted) -> Sequence[SolObject]:
    """Return the resources that the grant request adds for a VDU."""
    return [
        resource
        for resource in given.grant_request.get("addResources") or ()
        if vdu in (resource.get("resourceTemplateId"), resource.get("vduId"))
    ]


def network_of(cp: str, vnfd: Flavour, given: Granted) -> str | None:
    """Return the network to which the connection point is attached."""
    point = given.ports.points.get(_point_of(cp, given)[0])
    return point.network if point is not None else None


def fixed_ips(cp: str, vnfd: Flavour, given: Granted) -> Sequence[Mapping[str, str]]:
    """Return ``{"subnet", "ip_address"}`` for each address of the connection point, as OS::Neutron::Port reads them."""
    cpd_id, port = _port_of(cp, given)
    return given.ports.fixed_ips(cpd_id, port, given.present_ips.get(cp, ()), set()) if port is not None else []


def mac_of(cp: str, vnfd: Flavour, given: Granted) -> str | None:
    """Return the MAC address of the connection point; None: the VIM chooses."""
    _, port = _port_of(cp, given)
    return port.mac if port is not None else None


def port_of(cp: str, vnfd: Flavour, given: Granted) -> str | None:
    """Return the port, made before, that the connection point is to have."""
    _, port = _port_of(cp, given)
    return port.port_id if port is not None else None


def _point_of(cp: str, given: Granted) -> tuple[str, int]:
    """Return the connection point that a template's name means, and the number of the machine: ``CP1-2`` of CP1."""
    node = node_of(cp, given.ports.points)
    return (cp, 0) if node is None else (node, number_of(cp, node) or 0)


def _port_of(cp: str, given: Granted) -> tuple[str, AskedPort | None]:
    cpd_id, number = _point_of(cp, given)
    return cpd_id, given.ports.port_of(cpd_id, number)


def managed_links(given: Granted) -> Mapping[str, str]:
    """Return the network by VnfVirtualLinkDesc id, for internal links that exist outside the stack."""
    return {
        link["vnfVirtualLinkDescId"]: link["resourceId"]
        for source in (given.request, given.grant)
        for link in source.get("extManagedVirtualLinks") or ()
    }
