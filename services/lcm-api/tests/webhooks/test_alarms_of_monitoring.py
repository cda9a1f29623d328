"""Alarms that Alertmanager reports at ``/alert``, over HTTP: raised once, cleared by their end, left alone by our own rounds."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import pytest
from callers.callers import UNKNOWN
from callers.users import basic, users_file
from kubevnfm_kit.clock import SystemClock
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_lcm_api.alarm_marks import external_marks
from kubevnfm_lcm_api.faults import external
from kubevnfm_lcm_api.faults.alarms import COLLECTION, Alarms
from kubevnfm_lcm_api.faults.domain.external import ExternalAlert
from kubevnfm_lcm_api.faults.external import ExternalAlarms
from kubevnfm_lcm_api.lifecycle.core.drift import KEY
from kubevnfm_lcm_api.lifecycle.core.instance import COLLECTION as INSTANCES
from kubevnfm_lcm_api.webhooks.domain.alerts import FaultAlert
from kubevnfm_lcm_api.webhooks.patterns import beginning
from kubevnfm_lcm_api.webhooks.receiving import Webhook
from kubevnfm_store.port import StoreUnavailable
from kubevnfm_store.query import AllOf, Compare, Op, Query
from kubevnfm_worker.outbox import Outbox
from kubevnfm_worker.relay import OutboxRelay
from patience import until_true
from real.alertmanager import FINGERPRINT, STARTED, fault, message, resolved
from servers.subscriber import Subscriber
from worlds.alarm_world import a_watch
from worlds.lcm_world import RING, Answer, World, lcm_world
from worlds.set_clock import SetClock

MANY: Final = [f"{number:016x}" for number in range(1001)]


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with lcm_world(tmp_path, allowed_networks="127.0.0.0/8", test_callbacks=True) as running:
        await running.sample()
        yield running


async def report(world: World, *alerts: Any, **headers: str) -> Answer:
    """Post a message as Alertmanager does: no header names a version, or what is accepted."""
    return await world.call("POST", "/alert", message(*alerts), headers=headers)


async def alarms(world: World, **equal: str) -> list[dict[str, Any]]:
    filters = ";".join(f"(eq,{name},{value})" for name, value in equal.items())
    query = f"?all_records=yes&filter={filters}" if filters else "?all_records=yes"
    found: list[dict[str, Any]] = (
        (await world.call("GET", f"/vnffm/v1/alarms{query}", headers={"Version": "1.5.0"})).must(200).json
    )
    return found


async def heard(world: World, subscriber: Subscriber, count: int) -> list[str]:
    """Wait for so many notifications, and for the end of all work; return their types. A stalled sender may repeat one."""

    def types() -> dict[str, str]:
        return {each.body["id"]: each.body["notificationType"] for each in subscriber.received}

    async def are_there() -> bool:
        return len(types()) >= count

    await until_true(are_there)
    await world.bus.quiet()
    return list(types().values())


async def instantiated(world: World) -> dict[str, Any]:
    """Return a VNF instance with its machines."""
    operation = await world.operation(await world.an_operation_in("COMPLETED"))
    shown: dict[str, Any] = (await world.lcm("GET", f"/vnf_instances/{operation['vnfInstanceId']}")).must(200).json
    return shown


async def test_an_alert_raises_one_alarm_however_often_it_comes_and_its_end_clears_it(world: World) -> None:
    """API-220, API-222: with the labels, the annotations and the other attributes of a message as Tacker documents them."""
    vnf = await instantiated(world)
    info = vnf["instantiatedVnfInfo"]
    compute, vnfc = info["vnfcResourceInfo"][0]["computeResource"], info["vnfcInfo"][0]["id"]
    pod = f"({compute['resourceId']}$|another-[0-9a-f]{{1,10}}-[0-9a-z]{{5}}$)"
    fired = fault(vnf["id"], labels={"pod": pod, "perceived_severity": "CRITICAL"})
    async with Subscriber.listening() as subscriber:
        wanted = {
            "callbackUri": subscriber.uri,
            "filter": {"vnfInstanceSubscriptionFilter": {"vnfInstanceIds": [vnf["id"]]}},
        }
        headers = {"Version": "1.5.0"}
        (await world.call("POST", "/vnffm/v1/subscriptions", wanted, headers=headers)).must(201)
        assert (await report(world, fired)).must(204).raw == b""
        (alarm,) = await alarms(world)
        expected = {
            "managedObjectId": vnf["id"],
            "perceivedSeverity": "CRITICAL",
            "eventType": "PROCESSING_ERROR_ALARM",
            "eventTime": "2026-06-21T23:47:36.453Z",
            "probableCause": "The server cannot be connected.",
            "faultType": "Server Down",
            "faultDetails": [
                "No answer.", "Node worker-1.", f"Reported by a monitoring system: FromRule, fingerprint {FINGERPRINT}.",
            ],
            "vnfcInstanceIds": [vnfc],
            "rootCauseFaultyResource": {"faultyResource": compute, "faultyResourceType": "COMPUTE"},
            "isRootCause": False,
            "ackState": "UNACKNOWLEDGED",
        }  # fmt: skip
        assert {name: alarm[name] for name in expected} == expected
        # The same message again, and one that says it in other words: nothing has changed.
        (await report(world, fired, fired)).must(204)
        (await report(world, {**fired, "annotations": {"probable_cause": "42 s without an answer"}})).must(204)
        assert await alarms(world) == [alarm]
        (await report(world, resolved(fired, ended="2026-06-21T23:47:30Z"))).must(204)
        (cleared,) = await alarms(world)
        assert cleared["alarmClearedTime"] >= alarm["alarmRaisedTime"], "an end before the beginning is not believed"
        assert {name: each for name, each in cleared.items() if name != "alarmClearedTime"} == alarm
        (await report(world, resolved(fired))).must(204)
        assert await alarms(world) == [cleared]
        assert await heard(world, subscriber, 2) == ["AlarmNotification", "AlarmClearedNotification"]
    # Prometheus keeps the beginning of an alert that Alertmanager has missed for a while.
    (await report(world, fired)).must(204)
    assert [("alarmClearedTime" in each) for each in await alarms(world)] == [True, False]
    metrics = (await world.call("GET", "/kubevnfm/v1/metrics", headers={})).must(200).raw.decode()
    assert 'kubevnfm_webhook_alerts_total{outcome="accepted",path="/alert"} 7.0' in metrics


async def test_lists_and_trees_show_an_open_alarm_as_a_problem_of_its_vnf(world: World) -> None:
    """API-255: the gravest one until it is cleared, whatever the state of the VNF; others are not touched."""
    well, ill, worse = [await world.create(vnfInstanceName=name) for name in ("well", "ill", "worse")]
    down = fault(worse, labels={"perceived_severity": "CRITICAL"}, fingerprint=MANY[0])
    slow = fault(worse, labels={"perceived_severity": "WARNING"}, fingerprint=MANY[1])
    minor = fault(ill, labels={"perceived_severity": "MINOR"}, fingerprint=MANY[2])
    (await report(world, slow, down, minor)).must(204)

    async def rows(query: str = "") -> dict[str, Any]:
        found = (await world.call("GET", f"/kubevnfm/v1/instances{query}")).must(200).json["items"]
        return {each["id"]: each for each in found}

    shown = await rows()
    assert {key: each["health"] for key, each in shown.items()} == {well: "ok", ill: "problem", worse: "problem"}
    assert shown[worse]["text"].startswith("alarm Server Down (CRITICAL): No answer.")
    assert shown[worse]["since"] == "2026-06-21T23:47:36.453Z"
    assert sorted(await rows("?problem=true")) == sorted([ill, worse])
    pages = [each for limit in (1, 2) for each in await pages_of(world, limit)]
    assert sorted(pages) == sorted([ill, worse] * 2), "each once"
    tree = (await world.call("GET", f"/kubevnfm/v1/instances/{worse}/tree")).must(200).json["root"]
    assert (tree["health"], tree["text"]) == ("problem", shown[worse]["text"])
    (await report(world, resolved(down))).must(204)
    assert (await rows())[worse]["text"].startswith("alarm Server Down (WARNING)")
    (await report(world, resolved(slow), resolved(minor))).must(204)
    assert {each["health"] for each in (await rows()).values()} == {"ok"}
    assert await rows("?problem=true") == {}


async def pages_of(world: World, limit: int) -> list[str]:
    """Return the ids of the VNF instances with a problem, read by pages."""
    found, address = list[str](), f"/kubevnfm/v1/instances?problem=true&limit={limit}"
    while address:
        page = (await world.call("GET", address)).must(200).json
        found += [each["id"] for each in page["items"]]
        address = page.get("next", "").removeprefix(world.url)
    return found


async def test_of_very_many_alarms_each_instance_is_marked(world: World) -> None:
    """A page of instances reads them in parts."""
    with patch("kubevnfm_lcm_api.alarm_marks._PAGE", 2):
        one, two, three = sorted([await world.create() for _ in range(3)])
        numbers = iter(MANY)
        alerts = [fault(each, fingerprint=next(numbers)) for each in (one, one, one, one, three)]
        (await report(world, *alerts)).must(204)
        assert (await external_marks(world.store, [three, two, one])).keys() == {one, three}


async def test_an_alert_about_no_resource_and_one_that_says_cleared(world: World) -> None:
    """API-222: what names no resource of the VNF is an alarm all the same; CLEARED is no alarm."""
    instance_id = await world.create()
    bare = {"receiver_type": "tacker", "function_type": "vnffm", "vnf_instance_id": instance_id}
    needed = {"perceived_severity": "MINOR", "event_type": "QOS_ALARM"}
    first, other = {**bare, **needed}, {**bare, **needed, "pod": "gone-.*", "alertname": "PodLost", "node": None}
    sent = [
        {"status": "firing", "labels": labels, "annotations": {}, "startsAt": STARTED, "fingerprint": fingerprint}
        for labels, fingerprint in (
            (first, "a" * 16),
            (other, "b" * 16),
            ({**first, "perceived_severity": "CLEARED"}, "c" * 16),
        )
    ]
    (await report(world, *sent)).must(204)
    found = sorted((each["probableCause"], each["faultType"]) for each in await alarms(world))
    assert found == [("PodLost", "PodLost"), ("alert", "alert")]
    assert not any("rootCauseFaultyResource" in each or "vnfcInstanceIds" in each for each in await alarms(world))
    rows = (await world.call("GET", f"/kubevnfm/v1/alarms?object={instance_id}", headers={})).must(200).json["items"]
    assert {each["objectKind"] for each in rows} == {"vnf"}


async def test_wrong_alerts_are_named_after_the_others_are_stored(world: World) -> None:
    """API-223."""
    instance_id = await world.create()
    good = fault(instance_id, fingerprint="a" * 16)
    lacking = fault(instance_id)
    del lacking["labels"]["perceived_severity"]
    wrong: list[Any] = [
        lacking,
        fault(UNKNOWN),
        fault(instance_id, labels={"function_type": "vnfpm"}),
        fault(instance_id, labels={"receiver_type": "another"}),
        fault(instance_id, labels={"event_type": "SMELL"}),
        fault(instance_id, labels={"pod": "(web"}),
        fault(instance_id, labels={"pod": "x" * 1001}),
        fault(instance_id, startsAt="yesterday"),
        fault(instance_id, startsAt="2026-06-21T23:47:36"),
        fault(instance_id, fingerprint="../../etc"),
        fault(instance_id, status="pending"),
        {name: each for name, each in good.items() if name != "annotations"},
        7,
    ]
    places = (
        "labels/perceived_severity", "labels/vnf_instance_id", "labels/function_type", "labels/receiver_type",
        "labels/event_type", "labels/pod", "labels/pod", "startsAt", "startsAt", "fingerprint", "status", "annotations", "",
    )  # fmt: skip
    problem = (await report(world, wrong[0], good, *wrong[1:])).problem(400)
    named = [each["name"] for each in problem["invalidParams"]]
    assert named == [f"alerts[{n if n == 0 else n + 1}]/{place}".rstrip("/") for n, place in enumerate(places)]
    assert [each["id"] for each in await alarms(world)] != []
    # A well-formed alert that names what does not exist.
    problem = (await report(world, fault(UNKNOWN))).problem(422)
    assert problem["invalidParams"] == [
        {
            "name": "alerts[0]/labels/vnf_instance_id",
            "reason": f"VNF instance {UNKNOWN} does not exist (alert FromRule)",
        }
    ]
    (await report(world, resolved(fault(UNKNOWN)))).must(204)  # its alarms were cleared with it
    bodies: list[Any] = [{}, {"alerts": {}}]
    for body in bodies:
        (await world.call("POST", "/alert", body, headers={})).problem(400)
    (await report(world)).must(204)
    assert len(await alarms(world)) == 1
    metrics = (await world.call("GET", "/kubevnfm/v1/metrics", headers={})).must(200).raw.decode()
    assert 'kubevnfm_webhook_alerts_total{outcome="refused",path="/alert"} 16.0' in metrics


async def test_of_a_message_with_too_many_alerts_the_first_ones_are_stored() -> None:
    """API-223."""
    stored, counts = list[str](), list[tuple[str, str, int]]()

    async def act(alert: FaultAlert) -> None:
        stored.append(alert.fingerprint)

    sent = [fault("inst-1", fingerprint=each) for each in MANY]
    with pytest.raises(InvalidInput) as refused:
        await Webhook("/alert", FaultAlert, act).receive(sent, lambda *given: counts.append(given))
    assert refused.value.places == (
        ("alerts", "at most 1000 expected, those after them are not stored; set max_alerts"),
    )
    assert stored == MANY[:1000]
    assert counts[-1] == ("/alert", "refused", 1)


async def test_an_alert_that_cannot_be_stored_is_503_and_is_stored_when_it_comes_again(world: World) -> None:
    """API-223: Alertmanager repeats what a server answers 5xx."""
    instance_id = await world.create()
    sent = [fault(UNKNOWN, status="pending"), *(fault(instance_id, fingerprint=each) for each in MANY[:3])]
    world.store.is_down = True
    answer = await report(world, *sent)
    world.store.is_down = False
    assert "alerts[1]" in answer.problem(503)["detail"]
    assert answer.headers["Retry-After"]
    assert await alarms(world) == []
    (await report(world, *sent)).problem(400)
    assert len(await alarms(world)) == 3
    metrics = (await world.call("GET", "/kubevnfm/v1/metrics", headers={})).must(200).raw.decode()
    assert 'kubevnfm_webhook_alerts_total{outcome="failed",path="/alert"} 3.0' in metrics


async def test_our_own_rounds_leave_them_alone_until_the_instance_is_deleted(world: World) -> None:
    """API-224: and they leave ours alone."""
    instance_id = (await instantiated(world))["id"]
    async with OutboxRelay(world.store, world.bus, collections=[COLLECTION]) as relay:
        watch = a_watch(world, world.store, relay)
        drift = {"state": "CHANGED", "since": "2030-01-02T03:04:05.000Z", "reason": "an object was changed"}
        await world.store.update(INSTANCES, instance_id, {"metadata": {KEY: drift}})
        (await report(world, fault(instance_id))).must(204)
        await watch.look()
        drifted, reported = sorted(await alarms(world), key=lambda each: str(each["faultType"] == "Server Down"))
        (await report(world, resolved(fault(instance_id)), fault(instance_id, fingerprint="b" * 16))).must(204)
        await world.store.update(INSTANCES, instance_id, {"metadata": {}})
        await watch.look()
        await watch.look_at_vnf(instance_id)
        states = {each["id"]: "alarmClearedTime" not in each for each in await alarms(world)}
        assert (states[drifted["id"]], states[reported["id"]]) == (False, False)
        (still,) = [each for each, is_open in states.items() if is_open]
        terminated = await world.ask(instance_id, "terminate", {"terminationType": "FORCEFUL"})
        await world.reached(terminated, "COMPLETED")
        await watch.look()
        assert [each["id"] for each in await alarms(world) if "alarmClearedTime" not in each] == [still]
        (await world.lcm("DELETE", f"/vnf_instances/{instance_id}")).must(204)

        async def is_cleared() -> bool:
            return all("alarmClearedTime" in each for each in await alarms(world))

        await until_true(is_cleared)


def an_alert(instance_id: str, **changes: Any) -> ExternalAlert:
    facts: dict[str, Any] = {
        "fingerprint": FINGERPRINT, "is_firing": True, "instance_id": instance_id, "severity": "MAJOR",
        "event_type": "QOS_ALARM", "fault_type": "load", "cause": "load", "details": (),
        "starts_at": datetime.fromisoformat(STARTED), **changes,
    }  # fmt: skip
    return ExternalAlert(**facts)


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


async def test_a_process_that_dies_at_any_write_loses_and_doubles_nothing(world: World) -> None:
    """API-225: also with several gateways at the same time."""
    instance_id = await world.create()
    clock = SystemClock()
    async with (
        Subscriber.listening() as subscriber,
        OutboxRelay(world.store, world.bus, collections=[COLLECTION], settle_s=0) as relay,
    ):
        wanted = {"callbackUri": subscriber.uri, "filter": {}}
        (await world.call("POST", "/vnffm/v1/subscriptions", wanted, headers={"Version": "1.5.0"})).must(201)

        def gateway(store: Any) -> ExternalAlarms:
            listed = Alarms(store=store, outbox=Outbox(store, relay, RING), clock=clock)
            return ExternalAlarms(store=world.store, alarms=listed, clock=clock)

        healthy = [gateway(world.store) for _ in range(3)]
        for is_after in (False, True):
            for is_firing in (True, False):
                dying: Any = Dies(world.store, is_after=is_after)
                sent = an_alert(instance_id, is_firing=is_firing)
                with pytest.raises(StoreUnavailable):
                    await gateway(dying).follow(sent)
                await asyncio.gather(*(each.follow(sent) for each in healthy * 2))
                await relay.sweep()
        assert await heard(world, subscriber, 4) == ["AlarmNotification", "AlarmClearedNotification"] * 2
    assert len(await alarms(world)) == 2


async def test_what_is_not_repeated_any_more_is_cleared_if_a_setting_says_so(world: World) -> None:
    """API-224."""
    instance_id, clock = await world.create(), SetClock(datetime(2026, 6, 22, tzinfo=UTC))
    async with OutboxRelay(world.store, world.bus, collections=[COLLECTION]) as relay:
        listed = Alarms(store=world.store, outbox=Outbox(world.store, relay, RING), clock=clock)
        minute = timedelta(minutes=1)
        for lost_after, left in ((None, 2), (minute, 1)):
            followed = ExternalAlarms(store=world.store, alarms=listed, clock=clock, lost_after=lost_after)
            await followed.follow(an_alert(instance_id))
            await followed.follow(an_alert(instance_id, fingerprint="silent"))
            clock.at += minute / 2
            await followed.follow(an_alert(instance_id))
            clock.at += minute / 2 + timedelta(seconds=1)
            await followed.clear_lost()
            found = await world.store.find(COLLECTION, Query(Compare("internal/state", Op.EQ, ["OPEN"])))
            assert len(found) == left
        # A late message about an earlier firing ends nothing, and an acknowledgement at the same time loses nothing.
        (alarm,) = found
        begun = datetime.fromisoformat(STARTED)
        for ended in (begun - minute / 2, None):
            late = an_alert(instance_id, is_firing=False, starts_at=begun - minute, ends_at=ended)
            await followed.follow(late)
        assert await world.store.find(COLLECTION, Query(Compare("internal/state", Op.EQ, ["OPEN"]))) == [alarm]
        await followed.follow(an_alert(instance_id, is_firing=False, ends_at=clock.at))
        after = await world.store.get(COLLECTION, alarm.id)
        assert after is not None
        assert datetime.fromisoformat(after.body["alarmClearedTime"]) == clock.at
    assert len(await world.store.find(COLLECTION, Query(AllOf()))) == 2


async def test_an_end_with_the_beginning_that_another_prometheus_names_clears_the_alarm(world: World) -> None:
    """API-222: Alertmanager joins what two of them report about one fault, and names the earliest beginning from then on."""
    instance_id = await world.create()
    fired = fault(instance_id, startsAt="2026-06-21T23:47:36Z")
    (await report(world, fired)).must(204)
    (await report(world, {**fired, "startsAt": "2026-06-21T23:47:31Z"})).must(204)
    (await report(world, resolved({**fired, "startsAt": "2026-06-21T23:47:31Z"}))).must(204)
    (alarm,) = await alarms(world)
    assert "alarmClearedTime" in alarm


async def test_an_instance_has_a_limited_number_of_open_alarms(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """API-223: each look reads them."""
    monkeypatch.setattr(external, "_MOST_OPEN", 3)
    instance_id = await world.create()
    sent = [fault(instance_id, fingerprint=each) for each in MANY[:4]]
    problem = (await report(world, *sent)).problem(422)
    assert [each["name"] for each in problem["invalidParams"]] == ["alerts[3]/labels/vnf_instance_id"]
    (await report(world, resolved(sent[0]), sent[3])).must(204)
    assert [("alarmClearedTime" in each) for each in await alarms(world)].count(False) == 3


@pytest.mark.parametrize(
    "pattern", ["(a+)+$", "(a|a)*b", "((a*)*)*b", "(.*)(.*)(.*)(.*)(.*)(.*)(.*)(.*)b", "(a?){100}a{100}b"]
)
def test_no_regular_expression_of_a_monitoring_system_takes_long(pattern: str) -> None:
    """API-223: Python's own engine takes minutes for the first of them."""
    begun = time.process_time()
    assert not beginning(pattern)("a" * 250 + "!")
    assert time.process_time() - begun < 0.5


