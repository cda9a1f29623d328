"""Two processes of lcm-api on the same queues and documents: either may finish the work of the other."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections import Counter
from collections.abc import Mapping
from itertools import cycle

import pytest
from callers.user import FORCEFUL, User, sample_body
from patience import until, until_true
from servers.installations import SixInstallation
from servers.six_processes import SERVICES
from servers.subscriber import Subscriber

pytestmark = pytest.mark.server

OPERATIONS = "VnfLcmOperationOccurrenceNotification"
STATES = ["STARTING", "PROCESSING", "COMPLETED"]
REPORTS = ('"turn_lost"', '"notification_not_taken"', '"notifications_postponed"')
"""The events in the log of a sender that cannot know whether a notification was received."""


async def test_two_gateways_share_the_work_and_one_may_die(six: SixInstallation) -> None:
    """API-074: each subscriber gets every notification in order: once, or more if it cannot be known. Each gateway knows the processes
    of all services, and that one was killed.
    """
    url, twin = six.start_twin("lcm-api")
    first = six.listeners["lcm-api"][1]
    for pid in (first, twin.pid):  # both are ready; the reports are debug lines
        os.kill(pid, signal.SIGUSR1)
    try:
        async with User(six) as one, User(six, url=url) as other, Subscriber.listening() as subscriber:
            await one.register_lab()
            vnfd_id = await other.sample("vm")
            wanted = {"vnfInstanceSubscriptionFilter": {"vnfdIds": [vnfd_id]}, "notificationTypes": [OPERATIONS]}
            made = await other.lcm("POST", "/subscriptions", {"callbackUri": subscriber.uri, "filter": wanted})
            subscription = f"/subscriptions/{made.must(201).json['id']}"
            users = [user for user, _ in zip(cycle([one, other]), range(6), strict=False)]
            body = sample_body("vm", "instantiate")
            ids = await asyncio.gather(*(user.create(vnfd_id) for user in users))
            begun = await asyncio.gather(*(u.start(i, "instantiate", body) for u, i in zip(users, ids, strict=True)))
            for operation, user in zip(
                begun, reversed(users), strict=True
            ):  # each client asks the gateway of the other
                assert (await user.rest(operation))["state"] == "COMPLETED"
            for instance_id in ids:
                assert await states(subscriber, instance_id, 3) == STATES
            assert len({each.body["id"] for each in subscriber.received}) == 18

            # On a loaded machine a sender, the database or the subscriber may stall: then the notification that was being
            # sent comes twice, and no other. The sender reports that when it continues.
            repeats = Counter(each.body["id"] for each in subscriber.received)

            async def reported() -> bool:
                return repeats.total() - 18 <= sum(reports_of(six).values())

            try:
                await until_true(reported)
            except TimeoutError:
                pytest.fail(f"received {repeats.most_common(5)}, reported {reports_of(six)}")

            for user in (one, other):
                await until_true(lambda user=user: all_ready(user, {**dict.fromkeys(SERVICES, 1), "lcm-api": 2}))  # type: ignore[misc]
            # Processes that earlier tests have killed are away too, until they are forgotten.
            both = [process for process, state in (await processes_of(one))["lcm-api"].items() if state == "ready"]
            begun = await asyncio.gather(*(one.start(i, "terminate", FORCEFUL) for i in ids))
            twin.kill()
            killed_at = time.monotonic()
            for operation in begun:
                assert (await one.rest(operation))["state"] == "COMPLETED"
            for instance_id in ids:
                assert await states(subscriber, instance_id, 6) == STATES * 2
                await one.delete(instance_id)
            (await one.lcm("DELETE", subscription)).must(204)

            async def is_away() -> bool:
                found = (await processes_of(one))["lcm-api"]
                return sorted(found[process] for process in both) == ["away", "ready"]

            await until_true(is_away, pause_s=0.5)
            assert time.monotonic() - killed_at < 60, "30 s, and those of a loaded machine"
    finally:
        os.kill(first, signal.SIGUSR1)
        twin.stop()


async def processes_of(user: User) -> Mapping[str, Mapping[str, str]]:
    """Return the states of the processes of each service, by their ids."""
    view = (await user.call("GET", "/kubevnfm/v1/services")).must(200).json
    return {
        each["name"]: {process["id"]: process["state"] for process in each["processes"]} for each in view["services"]
    }


async def all_ready(user: User, wanted: Mapping[str, int]) -> bool:
    """Return whether each service has as many ready processes as wanted."""
    found = await processes_of(user)
    return {name: list(found[name].values()).count("ready") for name in wanted} == wanted


def reports_of(six: SixInstallation) -> Counter[str]:
    """Return how often each of the reports is in the logs."""
    logs = [log.read_text() for log in six.log_files()]
    return Counter({report: sum(log.count(report) for log in logs) for report in REPORTS})


async def states(subscriber: Subscriber, instance_id: str, count: int) -> list[str]:
    """Wait for ``count`` different notifications about an instance; return their states in order."""

    async def enough() -> list[str] | None:
        found = {each["id"]: each["operationState"] for each in subscriber.about(instance_id)}
        return list(found.values()) if len(found) >= count else None

    return await until(enough, timeout_s=300)
