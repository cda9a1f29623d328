"""The services that the handlers of VNF packages work with, and the two addresses that a package is read at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from aiohttp import web
from kubevnfm_clients.charts import ChartRepositories
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
    repositories: ChartRepositories


@dataclass(frozen=True)
class Addresses:
    """Where one version of the API has the packages."""

    prefix: str

    @property
    def packages(self) -> str:
        return f"{self.prefix}/vnf_packages"

    @property
    def onboarded(self) -> str:
        """Reads the packages of the other address by the ids of their VNFDs (SOL003 V3.7.1 clause 10.4)."""
        return f"{self.prefix}/onboarded_vnf_packages"

    @property
    def of_one(self) -> tuple[str, str]:
        """Where one package is read. Handlers of both use `package_of`."""
        return f"{self.packages}/{{id}}", f"{self.onboarded}/{{vnfdId}}"


FOR_TACKERS_CLIENT: Final = Addresses("/vnfpkgm/v1")
ADDRESSES: Final = (FOR_TACKERS_CLIENT, Addresses("/vnfpkgm/v2"))
"""SOL005 V2.6.1, as Tacker has it, and SOL003 and SOL005 V3.7.1: the same packages, with links of the version that is asked."""
TAGS: Final = ("VNF packages", "VNF packages by VNFD")
"""The headings of the two addresses in the OpenAPI document."""

SERVICES: Final = web.AppKey("packages", PackageServices)


def services(request: web.Request) -> PackageServices:
    """Return the services behind a request."""
    return request.app[SERVICES]


def addresses(request: web.Request) -> Addresses:
    """Return the addresses of the version that a request is made in."""
    return next(each for each in ADDRESSES if request.path.startswith(f"{each.prefix}/"))


def is_by_vnfd(request: web.Request) -> bool:
    """Return whether a request addresses packages by the ids of their VNFDs."""
    return f"{request.path}/".startswith(f"{addresses(request).onboarded}/")


async def package_of(request: web.Request) -> Stored:
    """Return the package that a request addresses. Raises NotFound; by VNFD also before the package is ONBOARDED."""
    catalogue = services(request).catalogue
    if is_by_vnfd(request):
        return await catalogue.of_vnfd(request.match_info["vnfdId"])
    return await catalogue.get(request.match_info["id"])
