"""Runs a stored operation to its end with the code of the tree: lcm-api on the stored documents, twins of the services.

lcm-api is used from outside only: its store and its bus hold what an older version has left, HTTP and the commands show
what it makes of it.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterable, Mapping
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

from kubevnfm_events import MESSAGES, CancelStep, Envelope, Event, Message, from_document
from kubevnfm_events.mgmt import RunScript, ScriptAnswer
from kubevnfm_secrets import KeyRing
from kubevnfm_store.port import Outgoing
from kubevnfm_store.query import Query
from kubevnfm_store.sqlite.store import SqliteStore
from kubevnfm_worker import relay
from patience import until_true
from servers.nfvo import StubNfvo

from worlds.lcm_builders import ANSWERS
from worlds.lcm_world import ENDS, SERVICES, Storage, World, lcm_world, prepare_database
from worlds.stored_operations import INSTANCES, OPERATIONS, Case, End, Json, StoryFile

ROOT: Final = "http://vnfm.test:9890"
"""Links begin with it."""
NFVO: Final = "http://nfvo.test/nfvo"
"""Stands for the NFVO's address, which differs from run to run."""
FORWARD: Final = "forward"
"""Every command succeeds; an operation in FAILED_TEMP is retried."""
BACKWARD: Final = "backward"
"""Commands fail until the operation is in FAILED_TEMP; then it is rolled back or, where that is not possible, failed."""
GIVEN_UP: Final = "given up"
"""As `BACKWARD`, and failed in place of rolled back."""
WAYS: Final = (FORWARD, BACKWARD, GIVEN_UP)
TERMINAL: Final = frozenset({"COMPLETED", "FAILED", "ROLLED_BACK"})
_TIMES: Final = frozenset({"startTime", "stateEnteredTime"})
_OF_ONE_RUN: Final = re.compile(
    r'[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d{4}-\d\d-\d\dT[0-9:.]+(Z|\+00:00)|(?<="\$sealed": )"[^"]*"'
)
"""Ids, times and encrypted texts of a document."""
_TASKS_AT_MOST: Final = 8
_NEVER_S: Final = 1e9
"""How long the NFVO may take: the request of a case was sent long ago."""


def event(answer: Mapping[str, Any]) -> Event:
    """Return the event that a story holds as ``type`` and ``data``."""
    data = MESSAGES[answer["type"]].model_validate(answer["data"])
    assert isinstance(data, Event)
    return data


def shown(answer: Json, nfvo_url: str | None = None) -> Json:
    """Return a view without times, without the texts of errors, and with `NFVO` as the NFVO's address."""
    text = json.dumps(answer)
    tree: Json = json.loads(text if nfvo_url is None else text.replace(nfvo_url, NFVO))
    view = {name: value for name, value in tree.items() if name not in _TIMES}
    if "error" in view:
        view["error"] = {"status": view["error"]["status"]}
    return view


def differences(expected: Any, found: Any, place: str = "") -> list[str]:
    """Return where ``found`` lacks something of ``expected``; attributes that it has more are none.

    Neither are link ports that came and went, which released versions did not show.
    """
    if place.endswith("/affectedVirtualLinks") and not any(map(_is_of_ports, expected)):
        found = [one for one in found if not _is_of_ports(one)]
    if place.endswith("/affectedExtLinkPorts") and not expected:
        return []
    if isinstance(expected, dict) and isinstance(found, dict):
        return [
            difference
            for name, value in expected.items()
            for difference in (
                differences(value, found[name], f"{place}/{name}") if name in found else [f"{place}/{name}: missing"]
            )
        ]
    if isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        pairs = zip(expected, found, strict=True)
        return [each for n, (one, other) in enumerate(pairs) for each in differences(one, other, f"{place}/{n}")]
    return [] if expected == found else [f"{place}: {expected!r} expected, got {found!r}"]


def _is_of_ports(link: Mapping[str, Any]) -> bool:
    return str(link.get("changeType")).startswith("LINK_PORT_")


