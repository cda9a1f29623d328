"""Alarms over HTTP, and their notifications: raised and cleared by the state of operations, VIMs and instances."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from kubevnfm_bus.port import Ack, Again, Delivery, Verdict
from kubevnfm_clients.multicloud.inventory import StaleWatch
from kubevnfm_clients.vim_views import VimView
from kubevnfm_events import Envelope, Message
from kubevnfm_events.faults import AlarmChanged
from kubevnfm_events.lcm import InstanceTroubled
from kubevnfm_events.services import ServiceReported, Trouble
from kubevnfm_events.stacks import StackDrift, StackFinding, StacksCompared
from kubevnfm_events.vim import VimCredentialsExpiring, VimDeregistered, VimStatus, VimStatusChanged
from kubevnfm_kit.clock import SystemClock, rfc3339
from kubevnfm_kit.errors import OutsideUnavailable
from kubevnfm_lcm_api.faults.alarms import COLLECTION, Alarms
from kubevnfm_lcm_api.faults.domain.fault import Findings
from kubevnfm_lcm_api.faults.domain.site_rules import (
    ServiceState,
    VimState,
    faults_of_service,
    faults_of_source,
    faults_of_subscription,
    faults_of_vim,
)
from kubevnfm_lcm_api.faults.domain.vnf_rules import VnfState, faults_of_vnf
from kubevnfm_lcm_api.faults.watch import FaultWatch
from kubevnfm_lcm_api.lifecycle.containers.trouble_marks import COLLECTION as MARKS
from kubevnfm_lcm_api.lifecycle.core.drift import KEY
from kubevnfm_lcm_api.lifecycle.core.instance import COLLECTION as INSTANCES
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord, StackDeployment
from kubevnfm_lcm_api.measurement_sources import COLLECTION as SOURCES
from kubevnfm_lcm_api.siblings import SeenProcess, SeenService
from kubevnfm_sol.resources import InstantiatedVnfInfo, ResourceHandle, VnfcResourceInfo
from kubevnfm_store.port import StoreUnavailable
from kubevnfm_store.query import AllOf, Query
from kubevnfm_worker.outbox import Outbox
from kubevnfm_worker.relay import OutboxRelay
from patience import until
from servers.subscriber import Subscriber
from worlds.alarm_world import (
    a_watch,
    alarm_of,
    alarms_of,
    fm,
    heard,
    no_services,
    of_operation,
    subscribe,
)
from worlds.cluster_heals import HA, a_heal_of_masters
from worlds.lcm_builders import an_instance
from worlds.lcm_world import OPENSTACK_VIM, RING, World, lcm_world

NOW = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)
MACHINE = "machine-lost"
FAILED = "operation-failed"
AWAY = "vim-unreachable"
EXPIRING = "credentials-expiring"


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with lcm_world(tmp_path, allowed_networks="127.0.0.0/8", test_callbacks=True) as running:
        await running.sample()
        yield running


@pytest.fixture
async def subscriber() -> AsyncIterator[Subscriber]:
    async with Subscriber.listening() as listening:
        yield listening


@pytest.fixture
async def watch(world: World) -> AsyncIterator[FaultWatch]:
    """A further watch, as that of another gateway; tests call its rounds."""
    async with OutboxRelay(world.store, world.bus, collections=[COLLECTION]) as relay:
        yield a_watch(world, world.store, relay)


async def report_vim(world: World, status: VimStatus) -> None:
    """Have the twin of vim-registry show a status of the VIM, and report it."""
    before = world.vims.records["vim-1"].get("status", "ACTIVE")
    since = {"status_since": rfc3339(SystemClock().now()), "status_reason": "Keystone: connection refused"}
    world.vims.records["vim-1"].update(since, status=status)
    changed = VimStatusChanged(vim_id="vim-1", name="lab", old_status=before, status=status)
    await world.bus.publish(Envelope(data=changed, source="/kubevnfm/vim-registry"))


async def lose_machines(world: World, instance_id: str, *servers: str) -> None:
    """Report servers of the instance as lost; none: as present again."""
    stored = await world.store.get(INSTANCES, instance_id)
    assert stored is not None
    drift = StackDrift(state="INCOMPLETE", servers=servers) if servers else None
    finding = StackFinding(
        vnf_instance_id=instance_id, revision=stored.revision, drift=drift, reason="the server s does not exist"
    )
    await world.bus.publish(Envelope(data=StacksCompared(findings=(finding,)), source="/kubevnfm/infra-openstack"))


# --- operations -------------------------------------------------------------------------------------------------------


async def test_a_failed_operation_has_an_alarm_until_its_retry_has_ended_well(
    world: World, subscriber: Subscriber
) -> None:
    """API-180, API-183, API-187."""
    await subscribe(world, subscriber, perceivedSeverities=["MAJOR"], probableCauses=["no-host", "capacity-missing"])
    wanted = await subscribe(world, subscriber, perceivedSeverities=["MAJOR"], eventTypes=["PROCESSING_ERROR_ALARM"])
    await subscribe(world, subscriber, vnfInstanceSubscriptionFilter={"vnfInstanceIds": ["another"]})
    operation = await world.an_operation_in("FAILED_TEMP")
    instance_id = await of_operation(world, operation)
    alarm = await alarm_of(world, instance_id, FAILED)
    assert alarm["perceivedSeverity"] == "MAJOR"
    assert alarm["ackState"] == "UNACKNOWLEDGED"
    assert alarm["eventTime"] == (await world.operation(operation))["stateEnteredTime"]
    cause = (await world.call("GET", f"/kubevnfm/v1/operations/{operation}")).must(200).json["cause"]
    assert alarm["faultDetails"][0].startswith(f"INSTANTIATE {operation} has failed")
    assert alarm["faultDetails"][1:] == [cause["text"]]
    assert alarm["_links"]["objectInstance"]["href"] == f"{world.url}/vnflcm/v2/vnf_instances/{instance_id}"
    # While the retry runs nothing is known, and the alarm stays.
    world.twins.waiting.add("infra.openstack.create_resources")
    (await world.lcm("POST", f"/vnf_lcm_op_occs/{operation}/retry")).must(202)
    await world.reached(operation, "PROCESSING")
    await world.bus.quiet()
    assert await alarm_of(world, instance_id, FAILED) == alarm
    for command in world.twins.held:
        await world.bus.publish(world.twins.answer(command))
    await world.reached(operation, "COMPLETED")
    cleared = await alarm_of(world, instance_id, FAILED, is_open=False)
    raised, ended = [each for each in await heard(subscriber, 2) if each["subscriptionId"] == wanted]
    assert cleared == {**alarm, "alarmClearedTime": ended["alarmClearedTime"]}
    links = raised["alarm"].pop("_links")
    assert links == {
        name: {"href": each["href"].replace(world.url, links["self"]["href"].partition("/vnffm")[0])}
        for name, each in alarm["_links"].items()
    }
    assert raised["alarm"] == {name: value for name, value in alarm.items() if name != "_links"}
    assert ended["alarmId"] == alarm["id"]
    assert [each["notificationType"] for each in (raised, ended)] == ["AlarmNotification", "AlarmClearedNotification"]
    assert {each.version for each in subscriber.received} == {"1.5.0"}


@pytest.mark.parametrize("end", ["rollback", "fail"])
async def test_a_rollback_clears_the_alarm_and_a_decided_failure_makes_it_minor(world: World, end: str) -> None:
    """API-183, API-184."""
    operation = await world.an_operation_in("FAILED_TEMP")
    instance_id = await of_operation(world, operation)
    await alarm_of(world, instance_id, FAILED)
    (await world.lcm("POST", f"/vnf_lcm_op_occs/{operation}/{end}")).must(202 if end == "rollback" else 200)
    await world.reached(operation, "ROLLED_BACK" if end == "rollback" else "FAILED")
    if end == "fail":

        async def minor() -> dict[str, Any] | None:
            alarm = await alarm_of(world, instance_id, FAILED)
            return alarm if alarm["perceivedSeverity"] == "MINOR" else None

        assert (await until(minor, timeout_s=300))["alarmChangedTime"]
        (await world.lcm("DELETE", f"/vnf_instances/{instance_id}")).must(204)
    await alarm_of(world, instance_id, FAILED, is_open=False)


# --- VIMs and what is on them -------------------------------------------------------------------------------------------


async def test_a_vim_that_is_away_is_the_root_cause_of_the_alarms_of_its_vnfs(
    world: World, subscriber: Subscriber
) -> None:
    """API-185, API-186."""
    instance_id = await of_operation(world, await world.an_operation_in("COMPLETED"))
    await subscribe(world, subscriber, vnfInstanceSubscriptionFilter={"vnfInstanceIds": [instance_id]})
    await report_vim(world, "UNREACHABLE")
    caused, root = await alarm_of(world, instance_id, AWAY), await alarm_of(world, "vim-1", AWAY)
    assert (root["isRootCause"], root["correlatedAlarmIds"]) == (True, [caused["id"]])
    assert (caused["isRootCause"], caused["correlatedAlarmIds"]) == (False, [root["id"]])
    assert (root["probableCause"], root["perceivedSeverity"], caused["perceivedSeverity"]) == (
        "vim-away", "MAJOR", "WARNING",
    )  # fmt: skip
    assert set(root["_links"]) == {"self"}
    # The tag that a PATCH answers is that of the next GET, with the alarms that follow from this one.
    changed = await fm(world, "PATCH", path := f"/alarms/{root['id']}", {"ackState": "ACKNOWLEDGED"})
    assert (await fm(world, "GET", path)).must(200).headers["ETag"] == changed.must(200).headers["ETag"]
    await report_vim(world, "ACTIVE")
    await alarm_of(world, instance_id, AWAY, is_open=False)
    await alarm_of(world, "vim-1", AWAY, is_open=False)
    assert [each["notificationType"] for each in await heard(subscriber, 2)] == [
        "AlarmNotification", "AlarmClearedNotification",
    ]  # fmt: skip


async def test_a_lost_machine_is_the_faulty_resource_and_quorum_is_no_matter_of_a_vnf_of_one_machine(
    world: World,
) -> None:
    """API-180, API-184."""
    instance_id = await of_operation(world, await world.an_operation_in("COMPLETED"))
    shown = (await world.lcm("GET", f"/vnf_instances/{instance_id}")).must(200).json
    compute = shown["instantiatedVnfInfo"]["vnfcResourceInfo"][0]["computeResource"]
    await lose_machines(world, instance_id, compute["resourceId"])
    alarm = await alarm_of(world, instance_id, MACHINE)
    assert alarm["rootCauseFaultyResource"] == {"faultyResource": compute, "faultyResourceType": "COMPUTE"}
    assert set(await alarms_of(world, instance_id)) == {MACHINE}
    query = "/alarms?filter=(eq,rootCauseFaultyResource/faultyResourceType,COMPUTE);(neq,perceivedSeverity,MINOR)"
    assert [each["id"] for each in (await fm(world, "GET", query)).must(200).json] == [alarm["id"]]
    await lose_machines(world, instance_id)
    await alarm_of(world, instance_id, MACHINE, is_open=False)


async def test_a_vim_that_is_away_again_has_a_new_alarm(world: World) -> None:
    """API-182."""
    world.vims.records["vim-1"] = {**OPENSTACK_VIM}
    states: list[VimStatus] = ["UNREACHABLE", "ACTIVE", "ERROR", "ACTIVE", "UNREACHABLE"]
    for status in states:
        await report_vim(world, status)
        await world.bus.quiet()
    found = await alarms_of(world, "vim-1")
    assert [("alarmClearedTime" in each) for each in found[AWAY]] == [True, False]
    assert [("alarmClearedTime" in each) for each in found["vim-error"]] == [True]


# --- the list -----------------------------------------------------------------------------------------------------------


async def test_an_alarm_is_acknowledged_once_and_by_the_revision_that_was_seen(
    world: World, subscriber: Subscriber
) -> None:
    """API-181."""
    await subscribe(world, subscriber)
    instance_id = await of_operation(world, await world.an_operation_in("FAILED_TEMP"))
    path = f"/alarms/{(await alarm_of(world, instance_id, FAILED))['id']}"
    etag = (await fm(world, "GET", path)).must(200).headers["ETag"]
    (await fm(world, "GET", path, If_None_Match=etag)).must(304)
    merge = {"Content_Type": "application/merge-patch+json"}
    done, again = {"ackState": "ACKNOWLEDGED"}, {"ackState": "UNACKNOWLEDGED"}
    (await fm(world, "PATCH", path, done, If_Match='"another"', **merge)).problem(412)
    assert (await fm(world, "PATCH", path, done, If_Match=etag, **merge)).must(200).json == done
    assert "alarmAcknowledgedTime" in (await fm(world, "GET", path)).must(200).json
    (await fm(world, "PATCH", path, done, If_Match=etag, **merge)).problem(412)
    (await fm(world, "PATCH", path, done, **merge)).problem(409)
    wrong_state = (await fm(world, "PATCH", path, {"ackState": "SEEN"}, **merge)).problem(400)
    assert wrong_state["detail"] == "ackState: 'UNACKNOWLEDGED' or 'ACKNOWLEDGED' expected"
    refused: list[Any] = [{"ackState": None}, {}, {"perceivedSeverity": "MINOR"}, []]
    for wrong in refused:
        (await fm(world, "PATCH", path, wrong, **merge)).problem(400)
    (await fm(world, "PATCH", path, again, **merge)).must(200)
    assert "alarmAcknowledgedTime" not in (await fm(world, "GET", path)).must(200).json
    (await fm(world, "PATCH", "/alarms/none", done, **merge)).problem(404)
    (await fm(world, "GET", "/alarms/list")).problem(404)
    # Only a change of the fault is notified.
    await world.bus.quiet()
    await heard(subscriber, 1)


async def test_what_sol003_names_for_the_resources_of_alarms_is_there(world: World, subscriber: Subscriber) -> None:
    """API-198: each filter that clause 7.4.2.3.2 demands, those of subscriptions, both preconditions, headers and media types."""
    instance_id = await of_operation(world, await world.an_operation_in("COMPLETED"))
    server = (await world.lcm("GET", f"/vnf_instances/{instance_id}")).must(200).json["instantiatedVnfInfo"]
    await lose_machines(world, instance_id, server["vnfcResourceInfo"][0]["computeResource"]["resourceId"])
    alarm = await alarm_of(world, instance_id, MACHINE)
    for path, value, other in (
        ("id", alarm["id"], "none"),
        ("managedObjectId", instance_id, "none"),
        ("rootCauseFaultyResource/faultyResourceType", "COMPUTE", "STORAGE"),
        ("eventType", "EQUIPMENT_ALARM", "QOS_ALARM"),
        ("perceivedSeverity", "MAJOR", "MINOR"),
        ("probableCause", MACHINE, "vim-away"),
        ("faultType", MACHINE, FAILED),
        ("ackState", "UNACKNOWLEDGED", "ACKNOWLEDGED"),
        ("isRootCause", "false", "true"),
    ):
        for given, found in ((value, [alarm["id"]]), (other, [])):
            shown = (await fm(world, "GET", f"/alarms?filter=(eq,{path},{given})")).must(200).json
            assert [each["id"] for each in shown] == found, (path, given)
    (await fm(world, "GET", "/alarms?filter=(eq,escalated,true)")).problem(400)
    path = f"/alarms/{alarm['id']}"
    read = (await fm(world, "GET", path)).must(200)
    early = {"If_Unmodified_Since": "Sun, 06 Nov 1994 08:49:37 GMT"}
    (await fm(world, "PATCH", path, {"ackState": "ACKNOWLEDGED"}, **early)).problem(412)
    (await fm(world, "PATCH", path, {"ackState": "ACKNOWLEDGED"}, If_Unmodified_Since="yesterday")).problem(400)
    # ETSI's file has application/json for the PATCH, clause 7.4.3.3.4 merge-patch+json.
    since = {"If_Unmodified_Since": read.headers["Last-Modified"], "Content_Type": "application/json"}
    changed = (await fm(world, "PATCH", path, {"ackState": "ACKNOWLEDGED"}, **since)).must(200)
    again = (await fm(world, "GET", path)).must(200)
    assert {name: changed.headers[name] for name in ("ETag", "Last-Modified", "Version")} == {
        name: again.headers[name] for name in ("ETag", "Last-Modified", "Version")
    }
    for method in ("POST", "PUT", "DELETE"):
        (await fm(world, method, path)).problem(405)
    (await fm(world, "GET", "/alarms", Accept="text/html")).problem(406)
    names = {"perceivedSeverities": ["MAJOR"], "notificationTypes": ["AlarmNotification"]}
    of_vnfs = {"vnfInstanceSubscriptionFilter": {"vnfInstanceIds": [instance_id]}}
    subscribed = await subscribe(world, subscriber, **names, **of_vnfs)
    await subscribe(world, subscriber, perceivedSeverities=["MINOR"])
    for attribute, value in (
        ("id", subscribed),
        ("filter/perceivedSeverities", "MAJOR"),
        ("filter/notificationTypes", "AlarmNotification"),
        ("filter/vnfInstanceSubscriptionFilter/vnfInstanceIds", instance_id),
    ):
        shown = (await fm(world, "GET", f"/subscriptions?filter=(eq,{attribute},{value})")).must(200).json
        assert [each["id"] for each in shown] == [subscribed], attribute


async def test_looks_at_a_time_and_repeated_rounds_raise_one_alarm(world: World, watch: FaultWatch) -> None:
    """API-182, API-188."""
    operations = [await world.an_operation_in("FAILED_TEMP") for _ in range(3)]
    instances = [await of_operation(world, each) for each in operations]
    for each in instances:
        await alarm_of(world, each, FAILED)
    before = await world.store.find(COLLECTION, Query(AllOf()))
    await asyncio.gather(*(partial(watch.look_at_vnf, each)() for each in instances * 3))
    await watch.look()
    after = await world.store.find(COLLECTION, Query(AllOf()))
    assert [each for each in after if each.id != "list"] == before
    # Without the store of the alarms, many looks at a time make it again, with the same ids.
    await world.store.delete_many(COLLECTION, AllOf())
    await asyncio.gather(*(watch.look_at_vnf(each) for each in instances * 3))
    made = await world.store.find(COLLECTION, Query(AllOf()))
    assert [each.id for each in made] == [each.id for each in before]


class Dies:
    """The store of a process that dies before or after its write of an alarm."""

    def __init__(self, store: Any, *, is_after: bool) -> None:
        self._store, self._is_after = store, is_after

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        return partial(self._write, found) if name in {"insert", "update"} else found

    async def _write(self, write: Any, *given: Any, **more: Any) -> None:
        if self._is_after:
            await write(*given, **more)
        raise StoreUnavailable("the process has died")


async def test_a_process_that_dies_at_any_write_loses_and_doubles_no_alarm(
    world: World, subscriber: Subscriber, watch: FaultWatch
) -> None:
    """API-188: another process looks again, and publishes what the one that died has stored."""
    await subscribe(world, subscriber)
    instance_id = await of_operation(world, await world.an_operation_in("COMPLETED"))
    drift = {"state": "CHANGED", "since": "2030-01-02T03:04:05.000Z", "reason": "an object was changed"}
    async with OutboxRelay(world.store, world.bus, collections=[COLLECTION], settle_s=0) as relay:
        for number, is_after in enumerate((False, True)):
            for present in (True, False):
                since = {KEY: {**drift, "since": f"2030-01-02T03:04:0{number}.000Z"}} if present else {}
                await world.store.update(INSTANCES, instance_id, {"metadata": since})
                dying: Any = Dies(world.store, is_after=is_after)
                alarms = Alarms(store=dying, outbox=Outbox(dying, relay, RING), clock=SystemClock())
                one = FaultWatch(
                    store=world.store,
                    alarms=alarms,
                    vims=world.vims,
                    inventory=world.inventory,
                    services=no_services,
                    clock=SystemClock(),
                )
                with pytest.raises(StoreUnavailable):
                    await one.look_at_vnf(instance_id)
                await watch.look_at_vnf(instance_id)
                await relay.sweep()
    assert [each["notificationType"] for each in await heard(subscriber, 4)] == [
        "AlarmNotification", "AlarmClearedNotification",
    ] * 2  # fmt: skip
    assert len((await alarms_of(world, instance_id))["resources-drifted"]) == 2


async def test_a_lost_list_is_made_again_and_subscribers_are_notified(
    world: World, subscriber: Subscriber, watch: FaultWatch
) -> None:
    """API-189."""
    await watch.look()  # the first list is nothing to notify of
    await subscribe(world, subscriber, perceivedSeverities=["CRITICAL"])
    instance_id = await of_operation(world, await world.an_operation_in("FAILED_TEMP"))
    await alarm_of(world, instance_id, FAILED)
    await world.store.delete_many(COLLECTION, AllOf())
    await watch.look()
    await alarm_of(world, instance_id, FAILED)
    (body,) = await heard(subscriber, 1)
    assert body["notificationType"] == "AlarmListRebuiltNotification"
    assert body["_links"]["alarms"]["href"].endswith("/vnffm/v1/alarms")
    await watch.look()
    await world.bus.quiet()
    await heard(subscriber, 1)


class Away:
    """A vim-registry that does not answer."""

    async def views(self, *_: Any, **__: Any) -> Any:
        raise OutsideUnavailable("vim-registry does not answer")


class NotedOutbox:
    """An outbox that keeps the events that are stored with a change."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox, self.noted = outbox, list[Any]()

    def __getattr__(self, name: str) -> Any:
        return partial(self._write, getattr(self._outbox, name))

    async def _write(self, write: Any, *given: Any, events: Any, **more: Any) -> Any:
        self.noted += events
        return await write(*given, events=events, **more)


