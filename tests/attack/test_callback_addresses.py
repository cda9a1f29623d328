"""Readers of subscriptions and of the database look for the token that a ``callbackUri`` carries in its query."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from callers.deliveries import deliveries_with
from kubevnfm_lcm_api.notifications.domain.subscription import COLLECTION, SEALED_ADDRESS
from patience import until_true
from servers.subscriber import Subscriber
from structlog.testing import capture_logs
from worlds.lcm_world import Answer, World, lcm_world

pytestmark = pytest.mark.asyncio(loop_scope="module")

TOKEN = "t0ps3cret-token"
APIS = ("/vnflcm/v1/subscriptions", "/vnflcm/v2/subscriptions", "/vnfpkgm/v1/subscriptions")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def subscriber() -> AsyncIterator[Subscriber]:
    async with Subscriber.listening() as listening:
        yield listening


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lcm")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(folder: Path) -> AsyncIterator[World]:
    async with lcm_world(folder, allowed_networks="127.0.0.0/8", test_callbacks=True) as running:
        yield running


async def subscribe(world: World, path: str, uri: str, **more: Any) -> Answer:
    return await world.call("POST", path, {"callbackUri": uri, **more}, headers={} if "/v1/" in path else None)


async def read(world: World, path: str, params: Mapping[str, str] | None = None) -> Answer:
    return await world.call("GET", path, headers={} if "/v1/" in path else None, params=params)


@pytest.mark.parametrize("path", APIS)
async def test_the_values_of_a_query_are_shown_to_no_caller(
    world: World, subscriber: Subscriber, folder: Path, path: str
) -> None:
    uri = f"{subscriber.uri}?auth={TOKEN}"
    made = (await subscribe(world, path, uri)).must(201)
    shown = f"{subscriber.uri}?auth=***"
    assert subscriber.queries[-1] == f"auth={TOKEN}", "the test of the callback has called the whole address"
    answers = [made, await read(world, f"{path}/{made.json['id']}"), await read(world, path)]
    state = await world.call("GET", f"/kubevnfm/v1/subscriptions/{made.json['id']}")
    for answer in [*answers, state]:
        assert TOKEN not in answer.raw.decode()
        assert shown in answer.raw.decode()
    files = [one.read_bytes() for one in folder.glob("store.db*")]
    assert files
    assert not any(TOKEN.encode() in content for content in files)


@pytest.mark.parametrize(
    "condition", [f"(cont,callbackUri,{TOKEN[:6]})", "(cont,callbackUri,auth=t)", "(gt,callbackUri,{uri}?auth=t0)"]
)
async def test_a_filter_is_no_oracle_for_the_token(world: World, subscriber: Subscriber, condition: str) -> None:
    made = (await subscribe(world, APIS[1], f"{subscriber.uri}?auth={TOKEN}")).must(201)
    asked = {"filter": condition.replace("{uri}", subscriber.uri), "all_records": "yes"}
    found = (await read(world, APIS[1], asked)).must(200).json
    assert made.json["id"] not in {one["id"] for one in found}
    by_shown = {"filter": f"(eq,callbackUri,{made.json['callbackUri']})", "all_records": "yes"}
    assert made.json["id"] in {one["id"] for one in (await read(world, APIS[1], by_shown)).must(200).json}
    hidden = await read(world, APIS[1], {"filter": "(cont,sealedCallbackUri/$sealed,v1)"})
    assert hidden.status == 400


async def has_heard(subscriber: Subscriber, instance_id: str, subscription_id: str) -> bool:
    """The subscriptions of other tests hear of each instance too, perhaps earlier."""
    return subscription_id in {body["subscriptionId"] for body in subscriber.about(instance_id)}


async def test_notifications_reach_the_whole_address_and_failures_do_not_name_it(
    world: World, subscriber: Subscriber
) -> None:
    await world.sample()
    uri = f"{subscriber.uri}?auth={TOKEN}"
    made = (await subscribe(world, APIS[1], uri)).must(201)
    with capture_logs() as logs:
        instance_id = await world.create()
        await until_true(lambda: has_heard(subscriber, instance_id, made.json["id"]))
        assert subscriber.queries[-1] == f"auth={TOKEN}"
        subscriber.answers = 400
        (await world.lcm("DELETE", f"/vnf_instances/{instance_id}")).must(204)
        state = await deliveries_with(world, made.json["id"], dropped=1, pending=0)
    subscriber.answers = 204
    assert TOKEN not in f"{logs}{state}"


async def test_a_login_before_the_host_is_refused_without_naming_it(world: World, subscriber: Subscriber) -> None:
    uri = subscriber.uri.replace("http://", f"http://user:{TOKEN}@")
    refused = await subscribe(world, APIS[1], uri)
    assert "callbackUri" in refused.problem(400)["detail"]
    assert TOKEN not in refused.raw.decode()


async def test_addresses_that_version_0_1_0_has_stored_in_clear_are_sealed_at_the_start(
    tmp_path: Path, subscriber: Subscriber
) -> None:
    uri = f"{subscriber.uri}?auth={TOKEN}"
    async with lcm_world(tmp_path, allowed_networks="127.0.0.0/8") as first:
        made = (await subscribe(first, APIS[1], uri)).must(201).json
        await first.store.update(COLLECTION, made["id"], {"callbackUri": uri}, unset=[SEALED_ADDRESS])
        assert TOKEN not in (await read(first, f"{APIS[1]}/{made['id']}")).raw.decode()
    async with lcm_world(tmp_path, allowed_networks="127.0.0.0/8") as second:
        stored = await second.store.get(COLLECTION, made["id"])
        assert stored is not None
        assert TOKEN not in str(stored.body)
        shown = (await read(second, f"{APIS[1]}/{made['id']}")).must(200).json
        assert shown["callbackUri"] == f"{subscriber.uri}?auth=***"
        await second.sample()
        await subscriber.has_heard(await second.create(), 1)
        assert subscriber.queries[-1] == f"auth={TOKEN}"


async def test_an_absurd_date_of_a_subscriber_is_a_failure_of_that_subscriber(
    tmp_path: Path, subscriber: Subscriber
) -> None:
    """It was an exception: the notification was sent again and again, without a back-off and without a trace for operators."""
    async with lcm_world(tmp_path, allowed_networks="127.0.0.0/8") as world:
        await world.sample()
        made = (await subscribe(world, APIS[1], subscriber.uri)).must(201).json
        subscriber.refuses, subscriber.retry_after = 1, "Mon, 01 Jan 2024 00:00:00 +9999999999999999999"
        await subscriber.has_heard(await world.create(), 1)
        state = await deliveries_with(world, made["id"], pending=0)
    subscriber.retry_after = None
    assert state["lastFailure"] == "it answered 503"