async def replay(
    story: StoryFile, case: Case, way: str, folder: Path, ring: KeyRing, taken_down: set[str] | None = None
) -> End:
    """Run the case to its end and return it; then take the instance down, which shows that it is free and usable.

    Forward, the messages of the outboxes are still there; otherwise they were sent and are not answered. ``taken_down``: the
    instances that were taken down so far. One that is stored as one of them, after the same end, is not taken down again.
    """
    keeps_outbox = way == FORWARD
    await _load(folder / "store.db", case, keeps_outbox=keeps_outbox)
    sent = list(case.sent)
    if not keeps_outbox:
        sent += [message for document in case.documents for message in document.outbox]
    async with AsyncExitStack() as stack:
        changes: dict[str, Any] = {"public_url": ROOT}
        nfvo_url = None
        if story.grant_request is not None:
            nfvo = await stack.enter_async_context(StubNfvo.listening())
            nfvo.requests.append(story.grant_request)
            nfvo_url = nfvo.url
            changes |= {"nfvo_url": nfvo.url, "nfvo_poll_s": 0.02, "nfvo_timeout_s": _NEVER_S}
        # Each case waits several times until the outboxes are empty.
        stack.enter_context(patch.object(relay, "_CLEAR_AFTER_S", 0.005))
        world = await stack.enter_async_context(lcm_world(folder, Storage(ring), **changes))
        run = _Run(world, story, case, way, nfvo_url)
        run.prepare_twins()
        await run.answer(commands_of(sent))
        end = await run.finish()
        run.check_commands()
        stored = f"{end.state} {await run.stored_instance()}"
        if taken_down is None or stored not in taken_down:
            await run.take_down()
            if taken_down is not None:
                taken_down.add(stored)
        await run.quiet()
        return end


def service_commands(case: Case) -> list[Envelope[Message]]:
    """Return the commands that services have, or are about to get, when the case begins."""
    messages = [*case.sent, *(message for document in case.documents for message in document.outbox)]
    return [command for command in commands_of(messages) if _service(command) in SERVICES]


def is_cancellable(story: StoryFile, case: Case) -> bool:
    """Whether the operation runs, steps of its own only, and was not cancelled."""
    bodies = [document.body for document in case.documents if document.id == story.operation_id]
    commands = service_commands(case)
    return (
        bool(bodies and commands and BACKWARD in case.ends)
        and bodies[0]["operationState"] in {"PROCESSING", "ROLLING_BACK"}
        and all(command.operationid == story.operation_id for command in commands)
        and not any(isinstance(command.data, CancelStep) for command in commands)
    )


async def cancel(story: StoryFile, case: Case, folder: Path, ring: KeyRing) -> set[str]:
    """Cancel the operation FORCEFUL while its commands are out; return the ids of the commands that services stop."""
    await _load(folder / "store.db", case, keeps_outbox=False)
    async with lcm_world(folder, Storage(ring), public_url=ROOT) as world:
        world.twins.held = service_commands(case)
        path = f"/vnf_lcm_op_occs/{story.operation_id}/cancel"
        (await world.lcm("POST", path, {"cancelMode": "FORCEFUL"})).must(202)

        async def is_stopped() -> bool:
            stored = await world.store.get(OPERATIONS, story.operation_id)
            return stored is not None and stored.body["operationState"] == "FAILED_TEMP"

        await until_true(is_stopped)
        signs = [command.data for command in world.twins.commands]
        return {str(sign.command["id"]) for sign in signs if isinstance(sign, CancelStep)}


async def _load(path: Path, case: Case, *, keeps_outbox: bool) -> None:
    await prepare_database(path)
    async with SqliteStore.open(path) as store:
        for document in case.documents:
            outbox = [Outgoing(message["id"], fresh(message)) for message in document.outbox] if keeps_outbox else []
            await store.insert(document.collection, document.id, document.body, outbox=outbox)


