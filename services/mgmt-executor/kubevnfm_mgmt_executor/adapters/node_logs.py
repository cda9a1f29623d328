"""The output of machines in the store's collection ``node_logs``: one document a command, masked and shortened."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from kubevnfm_clients.ports import LogPart
from kubevnfm_kit.clock import Clock, SystemClock, rfc3339
from kubevnfm_kit.ids import new_id
from kubevnfm_kit.json_types import JsonMapping, JsonObject
from kubevnfm_store.port import DocumentStore
from kubevnfm_store.query import AllOf, Compare, Filter, Index, Op, Query, Sort, Stored, by

from kubevnfm_mgmt_executor.domain.ports import CommandOutput

NODE_LOGS: Final = "node_logs"
INDEXES: Final = (Index(["operationId", "startedAt"]), Index(["operationId", "storedAt"]), Index(["vnfInstanceId"]))
PAGE: Final = 20
"""Documents in one read; each may have 256 kB."""
_LOOK_S: Final = 1.0
"""From one look to the next where another process writes."""
_GATHER_S: Final = 0.1
"""Every write to the collection wakes all who follow: those that come together are looked for once."""
_SKEW: Final = timedelta(seconds=5)
"""The largest difference between the clocks of processes, and of a write that took long."""


class StoredOutputLog:
    """Stores output and returns it as text."""

    def __init__(self, store: DocumentStore, clock: Clock | None = None) -> None:
        self._store, self._clock = store, clock or SystemClock()

    async def keep(self, output: CommandOutput) -> None:
        body = {
            "vnfInstanceId": output.vnf_instance_id,
            "operationId": output.operation_id,
            "node": output.node,
            "task": output.task,
            "startedAt": output.started_at,
            "storedAt": rfc3339(self._clock.now()),
            "durationS": output.duration_s,
            "exitCode": output.exit_code,
            "text": output.text,
        }
        # A new id for each run: the output of a failed try explains the repeat, so the repeat does not replace it.
        await self._store.insert(NODE_LOGS, new_id(), body)

    async def log(self, operation_id: str, *, node: str | None = None, task: str | None = None) -> AsyncIterator[bytes]:
        """The commands are in the order in which they were started."""
        wanted = _wanted(operation_id, node, task)
        after: tuple[str, str] | None = None
        while True:
            page = await self._page(wanted, after)
            for stored in page:
                yield _text(stored.body)
            if len(page) < PAGE:
                return
            after = _place_of(page[-1])

    async def following(
        self, operation_id: str, place: JsonMapping, wait_s: float, *, node: str | None = None, task: str | None = None
    ) -> LogPart:
        """Return what is stored already in the order of the start, then what comes, in the order of its end.

        ``place``: ``after`` as long as there is more of the former, then ``from``: the time from which documents may be new, and
        ``seen``: those of them that were returned, with their times.
        """
        wanted, writes = _wanted(operation_id, node, task), self._store.writes_to(NODE_LOGS)
        loop = asyncio.get_running_loop()
        until = loop.time() + wait_s
        while True:
            part = await self._next(wanted, place)
            left_s = until - loop.time()
            if part.text or left_s <= 0:
                return part
            place = part.place
            await writes.following(look_s=_LOOK_S, longest_s=left_s)
            await asyncio.sleep(min(_GATHER_S, left_s))

    async def forget(self, vnf_instance_id: str) -> None:
        await self._store.delete_many(NODE_LOGS, by(vnfInstanceId=vnf_instance_id))

    async def _next(self, wanted: Filter, place: JsonMapping) -> LogPart:
        start: str = place.get("from") or rfc3339(self._clock.now() - _SKEW)
        seen: dict[str, str] = dict(place.get("seen", {}))
        if not place or "after" in place:
            page = await self._page(wanted, tuple(place["after"]) if place else None)
            going_on: JsonObject = {"after": _place_of(page[-1])} if len(page) == PAGE else {}
        else:
            page, going_on = await self._new(wanted, start, seen), {}
        seen |= {each.id: str(each.body["storedAt"]) for each in page if each.body.get("storedAt", "") >= start}
        if not going_on:
            start = max(start, _earlier(seen.values()))
            seen = {key: at for key, at in seen.items() if at >= start}
        return LogPart(b"".join(_text(each.body) for each in page), {"from": start, "seen": seen, **going_on})

    async def _page(self, wanted: Filter, after: tuple[Any, ...] | None) -> Sequence[Stored]:
        # By value, not by offset: commands still running add documents while the log is read. Commands on several
        # nodes can start in the same moment, so the id is a part of the position.
        behind = None if after is None else (after[0], after[1])
        return await self._store.find(NODE_LOGS, Query(wanted, sort=Sort("startedAt"), after=behind, limit=PAGE))

    async def _new(self, wanted: Filter, start: str, seen: Mapping[str, str]) -> Sequence[Stored]:
        """Return documents that were stored since ``start``; the texts of those that were returned are not read again."""
        recent = AllOf([wanted, Compare("storedAt", Op.GTE, [start])])
        query = Query(recent, sort=Sort("storedAt"), limit=len(seen) + PAGE, exclude=("text",))
        found = await self._store.find(NODE_LOGS, query)
        new = [each.id for each in found if each.id not in seen][:PAGE]
        by_id = {each.id: each for each in await self._store.get_many(NODE_LOGS, new)} if new else {}
        return [by_id[each] for each in new if each in by_id]


def _wanted(operation_id: str, node: str | None, task: str | None) -> Filter:
    given = {"operationId": operation_id, "node": node, "task": task}
    return by(**{name: value for name, value in given.items() if value is not None})


def _place_of(stored: Stored) -> tuple[str, str]:
    return str(stored.body["startedAt"]), stored.id


def _earlier(times: Iterable[str]) -> str:
    """Return the time up to which all documents are stored by now, as far as is known; "" without any."""
    last = max(times, default="")
    return rfc3339(datetime.fromisoformat(last) - _SKEW) if last else ""


def _text(body: JsonMapping) -> bytes:
    how = "killed" if body["exitCode"] is None else f"exit code {body['exitCode']}"
    head = f"== {body['startedAt']} {body['node']} {body['task']}: {how}, {body['durationS']} s\n"
    return f"{head}{body['text']}\n".encode()