class Rounds(FaultWatch):
    """A watch that notes which VNF instances it looks at, and its events."""

    def __init__(self, watched: World, vims: Any, services: Any) -> None:
        self.looked_at: list[str] = []
        clock = SystemClock()
        with_relay = OutboxRelay(watched.store, watched.bus, collections=[COLLECTION])
        outbox: Any = NotedOutbox(Outbox(watched.store, with_relay, RING))
        self.events: list[Any] = outbox.noted
        alarms = Alarms(store=watched.store, outbox=outbox, clock=clock)
        super().__init__(
            store=watched.store, alarms=alarms, vims=vims, inventory=watched.inventory, services=services, clock=clock
        )

    async def look_at_vnf(self, instance_id: str) -> None:
        self.looked_at.append(instance_id)
        await super().look_at_vnf(instance_id)


async def test_a_round_finds_what_no_event_has_said_also_while_vim_registry_is_away(
    world: World, subscriber: Subscriber
) -> None:
    """API-182, API-184: all but what vim-registry alone knows; and that it is away."""
    instance_id, marked = [await of_operation(world, await world.an_operation_in("COMPLETED")) for _ in range(2)]
    subscription = await subscribe(world, subscriber, probableCauses=["none"], notificationTypes=["AlarmNotification"])
    since = rfc3339(SystemClock().now() - timedelta(minutes=2))
    drift = {"state": "CHANGED", "since": since, "reason": "an object was changed"}
    vim = world.vims.records["vim-1"]
    vim.update(days_left=3, expires_at="2030-01-09T00:00:00Z", expiring="bearer_token")
    states: list[Any] = ["away", "ready"]

    async def services() -> list[SeenService]:
        return [SeenService("vim-registry", states[0], SystemClock().now(), [])]

    async def all_open() -> set[str]:
        of = ("vim-registry", subscription, instance_id, marked, "vim-1", "site")
        found = [each for name in of for one in (await alarms_of(world, name)).values() for each in one]
        return {each["faultType"] for each in found if "alarmClearedTime" not in each}

    rounds = Rounds(world, world.vims, services)
    elsewhere = {"service-away", "callbacks-failing", "measurement-source-away"}
    of_vnf = {"resources-drifted", "workload-troubled"}
    await rounds.look()
    assert await all_open() == {"service-away", EXPIRING}
    assert rounds.looked_at == [], "a VIM that can be used is no reason to look at all that is on it"
    await world.store.update(INSTANCES, instance_id, {"metadata": {KEY: drift}})
    await world.store.insert(MARKS, marked, {"id": marked, "text": "Pod web: it waits", "since": since})
    await world.store.update("subscriptions", subscription, {"failingSince": since})
    source = {"address": "site", "source": "site", "since": since, "reason": "it did not answer in time"}
    await world.store.insert(SOURCES, "site", {**source, "failedAt": rfc3339(SystemClock().now())})
    vim.update(status="UNREACHABLE", status_reason="Keystone: connection refused")
    with pytest.raises(OutsideUnavailable):
        await Rounds(world, Away(), services).look()
    assert await all_open() >= elsewhere | of_vnf
    await rounds.look()
    assert await all_open() == {*elsewhere, *of_vnf, EXPIRING, AWAY}
    assert AWAY in await alarms_of(world, instance_id)
    states.reverse()
    await world.store.update(INSTANCES, instance_id, {"metadata": {}})
    await world.store.delete(MARKS, marked)
    await world.store.update("subscriptions", subscription, {"failingSince": None})
    await world.store.delete(SOURCES, "site")
    vim.update(status="ACTIVE", days_left=None)
    await rounds.look()
    assert await all_open() == set()


