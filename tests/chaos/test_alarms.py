"""Alarms while each process is killed: none is lost or doubled, and subscribers are notified of each in order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest
from callers.user import User
from clouds.cloud_faults import CloudFaults
from clouds.machine_vnfs import built
from patience import until, until_true
from servers.chaos import Chaos
from servers.six_processes import SERVICES
from servers.subscriber import Subscriber

pytestmark = [pytest.mark.chaos, pytest.mark.deep, pytest.mark.timeout(1200)]

VERSION = {"Version": "1.5.0"}
OTHERS = [each for each in SERVICES if each != "lcm-api"]


async def alarms_of(user: User, fault: str) -> Sequence[dict[str, Any]]:
    path = f"/vnffm/v1/alarms?filter=(eq,faultType,{fault})"
    found: list[dict[str, Any]] = (await user.call("GET", path, headers=VERSION)).must(200).json
    return found


async def one_each(user: User, fault: str, objects: Sequence[str], *, are_open: bool) -> Sequence[str]:
    """Wait until each object has its one alarm of this fault, open or cleared; return their ids."""

    async def found() -> Sequence[str] | None:
        alarms = [each for each in await alarms_of(user, fault) if each["managedObjectId"] in objects]
        assert len({each["managedObjectId"] for each in alarms}) == len(alarms), alarms
        so = [each["id"] for each in alarms if ("alarmClearedTime" not in each) is are_open]
        return so if len(so) == len(objects) else None

    return await until(found, timeout_s=600)


async def knows_others(user: User) -> bool:
    """Return whether the gateway has heard of each service since it was started: one that it does not know is not away."""
    parts = (await user.call("GET", "/health/ready")).must(200).json["parts"]
    return {each["part"] for each in parts if each["state"] == "ready"} >= set(OTHERS)


async def test_no_alarm_is_lost_or_doubled_while_each_process_is_killed(six_chaos: Chaos) -> None:
    """API-188, API-196: a gateway that dies before it has seen the fault, and beside it; the other services, all at once."""
    user, faults = six_chaos.user, await CloudFaults.from_user(six_chaos.user, six_chaos.lab)
    instance_id = await built(user)
    async with Subscriber.listening() as subscriber:
        await user.call("POST", "/vnffm/v1/subscriptions", {"callbackUri": subscriber.uri}, headers=VERSION)
        (lost,) = (await user.instance(instance_id))["instantiatedVnfInfo"]["vnfcResourceInfo"]
        await faults.delete_server(lost["computeResource"]["resourceId"])
        await six_chaos.hit("lcm-api")
        await six_chaos.mend()
        (machine,) = await one_each(user, "machine-lost", [instance_id], are_open=True)
        await until_true(partial(knows_others, user))
        for service in OTHERS:
            await six_chaos.hit(service)
        away = await one_each(user, "service-away", OTHERS, are_open=True)
        # A gateway that was started again knows nothing of the others: their alarms stay.
        await six_chaos.hit("lcm-api")
        await six_chaos.mend()
        assert set(await one_each(user, "service-away", OTHERS, are_open=False)) == set(away)
        assert await one_each(user, "machine-lost", [instance_id], are_open=True) == [machine]
        await user.do(instance_id, "heal", {"vnfcInstanceId": [lost["id"]]})
        assert await one_each(user, "machine-lost", [instance_id], are_open=False) == [machine]
        wanted = {machine, *away}

        async def all_ended() -> dict[str, list[str]] | None:
            notified: dict[str, list[str]] = defaultdict(list)
            for body in {each.body["id"]: each.body for each in subscriber.received}.values():
                notified[body.get("alarmId") or body["alarm"]["id"]].append(body["notificationType"])
            ended = {each for each, types in notified.items() if types[-1] == "AlarmClearedNotification"}
            return notified if wanted <= ended else None

        notified = await until(all_ended, timeout_s=600)
        for each in wanted:
            assert notified[each][0] == "AlarmNotification"
            assert notified[each].count("AlarmClearedNotification") == 1
    await user.terminate(instance_id)
