"""Reads from request and grant, in SOL003 v3 form (maps, camelCase), what applies to a VDU or connection point."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kubevnfm_csar.vnfd.model import Flavour

from kubevnfm_infra_openstack.domain.request import SolObject


@dataclass(frozen=True)
class Granted:
    """Everything that decides Heat's parameters, in addition to templates and VNFD."""

    request: SolObject
    """InstantiateVnfRequest."""
    grant: SolObject = field(default_factory=dict)
    grant_request: SolObject = field(default_factory=dict)
    image_by_node: Mapping[str, str] = field(default_factory=dict)
    """Glance ids of the images that were uploaded from the package, by VDU or storage."""

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
    """Return the zone granted to (the first resource of) the VDU."""
    return next(iter(zones_of(vdu, given)), None)


def zones_of(vdu: str, given: Granted) -> Sequence[str]:
    """Return the zones granted to the VDU's resources, in the order of the grant."""
    wanted = {resource.get("id") for resource in _asked(vdu, given)}
    zone_by_id = {zone.get("id"): zone.get("zoneId") for zone in given.grant.get("zones") or ()}
    return [
        str(zone_by_id[resource["zoneId"]])
        for resource in given.grant.get("addResources") or ()
        if resource.get("resourceDefinitionId") in wanted and resource.get("zoneId") in zone_by_id
    ]


def capacity_of(vdu: str, vnfd: Flavour, given: Granted) -> int | None:
    """Return how many instances of the VDU were granted, else the number of the instantiation level."""
    # The grant request was calculated from the VNFD and the request's own levels, so it takes precedence.
    asked = sum(1 for resource in _asked(vdu, given) if resource.get("type") == "COMPUTE")
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


def _links(cp: str, given: Granted) -> Iterator[tuple[SolObject, SolObject]]:
    """Yield (external virtual link, extCp) of a connection point; the grant's take precedence over the request's."""
    for source in (given.grant, given.request):
        for link in source.get("extVirtualLinks") or ():
            for ext_cp in link.get("extCps") or ():
                if ext_cp.get("cpdId") == cp:
                    yield link, ext_cp


def network_of(cp: str, vnfd: Flavour, given: Granted) -> str | None:
    """Return the network to which the connection point is attached."""
    return next((str(link["resourceId"]) for link, _ in _links(cp, given)), None)


def fixed_ips(cp: str, vnfd: Flavour, given: Granted) -> Sequence[Mapping[str, str]]:
    """Return ``{"subnet", "ip_address"}`` for each address of the connection point, as OS::Neutron::Port reads them."""
    for _, ext_cp in _links(cp, given):
        return [ip for config in (ext_cp.get("cpConfig") or {}).values() if config for ip in _config_ips(config)]
    return []


def _config_ips(config: SolObject) -> Iterator[Mapping[str, str]]:
    for protocol in config.get("cpProtocolData") or ():
        for address in (protocol.get("ipOverEthernet") or {}).get("ipAddresses") or ():
            entry: dict[str, str] = {}
            if address.get("subnetId"):
                entry["subnet"] = str(address["subnetId"])
            if address.get("fixedAddresses"):
                entry["ip_address"] = str(address["fixedAddresses"][0])
            if entry:
                yield entry


def managed_links(given: Granted) -> Mapping[str, str]:
    """Return the network by VnfVirtualLinkDesc id, for internal links that exist outside the stack."""
    return {
        link["vnfVirtualLinkDescId"]: link["resourceId"]
        for source in (given.request, given.grant)
        for link in source.get("extManagedVirtualLinks") or ()
    }