async def test_each_event_has_its_object_looked_at_and_comes_again_while_that_cannot_be_read(world: World) -> None:
    """API-182, API-184."""
    instance_id = await of_operation(world, await world.an_operation_in("COMPLETED"))
    watch, vim = Rounds(world, world.vims, no_services), world.vims.records["vim-1"]

    async def open_after(event: Message, watching: FaultWatch = watch) -> tuple[Verdict, set[str]]:
        verdict = await watching.follow(Delivery(Envelope(data=event, source="/kubevnfm/lcm-api"), 1))
        found = [await alarms_of(world, each) for each in (instance_id, "vim-1")]
        every = [each for of in found for one in of.values() for each in one]
        return verdict, {each["faultType"] for each in every if "alarmClearedTime" not in each}

    ends = {"days_left": 3, "expires_at": "2030-01-09T00:00:00Z"}
    expiring = VimCredentialsExpiring(vim_id="vim-1", name="lab", part="bearer_token", **ends)
    vim.update(ends, expiring="bearer_token")
    verdict, found = await open_after(expiring, Rounds(world, Away(), no_services))
    assert (type(verdict), found) == (Again, set())
    assert await open_after(expiring) == (Ack(), {EXPIRING})
    mark = {"id": instance_id, "text": "Pod web: it waits", "since": rfc3339(NOW)}
    await world.store.insert(MARKS, instance_id, mark)
    troubled = InstanceTroubled(vnf_instance_id=instance_id, text="Pod web: it waits")
    assert await open_after(troubled) == (Ack(), {EXPIRING, "workload-troubled"})
    await world.store.delete(MARKS, instance_id)
    assert await open_after(troubled) == (Ack(), {EXPIRING})
    del world.vims.records["vim-1"]
    assert await open_after(VimDeregistered(vim_ids=("vim-1",))) == (Ack(), set())
    # By this chain subscribers are notified of them in order.
    raised, cleared = [each for each in watch.events if each.data.managed_object_id == "vim-1"]
    assert (raised.data.follows, cleared.data.follows) == ("", raised.id)


