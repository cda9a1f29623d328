"""``/multicloud/v1/subscriptions``: changes in regions as CloudEvents (multicloud.md MC-052)."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from callers.deliveries import deliveries_with
from kubevnfm_events import Envelope, Message, decode
from kubevnfm_events.changes import CHANGE_TYPES
from kubevnfm_events.schema import ROOT
from kubevnfm_kit.ids import new_id
from kubevnfm_lcm_api.notifications.delivery_record import DeliveryRecord
from kubevnfm_store.query import Exists, Query
from patience import until
from servers.subscriber import Notification, Subscriber
from worlds.lcm_world import lcm_world
from worlds.multicloud_world import Gateway, a_gateway, a_pod
from worlds.set_clock import SetClock

SUBSCRIPTIONS = "/multicloud/v1/subscriptions"
LOOPBACK = "127.0.0.0/8"


async def heard(subscriber: Subscriber, count: int) -> list[Notification]:
    async def enough() -> list[Notification] | None:
        return subscriber.received if len(subscriber.received) >= count else None

    return await until(enough, timeout_s=300)


async def notified_since(gateway: Gateway, subscription_id: str, moment: str) -> Any:
    """Return the subscription once it shows a notification after this moment: that is recorded after its event has left."""

    async def shown() -> Any:
        found = (await gateway.call("GET", f"{SUBSCRIPTIONS}/{subscription_id}")).must(200).json
        return found if found.get("last_notify_at", "") > moment else None

    return await until(shown)


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
            before = await notified_since(gateway, second, "")
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
            after = await notified_since(gateway, second, before["last_notify_at"])
            assert (after["last_notify_status"], before["last_notify_status"]) == (204, 204)

            together.answers = 410
            clock.advance(2.0)
            await publish(a_pod(vnf_id, "d"))
            await deliveries_with(gateway.world, second, dropped=1)
            assert (await gateway.call("GET", f"{SUBSCRIPTIONS}/{second}")).must(200).json["last_notify_status"] == 410
            for subscription_id in (made.json["id"], second):
                (await gateway.call("DELETE", f"{SUBSCRIPTIONS}/{subscription_id}")).must(204)
                (await gateway.call("GET", f"{SUBSCRIPTIONS}/{subscription_id}")).problem(404)
            assert (await gateway.call("GET", SUBSCRIPTIONS)).must(200).json == []


def an_event(type_: str, **changes: Any) -> Envelope[Message]:
    """Return the event of a type, with another time and id than its golden example; ``changes``: of its data."""
    example = decode((ROOT / "examples" / f"kubevnfm.{type_}.v1.json").read_bytes())
    return replace(
        example, id=new_id(), time=datetime.now(UTC), data=example.data.model_copy(update={"follows": "", **changes})
    )


OF_VNFS = {
    "infra.placement.changed", "lcm.instance.created", "lcm.instance.deleted", "lcm.instance.drifted",
    "lcm.instance.orphaned", "lcm.operation.changed", "lcm.outputs.changed", "infra.link.changed", "infra.volume.changed",
}  # fmt: skip


async def test_every_type_of_change_is_sent_to_those_whose_filter_fits(tmp_path: Path) -> None:
    """MC-052, MC-054, MC-098, MC-105, MC-119, MC-138: one list; by type, VNF and region, each with its thing as subject."""
    async with AsyncExitStack() as stack:
        every, mine, there = [await stack.enter_async_context(Subscriber.listening()) for _ in range(3)]
        async with a_gateway(tmp_path, allowed_networks=LOOPBACK) as gateway:
            described = (await gateway.call("GET", "/multicloud/v1/openapi.json")).must(200).json["components"]
            types = described["schemas"]["ChangeFilter"]["properties"]["types"]["items"]["enum"]
            assert sorted(types) == sorted(CHANGE_TYPES)
            (await gateway.call("POST", SUBSCRIPTIONS, {"callback_url": every.uri})).must(201)
            vnf_id = (await gateway.bring_up()).must(201).json["vnf_id"]
            # Created, and three states of its operation: those that subscribe now do not hear of them.
            assert (await heard(every, 4))[-1].body["data"]["state"] == "COMPLETED"
            every.received.clear()
            for subscriber, wanted in (
                (mine, {"vnf_ids": [vnf_id]}),
                (there, {"cloud_region_ids": ["op/edge"], "types": [each for each in types if "unreach" not in each]}),
            ):
                asked = {"callback_url": subscriber.uri, "filter": wanted}
                (await gateway.call("POST", SUBSCRIPTIONS, asked)).must(201)
            own: dict[str, Any] = {"vnf_instance_id": vnf_id, "vim_ids": ("vim-edge",), "vim_id": "vim-edge"}
            own["vnf_instance_ids"] = ("another", vnf_id)
            for type_ in types:
                for changes in ({}, own):
                    known = {name: each for name, each in changes.items() if name in an_event(type_).data.model_dump()}
                    await gateway.world.bus.publish(an_event(type_, **known))
            keys = [each.body["type"].removeprefix("kubevnfm.").removesuffix(".v1") for each in await heard(every, 28)]
            assert sorted(keys) == sorted([*types, *types])
            for each in every.received:
                data = each.body["data"]
                assert each.body["subject"] in {
                    data.get(name) for name in ("vnf_instance_id", "link_id", "volume_id", "vim_id")
                }
                assert each.body["source"].rpartition("/")[2] in {"infra-k8s", "lcm-api", "vim-registry"}
            keys = [each.body["type"][9:-3] for each in await heard(mine, len(OF_VNFS))]
            assert sorted(keys) == sorted(OF_VNFS)
            of_links = {"5d3c0b8e-51a4-4a0e-9d57-0a4f4a1f7c21", "77aa01c2-3b9e-4c7b-8d57-0a4f4a1f7c33"}
            assert {each.body["subject"] for each in mine.received} == {vnf_id, *of_links}
            # One that more VNFs hold than are named is sent for each of them.
            mine.received.clear()
            await gateway.world.bus.publish(an_event("infra.link.changed", has_more_vnf_instances=True))
            assert (await heard(mine, 1))[0].body["data"]["has_more_vnf_instances"] is True
            keys = [each.body["type"][9:-3] for each in await heard(there, len(types) - 1)]
            assert sorted(keys) == sorted(set(types) - {"vim.unreachable"})

            # A real operation, with a filter by region: to the end of the VNF.
            there.received.clear()
            (await gateway.call("DELETE", f"/multicloud/v1/vnf_instances/{vnf_id}")).must(204)
            states = [each.body["data"].get("state") for each in await heard(there, 4)]
            assert states == ["STARTING", "PROCESSING", "COMPLETED", None]
            assert there.received[-1].body["type"] == "kubevnfm.lcm.instance.deleted.v1"


async def test_the_changes_of_an_interval_are_one_of_each_type_for_each_thing(tmp_path: Path) -> None:
    """MC-052: none is lost to another type or thing; states are from the first to the last, outputs are all that changed."""
    clock = SetClock(datetime(2026, 11, 26, tzinfo=UTC))
    async with (
        Subscriber.listening() as together,
        a_gateway(tmp_path, clock=clock, allowed_networks=LOOPBACK) as gateway,
    ):
        asked = {"callback_url": together.uri, "min_notify_interval": 1}
        one = (await gateway.call("POST", SUBSCRIPTIONS, asked)).must(201).json["id"]
        sent = [
            an_event("infra.link.changed"),
            an_event("infra.link.changed", old_status="READY", status="DEGRADED"),
            an_event("vim.unreachable", vim_id="v1"),
            an_event("lcm.outputs.changed", outputs={"a": 1, "b": 1}, changed=("a",)),
            an_event("infra.volume.changed", old_phase="Reserved", phase="Bound"),
            an_event("vim.unreachable", vim_id="v2"),
            an_event("vim.reachable", vim_id="v1"),
            an_event("vim.credentials.expiring", part="bearer_token"),
            an_event("infra.link.changed", old_status="DEGRADED", status="FAILED"),
            an_event("infra.link.changed", link_id="other"),
            an_event("infra.volume.changed", old_phase="Bound", phase="Failed"),
            an_event("vim.credentials.expiring"),
            an_event("lcm.outputs.changed", outputs={"a": 1, "b": 2}, changed=("b",)),
            an_event("lcm.operation.changed", state="PROCESSING"),
            an_event("lcm.operation.changed", state="COMPLETED"),
            a_pod("vnf", "a"),
        ]
        await gateway.world.bus.publish(sent[0])
        await heard(together, 1)
        await deliveries_with(gateway.world, one, pending=0)
        for each in sent[1:]:
            await gateway.world.bus.publish(each)
            clock.advance(0.001)
        await deliveries_with(gateway.world, one, pending=len(sent) - 1)
        clock.advance(2.0)
        *_, batch = await heard(together, 2)
        changes: Any = batch.body
        assert len(changes) == 11
        found = {(each["type"][9:-3], each["subject"]): each["data"] for each in changes}
        link, volume = sent[1].data.model_dump()["link_id"], sent[4].data.model_dump()["volume_id"]
        assert [found["infra.link.changed", link][name] for name in ("old_status", "status")] == ["READY", "FAILED"]
        assert ("infra.link.changed", "other") in found
        volumes = found["infra.volume.changed", volume]
        assert (volumes["old_phase"], volumes["phase"]) == ("Reserved", "Failed")
        assert {("vim.unreachable", "v1"), ("vim.unreachable", "v2"), ("vim.reachable", "v1")} <= found.keys()
        (outputs,) = [data for (type_, _), data in found.items() if type_ == "lcm.outputs.changed"]
        assert (outputs["outputs"], outputs["changed"]) == ({"a": 1, "b": 2}, ["a", "b"])
        assert [each["data"]["part"] for each in changes if "expiring" in each["type"]] == [
            "bearer_token", "client_certificate",
        ]  # fmt: skip
        assert [each["data"]["state"] for each in changes if "operation" in each["type"]] == ["COMPLETED"]


async def test_a_subscription_of_an_earlier_version_without_types_gets_all(tmp_path: Path) -> None:
    """MC-052: it shows no types, and earlier versions had one alone. A change that waits in its queue is sent as it was."""
    async with Subscriber.listening() as subscriber:
        subscriber.goes_on.clear()
        async with lcm_world(tmp_path, allowed_networks=LOOPBACK) as world:
            one = (await world.call("POST", SUBSCRIPTIONS, {"callback_url": subscriber.uri})).must(201).json["id"]
            named = {"callback_url": subscriber.uri, "filter": {"types": ["infra.placement.changed"]}}
            two = (await world.call("POST", SUBSCRIPTIONS, named)).must(201).json["id"]
            store = world.store
            await store.update("subscriptions", one, {"keys/types": ["infra.placement.changed"]})
            await world.bus.publish(a_pod("vnf", "a"))
            await deliveries_with(world, one, pending=1)
            for queued in await store.find("notifications", Query(Exists("pendingFor"))):
                body = {name: each for name, each in queued.body["body"].items() if name not in ("subject", "source")}
                await store.update("notifications", queued.id, {"body": body})
        subscriber.goes_on.set()
        async with lcm_world(tmp_path, allowed_networks=LOOPBACK) as world:
            await deliveries_with(world, one, pending=0)
            await deliveries_with(world, two, pending=0)
            await world.bus.publish(an_event("vim.reachable"))
            last = "kubevnfm.vim.reachable.v1"
            # A request of the first process that was held may be answered, and so counted, at any time.
            while last not in [each.body["type"] for each in subscriber.received]:
                await heard(subscriber, len(subscriber.received) + 1)
            changes = [each.body for each in subscriber.received if each.body["type"] != last]
            assert {(each["subject"], each["source"]) for each in changes} == {("vnf", "/kubevnfm/infra-k8s")}
            assert len({each["id"] for each in changes}) == 1


async def test_bad_input_is_refused_at_its_member(tmp_path: Path) -> None:
    """MC-006, MC-052, MC-135: the bad input of chapter 8."""
    async with a_gateway(tmp_path) as gateway:
        await refused_at(gateway, "/callback_url", callback_url="ftp://example.org/x")
        await refused_at(gateway, "/callback_url", callback_url="http://user@example.org/x")
        await refused_at(gateway, "/callback_url", callback_url="http://169.254.169.254/x")
        for interval in (-1, 3601, "5", True, 1.5):
            await refused_at(gateway, "/min_notify_interval", min_notify_interval=interval)
        await refused_at(gateway, "/filter/types/0", filter={"types": ["lcm.step.changed"]})
        # Filters that could never match.
        vnf_id = (await gateway.bring_up()).must(201).json["vnf_id"]
        gateway.world.regions.add("op/far", "vim-far")
        of_regions = ["lcm.outputs.changed", "vim.unreachable"]
        await refused_at(gateway, "/filter/types/1", filter={"vnf_ids": [vnf_id], "types": of_regions})
        elsewhere = {"vnf_ids": [vnf_id], "cloud_region_ids": ["op/far"]}
        await refused_at(gateway, "/filter/vnf_ids/0", filter=elsewhere)
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
