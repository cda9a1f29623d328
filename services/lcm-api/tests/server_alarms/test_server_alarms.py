"""Servers at an operator's notifier: what is registered follows the VNF instance, whatever happens in between."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import aiohttp
import pytest
from aiohttp import web
from kubevnfm_clients.outbound import AddressRules, outbound_session
from kubevnfm_events.lcm import ServersChanged
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_lcm_api.due import CLAIM, DUE, DueWork
from kubevnfm_lcm_api.lifecycle.core.instance import COLLECTION as INSTANCES
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord, StackDeployment
from kubevnfm_lcm_api.lifecycle.core.server_notifier import check_notifier, server_events
from kubevnfm_lcm_api.server_alarms import work
from kubevnfm_lcm_api.server_alarms.notifier import Notifier
from kubevnfm_lcm_api.server_alarms.record import COLLECTION
from kubevnfm_lcm_api.server_alarms.work import ServerAlarms
from kubevnfm_sol.lcm import InstantiationState
from kubevnfm_sol.resources import InstantiatedVnfInfo, ResourceHandle, VnfcResourceInfo
from kubevnfm_sol.vim import VimConnectionInfo
from kubevnfm_store.port import StoreUnavailable
from kubevnfm_store.query import Query
from kubevnfm_store.sqlite.store import SqliteStore
from patience import until
from servers.server_notifier import ServerNotifier
from structlog.testing import capture_logs
from worlds.lcm_builders import RING, an_instance
from worlds.lcm_world import TwinVims
from worlds.set_clock import SetClock

NOW: Final = datetime(2026, 6, 22, tzinfo=UTC)
INSTANCE: Final = "inst-1"
VIM: Final = {"vim1": VimConnectionInfo(vim_id="vim-1", vim_type="ETSINFV.OPENSTACK_KEYSTONE.V_3")}
ANYWHERE_HERE: Final = AddressRules.from_text("127.0.0.0/8")


class MortalStore(SqliteStore):
    """A store that a process loses at a write of registrations: before it, or after it."""

    left: int | None = None
    """Writes that are still stored; None: all."""

    async def update(self, collection: str, *args: Any, **more: Any) -> Any:
        if collection == COLLECTION and self.left is not None:
            if self.left == 0:
                raise StoreUnavailable("the process is killed")
            self.left -= 1
        return await super().update(collection, *args, **more)


@dataclass
class World:
    """The registrations, on one store, with a notifier."""

    store: MortalStore
    clock: SetClock
    notifier: ServerNotifier
    alarms: ServerAlarms
    parameters: dict[str, Any]
    vims: TwinVims

    async def store_instance(
        self, servers: Mapping[str, str], *, is_instantiated: bool = True, operation: str | None = None, **info: Any
    ) -> None:
        """Store the instance as the end of an operation leaves it: VNFCs with their servers, and what they showed before."""
        before = await self.store.get(INSTANCES, INSTANCE)
        shown = await self.shown() if before is not None else {}
        resources = tuple(
            VnfcResourceInfo(
                id=name, vdu_id="VDU1", compute_resource=ResourceHandle(resource_id=server), metadata=shown.get(name)
            )
            for name, server in servers.items()
        )
        inner = InstantiatedVnfInfo(flavour_id="simple", vnfc_resource_info=resources, **info)
        state = InstantiationState.INSTANTIATED if is_instantiated else InstantiationState.NOT_INSTANTIATED
        record = an_instance(
            instantiation_state=state,
            instantiated_vnf_info=inner if is_instantiated else None,
            vim_connection_info=VIM,
        ).with_internals(
            parameters=self.parameters if is_instantiated else {},
            deployments=(StackDeployment(kind="stack", vim_key="vim1", stack_name="s"),) if is_instantiated else (),
            current_operation=operation,
        )
        body = record.document(RING)
        if before is None:
            await self.store.insert(INSTANCES, INSTANCE, body)
        else:
            await self.store.replace(INSTANCES, INSTANCE, body, if_revision=before.revision)

    async def ended(self, servers: Mapping[str, str], **more: Any) -> None:
        """End an operation that leaves these servers, and do the work after it."""
        await self.store_instance(servers, **more)
        await self.alarms.ask(INSTANCE)
        await self.work()

    async def work(self) -> bool:
        """Claim the instance if it is due, and do its work; return whether it was due."""
        (stored,) = await self.store.find(COLLECTION, Query()) or (None,)
        due = None if stored is None else stored.body["internal"].get(DUE.partition("/")[2])
        if stored is None or due is None or datetime.fromisoformat(due) > self.clock.now():
            return False
        claimed = await SqliteStore.update(self.store, COLLECTION, INSTANCE, {CLAIM: "mine"})
        await self.alarms.bring(claimed, "mine")
        return True

    async def shown(self) -> dict[str, Any]:
        """Return the metadata of the VNFCs."""
        stored = await self.store.get(INSTANCES, INSTANCE)
        assert stored is not None
        info = InstanceRecord.from_document(stored.body).vnf.instantiated_vnf_info
        return {} if info is None else {each.id: each.metadata for each in info.vnfc_resource_info}

    def alarm_of(self, server: str) -> Any:
        """Return what the VNFC of a registered server shows."""
        (alarm,) = [alarm for alarm, (_, each, _) in self.notifier.alarms.items() if each == server]
        return {"server_notification": {"alarmId": alarm, "serverId": server}}

    async def is_settled(self) -> bool:
        """Return whether nothing is left to do."""
        found = await self.store.find(COLLECTION, Query())
        return not any("dueAt" in each.body["internal"] for each in found)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with (
        MortalStore.open(tmp_path / "store.db") as store,
        ServerNotifier.listening() as notifier,
        outbound_session(ANYWHERE_HERE) as session,
    ):
        yield a_world(store, notifier, session)


def a_world(store: MortalStore, notifier: ServerNotifier, session: aiohttp.ClientSession) -> World:
    clock, vims = SetClock(NOW), TwinVims()
    vims.add("vim-1", "openstack", vim_project={"name": "nfv", "project_domain_name": "Default"})
    alarms = ServerAlarms(
        store=store, vims=vims, notifier=Notifier(session), ring=RING, clock=clock,
        root="https://vnfm.example/", wake=lambda: None,
    )  # fmt: skip
    parameters = {"ServerNotifierUri": notifier.url, "ServerNotifierFaultID": ["1111", "1234"]}
    return World(store, clock, notifier, alarms, parameters, vims)


async def test_each_operation_registers_new_servers_and_removes_those_that_are_gone(world: World) -> None:
    """API-230, API-231: instantiate, scale out, heal, scale in, terminate."""
    await world.ended({"a": "s1", "b": "s2"})
    assert world.notifier.servers == ["s1", "s2"]
    (tenant, _, body), *_ = world.notifier.alarms.values()
    path = f"/server_notification/vnf_instances/{INSTANCE}/servers/s1/notify"
    assert (tenant, body) == ("nfv", {"fault_action": f"https://vnfm.example{path}", "fault_id": ["1111", "1234"]})
    assert await world.shown() == {"a": world.alarm_of("s1"), "b": world.alarm_of("s2")}
    await world.ended({"a": "s1", "b": "s2", "c": "s3"})
    assert (world.notifier.servers, world.notifier.posts) == (["s1", "s2", "s3"], ["s1", "s2", "s3"])
    await world.ended({"a": "healed", "b": "s2", "c": "s3"})
    assert world.notifier.servers == ["healed", "s2", "s3"]
    assert (await world.shown())["a"] == world.alarm_of("healed")
    await world.ended({"a": "healed"})
    assert world.notifier.servers == ["healed"]
    await world.ended({}, is_instantiated=False)
    assert world.notifier.servers == []
    assert await world.store.find(COLLECTION, Query()) == [], "nothing is left of the instance"


async def test_other_faults_register_servers_again_and_a_script_keeps_what_it_has_registered(world: World) -> None:
    """API-231."""
    await world.ended({"a": "s1"})
    world.parameters["ServerNotifierFaultID"] = "4321"
    await world.ended({"a": "s1"})
    ((_, server, body),) = world.notifier.alarms.values()
    assert (server, body["fault_id"]) == ("s1", ["4321"])
    await world.ended({}, is_instantiated=False)
    stored = await world.store.get(INSTANCES, INSTANCE)
    assert stored is not None
    await world.store.delete(INSTANCES, INSTANCE)
    theirs = {"server_notification": {"alarmId": "of a script"}}
    resource = VnfcResourceInfo(
        id="a", vdu_id="VDU1", compute_resource=ResourceHandle(resource_id="s9"), metadata=theirs
    )
    record = an_instance(
        instantiation_state=InstantiationState.INSTANTIATED, vim_connection_info=VIM,
        instantiated_vnf_info=InstantiatedVnfInfo(flavour_id="simple", vnfc_resource_info=(resource,)),
    ).with_internals(
        parameters=world.parameters, deployments=(StackDeployment(kind="stack", vim_key="vim1", stack_name="s"),)
    )  # fmt: skip
    await world.store.insert(INSTANCES, INSTANCE, record.document(RING))
    await world.alarms.ask(INSTANCE)
    await world.work()
    assert world.notifier.alarms == {}
    assert await world.shown() == {"a": theirs}


async def test_a_notifier_that_is_away_is_asked_again_and_its_servers_are_not_forgotten(world: World) -> None:
    """API-232: nothing fails, the VNFC says why, and what is gone meanwhile is removed once the notifier is back."""
    world.notifier.refusal = 503
    await world.ended({"a": "s1"})
    assert (await world.shown())["a"]["server_notification"] == {
        "serverId": "s1", "trouble": "the server notifier answered 503",
    }  # fmt: skip
    assert not await world.work(), "it pauses"
    world.clock.advance(300)
    assert await world.work()
    world.notifier.refusal = None
    world.clock.advance(300)
    assert await world.work()
    assert await world.shown() == {"a": world.alarm_of("s1")}
    assert await world.is_settled()
    world.notifier.refusal = 500
    await world.ended({}, is_instantiated=False)
    await world.store.delete(INSTANCES, INSTANCE)
    world.clock.advance(300)
    await world.work()
    assert world.notifier.servers == ["s1"]
    world.notifier.refusal = None
    world.clock.advance(300)
    await world.work()
    assert world.notifier.servers == []
    assert await world.store.find(COLLECTION, Query()) == []


async def test_a_refusal_concerns_one_server_and_is_tried_again(world: World) -> None:
    """API-232."""
    world.notifier.refusal = 400
    await world.ended({"a": "s1", "b": "s2"})
    assert world.notifier.posts == ["s1", "s2"]
    assert (await world.shown())["b"]["server_notification"]["trouble"] == "the server notifier answered 400"
    world.notifier.refusal = None
    world.clock.advance(300)
    await world.work()
    assert world.notifier.servers == ["s1", "s2"]
    assert await world.is_settled()


@pytest.mark.parametrize(
    "hostile",
    [
        {"body": b"[]"},
        {"body": b'{"alarm_id": 7}'},
        {"body": b'{"alarm_id": ""}'},
        {"body": b'{"alarm_id": "a\\u0000b"}'},
        {"body": b'{"alarm_id": "%s"}' % (b"x" * 256)},
        {"body": b" " * 70_000 + b'{"alarm_id": "late"}'},
        {"body": b"{" * 5000},
        {"status": 302, "headers": {"Location": "/elsewhere"}},
    ],
    ids=["list", "number", "empty", "control character", "long", "large", "deep", "redirect"],
)
async def test_an_answer_that_cannot_be_used_is_no_registration(world: World, hostile: dict[str, Any]) -> None:
    """API-233."""

    async def answer() -> web.StreamResponse:
        return web.Response(**hostile)

    world.notifier.answer = answer
    await world.ended({"a": "s1"})
    assert "alarmId" not in (await world.shown())["a"]["server_notification"]
    assert not await world.is_settled()


async def test_an_alarm_id_leads_to_no_other_path(world: World) -> None:
    """API-233."""

    async def answer() -> web.StreamResponse:
        return web.json_response({"alarm_id": ".."})

    world.notifier.answer = answer
    await world.ended({"a": "s1"})
    seen: list[str] = []

    async def note(session: Any, context: Any, params: Any) -> None:
        seen.append(params.url.raw_path)

    trace = aiohttp.TraceConfig()
    trace.on_request_start.append(note)
    trace.freeze()
    async with outbound_session(ANYWHERE_HERE) as session:
        session._trace_configs.append(trace)
        world.alarms._notifier = Notifier(session)
        await world.ended({}, is_instantiated=False)
    assert seen == ["/notifier/v2/nfv/servers/s1/alarms/%2E%2E"]


async def test_a_notifier_in_a_network_that_is_not_allowed_is_not_called(world: World) -> None:
    """API-233."""
    async with outbound_session(AddressRules()) as session:
        world.alarms._notifier = Notifier(session)
        await world.ended({"a": "s1"})
    assert world.notifier.posts == []
    assert "allowed_networks" in (await world.shown())["a"]["server_notification"]["trouble"]


@pytest.mark.parametrize("writes", range(8))
async def test_a_kill_at_any_write_registers_no_server_twice_and_leaves_none_behind(world: World, writes: int) -> None:
    """API-234: the notifier knows repeated calls by their keys."""
    world.notifier.knows_keys = True

    async def until_killed(servers: Mapping[str, str], **more: Any) -> None:
        await world.store_instance(servers, **more)
        await world.alarms.ask(INSTANCE)
        world.store.left = writes
        try:
            await world.work()
        except StoreUnavailable:
            world.clock.advance(300)
        world.store.left = None
        while await world.work():
            world.clock.advance(300)

    await until_killed({"a": "s1", "b": "s2"})
    assert world.notifier.servers == ["s1", "s2"]
    assert await world.shown() == {"a": world.alarm_of("s1"), "b": world.alarm_of("s2")}
    await until_killed({"a": "healed"})
    assert world.notifier.servers == ["healed"]
    await until_killed({}, is_instantiated=False)
    assert world.notifier.servers == []


async def test_a_registration_without_an_answer_is_completed_before_it_is_removed(world: World) -> None:
    """API-234: the instance is terminated before the answer has come."""
    world.notifier.knows_keys = True

    async def broken_off() -> web.StreamResponse:
        return web.Response(status=504)

    world.notifier.answer = broken_off
    await world.ended({"a": "s1"})
    assert world.notifier.servers == ["s1"]
    world.notifier.answer = None
    await world.ended({}, is_instantiated=False)
    assert world.notifier.servers == []
    assert world.notifier.posts == ["s1", "s1"]


async def test_what_is_asked_during_the_work_is_not_missed(world: World) -> None:
    """API-234: an operation ends while the notifier is being called."""

    async def meanwhile() -> web.StreamResponse | None:
        world.notifier.answer = None
        await world.store_instance({"b": "s2"})
        await world.alarms.ask(INSTANCE)
        return None

    world.notifier.answer = meanwhile
    await world.ended({"a": "s1"})
    world.clock.advance(300)
    while await world.work():
        pass
    assert world.notifier.servers == ["s2"]
    assert await world.shown() == {"b": world.alarm_of("s2")}


async def test_a_repeated_call_keeps_its_key_until_it_is_answered(world: World) -> None:
    """API-234: the notifier has carried out the first one, and cannot be reached for the second one."""
    world.notifier.knows_keys = True

    async def broken_off() -> web.StreamResponse:
        return web.Response(status=504)

    world.notifier.answer = broken_off
    await world.ended({"a": "s1"})
    world.notifier.answer, reached = None, world.alarms._notifier
    async with outbound_session(AddressRules()) as session:
        world.alarms._notifier = Notifier(session)
        world.clock.advance(300)
        assert await world.work()
    world.alarms._notifier = reached
    world.clock.advance(300)
    await world.work()
    assert world.notifier.servers == ["s1"]
    assert await world.is_settled()


async def test_a_server_that_a_notifier_cannot_register_does_not_hinder_the_others(world: World) -> None:
    """API-232: errors about one server, and another notifier that is gone for good."""

    async def broken() -> web.StreamResponse | None:
        return web.Response(status=500) if world.notifier.posts[-1] == "s1" else None

    world.notifier.answer = broken
    await world.ended({"a": "s1", "b": "s2"})
    shown = await world.shown()
    assert shown["a"]["server_notification"]["trouble"] == "the server notifier answered 500"
    assert shown["b"] == world.alarm_of("s2")

    async with ServerNotifier.listening() as new:
        world.notifier.refusal, world.parameters["ServerNotifierUri"] = 503, new.url
        await world.ended({"a": "s1", "b": "s2"})
        assert new.servers == ["s1", "s2"]
        shown = await world.shown()
    assert {each["server_notification"]["alarmId"] for each in shown.values()} == set(new.alarms)


async def test_a_slow_notifier_is_called_in_turns(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """API-232: each call takes 10 s, so one claim is too short for all; the next turn follows at once."""
    now = 0.0
    monkeypatch.setattr(work, "time", SimpleNamespace(monotonic=lambda: now))

    async def slow() -> None:
        nonlocal now
        now += 10

    world.notifier.answer = slow
    await world.ended({f"vnfc-{number}": f"s{number}" for number in range(9)})
    assert len(world.notifier.posts) == 4
    turns = 1
    while await world.work():
        turns += 1
    assert (turns, len(world.notifier.servers), len(world.notifier.posts)) == (3, 9, 9)


async def test_a_notifier_that_is_gone_for_good_is_given_up_a_day_after_the_instance(world: World) -> None:
    """API-232: the log names what is left; nothing is kept for ever."""
    await world.ended({"a": "s1"})
    world.notifier.refusal = 503
    await world.ended({}, is_instantiated=False)
    await world.store.update(COLLECTION, INSTANCE, {"internal/failures": 300})
    world.clock.advance(300)
    with capture_logs() as lines:
        await world.work()
    (left,) = [each for each in lines if each["event"] == "server_left_at_notifier"]
    assert (left["server_id"], left["alarm_id"]) == ("s1", "alarm-1")
    assert await world.store.find(COLLECTION, Query()) == []


async def test_two_processes_register_each_server_once(world: World) -> None:
    """API-234."""
    await world.store_instance({f"vnfc-{number}": f"s{number}" for number in range(6)})
    woken = [asyncio.Event(), asyncio.Event()]
    works = [
        DueWork(world.store, world.clock, COLLECTION, world.alarms.bring, each, work.notifier_of) for each in woken
    ]
    async with asyncio.TaskGroup() as group:
        running = [group.create_task(each.run()) for each in works]
        for _ in range(4):
            await world.alarms.ask(INSTANCE)
            for each in woken:
                each.set()
        await world.notifier.has(*(f"s{number}" for number in range(6)))
        await until(settled(world))
        for task in running:
            task.cancel()
    assert len(world.notifier.posts) == 6


def settled(world: World) -> Callable[[], Awaitable[bool | None]]:
    async def found() -> bool | None:
        return True if await world.is_settled() else None

    return found


def test_an_operation_on_an_instance_without_a_notifier_asks_for_nothing() -> None:
    """API-230: neither a message nor a read nor a write."""
    named = {"ServerNotifierUri": "http://notifier"}
    without = an_instance()
    assert server_events(without, without) == []
    for one in (without.with_internals(parameters=named), without.with_vnf(metadata=named)):
        for written in ((one, without), (without, one), (one,)):
            (event,) = server_events(*written)
            assert (event.data, event.subject) == (ServersChanged(vnf_instance_id=without.vnf.id), without.vnf.id)


async def test_an_instance_is_not_written_while_an_operation_runs_on_it(world: World) -> None:
    """API-231: the end of that operation shows the alarms."""
    await world.ended({"a": "s1"}, operation="op-2")
    assert world.notifier.servers == ["s1"]
    assert await world.shown() == {"a": None}
    await world.ended({"a": "s1"})
    assert await world.shown() == {"a": world.alarm_of("s1")}
    assert world.notifier.posts == ["s1"]


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"ServerNotifierUri": "ftp://notifier"}, "ServerNotifierUri"),
        ({"ServerNotifierUri": "http://user:secret@notifier"}, "ServerNotifierUri"),
        ({"ServerNotifierUri": "http://notifier/?a=b"}, "ServerNotifierUri"),
        ({"ServerNotifierUri": "http://notifier:99999"}, "ServerNotifierUri"),
        ({"ServerNotifierUri": ["http://notifier"]}, "ServerNotifierUri"),
        ({"ServerNotifierUri": "http://notifier"}, "ServerNotifierFaultID"),
        ({"ServerNotifierUri": "http://notifier", "ServerNotifierFaultID": []}, "ServerNotifierFaultID"),
        ({"ServerNotifierFaultID": [1234]}, "ServerNotifierFaultID"),
        ({"ServerNotifierFaultID": "x" * 65}, "ServerNotifierFaultID"),
        ({"ServerNotifierFaultID": "12345"}, "ServerNotifierFaultID"),
        ({"ServerNotifierFaultID": ["1234", "123"]}, "ServerNotifierFaultID"),
        ({"ServerNotifierFaultID": ["1234"] * 33}, "ServerNotifierFaultID"),
    ],
)
def test_a_notifier_that_cannot_be_called_is_refused_by_name(given: dict[str, Any], name: str) -> None:
    """API-230."""
    if name == "ServerNotifierUri":
        given = {"ServerNotifierFaultID": ["1234"], **given}
    with pytest.raises(InvalidInput) as refused:
        check_notifier(given)
    assert refused.value.places[0][0] == f"additionalParams/{name}"
    check_notifier({"ServerNotifierUri": "https://notifier:55555/path", "ServerNotifierFaultID": ["1234"]})
    check_notifier({})