async def test_cleared_alarms_are_removed_after_their_time(world: World, watch: FaultWatch) -> None:
    """API-182."""
    operation = await world.an_operation_in("ROLLED_BACK")
    instance_id = await of_operation(world, operation)
    await alarm_of(world, instance_id, FAILED, is_open=False)
    nothing: Any = None
    alarms = Alarms(store=world.store, outbox=nothing, clock=SystemClock())
    await alarms.remove_old(timedelta(minutes=1))
    assert set(await alarms_of(world, instance_id)) == {FAILED}
    await alarms.remove_old(timedelta(seconds=-1))
    assert await alarms_of(world, instance_id) == {}


# --- subscriptions ------------------------------------------------------------------------------------------------------


async def test_a_subscription_to_alarms_is_made_shown_listed_and_deleted(world: World, subscriber: Subscriber) -> None:
    """API-186."""
    wanted = {"perceivedSeverities": ["CRITICAL"], "notificationTypes": ["AlarmNotification"]}
    made = (await fm(world, "POST", "/subscriptions", {"callbackUri": subscriber.uri, "filter": wanted})).must(201)
    path = made.headers["Location"].partition("/vnffm/v1")[2]
    assert (await fm(world, "GET", path)).must(200).json == made.json
    assert made.json["filter"] == wanted
    assert (await fm(world, "GET", "/subscriptions")).must(200).json == [made.json]
    assert (await world.lcm("GET", "/subscriptions")).must(200).json == []
    assert len(subscriber.tested) == 1
    for wrong in ({"perceivedSeverities": ["BAD"]}, {"notificationTypes": ["VnfLcmOperationOccurrenceNotification"]}):
        (await fm(world, "POST", "/subscriptions", {"callbackUri": subscriber.uri, "filter": wrong})).problem(400)
    (await fm(world, "DELETE", path)).must(204)
    (await fm(world, "GET", path)).problem(404)
    subscriber.tests = 500
    (await fm(world, "POST", "/subscriptions", {"callbackUri": subscriber.uri})).problem(422)


