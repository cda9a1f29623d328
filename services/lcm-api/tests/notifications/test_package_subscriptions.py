"""Subscriptions to VNF packages over HTTP: which events match, and deliveries like those of life cycles."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from callers.deliveries import Heard, deliveries, deliveries_with
from kubevnfm_events import Envelope, Message
from kubevnfm_events.lcm import NotificationDropped, OnboardPackage, PackageChanged, PackageChecked
from kubevnfm_store.query import Query, Stored
from servers.subscriber import Subscriber
from worlds.lcm_world import World, lcm_world

LOOPBACK: dict[str, Any] = {"allowed_networks": "127.0.0.0/8", "test_callbacks": True}
ONBOARDING = "VnfPackageOnboardingNotification"
CHANGE = "VnfPackageChangeNotification"


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with lcm_world(tmp_path, **LOOPBACK) as running:
        yield running


@pytest.fixture
async def subscriber() -> AsyncIterator[Subscriber]:
    async with Subscriber.listening() as listening:
        yield listening


async def subscribe(world: World, subscriber: Subscriber, **fields: Any) -> str:
    made = (await world.package_subscriptions("POST", body={"callbackUri": subscriber.uri, **fields})).must(201)
    return str(made.json["id"])


async def switch(world: World, package: dict[str, Any], state: str) -> None:
    (await world.packages("PATCH", f"/{package['id']}", {"operationalState": state})).must(200)


async def delete(world: World, package: dict[str, Any]) -> None:
    (await world.packages("DELETE", f"/{package['id']}")).must(204)


def kinds(bodies: Sequence[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [(each["notificationType"], each.get("changeType"), each.get("operationalState")) for each in bodies]


ONBOARDED = (ONBOARDING, None, None)
DISABLED = (CHANGE, "OP_STATE_CHANGE", "DISABLED")
ENABLED = (CHANGE, "OP_STATE_CHANGE", "ENABLED")
DELETED = (CHANGE, "PKG_DELETE", None)


# --- making them ------------------------------------------------------------------------------------------------------


async def test_a_subscription_is_made_shown_listed_and_deleted(world: World, subscriber: Subscriber) -> None:
    """API-120, API-070."""
    wanted = {"notificationTypes": [CHANGE], "usageState": "IN_USE"}
    basic = {"authType": ["BASIC"], "paramsBasic": {"userName": "listener", "password": "pw-marked"}}
    body = {"callbackUri": subscriber.uri, "filter": wanted, "authentication": basic}
    made = (await world.package_subscriptions("POST", body=body)).must(201)
    one = made.json["id"]
    assert made.headers["Location"] == f"{world.url}/vnfpkgm/v1/subscriptions/{one}"
    assert made.json == {
        "id": one,
        "callbackUri": subscriber.uri,
        "filter": {"notificationTypes": [CHANGE], "usageState": ["IN_USE"]},
        "_links": {"self": {"href": made.headers["Location"]}},
    }
    assert subscriber.tested == [aiohttp.encode_basic_auth("listener", "pw-marked")]
    shown = (await world.package_subscriptions("GET", f"/{one}")).must(200)
    listed = (await world.package_subscriptions("GET")).must(200)
    assert (shown.json, listed.json) == (made.json, [made.json])
    for answer in (made, shown, listed):
        assert b"pw-marked" not in answer.raw
        assert answer.headers["Version"] == "1.0.0"
    assert (await world.package_subscriptions("DELETE", f"/{one}")).must(204).raw == b""
    (await world.package_subscriptions("GET", f"/{one}")).problem(404)
    (await world.package_subscriptions("DELETE", f"/{one}")).problem(404)
    assert (await world.package_subscriptions("GET")).must(200).json == []


async def test_equal_subscriptions_are_two(world: World, subscriber: Subscriber) -> None:
    """API-120, API-071."""
    assert await subscribe(world, subscriber) != await subscribe(world, subscriber)


async def test_each_api_has_its_own_subscriptions(world: World, subscriber: Subscriber) -> None:
    """API-120."""
    ours = await subscribe(world, subscriber)
    theirs = (await world.lcm("POST", "/subscriptions", {"callbackUri": subscriber.uri})).must(201).json["id"]
    assert [each["id"] for each in (await world.package_subscriptions("GET")).must(200).json] == [ours]
    assert [each["id"] for each in (await world.lcm("GET", "/subscriptions")).must(200).json] == [theirs]
    for method in ("GET", "DELETE"):
        (await world.lcm(method, f"/subscriptions/{ours}")).problem(404)
        (await world.v1(method, f"/subscriptions/{ours}")).problem(404)
        (await world.package_subscriptions(method, f"/{theirs}")).problem(404)


async def test_lists_are_filtered_and_come_in_pages(world: World, subscriber: Subscriber) -> None:
    """API-120, API-095."""
    made = [await subscribe(world, subscriber, filter={"vnfmInfo": [f"vnfm-{n}"]}) for n in range(3)]
    first = (await world.package_subscriptions("GET", "?exclude_fields=filter")).must(200)
    assert [set(each) for each in first.json] == [{"id", "callbackUri", "_links"}] * 2
    link = first.headers["Link"].removeprefix(f"<{world.url}/vnfpkgm/v1/subscriptions").partition(">")[0]
    rest = (await world.package_subscriptions("GET", link)).must(200).json
    assert [each["id"] for each in (*first.json, *rest)] == made
    found = (await world.package_subscriptions("GET", "?filter=(eq,filter/vnfmInfo,vnfm-1)")).must(200).json
    assert [each["id"] for each in found] == [made[1]]


async def test_a_callback_that_cannot_be_called_is_refused(world: World, subscriber: Subscriber) -> None:
    """API-120, API-070."""
    subscriber.tests = 200
    refused = await world.package_subscriptions("POST", body={"callbackUri": subscriber.uri})
    assert "200" in refused.problem(422)["detail"]
    inside = await world.package_subscriptions("POST", body={"callbackUri": "http://169.254.169.254/x"})
    assert "network" in inside.problem(422)["detail"]
    nothing = (await world.package_subscriptions("POST", body={})).problem(400)
    assert nothing["invalidParams"][0]["name"] == "callbackUri"


@pytest.mark.parametrize(
    ("wanted", "named"),
    [
        ({"notificationTypes": [ONBOARDING], "vnfPkgId": ["a"]}, "vnfPkgId"),
        ({"notificationTypes": [ONBOARDING], "operationalState": ["ENABLED"]}, "operationalState"),
        ({"notificationTypes": [ONBOARDING], "usageState": ["IN_USE"]}, "usageState"),
        ({"notificationTypes": ["Smoke"]}, "notificationTypes"),
        ({"operationalState": ["ON"]}, "operationalState"),
        ({"usageState": 7}, "usageState"),
        ({"vnfProductsFromProviders": [{"vnfProducts": []}]}, "vnfProvider"),
    ],
)
async def test_filters_that_mean_nothing_are_refused(
    world: World, subscriber: Subscriber, wanted: dict[str, Any], named: str
) -> None:
    """API-121."""
    body = {"callbackUri": subscriber.uri, "filter": wanted}
    assert named in (await world.package_subscriptions("POST", body=body)).problem(400)["detail"]


# --- matching ---------------------------------------------------------------------------------------------------------


async def test_a_package_is_notified_from_onboarded_to_deleted(world: World, subscriber: Subscriber) -> None:
    """API-122, API-123, API-124: in order, one id for all subscribers of one event, with the links of the version that each subscribed."""
    async with Subscriber.listening() as other:
        basic = {"authType": ["BASIC"], "paramsBasic": {"userName": "listener", "password": "heard-only"}}
        one = await subscribe(world, subscriber)
        wanted = {"callbackUri": other.uri, "authentication": basic}
        version = {"Version": "2.4.0"}
        second = (await world.call("POST", "/vnfpkgm/v2/subscriptions", wanted, headers=version)).must(201)
        assert second.headers["Location"].endswith(f"/vnfpkgm/v2/subscriptions/{second.json['id']}")
        (await world.package_subscriptions("GET", f"/{second.json['id']}")).problem(404)
        package = await world.sample()
        await switch(world, package, "DISABLED")
        await switch(world, package, "ENABLED")
        await switch(world, package, "DISABLED")
        await delete(world, package)
        bodies, others = await subscriber.has_heard(package["id"], 5), await other.has_heard(package["id"], 5)
    assert kinds(bodies) == [ONBOARDED, DISABLED, ENABLED, DISABLED, DELETED]
    assert [each["id"] for each in bodies] == [each["id"] for each in others]
    assert len({each["id"] for each in bodies}) == 5
    assert [each["timeStamp"] for each in bodies] == sorted(each["timeStamp"] for each in others)
    for each in bodies:
        links = {name: link["href"].partition("/vnfpkgm/v1/")[2] for name, link in each.pop("_links").items()}
        assert links == {
            "vnfPackage": f"vnf_packages/{package['id']}",
            "vnfPackageByVnfdId": f"onboarded_vnf_packages/{package['vnfdId']}",
            "subscription": f"subscriptions/{one}",
        }
    about = {"subscriptionId": one, "vnfPkgId": package["id"], "vnfdId": package["vnfdId"]}
    onboarded, *_, deleted = ({k: v for k, v in each.items() if k not in {"id", "timeStamp"}} for each in bodies)
    assert onboarded == {**about, "notificationType": ONBOARDING, "vnfmInfo": package["vnfmInfo"]}
    assert deleted == {**about, "notificationType": CHANGE, "changeType": "PKG_DELETE"}
    assert {each.version for each in subscriber.received} == {"1.0.0"}
    assert {each.version for each in other.received} == {"2.4.0"}
    assert all("/vnfpkgm/v2/" in link["href"] for each in others for link in each["_links"].values())
    assert {(each.user, each.password) for each in other.received} == {("listener", "heard-only")}


async def test_a_package_that_was_never_onboarded_is_not_notified(world: World, subscriber: Subscriber) -> None:
    """API-122."""
    await subscribe(world, subscriber)
    empty = (await world.packages("POST", body={})).must(201).json
    broken = await world.upload(b"PK\x05\x06" + bytes(18))
    assert broken["onboardingState"] == "ERROR"
    await delete(world, empty)
    await delete(world, broken)
    package = await world.upload(world.zipped("vm"))
    await subscriber.has_heard(package["id"], 1)
    await world.bus.quiet()
    assert [each.body["vnfPkgId"] for each in subscriber.received] == [package["id"]]


async def test_packages_and_life_cycles_are_notified_to_their_subscribers(world: World, subscriber: Subscriber) -> None:
    """API-121, API-122: a subscription of one API gets nothing of the other; the query does not even find it."""
    async with Subscriber.listening() as of_instances:
        await subscribe(world, subscriber)
        (await world.lcm("POST", "/subscriptions", {"callbackUri": of_instances.uri})).must(201)
        package = await world.sample()
        instance_id = await world.create()
        await of_instances.has_heard(instance_id, 1)
        await subscriber.has_heard(package["id"], 1)
        await world.bus.quiet()
        assert [each.body["notificationType"] for each in subscriber.received] == [ONBOARDING]
        assert [each.body["notificationType"] for each in of_instances.received] == [
            "VnfIdentifierCreationNotification"
        ]


async def test_only_the_subscriptions_that_want_the_news_are_read(
    world: World, subscriber: Subscriber, monkeypatch: pytest.MonkeyPatch
) -> None:
    """API-121: what the database hands out is counted."""
    package = await world.sample()
    for n in range(5):
        await subscribe(world, subscriber, filter={"vnfdId": [f"other {n}"]})
        (await world.lcm("POST", "/subscriptions", {"callbackUri": subscriber.uri})).must(201)
    wanting = await subscribe(world, subscriber, filter={"vnfdId": [package["vnfdId"]]})
    read: list[str] = []
    find = world.store.find

    async def counted(collection: str, query: Query) -> Sequence[Stored]:
        found = await find(collection, query)
        read.extend(stored.id for stored in found if collection == "subscriptions")
        return found

    monkeypatch.setattr(world.store, "find", counted)
    await switch(world, package, "DISABLED")
    await subscriber.has_heard(package["id"], 1)
    assert read == [wanting]


async def test_each_filter_attribute_selects(world: World, subscriber: Subscriber) -> None:
    """API-121."""
    known = await world.sample()
    await switch(world, known, "DISABLED")
    await delete(world, known)
    version = {"vnfSoftwareVersion": known["vnfSoftwareVersion"]}
    product = {"vnfProductName": known["vnfProductName"]}

    def products_of(vnf_provider: str, **products: Any) -> dict[str, Any]:
        return {"vnfProductsFromProviders": [{"vnfProvider": vnf_provider, **products}]}

    def versions(*found: dict[str, Any]) -> dict[str, Any]:
        return {"vnfProducts": [{**product, "versions": list(found)}]}

    provider = known["vnfProvider"]
    onboarding, disabling, enabling, deleting = {ONBOARDED}, {DISABLED}, {ENABLED}, {DELETED}
    everything = onboarding | disabling | enabling | deleting
    wanted: list[tuple[dict[str, Any], set[tuple[Any, ...]]]] = [
        ({}, everything),
        ({"notificationTypes": [ONBOARDING]}, onboarding),
        ({"notificationTypes": CHANGE}, everything - onboarding),
        ({"notificationTypes": [ONBOARDING, CHANGE]}, everything),
        ({"vnfdId": ["other", known["vnfdId"]]}, everything),
        ({"vnfdId": ["other"]}, set()),
        ({"vnfPkgId": [known["id"]]}, set()),
        (products_of(provider), everything),
        (products_of(provider, vnfProducts=[product]), everything),
        (products_of(provider, **versions(version)), everything),
        (products_of(provider, **versions({**version, "vnfdVersions": [known["vnfdVersion"]]})), everything),
        (products_of("other"), set()),
        ({"vnfdId": [known["vnfdId"]], **products_of(provider)}, everything),
        ({"vnfdId": [known["vnfdId"]], **products_of("other")}, set()),
        ({"vnfdId": ["other"], **products_of(provider)}, set()),
        ({"vnfdId": [known["vnfdId"]], "vnfPkgId": ["other"], **products_of(provider)}, set()),
        (products_of(provider, vnfProducts=[{"vnfProductName": "other"}]), set()),
        (products_of(provider, **versions({"vnfSoftwareVersion": "other"})), set()),
        (products_of(provider, **versions({**version, "vnfdVersions": ["other"]})), set()),
        ({"operationalState": ["ENABLED"]}, onboarding | enabling),
        ({"operationalState": "DISABLED", "notificationTypes": [CHANGE]}, disabling | deleting),
        ({"usageState": ["NOT_IN_USE"], "operationalState": ["ENABLED"]}, onboarding | enabling),
        ({"usageState": ["IN_USE", "NOT_IN_USE"]}, everything),
        ({"vnfmInfo": ["other", *known["vnfmInfo"]]}, everything),
        ({"vnfmInfo": ["other"]}, set()),
        ({"vnfmInfo": known["vnfmInfo"], "vnfdId": ["other"]}, set()),
    ]
    ids = [await subscribe(world, subscriber, filter=given) for given, _ in wanted]
    package = await world.sample()
    of_it = await subscribe(world, subscriber, filter={"vnfPkgId": [package["id"]]})
    each_of_it = {"vnfPkgId": [package["id"]], "vnfdId": [package["vnfdId"]], **products_of(provider)}
    of_all_three = await subscribe(world, subscriber, filter=each_of_it)
    of_used = await subscribe(world, subscriber, filter={"usageState": ["IN_USE"]})
    instance_id = await world.create()
    await switch(world, package, "DISABLED")
    (await world.lcm("DELETE", f"/vnf_instances/{instance_id}")).must(204)
    await switch(world, package, "ENABLED")
    await switch(world, package, "DISABLED")
    await delete(world, package)
    expected = dict(zip(ids, (received for _, received in wanted), strict=True))
    expected |= {of_it: everything - onboarding, of_all_three: everything - onboarding, of_used: disabling}
    await subscriber.has_heard(package["id"], sum(map(len, expected.values())))
    await world.bus.quiet()
    heard: dict[str, list[dict[str, Any]]] = {one: [] for one in expected}
    for body in subscriber.about(package["id"]):
        heard[body["subscriptionId"]].append(body)
    assert {one: set(kinds(bodies)) for one, bodies in heard.items()} == expected
    first, second = (each["id"] for each in heard[ids[0]] if each.get("operationalState") == "DISABLED")
    assert [each["id"] for each in heard[of_used]] == [first], "the second time there was no instance of it any more"
    assert second != first


async def test_the_state_can_be_read_when_its_notification_arrives(world: World, subscriber: Subscriber) -> None:
    """API-123."""
    package = await world.sample()
    subscriber.goes_on.clear()
    await subscribe(world, subscriber)
    await switch(world, package, "DISABLED")
    (body,) = await subscriber.was_tried(1)
    shown = (await world.packages("GET", f"/{package['id']}")).must(200).json
    assert shown["operationalState"] == body["operationalState"] == "DISABLED"
    subscriber.goes_on.set()


# --- order, repeats and failures --------------------------------------------------------------------------------------


def package_changed(change: str, **facts: Any) -> Envelope[Message]:
    event = PackageChanged.model_validate({"vnf_pkg_id": "package", "vnfd_id": "vnfd", "change": change, **facts})
    return Envelope(event, source="/kubevnfm/lcm-api", subject=event.vnf_pkg_id)


async def test_a_repeated_event_is_notified_once(world: World, subscriber: Subscriber) -> None:
    """API-123."""
    await subscribe(world, subscriber)
    onboarded, deleted = package_changed("ONBOARDED"), package_changed("DELETED")
    for envelope in (onboarded, onboarded, deleted, deleted):
        await world.bus.publish(envelope)
    await subscriber.has_heard("package", 2)
    await world.bus.quiet()
    assert [each["id"] for each in subscriber.about("package")] == [onboarded.id, deleted.id]


async def test_a_repeated_check_publishes_no_new_event(world: World, subscriber: Subscriber) -> None:
    """API-123: its process may have been killed after the package was stored as ONBOARDED, and before the event was published."""
    await subscribe(world, subscriber)
    package = await world.sample()
    heard = Heard()
    async with world.bus.watch_events(["lcm.package.*"], heard.record):
        again = OnboardPackage(package_id=package["id"])
        await world.bus.publish(Envelope[Message](again, source="/kubevnfm/lcm-api", subject=package["id"]))
        assert await heard.have_come(1) == [PackageChecked(vnf_pkg_id=package["id"])]
        await switch(world, package, "DISABLED")
        await delete(world, package)
        await world.bus.publish(Envelope[Message](again, source="/kubevnfm/lcm-api", subject=package["id"]))
        *_, last = await heard.have_come(4)
        assert last == PackageChecked(vnf_pkg_id=package["id"])
    await world.bus.quiet()
    assert kinds(subscriber.about(package["id"])) == [ONBOARDED, DISABLED, DELETED]


async def test_a_change_waits_for_the_news_before_it(world: World, subscriber: Subscriber) -> None:
    """API-123: the bus may bring events in another order than they became true."""
    await subscribe(world, subscriber)
    onboarded = package_changed("ONBOARDED")
    after = {"follows": onboarded.id, "follows_at": onboarded.time - timedelta(seconds=1)}
    early = asyncio.create_task(world.bus.publish(package_changed("DISABLED", **after)))
    await world.bus.publish(package_changed("ONBOARDED", vnf_pkg_id="other"))
    await subscriber.has_heard("other", 1)
    assert subscriber.about("package") == []
    await world.bus.publish(onboarded)
    bodies = await subscriber.has_heard("package", 2)
    await early
    assert [each["notificationType"] for each in bodies] == [ONBOARDING, CHANGE]


async def test_each_event_of_a_package_names_the_one_before(world: World) -> None:
    """API-123."""
    events: list[Envelope[Message]] = []

    async def keep(envelope: Envelope[Message]) -> None:
        events.append(envelope)

    async with world.bus.watch_events(["lcm.package.changed"], keep):
        package = await world.sample()
        await switch(world, package, "DISABLED")
        await delete(world, package)
        await world.bus.quiet()
    received = [each.data for each in events if isinstance(each.data, PackageChanged)]
    assert [each.change for each in received] == ["CREATED", "ONBOARDED", "DISABLED", "DELETED"]
    assert [each.follows for each in received] == ["", "", events[1].id, events[2].id]
    moments = [each.follows_at for each in received[2:]]
    assert all(at is not None and datetime.now(UTC) - at < timedelta(minutes=5) for at in moments)


async def test_a_subscriber_that_was_down_gets_everything_in_order(world: World) -> None:
    """API-123, API-079, and the state of deliveries."""
    subscriber = Subscriber()
    subscriber.goes_on.set()
    package = await world.sample()
    async with subscriber.up():
        subscription_id = await subscribe(world, subscriber)
    await switch(world, package, "DISABLED")
    await switch(world, package, "ENABLED")
    await switch(world, package, "DISABLED")
    await delete(world, package)
    waiting = await deliveries_with(world, subscription_id, pending=4, state="WAITING")
    assert waiting["lastFailure"].startswith("it did not answer")
    assert waiting["_links"]["subscription"] == {"href": f"{world.url}/vnfpkgm/v1/subscriptions/{subscription_id}"}
    async with subscriber.up():
        bodies = await subscriber.has_heard(package["id"], 4)
        await deliveries_with(world, subscription_id, pending=0, state="IDLE", failuresInARow=0)
    assert kinds(bodies) == [DISABLED, ENABLED, DISABLED, DELETED]


async def test_a_notification_that_is_refused_is_dropped_and_reported(world: World, subscriber: Subscriber) -> None:
    """API-123, API-079: the event names the package, and the subscription stays."""
    heard = Heard()
    async with world.bus.watch_events(["lcm.notification.dropped"], heard.record):
        subscription_id = await subscribe(world, subscriber)
        subscriber.answers = 404
        package = await world.sample()
        (dropped,) = await heard.have_come(1)
    assert isinstance(dropped, NotificationDropped)
    assert (dropped.subscription_id, dropped.notification_type) == (subscription_id, ONBOARDING)
    assert (dropped.vnf_pkg_id, dropped.vnf_instance_id) == (package["id"], "")
    subscriber.answers = 204
    await switch(world, package, "DISABLED")
    await subscriber.has_heard(package["id"], 1)
    assert (await deliveries(world, subscription_id))["dropped"] == 1
