"""The moves of a story: requests to lcm-api over HTTP, and answers of the services, one command after the other."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final
from unittest import mock

from kubevnfm_events import Event
from kubevnfm_secrets import KeyRing
from kubevnfm_store.query import Query
from patience import until_true
from recording import Record, RecordingStore, StoryClock, counted_ids
from servers.nfvo import StubNfvo
from worlds.lcm_builders import ANSWERS
from worlds.lcm_world import Storage, World, lcm_world
from worlds.stored_operations import INSTANCES, OPERATIONS, SNAPSHOTS, Json
from worlds.stored_replay import NFVO, ROOT

MERGE_PATCH: Final = "application/merge-patch+json"
Answers = Mapping[str, Event]


class Script:
    """A running lcm-api whose services wait for the story, and the record of what it stores."""

    def __init__(self, world: World, clock: StoryClock, nfvo: StubNfvo | None) -> None:
        self.world, self.clock, self.nfvo = world, clock, nfvo
        assert isinstance(world.store, RecordingStore)
        self._store = world.store
        self.record = Record(clock, {nfvo.url: NFVO} if nfvo is not None else {})
        self.operation_id = self.instance_id = self.package_id = self.snapshot_info_id = ""

    def answers_with(self, answers: Answers, remains: dict[str, object] | None = None) -> None:
        """Set what the services answer from now on."""
        self.world.twins.answers = {**ANSWERS, **answers}
        self.world.twins.remains = remains

    # --- before the record --------------------------------------------------------------------------------------------

    async def do(self, instance_id: str, task: str, body: object, *, version: str = "v2") -> str:
        """Carry an operation out; return its id."""
        self.world.twins.waiting.clear()
        operation_id = await self._request(instance_id, task, body, version)
        await self.settled(operation_id)
        return operation_id

    async def make_snapshot_info(self) -> None:
        """Make an individual VNF snapshot, which is empty."""
        self.snapshot_info_id = (await self.world.lcm("POST", "/vnf_snapshots", {})).must(201).json["id"]

    async def settled(self, operation_id: str) -> None:
        """Wait until an operation is COMPLETED, and everything is stored."""
        await self.reaches("COMPLETED", operation_id)
        await self._settles()

    async def begin_record(self, instance_id: str) -> None:
        """From now on services wait, and what is stored is recorded."""
        self.instance_id = instance_id
        self.world.twins.waiting = set(ANSWERS)
        known = {
            (collection, stored.id): stored.body
            for collection in (INSTANCES, OPERATIONS, SNAPSHOTS)
            for stored in await self._store.find(collection, Query(limit=100))
            if stored.body.get("operationState") != "COMPLETED"
        }
        self.record.begin(known)
        self._store.record = self.record

    # --- recorded -----------------------------------------------------------------------------------------------------

    async def ask(self, task: str, body: object, *, version: str = "v2") -> str:
        """Ask for the operation that the story is about; return its id."""
        self.clock.advance()
        self.operation_id = await self._request(self.instance_id, task, body, version)
        return self.operation_id

    async def bring_up(self, body: object) -> None:
        """Ask for a VNF by multi-cloud, which makes the instance with the operation that the story is about."""
        self.clock.advance()
        headers = {"Prefer": "respond-async"}
        made = (await self.world.call("POST", "/multicloud/v1/vnf_instances", body, headers=headers)).must(202).json
        self.instance_id, self.operation_id = made["vnf_id"], made["operation"].rpartition("/")[2]

    async def patch(self, body: object) -> None:
        """Ask for a change of the VNF by multi-cloud."""
        self.clock.advance()
        path, headers = f"/multicloud/v1/vnf_instances/{self.instance_id}", {"Content-Type": MERGE_PATCH}
        headers["Prefer"] = "respond-async"
        changed = (await self.world.call("PATCH", path, body, headers=headers)).must(202).json
        self.operation_id = changed["operation"].rpartition("/")[2]

    async def modify(self, body: object) -> str:
        """Ask for a change of the instance's information."""
        self.clock.advance()
        path = f"/vnf_instances/{self.instance_id}"
        accepted = (await self.world.lcm("PATCH", path, body)).must(202)
        self.operation_id = accepted.headers["Location"].rpartition("/")[2]
        return self.operation_id

    async def _request(self, instance_id: str, task: str, body: object, version: str) -> str:
        call = self.world.v1 if version == "v1" else self.world.lcm
        accepted = (await call("POST", f"/vnf_instances/{instance_id}/{task}", body)).must(202)
        return str(accepted.headers["Location"].rpartition("/")[2])

    async def asks(self, *steps: str) -> None:
        """Wait until these steps' commands are out, and everything is stored."""
        await self._until(lambda: sorted(command.stepid for command in self.world.twins.held) == sorted(steps))

    async def answer(self, step: str, *, fails: bool = False) -> None:
        """Answer the step's command."""
        await self.asks_at_least(step)
        self.clock.advance()
        twins = self.world.twins
        command = next(each for each in twins.held if each.stepid == step)
        twins.held.remove(command)
        twins.failing = set(ANSWERS) if fails else set()
        await self.world.bus.publish(twins.answer(command))
        twins.failing = set()
        await self._settles()

    async def asks_at_least(self, step: str) -> None:
        """Wait until this step's command is out."""
        await self._until(lambda: step in [command.stepid for command in self.world.twins.held])

    async def succeed(self, *steps: str) -> None:
        """Answer the steps, one after the other."""
        for step in steps:
            await self.answer(step)

    async def task(self, name: str, body: object = None) -> None:
        """Ask for retry, rollback, fail or cancel."""
        self.clock.advance()
        answer = await self.world.lcm("POST", f"/vnf_lcm_op_occs/{self.operation_id}/{name}", body)
        assert answer.status in {200, 202}, answer.raw
        await self._settles()

    async def delete(self) -> None:
        """Delete the instance."""
        self.clock.advance()
        (await self.world.lcm("DELETE", f"/vnf_instances/{self.instance_id}")).must(204)

    def forget(self) -> None:
        """Leave out what was recorded so far: the story that matters begins now."""
        self.record.moments.clear()

    async def is_polled(self) -> None:
        """Wait until the NFVO was asked what has become of the grant, and its answer is stored."""
        nfvo, moments = self.nfvo, self.record.moments
        assert nfvo is not None
        await self._until(lambda: bool(nfvo.requests) and _is_answered(moments[-1].documents))
        self.clock.advance()
        await self._until(lambda: bool(nfvo.polls) and _is_answered(moments[-1].documents))

    async def clean_up_reaches(self, state: str) -> None:
        """Wait until the internal operation is in the state."""

        async def is_there() -> bool:
            bodies = [stored.body for stored in await self._store.find(OPERATIONS, Query(limit=100))]
            return any(body["internal"]["isInternal"] and body["operationState"] == state for body in bodies)

        await until_true(is_there)
        await self._settles()

    async def reaches(self, state: str, operation_id: str | None = None) -> None:
        """Wait until the operation is in the state."""

        async def is_there() -> bool:
            stored = await self._store.get(OPERATIONS, operation_id or self.operation_id)
            return stored is not None and stored.body["operationState"] == state

        await until_true(is_there)
        await self._settles()

    async def _until(self, condition: Callable[[], bool]) -> None:
        """Wait until it is true, and everything is stored."""

        async def is_true() -> bool:
            return condition()

        await until_true(is_true)
        await self._settles()

    async def _settles(self) -> None:
        """Wait until what is stored was sent; a command of lcm-api to itself stays as long as lcm-api works on it."""

        async def is_sent() -> bool:
            return not any([await self._unsent(collection) for collection in (INSTANCES, OPERATIONS)])

        await until_true(is_sent)

    async def _unsent(self, collection: str) -> list[str]:
        pending = await self._store.pending_outbox(collection)
        types = [str(message.document["type"]) for document in pending for message in document.messages]
        return [each for each in types if ".advance_operation." not in each and ".remove_remains." not in each]


def _is_answered(documents: Mapping[tuple[str, str], Json]) -> bool:
    """Whether the NFVO's last answer is stored."""
    granting = [
        body["internal"].get("granting") for (collection, _), body in documents.items() if collection == OPERATIONS
    ]
    return any(each is not None and not each["isOut"] for each in granting)


@asynccontextmanager
async def script(folder: Path, ring: KeyRing, *, asks_nfvo: bool = False) -> AsyncIterator[Script]:
    """Yield a new lcm-api to write a story with."""
    clock = StoryClock()
    async with AsyncExitStack() as stack:
        nfvo: StubNfvo | None = None
        changes: dict[str, Any] = {"public_url": ROOT}
        if asks_nfvo:
            nfvo = await stack.enter_async_context(StubNfvo.listening())
            changes |= {"nfvo_url": nfvo.url, "nfvo_poll_s": 0.02}
        stack.enter_context(counted_ids())
        # lcm-api's worker measures deadlines by a clock of its own.
        stack.enter_context(mock.patch("kubevnfm_worker.worker.SteadyClock", return_value=clock))
        world = await stack.enter_async_context(
            lcm_world(folder, Storage(ring, RecordingStore), clock=clock, **changes)
        )
        yield Script(world, clock, nfvo)