async def test_each_attribute_of_a_filter_selects_alarms(world: World, subscriber: Subscriber) -> None:
    """API-186, API-187."""
    of_vnf = "vnfInstanceSubscriptionFilter"
    matching: list[dict[str, Any]] = [
        {}, {"faultyResourceTypes": ["COMPUTE"]}, {"perceivedSeverities": ["MINOR", "MAJOR"]},
        {"eventTypes": ["EQUIPMENT_ALARM"]}, {"probableCauses": [MACHINE]},
        {of_vnf: {"vnfInstanceIds": ["vnf-1"]}}, {of_vnf: {"vnfInstanceNames": ["one"]}}, {of_vnf: {"vnfdIds": ["d"]}},
        {of_vnf: {"vnfProductsFromProviders": [{"vnfProvider": "p"}]}},
    ]  # fmt: skip
    others: list[dict[str, Any]] = [
        {"faultyResourceTypes": ["STORAGE"]}, {"perceivedSeverities": ["CRITICAL", "CLEARED"]},
        {"eventTypes": ["QOS_ALARM"]}, {"probableCauses": ["vim-away"]},
        {"notificationTypes": ["AlarmListRebuiltNotification"]}, {of_vnf: {"vnfInstanceIds": ["vnf-2"]}},
        {of_vnf: {"vnfdIds": ["e"]}},
    ]  # fmt: skip
    subscribed = [await subscribe(world, subscriber, **each) for each in matching]
    ends = await subscribe(world, subscriber, notificationTypes=["AlarmClearedNotification"])
    for each in others:
        await subscribe(world, subscriber, **each)
    alarm = {
        "id": "a", "managedObjectId": "vnf-1", "alarmRaisedTime": "2030-01-02T03:04:05Z", "ackState": "UNACKNOWLEDGED",
        "perceivedSeverity": "MAJOR", "eventTime": "2030-01-02T03:04:05Z", "eventType": "EQUIPMENT_ALARM",
        "probableCause": MACHINE, "isRootCause": False,
        "rootCauseFaultyResource": {"faultyResource": {"resourceId": "s"}, "faultyResourceType": "COMPUTE"},
    }  # fmt: skip
    about = {"alarm_id": "a", "managed_object_id": "vnf-1", "vnf_instance_name": "one", "vnfd_id": "d"}
    raised = AlarmChanged(**about, vnf_provider="p", vnf_product_name="n", change="RAISED", alarm=alarm)
    envelope: Envelope[Message] = Envelope(data=raised, source="/kubevnfm/lcm-api")
    for _ in range(2):  # a repeated event is notified once
        await world.bus.publish(envelope)
    bodies = await heard(subscriber, len(subscribed))
    assert sorted(each["subscriptionId"] for each in bodies) == sorted(subscribed)
    assert {each["id"] for each in bodies} == {envelope.id}
    cleared = {**alarm, "alarmClearedTime": "2030-01-02T03:04:06Z"}
    ended = raised.model_copy(update={"change": "CLEARED", "alarm": cleared, "follows": envelope.id})
    await world.bus.publish(Envelope(data=ended, source="/kubevnfm/lcm-api"))
    # All that match and name no type, the one that wants these alone, and the one for the severity CLEARED.
    bodies = (await subscriber.was_tried(2 * len(subscribed) + 2))[len(subscribed) :]
    assert {ends} < {
        each["subscriptionId"] for each in bodies if each["notificationType"] == "AlarmClearedNotification"
    }


