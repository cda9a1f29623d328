"""``/multicloud/v1/subscriptions``: changes in regions as CloudEvents (multicloud.md MC-052)."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from callers.deliveries import deliveries_with
from kubevnfm_lcm_api.notifications.delivery_record import DeliveryRecord
from patience import until
from servers.subscriber import Notification, Subscriber
from worlds.multicloud_world import Gateway, a_gateway, a_pod
from worlds.set_clock import SetClock

SUBSCRIPTIONS = "/multicloud/v1/subscriptions"
LOOPBACK = "127.0.0.0/8"


async def heard(subscriber: Subscriber, count: int) -> list[Notification]:
    async def enough() -> list[Notification] | None:
        return subscriber.received if len(subscriber.received) >= count else None

    return await until(enough, timeout_s=300)


async def refused_at(gateway: Gateway, pointer: str, **changes: Any) -> None:
    asked = {"callback_url": "http://127.0.0.1:9/x", **changes}
    problem = (await gateway.call("POST", SUBSCRIPTIONS, asked)).problem(422)
    assert [each["pointer"] for each in problem["errors"]] == [pointer]


def test_the_rest_after_a_notification_is_at_most_the_interval() -> None:
    """MC-052: a clock that was set back does not make it longer."""
    record = DeliveryRecord(notified_at="2026-01-01T01:00:00Z")
    times = ("2026-01-01T00:00:00Z", "2026-01-01T01:00:02Z", "2026-01-01T01:00:05Z")
    assert [record.rest_s(5.0, datetime.fromisoformat(each)) for each in times] == [5.0, 3.0, 0.0]


async def test_changes_are_sent_as_events_one_by_one_or_together(tmp_path: Path) -> None:
    """MC-052, MC-115."""
    clock = SetClock(datetime(2026, 11, 26, tzinfo=UTC))
    async with Subscriber.listening() as single, Subscriber.listening() as together:
        # The test of callbacks is a rule of SOL: these APIs do not know it.
        single.tests = together.tests = 500
        async with a_gateway(tmp_path, clock=clock, allowed_networks=LOOPBACK, test_callbacks=True) as gateway:
            publish = gateway.world.bus.publish
            vnf_id = (await gateway.bring_up()).must(201).json["vnf_id"]
            basic = {"authType": ["BASIC"], "paramsBasic": {"userName": "listener", "password": "pw-marked"}}
            wanted = {"vnf_ids": [vnf_id], "cloud_region_ids": ["op/edge"], "types": ["infra.placement.changed"]}
            asked = {"callback_url": f"{single.uri}?key=pw-marked", "filter": wanted, "authentication": basic}
            made = await gateway.call("POST", SUBSCRIPTIONS, asked, **{"Idempotency-Key": "once"})
            again = await gateway.call("POST", SUBSCRIPTIONS, asked, **{"Idempotency-Key": "once"})
            assert (made.must(201).raw, made.headers["Location"]) == (again.must(201).raw, again.headers["Location"])
            assert made.json["filter"] == wanted
            clock.advance(1.0)
            both = {"callback_url": together.uri, "min_notify_interval": 1, "filter": {"types": wanted["types"]}}
            second = (await gateway.call("POST", SUBSCRIPTIONS, both)).must(201).json["id"]
            pages = [await gateway.call("GET", f"{SUBSCRIPTIONS}?limit=1")]
            following = pages[0].headers["Link"].partition(">")[0].removeprefix(f"<{gateway.world.url}")
            pages.append(await gateway.call("GET", following))
            assert [[each["id"] for each in page.must(200).json] for page in pages] == [[made.json["id"]], [second]]
            for answer in (made, *pages):
                assert b"pw-marked" not in answer.raw

            await publish(a_pod(vnf_id, "a", new="Pending"))
            (event,) = await heard(single, 1)
            assert (event.media_type, event.user, event.password) == (
                "application/cloudevents+json",
                "listener",
                "pw-marked",
            )
            assert single.queries == ["key=pw-marked"]
            about = {"specversion": "1.0", "type": "kubevnfm.infra.placement.changed.v1", "subject": vnf_id}
            assert about.items() <= event.body.items()
            assert (event.body["data"]["name"], event.body["data"]["new"]["phase"]) == ("a", "Pending")

            # The first one goes at once, those that follow wait for the interval.
            await heard(together, 1)
            await deliveries_with(gateway.world, second, pending=0)
            before = (await gateway.call("GET", f"{SUBSCRIPTIONS}/{second}")).must(200).json
            sent = len(together.received)
            await publish(a_pod(vnf_id, "a", "Pending", "Running"))
            await publish(a_pod(vnf_id, "b", None, "Pending"))
            await publish(a_pod(vnf_id, "a", "Running", "Failed"))
            await publish(a_pod(vnf_id, "b", "Pending", "Running"))
            await publish(a_pod(vnf_id, "c"))
            await publish(a_pod(vnf_id, "c", "Running", None))
            await publish(a_pod("of-another", "x"))
            await publish(a_pod(vnf_id, "y", vim_id="vim-other"))
            await publish(a_pod(vnf_id, "z"))
            await deliveries_with(gateway.world, second, pending=9)
            names = [each.body["data"]["name"] for each in await heard(single, 8)]
            assert names == ["a", "a", "b", "a", "b", "c", "c", "z"]
            assert len(together.received) == sent
            clock.advance(2.0)
            *_, batch = await heard(together, sent + 1)
            assert batch.media_type == "application/cloudevents-batch+json"
            changes: Any = batch.body
            assert [
                (each["data"]["name"], each["data"]["change"], each["data"]["new"]["phase"]) for each in changes[:2]
            ] == [("a", "changed", "Failed"), ("b", "created", "Running")]
            assert [each["data"]["name"] for each in changes[2:]] == ["x", "y", "z"]
            assert changes[0]["data"]["old"]["phase"] == "Pending"
            await deliveries_with(gateway.world, second, pending=0)
            after = (await gateway.call("GET", f"{SUBSCRIPTIONS}/{second}")).must(200).json
            assert (after["last_notify_status"], before["last_notify_status"]) == (204, 204)
            assert after["last_notify_at"] > before["last_notify_at"]

            together.answers = 410
            clock.advance(2.0)
            await publish(a_pod(vnf_id, "d"))
            await deliveries_with(gateway.world, second, dropped=1)
            assert (await gateway.call("GET", f"{SUBSCRIPTIONS}/{second}")).must(200).json["last_notify_status"] == 410
            for subscription_id in (made.json["id"], second):
                (await gateway.call("DELETE", f"{SUBSCRIPTIONS}/{subscription_id}")).must(204)
                (await gateway.call("GET", f"{SUBSCRIPTIONS}/{subscription_id}")).problem(404)
            assert (await gateway.call("GET", SUBSCRIPTIONS)).must(200).json == []


async def test_bad_input_is_refused_at_its_member(tmp_path: Path) -> None:
    """MC-006, MC-052, MC-135: the bad input of chapter 8."""
    async with a_gateway(tmp_path) as gateway:
        await refused_at(gateway, "/callback_url", callback_url="ftp://example.org/x")
        await refused_at(gateway, "/callback_url", callback_url="http://user@example.org/x")
        await refused_at(gateway, "/callback_url", callback_url="http://169.254.169.254/x")
        for interval in (-1, 3601, "5", True, 1.5):
            await refused_at(gateway, "/min_notify_interval", min_notify_interval=interval)
        await refused_at(gateway, "/filter/types/0", filter={"types": ["lcm.operation.changed"]})
        await refused_at(gateway, "/filter/vnf_ids", filter={"vnf_ids": ["none"] * 101})
        await refused_at(gateway, "/filter/vnf_ids/0", filter={"vnf_ids": ["none"]})
        await refused_at(gateway, "/filter/cloud_region_ids/0", filter={"cloud_region_ids": ["none/none"]})
        await refused_at(gateway, "/filter/colour", filter={"colour": "red"})
        await refused_at(gateway, "/colour", colour="red")
        await refused_at(gateway, "/authentication", authentication={"authType": ["BASIC"]})
        await refused_at(gateway, "/authentication/colour", authentication={"authType": ["TLS_CERT"], "colour": "red"})
        problem = (await gateway.call("POST", SUBSCRIPTIONS, {})).problem(422)
        assert [each["pointer"] for each in problem["errors"]] == ["/callback_url"]
        (await gateway.call("GET", f"{SUBSCRIPTIONS}?limit=0")).problem(400)
        assert (await gateway.call("GET", SUBSCRIPTIONS)).must(200).json == []
