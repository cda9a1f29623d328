"""The marks of open alarms of monitoring systems, for lists: one for each VNF instance, about its gravest alarm.

Our own alarms follow from the state of an instance, by which lists judge it. These do not, so lists read them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, get_args

from kubevnfm_kit.json_types import JsonMapping
from kubevnfm_sol.faults import PerceivedSeverity
from kubevnfm_store.port import DocumentStore
from kubevnfm_store.query import Compare, Op, Query, Sort, Stored

COLLECTION: Final = "alarms"
EXTERNAL_OBJECT: Final = "internal/external/object"
"""The path of the id of the object that an open alarm of a monitoring system is about."""
_PAGE: Final = 200
_UNREAD: Final = ("rootCauseFaultyResource", "vnfcInstanceIds", "internal/facts")
_GRAVEST_FIRST: Final = get_args(PerceivedSeverity)


class ExternalMark(NamedTuple):
    """The gravest open alarm of a monitoring system."""

    text: str
    since: str


async def external_marks(store: DocumentStore, instance_ids: Sequence[str]) -> Mapping[str, ExternalMark]:
    """Return the marks of those that have such alarms; of an instance with very many alarms the first ones count."""
    marks: dict[str, ExternalMark] = {}
    wanted = sorted(set(instance_ids))
    while wanted:
        query = Query(Compare(EXTERNAL_OBJECT, Op.IN, wanted), sort=Sort(EXTERNAL_OBJECT), limit=_PAGE, exclude=_UNREAD)
        found = await store.find(COLLECTION, query)
        gravest: dict[str, JsonMapping] = {}
        for each in found:
            known = gravest.setdefault(each.body["managedObjectId"], each.body)
            if _rank(each.body) < _rank(known):
                gravest[each.body["managedObjectId"]] = each.body
        marks |= {key: _mark(body) for key, body in gravest.items()}
        if len(found) < _PAGE:
            break
        last = found[-1].body["managedObjectId"]
        wanted = [each for each in wanted if each > last]
    return marks


async def marked_after(store: DocumentStore, after: str | None, *, limit: int) -> Sequence[str]:
    """Return ids of instances that have a mark, those behind ``after``; none: there are no more."""
    query = Query(
        Compare(EXTERNAL_OBJECT, Op.GT, [after or ""]),
        sort=Sort(EXTERNAL_OBJECT),
        limit=limit,
        exclude=(*_UNREAD, "faultDetails"),
    )
    found: Sequence[Stored] = await store.find(COLLECTION, query)
    return list(dict.fromkeys(each.body["managedObjectId"] for each in found))


def _rank(body: JsonMapping) -> tuple[int, str]:
    return _GRAVEST_FIRST.index(body["perceivedSeverity"]), body["eventTime"]


def _mark(body: JsonMapping) -> ExternalMark:
    sentence = (body.get("faultDetails") or [body["probableCause"]])[0]
    return ExternalMark(f"alarm {body['faultType']} ({body['perceivedSeverity']}): {sentence}", body["eventTime"])