# --- rules ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("days_left", "severity"), [(14, "WARNING"), (7, "MINOR"), (3, "MAJOR"), (0, "CRITICAL"), (15, None)]
)
async def test_access_data_that_end_soon_are_a_fault_that_grows(world: World, days_left: int, severity: str) -> None:
    """API-184."""
    world.vims.records["vim-9"] = {**OPENSTACK_VIM, "id": "vim-9", "name": "ends"}
    vim = (await world.vims.view("vim-9")).model_copy(
        update={"days_left": days_left, "expires_at": "2030-01-09T00:00:00Z", "expiring": "bearer_token"}
    )
    found = faults_of_vim(of_vim(vim)).faults
    assert [(each.type, each.severity, each.part) for each in found] == (
        [] if severity is None else [("credentials-expiring", severity, "bearer_token")]
    )
    assert {each.since for each in found} <= {"2029-12-26T00:00:00.000Z"}, "it began 14 days before their end"
    assert faults_of_vim(of_vim(None)).faults == ()


def test_a_prometheus_that_does_not_answer_for_a_minute_is_a_fault_while_it_is_asked() -> None:
    """API-184."""
    since, asked = rfc3339(NOW - timedelta(seconds=60)), rfc3339(NOW)
    document = {
        "address": "prometheus:9090",
        "source": "named",
        "since": since,
        "failedAt": asked,
        "reason": "connection refused",
    }
    (fault,) = faults_of_source("p", document, NOW).faults
    assert (fault.type, fault.since) == ("measurement-source-away", since)
    assert fault.details == (
        "The Prometheus at prometheus:9090 does not answer: PM jobs and thresholds wait for it.",
        "Connection refused.",
    )
    (of_site,) = faults_of_source("site", {**document, "source": "site"}, NOW).faults
    assert "of the setting prometheus_url" in of_site.details[0]
    cluster = {**document, "source": "cluster", "address": "metrics.k8s.io/vim-7"}
    (of_cluster,) = faults_of_source("c", cluster, NOW).faults
    assert of_cluster.details[0].startswith("The metrics-server of VIM vim-7 (metrics.k8s.io) does not answer")
    assert not faults_of_source("p", document, NOW - timedelta(seconds=1)).faults
    assert not faults_of_source("p", document, NOW + timedelta(minutes=15)).faults
    assert not faults_of_source("p", None, NOW).faults


