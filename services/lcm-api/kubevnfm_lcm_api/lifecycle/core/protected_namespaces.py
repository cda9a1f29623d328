"""The namespaces of a cloud region in which nothing is made (multicloud.md MC-032)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, Protocol

from kubevnfm_clients.multicloud.regions import CloudRegion
from kubevnfm_clients.multicloud.types import Page
from kubevnfm_events import VimConnection
from kubevnfm_kit.errors import Unprocessable
from kubevnfm_kit.kubernetes_names import is_of_kubernetes

from kubevnfm_lcm_api.lifecycle.core.request_parameters import ORDER_ARTIFACT

_PLACE: Final = "additionalParams/namespace"
_MOST_SHOWN: Final = 20
_ORDER: Final = f"additionalParams/{ORDER_ARTIFACT}"


class Regions(Protocol):
    """The part of `kubevnfm_clients.multicloud.regions.CloudRegions` that is asked here."""

    async def find(self, filters: Mapping[str, str], *, limit: int, after: str | None = None) -> Page[CloudRegion]:
        """Return regions; ``filters``: values by attribute. Raises OutsideUnavailable."""
        ...


class ProtectedNamespaces:
    """The protected namespaces of the VIMs that are cloud regions."""

    def __init__(self, regions: Regions) -> None:
        self._regions = regions

    async def check(self, vim: VimConnection, namespace: str) -> None:
        """Raise Unprocessable if the region of a VIM protects the namespace; a VIM that is no region protects none."""
        check_namespace(namespace, await self._of(vim))

    async def check_foreign(self, vim: VimConnection, namespaces: Collection[str]) -> None:
        """Raise Unprocessable for foreign namespaces of an order (MC-018) that are protected, or of Kubernetes itself."""
        if not namespaces:
            return
        protected = await self._of(vim)
        refused = sorted(each for each in namespaces if each in protected or is_of_kubernetes(each))
        if refused:
            names = ", ".join(refused[:_MOST_SHOWN])
            raise Unprocessable(_ORDER, f"no foreign_namespaces that are protected or kube-* expected; it has {names}")

    async def _of(self, vim: VimConnection) -> Collection[str]:
        # Access data of the request may lead to another cluster than that of the VIM whose id they have.
        if vim.vim_id is None or not vim.is_reference:
            return ()
        found = await self._regions.find({"vim_id": vim.vim_id}, limit=1)
        return next((region.protected_namespaces for region in found.items), ())


def check_namespace(namespace: str, protected: Collection[str]) -> None:
    """Raise Unprocessable for a namespace that a region protects."""
    if namespace in protected:
        raise Unprocessable(_PLACE, "a protected namespace of the cloud region: name another one")
