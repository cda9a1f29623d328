"""TenantCapacity: flavors, zones and free quotas of a tenant, from Nova, Neutron and Cinder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from kubevnfm_infra_openstack.adapters.tenants import Document, Tenant, reads
from kubevnfm_infra_openstack.adapters.together import together
from kubevnfm_infra_openstack.domain.machine_flavors import MADE_FLAVOR
from kubevnfm_infra_openstack.domain.quota import (
    CORES,
    FLOATING_IPS,
    PORTS,
    RAM,
    SERVERS,
    VOLUME_GIB,
    VOLUME_SNAPSHOTS,
    VOLUMES,
    Flavor,
)

_CACHED_S: Final = 60.0
_NOVA: Final = {
    SERVERS: ("maxTotalInstances", "totalInstancesUsed"),
    CORES: ("maxTotalCores", "totalCoresUsed"),
    RAM: ("maxTotalRAMSize", "totalRAMUsed"),
}
_CINDER: Final = {
    VOLUMES: ("maxTotalVolumes", "totalVolumesUsed"),
    VOLUME_GIB: ("maxTotalVolumeGigabytes", "totalGigabytesUsed"),
    VOLUME_SNAPSHOTS: ("maxTotalSnapshots", "totalSnapshotsUsed"),
}
_NEUTRON: Final = {PORTS: "port", FLOATING_IPS: "floatingip"}
_NOT_SHOWN: Final = frozenset({400, 403, 404, 405, 501})
"""The tenant may not see its quotas, or the cloud lacks that extension. Then the resources count as unlimited."""


class TenantCapacity:
    """Flavors, zones and free quotas of one tenant."""

    def __init__(self, tenant: Tenant, *, now: Callable[[], float]) -> None:
        self._tenant, self._now = tenant, now
        self._flavors: Mapping[str, Flavor] = {}
        self._flavors_until = 0.0
        self._zones: tuple[str, ...] = ()
        self._zones_until = 0.0

    @reads("Nova")
    async def flavors(self) -> Mapping[str, Flavor]:
        # Cached, because operators add flavors rarely; a missing new flavor only makes the quota check less strict.
        if self._now() >= self._flavors_until:
            response = await self._tenant.call("compute", "GET", "/flavors/detail", query={"limit": "1000"})
            flavors: dict[str, Flavor] = {}
            for document in response.json()["flavors"]:
                flavor = Flavor(
                    vcpus=int(document["vcpus"]),
                    ram_mib=int(document["ram"]),
                    disk_gib=int(document.get("disk") or 0),
                    is_of_a_stack=MADE_FLAVOR in document["name"],
                )
                flavors[document["id"]] = flavors[document["name"]] = flavor
            self._flavors, self._flavors_until = flavors, self._now() + _CACHED_S
        return self._flavors

    @reads("Nova")
    async def zones(self) -> Sequence[str]:
        # Cached as flavors are: one change of a stack may ask for the class and again for the built-in rules.
        if self._now() >= self._zones_until:
            response = await self._tenant.call("compute", "GET", "/os-availability-zone", fine=_NOT_SHOWN)
            found = response.json()["availabilityZoneInfo"] if response.ok else ()
            self._zones = tuple(zone["zoneName"] for zone in found if zone["zoneState"]["available"])
            self._zones_until = self._now() + _CACHED_S
        return self._zones

    @reads("The VIM")
    async def free(self, resources: Sequence[str]) -> Mapping[str, int]:
        """Asks only the services that own these resources, concurrently."""
        asked = frozenset(resources)
        answers = await together(
            ask(asked & names.keys())
            for names, ask in ((_NOVA, self._nova), (_NEUTRON, self._neutron), (_CINDER, self._cinder))
            if asked & names.keys()
        )
        return {name: amount for answer in answers for name, amount in answer.items()}

    async def _nova(self, names: frozenset[str]) -> Mapping[str, int]:
        return await self._limits("compute", {name: _NOVA[name] for name in names})

    async def _cinder(self, names: frozenset[str]) -> Mapping[str, int]:
        return await self._limits("block_storage", {name: _CINDER[name] for name in names})

    async def _limits(self, service: str, pairs: Mapping[str, tuple[str, str]]) -> Mapping[str, int]:
        response = await self._tenant.call(service, "GET", "/limits", fine=_NOT_SHOWN)
        if not response.ok:
            return {}
        absolute = response.json()["limits"]["absolute"]
        limits = {name: (absolute.get(limit, -1), absolute.get(used, 0)) for name, (limit, used) in pairs.items()}
        return {name: limit - used for name, (limit, used) in limits.items() if limit >= 0}  # -1: unlimited

    async def _neutron(self, names: frozenset[str]) -> Mapping[str, int]:
        project = await self._tenant.project_id()
        response = await self._tenant.call("network", "GET", f"/quotas/{project}/details.json", fine=_NOT_SHOWN)
        if not response.ok:
            return {}
        quota: Document = response.json()["quota"]
        details = {name: quota.get(_NEUTRON[name]) for name in names}
        return {
            name: detail["limit"] - detail.get("used", 0) - detail.get("reserved", 0)
            for name, detail in details.items()
            if isinstance(detail, Mapping) and detail.get("limit", -1) >= 0
        }
