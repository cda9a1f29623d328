"""The namespaces of a cloud region in which nothing is made (multicloud.md MC-032)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, Protocol

from kubevnfm_clients.multicloud.regions import CloudRegion
from kubevnfm_clients.multicloud.types import Page
from kubevnfm_kit.errors import Unprocessable

_PLACE: Final = "additionalParams/namespace"


class Regions(Protocol):
    """The part of `kubevnfm_clients.multicloud.regions.CloudRegions` that is asked here."""

    async def find(self, filters: Mapping[str, str], *, limit: int, after: str | None = None) -> Page[CloudRegion]:
        """Return regions; ``filters``: values by attribute. Raises OutsideUnavailable."""
        ...


class ProtectedNamespaces:
    """The protected namespaces of the VIMs that are cloud regions."""

    def __init__(self, regions: Regions) -> None:
        self._regions = regions

    async def check(self, vim_id: str, namespace: str) -> None:
        """Raise Unprocessable if the region of a VIM protects the namespace; a VIM that is no region protects none."""
        for region in (await self._regions.find({"vim_id": vim_id}, limit=1)).items:
            check_namespace(namespace, region.protected_namespaces)


def check_namespace(namespace: str, protected: Collection[str]) -> None:
    """Raise Unprocessable for a namespace that a region protects."""
    if namespace in protected:
        raise Unprocessable(_PLACE, "a protected namespace of the cloud region: name another one")