def test_a_subscriber_that_fails_for_a_minute_is_a_fault() -> None:
    """API-184."""
    since = rfc3339(NOW - timedelta(seconds=61))
    document = {
        "callbackUri": "http://x/c?token=word-9",
        "failingSince": since,
        "delivery": {"last_failure": "answered 503"},
    }
    (fault,) = faults_of_subscription("s", document, NOW).faults
    assert (fault.type, fault.since) == ("callbacks-failing", since)
    assert fault.details == ("Notifications to http://x/c?token=*** are not accepted.", "Answered 503.")
    assert not faults_of_subscription("s", document, NOW - timedelta(seconds=2)).faults
    assert not faults_of_subscription("s", {"callbackUri": "http://x/c"}, NOW).faults
    assert not faults_of_subscription("s", None, NOW).faults


def of_vim(vim: VimView | None, stale: StaleWatch | None = None, *, is_watch_known: bool = True) -> VimState:
    return VimState("vim-9", vim, stale, is_watch_known, NOW)


def of_service(service: SeenService, unwatched_since: str | None = "") -> Findings:
    return faults_of_service(ServiceState(service, unwatched_since, NOW))


def state_of(record: InstanceRecord, **more: Any) -> VnfState:
    known: dict[str, Any] = {"operation": None, "tasks": (), "trouble": None, "vim_alarms": {}, "now": NOW}
    return VnfState(instance_id="inst-1", record=record, **{**known, **more})


