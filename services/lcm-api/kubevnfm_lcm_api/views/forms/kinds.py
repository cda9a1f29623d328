"""The forms of what is made without a package: VIMs, cloud regions, links, volumes, orders, subscriptions, PM jobs, thresholds.

Each is the schema of the model that the request is read by; what other services judge, they describe themselves.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from aiohttp import web
from kubevnfm_clients.multicloud.links import LinkRequest, ReferenceRequest
from kubevnfm_clients.multicloud.regions import Kubeconfig, RegionPatch, RegionRequest
from kubevnfm_clients.multicloud.volumes import VolumePatch, VolumeRequest
from kubevnfm_kit.errors import InvalidInput, OutsideUnavailable
from kubevnfm_kit.json_types import JsonObject
from pydantic import BaseModel

from kubevnfm_lcm_api.multicloud.services import PREFIX as _MULTICLOUD
from kubevnfm_lcm_api.multicloud.services import services as multicloud
from kubevnfm_lcm_api.multicloud.subscriptions import SubscriptionRequest
from kubevnfm_lcm_api.multicloud.vnf_types import VnfInstancePatch, VnfInstanceRequest
from kubevnfm_lcm_api.notifications.domain.faults import FmSubscriptionRequest
from kubevnfm_lcm_api.notifications.domain.lifecycle import LccnSubscriptionRequest
from kubevnfm_lcm_api.notifications.domain.packages import PkgmSubscriptionRequest
from kubevnfm_lcm_api.performance.domain.requests import CreatePmJobRequest, CreateThresholdRequest
from kubevnfm_lcm_api.performance.http.views import JOBS, THRESHOLDS
from kubevnfm_lcm_api.views.forms.schemas import DEFS, request_schema, tidied
from kubevnfm_lcm_api.views.services import views

VIM: Final = "vim"
"""The query parameter of the form of a change."""
_MOST_REGIONS: Final = 500


@dataclass(frozen=True)
class Kind:
    """A form, and the request that it is for."""

    title: str
    method: str
    path: str
    """That of the request; names in braces stand for what is changed."""
    model: type[BaseModel] | None
    """The type that reads the request; None: another service judges it."""
    make: Callable[[web.Request], Awaitable[JsonObject]] | None = None
    """Makes a form that has more than the model says."""


async def form_of(kind: Kind, request: web.Request) -> JsonObject:
    """Return the form. Raises NotFound and InvalidInput for its query; OutsideUnavailable if its judge is away."""
    if kind.make is not None:
        return await kind.make(request)
    assert kind.model is not None
    form = request_schema(kind.model)
    place = form["properties"].get("cloud_region_id")
    if place is not None:
        place["examples"] = await _regions(request)
    return form


async def _link(request: web.Request) -> JsonObject:
    form = request_schema(LinkRequest)
    form["properties"]["cloud_region_id"]["examples"] = await _regions(request)
    # While their owner is away, the request would fail too; but a page can show the rest.
    with suppress(OutsideUnavailable):
        specs = await multicloud(request).links.specs()
        form.setdefault(DEFS, {}).update(tidied({DEFS: specs.definitions})[DEFS])
        form["allOf"] = [
            {
                "if": {"properties": {"type": {"const": name}}, "required": ["type"]},
                "then": {"properties": {"spec": spec}},
            }
            for name, spec in specs.types.items()
        ]
    return form


async def _vim(request: web.Request) -> JsonObject:
    return _wrapped((await views(request).vims.forms())["new"])


async def _vim_change(request: web.Request) -> JsonObject:
    vim_id = request.query.get(VIM)
    if vim_id is None:
        raise InvalidInput(VIM, "the id of a VIM expected for this form")
    vims = views(request).vims
    vim = await vims.get(vim_id)
    form = _wrapped((await vims.forms())["change"][str(vim["type"])])
    properties = form["properties"]["vim"]["properties"]
    for name in ("name", "description"):
        if vim.get(name):
            properties[name]["examples"] = [vim[name]]
    return form


def _wrapped(schema: Mapping[str, object]) -> JsonObject:
    return tidied({"type": "object", "properties": {"vim": schema}, "required": ["vim"]})


async def _regions(request: web.Request) -> list[str]:
    with suppress(OutsideUnavailable):
        page = await multicloud(request).regions.find({}, limit=_MOST_REGIONS)
        return [region.id for region in page.items]
    return []


_REGION: Final = f"{_MULTICLOUD}/cloud-regions/{{owner}}/{{region}}"
_LINK: Final = f"{_MULTICLOUD}/virtual-links"
_REFERENCE: Final = f"{_LINK}/{{id}}/references/{{reference}}"
_VOLUME: Final = f"{_MULTICLOUD}/persistent-volumes"
_VNF: Final = f"{_MULTICLOUD}/vnf_instances"
KINDS: Final[Mapping[str, Kind]] = {
    "vim": Kind("Register a VIM", "POST", "/v1.0/vims", None, _vim),
    "vim-change": Kind("Change a VIM", "PUT", "/v1.0/vims/{id}", None, _vim_change),
    "cloud-region": Kind("Register a cloud region", "POST", f"{_MULTICLOUD}/cloud-regions", RegionRequest),
    "cloud-region-change": Kind("Change a cloud region", "PATCH", _REGION, RegionPatch),
    "cloud-region-kubeconfig": Kind("Use other access data", "PUT", f"{_REGION}/kubeconfig", Kubeconfig),
    "virtual-link": Kind("Create a virtual link", "POST", _LINK, LinkRequest, _link),
    "virtual-link-reference": Kind("Refer to a virtual link", "PUT", _REFERENCE, ReferenceRequest),
    "persistent-volume": Kind("Create a persistent volume", "POST", _VOLUME, VolumeRequest),
    "persistent-volume-change": Kind("Change a persistent volume", "PATCH", f"{_VOLUME}/{{id}}", VolumePatch),
    "order": Kind("Order a VNF in a cloud region", "POST", _VNF, VnfInstanceRequest),
    "order-change": Kind("Change an ordered VNF", "PATCH", f"{_VNF}/{{id}}", VnfInstancePatch),
    "subscription": Kind(
        "Subscribe to life-cycle changes", "POST", "/vnflcm/v2/subscriptions", LccnSubscriptionRequest
    ),
    "package-subscription": Kind(
        "Subscribe to news of VNF packages", "POST", "/vnfpkgm/v2/subscriptions", PkgmSubscriptionRequest
    ),
    "alarm-subscription": Kind("Subscribe to alarms", "POST", "/vnffm/v1/subscriptions", FmSubscriptionRequest),
    "pm-job": Kind("Measure VNFs and report it", "POST", JOBS, CreatePmJobRequest),
    "threshold": Kind("Watch a value of a VNF", "POST", THRESHOLDS, CreateThresholdRequest),
    "change-subscription": Kind(
        "Subscribe to changes of VNFs and regions", "POST", f"{_MULTICLOUD}/subscriptions", SubscriptionRequest
    ),
}
"""By the name in the path."""
