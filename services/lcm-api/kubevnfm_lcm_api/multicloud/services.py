"""The services behind ``/multicloud/v1``: the life cycle of VNFs, and clients of the services that own its other resources."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from aiohttp import web
from kubevnfm_clients.charts import ChartPrograms
from kubevnfm_clients.multicloud.dry_runs import DryRuns
from kubevnfm_clients.multicloud.health_checks import HealthChecks
from kubevnfm_clients.multicloud.inventory import Inventory
from kubevnfm_clients.multicloud.links import VirtualLinks
from kubevnfm_clients.multicloud.regions import CloudRegions
from kubevnfm_clients.multicloud.verdicts import Verdicts
from kubevnfm_clients.multicloud.volumes import PersistentVolumes
from kubevnfm_clients.pod_usages import PodUsages

from kubevnfm_lcm_api.http.documents import Document
from kubevnfm_lcm_api.lifecycle.requests.services import RequestServices
from kubevnfm_lcm_api.multicloud.waiting import OperationEnds

PREFIX: Final = "/multicloud/v1"
DOCUMENT: Final = Document(
    "kubevnfm multi-cloud",
    "VNFs in cloud regions, what they share, and what exists there",
    (
        "VNF instances",
        "Group operations",
        "Cloud regions",
        "Virtual links",
        "Persistent volumes",
        "Inventory",
        "Artifacts",
        "Subscriptions",
        "This document",
    ),
    prefix=PREFIX,
)
"""Each resource adds its heading."""


@dataclass(frozen=True)
class MultiCloudServices:
    """The owners of the resources."""

    regions: CloudRegions
    links: VirtualLinks
    volumes: PersistentVolumes
    inventory: Inventory
    dry_runs: DryRuns
    verdicts: Verdicts
    charts: ChartPrograms
    health_checks: HealthChecks
    usages: PodUsages


SERVICES: Final = web.AppKey("multicloud", MultiCloudServices)
VNFS: Final = web.AppKey("multicloud-vnfs", RequestServices)
ENDS: Final = web.AppKey("multicloud-ends", OperationEnds)


def services(request: web.Request) -> MultiCloudServices:
    """Return the services behind a request."""
    return request.app[SERVICES]


def vnfs(request: web.Request) -> RequestServices:
    """Return what operations of VNFs are accepted with."""
    return request.app[VNFS]


def ends(request: web.Request) -> OperationEnds:
    """Return what waits for the ends of operations."""
    return request.app[ENDS]
