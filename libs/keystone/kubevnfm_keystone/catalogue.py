"""Keystone's catalogue: its regions, the default one among them, and the services that each region has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import urlsplit

from keystoneauth1.access import AccessInfo

from kubevnfm_keystone.login import KeystoneLogin

REQUIRED: Final = ("orchestration", "compute", "network", "image")
"""The services that every VNF of machines needs."""
OPTIONAL: Final = ("block-storage",)
"""Needed by VNFs with volumes alone."""
TITLES: Final[Mapping[str, str]] = {
    "orchestration": "Heat",
    "compute": "Nova",
    "network": "Neutron",
    "image": "Glance",
    "block-storage": "Cinder",
    "load-balancer": "Octavia",
    "identity": "Keystone",
}


class CatalogueLacks(Exception):
    """The catalogue lacks a region, or a service in it; the text names it and says what there is."""


class Catalogue:
    """The catalogue that a token came with."""

    def __init__(self, access: AccessInfo, login: KeystoneLogin) -> None:
        self._services, self._login = access.service_catalog, login

    @property
    def regions(self) -> Sequence[str]:
        """The regions, in the catalogue's order."""
        found = [one.region_name for group in self._services.get_endpoints_data().values() for one in group]
        return list(dict.fromkeys(str(region) for region in found if region))

    def has(self, service: str, region: str) -> bool:
        """Return whether the region has an endpoint of the service, of the interface that the login names."""
        return bool(
            self._services.get_endpoint_data_list(
                service_type=service, interface=self._login.interface, region_name=region
            )
        )

    def lacking(self, region: str) -> Sequence[str]:
        """Return the required services that the region lacks."""
        return [service for service in REQUIRED if not self.has(service, region)]

    def region(self) -> str:
        """Return the region of the login, or the default one. Raises CatalogueLacks.

        The default is, of the regions that have all required services: the only one; else the only one whose Keystone
        is the login's; else the first in the catalogue, which OpenStack's own clients take too.
        """
        regions = self.regions
        if self._login.region is not None:
            if self._login.region not in regions:
                raise CatalogueLacks(f"no region {self._login.region}; there are {', '.join(regions) or 'none'}")
            return self._login.region
        usable = [region for region in regions if not self.lacking(region)]
        mine = [region for region in usable if self._is_my_keystone(region)]
        if len(mine) == 1:
            return mine[0]
        if not usable:
            raise CatalogueLacks(f"no region has all of {_names(REQUIRED)}: {self._lacks(regions)}")
        return usable[0]

    def check_services(self, region: str) -> None:
        """Raise CatalogueLacks if the region lacks a required service."""
        if lacking := self.lacking(region):
            raise CatalogueLacks(f"region {region} has no {self._login.interface} endpoint of {_names(lacking)}")

    def _is_my_keystone(self, region: str) -> bool:
        found = self._services.get_endpoint_data_list(service_type="identity", region_name=region)
        return urlsplit(self._login.auth_url).netloc in {urlsplit(one.url or "").netloc for one in found}

    def _lacks(self, regions: Sequence[str]) -> str:
        return "; ".join(f"{one} lacks {_names(self.lacking(one))}" for one in regions) or "the catalogue is empty"


def _names(services: Sequence[str]) -> str:
    return ", ".join(f"{TITLES[service]} ({service})" for service in services)
