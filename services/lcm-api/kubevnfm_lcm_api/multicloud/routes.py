"""The routes of ``/multicloud/v1``."""

from __future__ import annotations

from aiohttp import web

from kubevnfm_lcm_api.http.documents import DOCUMENTS
from kubevnfm_lcm_api.http.routes import add_routes
from kubevnfm_lcm_api.lifecycle.requests.services import RequestServices
from kubevnfm_lcm_api.multicloud import (
    group_operations,
    inventory,
    links,
    maintenance,
    regions,
    vnf_instances,
    vnf_revisions,
    vnf_status,
    volumes,
)
from kubevnfm_lcm_api.multicloud.group_operations import GROUPS, PARALLEL
from kubevnfm_lcm_api.multicloud.group_work import GroupWork
from kubevnfm_lcm_api.multicloud.repeats import once_for_a_key
from kubevnfm_lcm_api.multicloud.services import DOCUMENT, ENDS, SERVICES, VNFS, MultiCloudServices
from kubevnfm_lcm_api.multicloud.waiting import OperationEnds


def add_to(
    app: web.Application,
    services: MultiCloudServices,
    vnfs: RequestServices,
    groups: GroupWork,
    ends: OperationEnds,
    *,
    group_parallel: int,
) -> None:
    """Add the multi-cloud API to an application; ``vnfs``: what operations of VNFs are accepted with.

    ``groups`` brings group operations to their end, each with at most ``group_parallel`` regions at a time.
    """
    app[SERVICES], app[VNFS], app[ENDS] = services, vnfs, ends
    app[GROUPS], app[PARALLEL] = groups, group_parallel
    app[DOCUMENTS].append(DOCUMENT)
    described = [
        *vnf_instances.routes(),
        *vnf_status.routes(),
        *vnf_revisions.routes(),
        *group_operations.routes(),
        *maintenance.routes(),
        *regions.routes(),
        *links.routes(),
        *volumes.routes(),
        *inventory.routes(),
    ]
    add_routes(app, map(once_for_a_key, described))