def a_cluster_without(*vnfcs: str) -> InstanceRecord:
    """Return a cluster of three masters that has lost machines."""
    drift = {"state": "INCOMPLETE", "since": "2030-01-02T03:04:05Z", "reason": "lost", "vnfc_ids": list(vnfcs)}
    handles = [
        VnfcResourceInfo(
            id=each.vnfc_id, vdu_id=each.vdu_id, compute_resource=ResourceHandle(resource_id=each.server_id)
        )
        for each in HA.servers
    ]
    info = InstantiatedVnfInfo(flavour_id="simple", vnfc_resource_info=tuple(handles))
    stack = StackDeployment(kind="stack", vim_key="vim1", stack_name="s", resources=HA)
    cluster = a_heal_of_masters().cluster_parameters
    return an_instance(metadata={KEY: drift}, instantiated_vnf_info=info).with_internals(
        deployments=(stack,), cluster=cluster
    )


@pytest.mark.parametrize(
    ("lost", "severity"),
    [(["vnfc-w1"], None), (["vnfc-m1"], "MAJOR"), (["vnfc-m1", "vnfc-m2"], "CRITICAL")],
)
def test_lost_masters_put_the_quorum_at_risk(lost: list[str], severity: str | None) -> None:
    """API-184."""
    found = faults_of_vnf(state_of(a_cluster_without(*lost))).faults
    assert [each.part for each in found if each.type == MACHINE] == lost
    assert [each.severity for each in found if each.type == "quorum-at-risk"] == ([severity] if severity else [])
    assert len(found) == len(lost) + (severity is not None)


def test_a_drift_and_a_pod_that_does_not_work_are_faults_of_their_vnf() -> None:
    """API-184."""
    drift = {"state": "MISSING", "since": "2030-01-02T03:04:05Z", "reason": "the stack does not exist"}
    record = an_instance(metadata={KEY: drift}, instantiation_state="INSTANTIATED")
    text = 'Pod web-1: container web: ImagePullBackOff: Back-off pulling image "r.example/web:1": not found'
    mark = {"text": text, "since": "2030-01-02T03:04:06Z"}
    drifted, troubled = faults_of_vnf(state_of(record, trouble=mark)).faults
    assert (drifted.type, drifted.severity, drifted.cause) == ("resources-drifted", "CRITICAL", "drift-missing")
    assert (troubled.type, troubled.cause, troubled.since) == ("workload-troubled", "image-not-pulled", mark["since"])
    assert faults_of_vnf(state_of(an_instance(), trouble=mark)).faults == []


def test_what_a_service_lacks_is_a_fault_and_one_that_is_not_known_says_nothing() -> None:
    """API-184."""

    def seen(state: Any, *parts: str) -> SeenService:
        troubles = tuple(Trouble(part=each, text=f"{each} is missing", is_blocking=False) for each in parts)
        report = ServiceReported(
            process="p", services=("infra-k8s",), host="h", pid=1, version="1", started_at=NOW, troubles=troubles
        )
        process = SeenProcess(report, "ready", NOW, NOW)
        return SeenService("infra-k8s", state, NOW, [process] if state == "ready" else [])

    lacking = of_service(seen("ready", "disk", "parked-commands", "sandbox", "store", "later"))
    assert [(each.type, each.part) for each in lacking.faults] == [
        ("disk-low", "h"), ("commands-parked", "h"), ("code-not-run", "h"),
    ]  # fmt: skip
    assert not of_service(seen("ready")).faults
    assert [each.type for each in of_service(seen("away")).faults] == ["service-away"]
    for state in ("unknown", "missing"):
        silent = of_service(seen(state))
        assert not silent.faults
        assert silent.undecided == {
            "service-away",
            "watch-stale",
            "certificate-expiring",
            *(each.type for each in lacking.faults),
        }
