"""``/multicloud/v1/vnf_instances/{id}/events``: progress and changes of a VNF as they happen (multicloud.md MC-054)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Final, Protocol

from aiohttp import web
from kubevnfm_kit.errors import NotFound

from kubevnfm_lcm_api.http.bodies import EVENT_STREAM
from kubevnfm_lcm_api.http.routes import Answer, Parameter, Route, add_routes
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord
from kubevnfm_lcm_api.multicloud.services import PREFIX, vnfs


class InstanceEvents(Protocol):
    """The stream of events."""

    def __call__(
        self, request: web.Request, instance_id: str, exists: Callable[[], Awaitable[bool]]
    ) -> Awaitable[web.StreamResponse]:
        """Answer with the events of an instance, as long as it exists."""
        ...


_EVENTS: Final = web.AppKey("multicloud-events", InstanceEvents)
_RESUMES: Final = Parameter(
    "Last-Event-ID", "The id of the last event that the caller has: the stream goes on after it"
)


async def events(request: web.Request) -> web.StreamResponse:
    """GET vnf_instances/{id}/events: server-sent events until the VNF is deleted."""
    instance_id = request.match_info["id"]
    if not await _exists(request, instance_id):
        raise NotFound(f"VNF instance {instance_id} does not exist, or was not made by this API")
    return await request.app[_EVENTS](request, instance_id, lambda: _exists(request, instance_id))


async def _exists(request: web.Request, instance_id: str) -> bool:
    try:
        stored = await vnfs(request).instances.get(instance_id)
    except NotFound:
        return False
    return InstanceRecord.from_document(stored.body).internals.multicloud is not None


def add_to(app: web.Application, instance_events: InstanceEvents) -> None:
    """Add the resource to an application."""
    app[_EVENTS] = instance_events
    add_routes(app, routes())


def routes() -> Iterator[Route]:
    """Yield the route of events."""
    endless = {200: Answer("Server-sent events as they happen, until the VNF is deleted", media_types=(EVENT_STREAM,))}
    path, summary = f"{PREFIX}/vnf_instances/{{id}}/events", "Watch a VNF"
    yield Route("VNF instances", "GET", path, events, summary, endless, headers=(_RESUMES,))
