"""Reads the VNF of a request, and compares it with the version that its caller has seen."""

from __future__ import annotations

from collections.abc import Callable

from aiohttp import web
from kubevnfm_kit.errors import NotFound
from kubevnfm_store.query import Stored

from kubevnfm_lcm_api.http.conditions import check_unchanged
from kubevnfm_lcm_api.http.context import context
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord
from kubevnfm_lcm_api.multicloud.services import vnfs
from kubevnfm_lcm_api.multicloud.vnf_views import Vnf, vnf_of, with_operation


async def unchanged_vnf(request: web.Request) -> Vnf:
    """Return the VNF with the operation that has claimed it. Raises as `vnf_in_path`; PreconditionFailed."""
    vnf = await vnf_in_path(request)
    check_unchanged(request, vnf.tag, vnf.record.updated_at)
    return vnf


def as_seen(request: web.Request) -> Callable[[Stored], None]:
    """Return the check of If-Match at the claim of a VNF; one that an operation has claimed meanwhile is refused there."""

    def check(stored: Stored) -> None:
        record = InstanceRecord.from_document(stored.body)
        if record.internals.current_operation is None:
            check_unchanged(request, vnf_of(stored, record, None).tag, record.updated_at)

    return check


async def vnf_in_path(request: web.Request, instance_id: str | None = None) -> Vnf:
    """Return a VNF of this API: that of the path, unless its id is given. Raises NotFound."""
    instance_id = instance_id or request.match_info["id"]
    vnf = await with_operation(context(request).store, await vnfs(request).instances.get(instance_id))
    if vnf.record.internals.multicloud is None:
        raise NotFound(f"VNF instance {instance_id} was not made by this API")
    return vnf
