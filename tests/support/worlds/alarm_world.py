"""Alarms as users of the gateway see them, and the notifications of them."""

from __future__ import annotations

from typing import Any

from callers.etsi import etsi_schemas
from kubevnfm_kit.clock import SystemClock
from kubevnfm_lcm_api.faults.alarms import Alarms
from kubevnfm_lcm_api.faults.watch import FaultWatch
from kubevnfm_lcm_api.siblings import SeenService
from kubevnfm_worker.outbox import Outbox
from patience import until
from servers.subscriber import Subscriber

from worlds.lcm_world import RING, Answer, World


async def no_services() -> list[SeenService]:
    return []


def a_watch(world: World, store: Any, relay: Any, **others: Any) -> FaultWatch:
    """Return a further watch, as that of another gateway; ``store``: what it writes alarms to."""
    alarms = Alarms(store=store, outbox=Outbox(store, relay, RING), clock=SystemClock())
    ports = {"vims": world.vims, "inventory": world.inventory, "services": no_services, **others}
    return FaultWatch(store=world.store, alarms=alarms, clock=SystemClock(), **ports)


async def fm(world: World, method: str, path: str, body: Any = None, **headers: str) -> Answer:
    sent = {"Version": "1.5.0", **{name.replace("_", "-"): value for name, value in headers.items()}}
    return await world.call(method, f"/vnffm/v1{path}", body, headers=sent)


async def alarms_of(world: World, object_id: str) -> dict[str, list[dict[str, Any]]]:
    """Return the alarms of an object by the type of the fault."""
    found: dict[str, list[dict[str, Any]]] = {}
    query = f"?filter=(eq,managedObjectId,{object_id})&all_records=yes"
    for each in (await fm(world, "GET", f"/alarms{query}")).must(200).json:
        found.setdefault(each["faultType"], []).append(each)
    return found


async def alarm_of(world: World, object_id: str, fault: str, *, is_open: bool = True) -> dict[str, Any]:
    """Wait until the one alarm of this fault is there, or is cleared; return it."""

    async def found() -> dict[str, Any] | None:
        one = (await alarms_of(world, object_id)).get(fault, [])
        assert len(one) < 2
        return next((each for each in one if ("alarmClearedTime" not in each) is is_open), None)

    return await until(found, timeout_s=300)


async def subscribe(world: World, subscriber: Subscriber, **wanted: Any) -> str:
    made = await fm(world, "POST", "/subscriptions", {"callbackUri": subscriber.uri, "filter": wanted})
    return str(made.must(201).json["id"])


async def heard(subscriber: Subscriber, count: int) -> list[dict[str, Any]]:
    """Wait for so many notifications, which fit ETSI's types; return their bodies."""
    bodies = await subscriber.was_tried(count)
    for each in bodies:
        if (etsi := etsi_schemas()) is not None:
            etsi.check_type(each["notificationType"], each)
    assert len(bodies) == count
    return bodies


async def of_operation(world: World, operation: str) -> str:
    return str((await world.operation(operation))["vnfInstanceId"])