def fresh(message: Json) -> Json:
    """Return the message as if it had been sent ten seconds ago: the deadline moves too."""
    moved = datetime.now(UTC) - timedelta(seconds=10) - datetime.fromisoformat(message["time"])
    times = [name for name in ("time", "deadline") if name in message]
    return {**message, **{name: (datetime.fromisoformat(message[name]) + moved).isoformat() for name in times}}


def commands_of(messages: Iterable[Json]) -> list[Envelope[Message]]:
    """Return the commands among the messages."""
    return [envelope for envelope in map(from_document, map(fresh, messages)) if envelope.is_command]


class _Run:
    """One case on its way to its end."""

    def __init__(self, world: World, story: StoryFile, case: Case, way: str, nfvo_url: str | None) -> None:
        self._world, self._story, self._case, self._way, self._nfvo_url = world, story, case, way, nfvo_url
        self._publishing: list[asyncio.Task[None]] = []

    def prepare_twins(self) -> None:
        """Have the twins answer as the story says. Before anything is awaited: then they are asked."""
        twins = self._world.twins
        twins.answers = {**ANSWERS, **{key: event(answer) for key, answer in self._story.answers.items()}}
        twins.remains = self._story.remains
        # A step of another kind cannot read what a script has kept.
        if twins.remains is not None and twins.remains.keys() <= ScriptAnswer.model_fields.keys():
            twins.remains_of = {RunScript.routing_key()}
        if self._way != FORWARD:
            twins.failing = set(ANSWERS)

    async def answer(self, commands: list[Envelope[Message]]) -> None:
        """Answer what was sent before, as the services do which have it; lcm-api gets its own commands again."""
        twins = self._world.twins
        theirs = [command for command in commands if _service(command) in SERVICES]
        cancels = [command for command in theirs if isinstance(command.data, CancelStep)]
        twins.held += [command for command in theirs if command not in cancels]
        ours = [command for command in commands if _service(command) not in SERVICES]
        self._publishing = [asyncio.create_task(self._world.bus.publish(command)) for command in (*ours, *cancels)]
        expected = {m["id"] for document in self._case.documents for m in document.outbox if _is_cancel(m)}
        expected |= {command.id for command in cancels}

        async def are_cancelled() -> bool:
            return expected <= {command.id for command in twins.commands}

        await until_true(are_cancelled)
        await twins.release()

    async def finish(self) -> End:
        """Do what brings the operation to its end; return that."""
        operation_id, instance_id = self._story.operation_id, self._story.instance_id
        for _ in range(_TASKS_AT_MOST):
            await self._rest()
            view = (await self._world.lcm("GET", f"/vnf_lcm_op_occs/{operation_id}")).must(200).json
            if view["operationState"] in TERMINAL:
                break
            task = "retry"
            if self._way != FORWARD:
                task = "rollback" if "rollback" in view["_links"] and self._way == BACKWARD else "fail"
            answer = await self._world.lcm("POST", f"/vnf_lcm_op_occs/{operation_id}/{task}")
            assert answer.status in {200, 202}, (task, answer.raw)
        own = (await self._world.call("GET", f"/kubevnfm/v1/operations/{operation_id}")).must(200).json
        assert own["steps"] or "modify_info" in self._story.plans
        instance = await self._world.lcm("GET", f"/vnf_instances/{instance_id}")
        return End(
            state=view["operationState"],
            operation=shown(view, self._nfvo_url),
            instance=None if instance.status == 404 else shown(instance.must(200).json),
            asked=sorted(self._asked()),
        )

    async def _rest(self) -> None:
        """Return when every operation rests and nothing is under way."""
        store, twins = self._world.store, self._world.twins

        async def is_at_rest() -> bool:
            found = await store.find(OPERATIONS, Query(limit=100))
            bodies = [stored.body for stored in found]
            # A claimed operation is inserted by a command that may still be on its way.
            if self._story.operation_id not in {stored.id for stored in found}:
                return False
            if any(body["operationState"] == "FAILED_TEMP" for body in bodies):
                twins.failing.clear()
            is_idle = all(_rests(body) for body in bodies) and all(task.done() for task in self._publishing)
            return is_idle and not await self._sends()

        # Each look reads the whole store, so more of them would cost more than all that lcm-api does.
        await until_true(is_at_rest, pause_s=0.02)

    async def stored_instance(self) -> str:
        """Return the instance as it is stored, without what differs from run to run: ids, times and encrypted texts."""
        stored = await self._world.store.get(INSTANCES, self._story.instance_id)
        return _OF_ONE_RUN.sub("", json.dumps(None if stored is None else stored.body, sort_keys=True))

    async def take_down(self) -> None:
        """Terminate or delete the instance: nothing holds it any more."""
        path = f"/vnf_instances/{self._story.instance_id}"
        self._world.twins.failing.clear()
        answer = await self._world.lcm("GET", path)
        if answer.status == 404:
            return
        if answer.must(200).json["instantiationState"] == "INSTANTIATED" and not await self._terminated():
            # Volume snapshots of a CREATE_SNAPSHOT that was given up hold the volumes of the VNF until they are removed.
            for snapshot in (await self._world.lcm("GET", "/vnf_snapshots")).must(200).json:
                (await self._world.lcm("DELETE", f"/vnf_snapshots/{snapshot['id']}")).must(204)
            await until_true(self._terminated)
        assert (await self._world.lcm("GET", path)).json["instantiationState"] == "NOT_INSTANTIATED"
        (await self._world.lcm("DELETE", path)).must(204)
        await self._rest()  # what a failed operation left is removed

    async def _terminated(self) -> bool:
        """Return whether a TERMINATE is accepted and done."""
        path = f"/vnf_instances/{self._story.instance_id}/terminate"
        answer = await self._world.lcm("POST", path, {"terminationType": "FORCEFUL"})
        if answer.status == 409:
            return False
        await self._rest()
        operation_id = answer.must(202).headers["Location"].rpartition("/")[2]
        return bool((await self._world.operation(operation_id))["operationState"] == "COMPLETED")

    async def quiet(self) -> None:
        """Return when all events were sent: closing would wait for the others."""

        async def is_quiet() -> bool:
            return not await self._sends()

        await until_true(is_quiet)

    async def _sends(self) -> bool:
        """Whether an outbox still has messages."""
        return any([await self._world.store.pending_outbox(collection) for collection in (OPERATIONS, INSTANCES)])

    def _commands(self) -> list[Envelope[Message]]:
        """Return every command that services got for steps, those of the older version included."""
        before = [message for document in self._case.documents for message in document.outbox]
        return [
            command
            for command in [*commands_of([*self._case.sent, *before]), *self._world.twins.commands]
            if _service(command) in SERVICES and not isinstance(command.data, CancelStep)
        ]

    def _asked(self) -> list[list[Any]]:
        facts = {(one.operationid, one.stepid, one.attempt, one.type) for one in self._commands()}
        return [list(each) for each in facts]

    def check_commands(self) -> None:
        """Raise AssertionError when an attempt of a step was asked by two commands."""
        ids: dict[tuple[str, str, int], set[str]] = {}
        for command in self._commands():
            ids.setdefault((command.operationid, command.stepid, command.attempt), set()).add(command.id)
        assert {attempt: found for attempt, found in ids.items() if len(found) > 1} == {}


def _rests(body: Mapping[str, Any]) -> bool:
    """Whether the operation waits for nothing; a clean-up goes on by itself until all is gone."""
    ends = TERMINAL if body["internal"]["isInternal"] else ENDS
    return body["operationState"] in ends


def _service(command: Envelope[Message]) -> str:
    return str(getattr(command.data, "service", ""))


def _is_cancel(message: Json) -> bool:
    return isinstance(from_document(message).data, CancelStep)
