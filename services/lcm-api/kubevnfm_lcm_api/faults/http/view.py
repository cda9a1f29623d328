"""``/kubevnfm/v1/alarms``: the alarms for people, open ones first, and the search for one by the beginning of its id."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from aiohttp import web
from kubevnfm_kit.json_types import JsonObject
from kubevnfm_sol.faults import AckState, EventType, PerceivedSeverity
from kubevnfm_store.port import DocumentStore
from kubevnfm_store.prefixes import with_id
from kubevnfm_store.query import AllOf, Compare, Filter, Op, Sort, Stored

from kubevnfm_lcm_api.faults.alarms import COLLECTION, STATE
from kubevnfm_lcm_api.faults.domain.fault import ObjectKind
from kubevnfm_lcm_api.http.context import api_root, context
from kubevnfm_lcm_api.http.models import Linked
from kubevnfm_lcm_api.http.pages import PARAMETERS, PageRequest, read_page, words
from kubevnfm_lcm_api.http.routes import Answer, Parameter, Route
from kubevnfm_lcm_api.views.instance_rows import PREFIX
from kubevnfm_lcm_api.views.lists import ID, ListPage, Part, find_named, find_page, list_answer
from kubevnfm_lcm_api.views.services import Found, views

AlarmState = Literal["OPEN", "CLEARED"]
_STATE: Final = Parameter("state", "OPEN or CLEARED", values=("OPEN", "CLEARED"))
_SEVERITY: Final = Parameter(
    "severity", "Of this severity", values=("CRITICAL", "MAJOR", "MINOR", "WARNING", "INDETERMINATE")
)
_ACK: Final = Parameter("ackState", "Seen by a person, or not", values=("UNACKNOWLEDGED", "ACKNOWLEDGED"))
_OBJECT: Final = Parameter(
    "object", "About this VNF instance, VIM, subscription or Prometheus: its id; a service: its name"
)
_FILTERS: Final = (_STATE, _SEVERITY, _ACK, _OBJECT, ID)
_NEWEST: Final = Sort("alarmRaisedTime", descending=True)
_MANY: Final = f"{PREFIX}/alarms"


class AlarmRow(Linked):
    """An alarm."""

    id: str
    state: AlarmState
    severity: PerceivedSeverity
    faultType: str  # noqa: N815  # as it is on the wire
    """A stable name; of an alarm of a monitoring system: its own text."""
    probableCause: str  # noqa: N815  # as it is on the wire
    eventType: EventType  # noqa: N815  # as it is on the wire
    objectKind: ObjectKind  # noqa: N815  # as it is on the wire
    objectId: str  # noqa: N815  # as it is on the wire
    objectName: str | None = None  # noqa: N815  # as it is on the wire
    """The name of a VNF instance when the alarm was raised."""
    text: str
    """The fault in one sentence."""
    details: list[str]
    """All sentences: what, why, what to do."""
    ackState: AckState  # noqa: N815  # as it is on the wire
    since: str
    """When the fault began."""
    raisedAt: str  # noqa: N815  # as it is on the wire
    changedAt: str | None = None  # noqa: N815  # as it is on the wire
    clearedAt: str | None = None  # noqa: N815  # as it is on the wire
    acknowledgedAt: str | None = None  # noqa: N815  # as it is on the wire
    rootAlarmId: str | None = None  # noqa: N815  # as it is on the wire
    """The alarm whose fault has caused this one."""


class AlarmsPage(ListPage):
    """A page of alarms."""

    items: list[AlarmRow]


async def list_all(request: web.Request) -> web.Response:
    """GET alarms: open ones first, each group with the newest first."""
    asked = read_page(request, _FILTERS)
    sequence, store, root = views(request).sequence(), context(request).store, api_root(request)
    parts = _parts(asked)
    find = find_named if ID.name in asked.filters else find_page
    found = await find(store, COLLECTION, parts, asked)
    return list_answer(request, asked, sequence, [_row(each, root) for each in found.items], found.after)


def _parts(asked: PageRequest) -> Sequence[Part]:
    given = asked.filters
    equal = {
        "perceivedSeverity": given.get("severity"),
        "ackState": given.get("ackState"),
        "managedObjectId": given.get("object"),
    }
    more: list[Filter] = [Compare(path, Op.EQ, [value]) for path, value in equal.items() if value is not None]
    wanted = words([given[_STATE.name]], _STATE) if _STATE.name in given else _STATE.values
    return [Part([AllOf([Compare(STATE, Op.EQ, [each]), *more])], _NEWEST) for each in _STATE.values if each in wanted]


def _row(stored: Stored, root: str) -> JsonObject:
    body = stored.body
    internal = body["internal"]
    details = body.get("faultDetails") or [body["faultType"]]
    links = {
        "self": {"href": f"{root}{_MANY}?id={stored.id}"},
        "alarm": {"href": f"{root}/vnffm/v1/alarms/{stored.id}"},
    }
    facts = {
        "objectName": internal["facts"].get("vnfInstanceName") or None,
        "changedAt": body.get("alarmChangedTime"),
        "clearedAt": body.get("alarmClearedTime"),
        "acknowledgedAt": body.get("alarmAcknowledgedTime"),
        "rootAlarmId": internal.get("root"),
    }
    return {
        "id": stored.id,
        "state": internal["state"],
        "severity": body["perceivedSeverity"],
        "faultType": body["faultType"],
        "probableCause": body["probableCause"],
        "eventType": body["eventType"],
        "objectKind": internal["kind"],
        "objectId": body["managedObjectId"],
        "text": details[0],
        "details": details,
        "ackState": body["ackState"],
        "since": body["eventTime"],
        "raisedAt": body["alarmRaisedTime"],
        **{name: value for name, value in facts.items() if value is not None},
        "_links": links,
    }


@dataclass(frozen=True)
class AlarmSearch:
    """Finds alarms by the beginning of their ids, for the search of the views."""

    store: DocumentStore

    async def with_id(self, text: str, *, limit: int) -> Sequence[Found]:
        """Return alarms whose ids begin so."""
        found = await with_id(self.store, COLLECTION, text, limit=limit)
        return [
            Found(each.id, each.body["faultType"], each.body["internal"]["state"])
            for each in found
            if "alarmRaisedTime" in each.body
        ]


def routes() -> list[Route]:
    """Return the route of the list."""
    page = {200: Answer("A page; `next` and Link name the next one", AlarmsPage, is_page=True)}
    return [
        Route("Views", "GET", _MANY, list_all, "List alarms, open ones first", page, query=(*_FILTERS, *PARAMETERS))
    ]