@pytest.mark.parametrize("pattern", ["((a{100}){100}){100}", "(?=a)a", "(a)\\1", "web)|(x", "[", "(?x)web #"])
def test_a_regular_expression_that_is_too_large_or_none_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        beginning(pattern)


@pytest.mark.parametrize(
    ("pattern", "text", "fits"),
    [
        ("web", "web-1", True),
        ("eb", "web", False),
        ("a|b", "xb", False),
        ("web-[0-9a-f]{1,10}-[0-9a-z]{5}$", "web-756757f8f-xcwmt", True),
        ("web-[0-9a-f]{1,10}-[0-9a-z]{5}$", "web-756757f8f-xcwmt-2", False),
    ],
)
def test_a_regular_expression_is_found_at_the_beginning(pattern: str, text: str, fits: bool) -> None:
    """API-222: as Tacker finds it."""
    assert beginning(pattern)(text) is fits


# --- who may report ---------------------------------------------------------------------------------------------------


async def statuses(world: World, *headers: dict[str, str], path: str = "/alert") -> list[int]:
    return [(await world.call("POST", path, message(), headers=each)).status for each in headers]


async def test_a_report_needs_an_operator_or_a_network_that_is_admitted(tmp_path: Path) -> None:
    """API-221: a header names no address, unless a trusted proxy has written it."""
    users = users_file(tmp_path, am=["operator"], reader=["reader"])
    auth: dict[str, Any] = {"auth_modes": "basic", "auth_users_file": users}
    far = {"X-Forwarded-For": "10.9.8.7"}
    senders: list[dict[str, str]] = [{}, basic("reader"), basic("am"), basic("am", "wrong"), far]
    async with lcm_world(tmp_path, **auth) as world:
        assert await statuses(world, *senders) == [401, 403, 204, 401, 401]
    async with lcm_world(tmp_path, **auth, webhook_open_networks="10.0.0.0/8, fd00::/8") as world:
        assert await statuses(world, *senders) == [401, 403, 204, 401, 401]
    async with lcm_world(tmp_path, **auth, webhook_open_networks="10.0.0.0/8", trusted_proxies="127.0.0.0/8") as world:
        assert await statuses(world, *senders) == [401, 403, 204, 401, 204]
    async with lcm_world(tmp_path, **auth, webhook_open_networks="127.0.0.0/8") as world:
        assert await statuses(world, *senders) == [204, 403, 204, 401, 204]
        # Pages in a browser there, and other requests.
        assert await statuses(world, {"Origin": world.url}, {"X-Auth-Token": "wrong"}) == [401, 401]
        assert await statuses(world, {}, path="/vnflcm/v2/vnf_instances") == [401]
        assert (await world.call("GET", "/vnffm/v1/alarms", headers={"Version": "1.5.0"})).status == 401
