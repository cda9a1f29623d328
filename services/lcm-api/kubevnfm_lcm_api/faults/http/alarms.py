"""``/vnffm/v1/alarms`` (SOL003 clauses 7.4.2 and 7.4.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from aiohttp import web
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_kit.json_types import JsonMapping, JsonObject
from kubevnfm_sol.faults import Alarm, AlarmModifications
from kubevnfm_store.query import Stored

from kubevnfm_lcm_api.faults.alarms import COLLECTION, PUBLIC, Alarms, shown_alarm
from kubevnfm_lcm_api.faults.http import view
from kubevnfm_lcm_api.http.bodies import PATCH, parse_body, read_json
from kubevnfm_lcm_api.http.conditions import answer, check_unchanged, entity_tag
from kubevnfm_lcm_api.http.context import api_root
from kubevnfm_lcm_api.http.listing import PARAMETERS, Listed, list_page
from kubevnfm_lcm_api.http.routes import Answer, Route, add_routes, page_of
from kubevnfm_lcm_api.http.sol013.shapes import Shape, attributes_of

_TAG: Final = "Alarms"
_BASE: Final = "/vnffm/v1/alarms"
_ONE: Final = f"{_BASE}/{{id}}"
ALARMS: Final = Listed("alarms", Shape(attributes_of(Alarm)), "alarmRaisedTime", PUBLIC, hidden=())


def _tag(stored: Stored, caused: Sequence[str]) -> str:
    """Return the tag of an alarm; ``caused``: the ones that follow from it, which are not stored with it."""
    return entity_tag("alarms", stored, *caused)


@dataclass(frozen=True)
class _Handlers:
    """The handlers of alarms."""

    alarms: Alarms

    async def list_all(self, request: web.Request) -> web.StreamResponse:
        root = api_root(request)

        async def view(document: JsonMapping) -> JsonObject:
            return _view(document, await self._caused(document), root)

        return await list_page(request, COLLECTION, ALARMS, view)

    async def show(self, request: web.Request) -> web.Response:
        stored = await self.alarms.get(request.match_info["id"])
        caused = await self._caused(stored.body)
        shown = _view(stored.body, caused, api_root(request))
        return answer(request, shown, _tag(stored, caused), _changed_at(stored))

    async def modify(self, request: web.Request) -> web.Response:
        body = await read_json(request, PATCH)
        for name, value in body.items() if isinstance(body, dict) else ():
            if value is None:
                raise InvalidInput(name, "null is not permitted")
        wanted = await parse_body(request, AlarmModifications, body)
        alarm_id = request.match_info["id"]
        caused = await self._caused((await self.alarms.get(alarm_id)).body)

        def as_seen(stored: Stored) -> None:
            check_unchanged(request, _tag(stored, caused), _changed_at(stored))

        changed = await self.alarms.acknowledge(alarm_id, wanted.ack_state, check=as_seen)
        return answer(request, {"ackState": changed.body["ackState"]}, _tag(changed, caused), _changed_at(changed))

    async def _caused(self, document: JsonMapping) -> Sequence[str]:
        return await self.alarms.caused_by(document["id"]) if document["isRootCause"] else ()


def _view(document: JsonMapping, caused: Sequence[str], root: str) -> JsonObject:
    links = {"self": {"href": f"{root}{_BASE}/{document['id']}"}}
    if document["internal"]["kind"] == "vnf":
        links["objectInstance"] = {"href": f"{root}/vnflcm/v2/vnf_instances/{document['managedObjectId']}"}
    return {**shown_alarm(document, caused), "_links": links}


def _changed_at(stored: Stored) -> str:
    return str(stored.body["internal"]["updatedAt"])


def add_to(app: web.Application, alarms: Alarms) -> None:
    """Add the resources of alarms to an application."""
    handlers = _Handlers(alarms)
    shown = {200: Answer("The alarm", Alarm, has_etag=True)}
    changed = {200: Answer("What was changed", AlarmModifications, has_etag=True)}
    change = Route(
        _TAG, "PATCH", _ONE, handlers.modify, "Acknowledge an alarm, or take that back", changed, AlarmModifications,
        PATCH, conditions=True, refusals={409: "It is acknowledged, or not, already"},
    )  # fmt: skip
    add_routes(
        app,
        [
            Route(_TAG, "GET", _BASE, handlers.list_all, "List alarms", page_of(Alarm), query=PARAMETERS),
            Route(_TAG, "GET", _ONE, handlers.show, "Show an alarm", shown),
            change,
            *view.routes(),
        ],
    )
