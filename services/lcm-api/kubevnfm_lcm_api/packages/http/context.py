"""The services that the handlers of VNF packages work with, and the two addresses that a package is read at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from aiohttp import web
from kubevnfm_store.query import Stored

from kubevnfm_lcm_api.packages.catalogue import Packages
from kubevnfm_lcm_api.packages.charts import Charts
from kubevnfm_lcm_api.packages.domain.ports import PackageFiles
from kubevnfm_lcm_api.packages.on_demand import PackagesOnDemand
from kubevnfm_lcm_api.packages.onboarding import Onboarding


@dataclass(frozen=True)
class PackageServices:
    """The services of VNF packages."""

    catalogue: Packages
    onboarding: Onboarding
    files: PackageFiles
    limit_bytes: int
    """The largest package that an upload may have."""
    on_demand: PackagesOnDemand
    charts: Charts


PACKAGES: Final = "/vnfpkgm/v1/vnf_packages"
ONBOARDED: Final = "/vnfpkgm/v1/onboarded_vnf_packages"
"""Reads the packages of the other address by the ids of their VNFDs (SOL003 V3.7.1 clause 10.4)."""
ADDRESSES: Final = (f"{PACKAGES}/{{id}}", f"{ONBOARDED}/{{vnfdId}}")
"""Where one package is read. Handlers of both use `package_of`."""
TAGS: Final = ("VNF packages", "VNF packages by VNFD")
"""The headings of the two addresses in the OpenAPI document."""

SERVICES: Final = web.AppKey("packages", PackageServices)


def services(request: web.Request) -> PackageServices:
    """Return the services behind a request."""
    return request.app[SERVICES]


def is_by_vnfd(request: web.Request) -> bool:
    """Return whether a request addresses packages by the ids of their VNFDs."""
    return request.path == ONBOARDED or request.path.startswith(f"{ONBOARDED}/")


async def package_of(request: web.Request) -> Stored:
    """Return the package that a request addresses. Raises NotFound; by VNFD also before the package is ONBOARDED."""
    catalogue = services(request).catalogue
    if is_by_vnfd(request):
        return await catalogue.of_vnfd(request.match_info["vnfdId"])
    return await catalogue.get(request.match_info["id"])
