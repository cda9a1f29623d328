"""The services that the handlers of VNF packages work with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from aiohttp import web

from kubevnfm_lcm_api.packages.catalogue import Packages
from kubevnfm_lcm_api.packages.domain.ports import PackageFiles
from kubevnfm_lcm_api.packages.onboarding import Onboarding


@dataclass(frozen=True)
class PackageServices:
    """The services of VNF packages."""

    catalogue: Packages
    onboarding: Onboarding
    files: PackageFiles
    limit_bytes: int
    """The largest package that an upload may have."""


SERVICES: Final = web.AppKey("packages", PackageServices)


def services(request: web.Request) -> PackageServices:
    """Return the services behind a request."""
    return request.app[SERVICES]
