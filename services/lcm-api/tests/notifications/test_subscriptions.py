"""Subscriptions and notifications over HTTP: matching, credentials, and the handling of failures."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus

import aiohttp
import pytest
from callers.deliveries import Heard, deliveries, deliveries_with
from kubevnfm_events import Envelope, Message
from kubevnfm_events.lcm import DeliverNotification, NotificationDropped, NotificationsDelivered, OperationChanged
from kubevnfm_events.objects import LeftObject, ObjectsDeleted
from kubevnfm_kit.ids import derived_id
from kubevnfm_kit.tls import ServerTls
from kubevnfm_lcm_api.notifications.adapters.callbacks import thumbprint
from kubevnfm_lcm_api.notifications.delivery import NOTIFICATIONS
from kubevnfm_lcm_api.notifications.domain.subscription import COLLECTION as SUBSCRIPTIONS
from kubevnfm_store.query import Query, Stored, by
from patience import until
from servers.certificates import Authority, Pair
from servers.subscriber import CLIENT_ID, CLIENT_PASSWORD, Subscriber
from structlog.testing import capture_logs
from worlds.engine_world import SetClock
from worlds.lcm_world import World, lcm_world

LOOPBACK: dict[str, Any] = {"allowed_networks": "127.0.0.0/8", "test_callbacks": True}
OPERATION = "VnfLcmOperationOccurrenceNotification"
CREATION = "VnfIdentifierCreationNotification"
DELETION = "VnfIdentifierDeletionNotification"


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with lcm_world(tmp_path, **LOOPBACK) as running:
        await running.sample()
        yield running


@pytest.fixture
async def subscriber() -> AsyncIterator[Subscriber]:
    async with Subscriber.listening() as listening:
        yield listening


async def subscribe(world: World, subscriber: Subscriber, version: str = "v2", **fields: Any) -> str:
    call = world.lcm if version == "v2" else world.v1
    made = (await call("POST", "/subscriptions", {"callbackUri": subscriber.uri, **fields})).must(201)
    return str(made.json["id"])


async def listed(world: World, query: str = "") -> list[dict[str, Any]]:
    page = (await world.call("GET", f"/kubevnfm/v1/subscriptions{query}")).must(200).json
    assert page["sequence"]
    return list(page["items"])


def the_instance(**wanted: Any) -> dict[str, Any]:
    return {"vnfInstanceSubscriptionFilter": wanted}


def oauth(subscriber: Subscriber) -> dict[str, Any]:
    params = {"clientId": CLIENT_ID, "clientPassword": CLIENT_PASSWORD, "tokenEndpoint": subscriber.token_endpoint}
    return {"authType": ["OAUTH2_CLIENT_CREDENTIALS"], "paramsOauth2ClientCredentials": params}


# --- lists ------------------------------------------------------------------------------------------------------------


async def test_all_subscriptions_are_listed_with_their_filters_in_words(world: World, subscriber: Subscriber) -> None:
    """The newest first, whatever API has made them; values of the address's query are hidden."""
    products = [{"vnfProvider": "Acme", "vnfProducts": [{"vnfProductName": "fw"}, {"vnfProductName": "dns"}]}]
    many = [f"vnf-{number}" for number in range(14)]
    of_some = the_instance(vnfInstanceNames=many, vnfProductsFromProviders=products)
    one = await subscribe(
        world, subscriber, filter={**of_some, "operationTypes": ["SCALE", "HEAL"]}, metadata={"a": "b"}
    )
    two = await subscribe(world, subscriber, "v1")
    package = {"callbackUri": subscriber.uri, "filter": {"vnfdId": ["vnfd\n<b>1"], "usageState": ["IN_USE"]}}
    (await world.call("POST", "/vnfpkgm/v2/subscriptions", package)).must(201)
    changes = {
        "callback_url": f"{subscriber.uri}?token=marked-in-query",
        "filter": {"types": ["infra.placement.changed"]}, "min_notify_interval": 30,
    }  # fmt: skip
    (await world.call("POST", "/multicloud/v1/subscriptions", changes)).must(201)
    rows = await listed(world)
    assert [(each["api"], each["filter"]) for each in rows] == [
        ("multicloud", ["changes infra.placement.changed"]),
        ("vnfpkgm-v2", ["VNFDs vnfd <b>1", "usage states IN_USE"]),
        ("v1", []),
        ("v2", [
            "operations SCALE, HEAL", f"VNF instances named {', '.join(many[:10])} and 4 more",
            "products of Acme fw, Acme dns",
        ]),
    ]  # fmt: skip
    assert rows[0]["callbackUri"] == f"{subscriber.uri}?token=***"
    assert (rows[0]["minNotifyIntervalS"], rows[3]["metadata"]) == (30, {"a": "b"})
    for each in rows:
        path = each["_links"]["subscription"]["href"].removeprefix(world.url)
        (await world.call("GET", path, headers={} if each["api"] == "v1" else None)).must(200)
    assert [each["id"] for each in await listed(world, "?api=v2")] == [one]
    first = (await world.call("GET", "/kubevnfm/v1/subscriptions?limit=3")).must(200)
    assert [each["id"] for each in first.json["items"]][-1] == two
    rest = (await world.call("GET", first.json["next"].removeprefix(world.url))).must(200).json
    assert ([each["id"] for each in rest["items"]], rest.get("next")) == ([one], None)
    for wrong in ("api=v3", "problem=false", "limit=0"):
        (await world.call("GET", f"/kubevnfm/v1/subscriptions?{wrong}")).problem(400)


# --- making them ------------------------------------------------------------------------------------------------------


async def test_the_callback_is_tested_with_its_credentials(world: World, subscriber: Subscriber) -> None:
    """API-070."""
    basic = {"authType": ["BASIC"], "paramsBasic": {"userName": "listener", "password": "pw-marked"}}
    body = {"callbackUri": subscriber.uri, "authentication": basic}
    made = (await world.lcm("POST", "/subscriptions", body)).must(201)
    assert subscriber.tested == [aiohttp.encode_basic_auth("listener", "pw-marked")]
    shown = await world.lcm("GET", f"/subscriptions/{made.json['id']}")
    state = await world.call("GET", f"/kubevnfm/v1/subscriptions/{made.json['id']}")
    for answer in (made, shown.must(200), state.must(200)):
        assert b"authentication" not in answer.raw
        assert b"pw-marked" not in answer.raw
    subscriber.tests = 200
    refused = await world.lcm("POST", "/subscriptions", body)
    assert "200" in refused.problem(422)["detail"]


async def test_without_the_test_a_callback_that_does_not_listen_is_taken(tmp_path: Path) -> None:
    """API-070."""
    async with lcm_world(tmp_path, **{**LOOPBACK, "test_callbacks": False}) as world:
        (await world.lcm("POST", "/subscriptions", {"callbackUri": "http://127.0.0.1:9/callback"})).must(201)


async def test_equal_subscriptions_are_two(world: World, subscriber: Subscriber) -> None:
    """API-071."""
    assert await subscribe(world, subscriber) != await subscribe(world, subscriber)


async def test_the_caller_s_own_data_are_shown_and_filtered_by(world: World, subscriber: Subscriber) -> None:
    """API-071: ``metadata`` of a subscription is ours."""
    await subscribe(world, subscriber)
    marked = await subscribe(world, subscriber, metadata={"site": "plant", "name": "alarms"})
    found = (await world.lcm("GET", "/subscriptions?filter=(eq,metadata/site,plant);(eq,metadata/name,alarms)")).must(
        200
    )
    assert [(each["id"], each["metadata"]["name"]) for each in found.json] == [(marked, "alarms")]
    many = {str(number): "x" for number in range(17)}
    body = {"callbackUri": subscriber.uri, "metadata": many}
    assert "metadata" in (await world.lcm("POST", "/subscriptions", body)).problem(400)["detail"]


@pytest.mark.parametrize("tests_callbacks", [True, False])
@pytest.mark.parametrize(
    "uri", ["http://169.254.169.254/x", "http://10.1.2.3/x", "http://[::ffff:127.0.0.1]/x", "http://[fd00::1]:8080/x"]
)
async def test_callbacks_into_internal_networks_are_refused(tmp_path: Path, uri: str, tests_callbacks: bool) -> None:
    """API-070, with the address rules of api.md 3.9."""
    async with lcm_world(tmp_path, test_callbacks=tests_callbacks) as world:
        refused = await world.lcm("POST", "/subscriptions", {"callbackUri": uri})
        assert "network" in refused.problem(422)["detail"]


async def test_a_name_that_leads_into_an_internal_network_is_not_called(tmp_path: Path, subscriber: Subscriber) -> None:
    """API-070, with the address rules of api.md 3.9."""
    by_name = subscriber.uri.replace("127.0.0.1", "localhost")
    async with lcm_world(tmp_path, test_callbacks=True) as world:
        refused = await world.lcm("POST", "/subscriptions", {"callbackUri": by_name})
        assert "network" in refused.problem(422)["detail"]
        inside = oauth(subscriber)
        inside["paramsOauth2ClientCredentials"]["tokenEndpoint"] = "http://169.254.169.254/token"
        body = {"callbackUri": "http://nfvo.invalid/x", "authentication": inside}
        assert "tokenEndpoint" in (await world.lcm("POST", "/subscriptions", body)).problem(422)["detail"]
    assert subscriber.tested == []


@pytest.mark.parametrize(
    "authentication",
    [
        {"authType": []},
        {"authType": ["BASIC"]},
        {"authType": ["BASIC"], "paramsBasic": {"userName": "a:b", "password": "c"}},
        {"authType": ["OAUTH2_CLIENT_CREDENTIALS"]},
        {"authType": ["OAUTH2_CLIENT_CERT"]},
        {"authType": ["SMOKE"]},
        {
            "authType": ["OAUTH2_CLIENT_CREDENTIALS"],
            "paramsOauth2ClientCredentials": {"clientId": "a", "clientPassword": "b", "tokenEndpoint": "ftp://x/y"},
        },
    ],
)
async def test_authentication_that_is_not_whole_is_refused(world: World, authentication: Any) -> None:
    """API-078, api.md 6.2."""
    body = {"callbackUri": "http://127.0.0.1:9/callback", "authentication": authentication}
    (await world.lcm("POST", "/subscriptions", body)).problem(400)


# --- credentials ------------------------------------------------------------------------------------------------------


async def test_a_token_is_fetched_once_and_replaced_when_it_is_rejected(world: World, subscriber: Subscriber) -> None:
    """API-078."""
    subscriber.wants_token = True
    subscription_id = await subscribe(world, subscriber, authentication=oauth(subscriber))
    instance_id = await world.create()
    await subscriber.has_heard(instance_id, 1)
    await world.reached(await world.instantiate(instance_id))
    await subscriber.has_heard(instance_id, 4)
    assert subscriber.tokens == ["token-1"]
    expected = aiohttp.encode_basic_auth(quote_plus(CLIENT_ID), quote_plus(CLIENT_PASSWORD))
    assert subscriber.token_forms == [{"grant_type": "client_credentials", "authorization": expected, "peer": ""}]
    subscriber.tokens.append("valid from now on, and not yet fetched")
    other_id = await world.create()
    await subscriber.has_heard(other_id, 1)
    assert subscriber.received[-1].authorization == "Bearer token-3"
    assert len(subscriber.token_forms) == 2
    assert (await deliveries(world, subscription_id))["dropped"] == 0


async def test_a_token_is_used_until_shortly_before_its_end(world: World, subscriber: Subscriber) -> None:
    """API-078."""
    subscriber.token_life_s = 0.001
    await subscribe(world, subscriber, authentication=oauth(subscriber))
    instance_id = await world.create()
    await subscriber.has_heard(instance_id, 1)
    assert len(subscriber.tokens) == 2, "one for the test of the callback, one for the notification"


async def test_a_token_that_is_refused_again_drops_the_notification(world: World, subscriber: Subscriber) -> None:
    """API-078, api.md 3.9: 4xx is not repeated."""
    subscription_id = await subscribe(world, subscriber, authentication=oauth(subscriber))
    subscriber.answers = 401
    await world.create()
    state = await deliveries_with(world, subscription_id, dropped=1, pending=0)
    assert state["lastFailure"] == "it answered 401"
    assert len(subscriber.tokens) == 2, "fetched once more, and then no more"


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def ours(authority: Authority) -> Pair:
    return authority.issue("the-vnfm")


@pytest.fixture
async def certified(tmp_path: Path, authority: Authority, ours: Pair) -> AsyncIterator[World]:
    settings = {
        "outbound_ca_file": authority.file,
        "callback_tls_certificate": ours.certificate,
        "callback_tls_key": ours.key,
    }
    async with lcm_world(tmp_path, **LOOPBACK, **settings) as running:
        await running.sample()
        yield running


def requiring_certificates(authority: Authority, *, optional: bool = False) -> Any:
    server = authority.issue("server-of-the-subscriber")
    return ServerTls(server.certificate, server.key, authority.file, is_client_required=not optional).context()


async def test_a_client_certificate_is_presented_on_request(certified: World, authority: Authority) -> None:
    """API-078."""
    async with Subscriber.listening(requiring_certificates(authority)) as subscriber:
        refused = await certified.lcm("POST", "/subscriptions", {"callbackUri": subscriber.uri})
        refused.problem(422)
        basic = {"userName": "weaker", "password": "x"}
        await subscribe(certified, subscriber, authentication={"authType": ["BASIC", "TLS_CERT"], "paramsBasic": basic})
        await subscriber.has_heard(await certified.create(), 1)
        assert (subscriber.received[0].peer, subscriber.received[0].authorization) == ("the-vnfm", "")


async def test_a_token_is_fetched_with_the_client_certificate(
    certified: World, authority: Authority, ours: Pair
) -> None:
    """API-078, api.md 6.2 (RFC 8705)."""
    async with Subscriber.listening(requiring_certificates(authority)) as subscriber:
        subscriber.wants_token = True
        reference = {"type": "x5t#S256", "value": thumbprint(ours.certificate)}
        params = {"clientId": "vnfm", "certificateRef": reference, "tokenEndpoint": subscriber.token_endpoint}
        wanted = {"authType": ["OAUTH2_CLIENT_CERT"], "paramsOauth2ClientCert": params}
        await subscribe(certified, subscriber, authentication=wanted)
        await subscriber.has_heard(await certified.create(), 1)
        assert subscriber.token_forms == [
            {"grant_type": "client_credentials", "client_id": "vnfm", "authorization": "", "peer": "the-vnfm"}
        ]
        other = {**wanted, "paramsOauth2ClientCert": {**params, "certificateRef": {**reference, "value": "AAAA"}}}
        body = {"callbackUri": subscriber.uri, "authentication": other}
        assert "certificateRef" in (await certified.lcm("POST", "/subscriptions", body)).problem(422)["detail"]


async def test_without_a_certificate_the_weaker_type_is_used_or_none_can_be(
    world: World, subscriber: Subscriber
) -> None:
    """API-078, api.md 6.2."""
    only = {"callbackUri": subscriber.uri, "authentication": {"authType": ["TLS_CERT"]}}
    assert "certificate" in (await world.lcm("POST", "/subscriptions", only)).problem(422)["detail"]
    basic = {"userName": "weaker", "password": "pw"}
    await subscribe(world, subscriber, authentication={"authType": ["TLS_CERT", "BASIC"], "paramsBasic": basic})
    assert subscriber.tested == [aiohttp.encode_basic_auth("weaker", "pw")]


# --- matching ---------------------------------------------------------------------------------------------------------


async def test_each_filter_attribute_selects(world: World, subscriber: Subscriber) -> None:
    """API-073: alternatives that are given together must both match."""
    vnf = (await world.lcm("GET", f"/vnf_instances/{await world.create()}")).must(200).json
    product = {"vnfProductName": vnf["vnfProductName"]}
    version = {"vnfSoftwareVersion": vnf["vnfSoftwareVersion"]}

    def products_of(vnf_provider: str, **products: Any) -> dict[str, Any]:
        return the_instance(vnfProductsFromProviders=[{"vnfProvider": vnf_provider, **products}])

    def both(*providers: str, **more: Any) -> dict[str, Any]:
        return the_instance(vnfProductsFromProviders=[{"vnfProvider": each} for each in providers], **more)

    def versions(*found: dict[str, Any]) -> dict[str, Any]:
        return {"vnfProducts": [{**product, "versions": list(found)}]}

    provider = vnf["vnfProvider"]
    matching = [
        {},
        the_instance(vnfdIds=[vnf["vnfdId"]]),
        the_instance(vnfdIds=["other", vnf["vnfdId"]]),
        the_instance(vnfInstanceNames=["wanted"]),
        products_of(provider),
        products_of(provider, vnfProducts=[product]),
        products_of(provider, **versions(version)),
        products_of(provider, **versions({**version, "vnfdVersions": [vnf["vnfdVersion"]]})),
        {"notificationTypes": [CREATION]},
        both("other", provider, vnfdIds=["other", vnf["vnfdId"]]),
    ]
    not_matching = [
        the_instance(vnfdIds=["other"]),
        the_instance(vnfInstanceNames=["other"]),
        the_instance(vnfInstanceNames=["wanted"], vnfdIds=["other"]),
        the_instance(vnfInstanceIds=[vnf["id"]]),
        products_of("other"),
        both("other", vnfdIds=[vnf["vnfdId"]]),
        both(provider, vnfdIds=["other"]),
        the_instance(vnfInstanceIds=["other"], vnfInstanceNames=["wanted"]),
        products_of(provider, vnfProducts=[{"vnfProductName": "other"}]),
        products_of(provider, **versions({"vnfSoftwareVersion": "other"})),
        products_of(provider, **versions({**version, "vnfdVersions": ["other"]})),
        {"notificationTypes": [DELETION]},
        {"notificationTypes": [OPERATION], "operationTypes": ["TERMINATE"]},
        {"notificationTypes": [OPERATION], "operationStates": ["FAILED"]},
    ]
    wanting = [await subscribe(world, subscriber, filter=wanted) for wanted in matching]
    others = [await subscribe(world, subscriber, filter=wanted) for wanted in not_matching]
    instance_id = await world.create(vnfInstanceName="wanted")
    heard = await subscriber.has_heard(instance_id, len(matching))
    await world.bus.quiet()
    assert sorted(each["subscriptionId"] for each in subscriber.about(instance_id)) == sorted(wanting)
    assert {each["id"] for each in heard} == {heard[0]["id"]}
    assert not set(others) & {each["subscriptionId"] for each in heard}


async def test_operations_are_selected_by_type_state_and_instance(world: World, subscriber: Subscriber) -> None:
    """API-073."""
    instance_id = await world.create(vnfInstanceName="operated")
    completed = await subscribe(
        world,
        subscriber,
        filter={
            "notificationTypes": [OPERATION],
            "operationTypes": ["INSTANTIATE"],
            "operationStates": ["COMPLETED", "FAILED_TEMP"],
            **the_instance(vnfInstanceIds=[instance_id], vnfInstanceNames=["operated"]),
        },
    )
    await subscribe(world, subscriber, filter={"notificationTypes": [OPERATION], "operationTypes": ["HEAL"]})
    await world.reached(await world.instantiate(instance_id))
    await world.reached(await world.instantiate(await world.create()))
    await world.bus.quiet()
    (heard,) = subscriber.received
    assert (heard.body["subscriptionId"], heard.body["operationState"]) == (completed, "COMPLETED")


@pytest.mark.parametrize(
    "wanted",
    [
        {"notificationTypes": [CREATION], "operationTypes": ["HEAL"]},
        {"notificationTypes": ["Smoke"]},
        {"operationStates": ["SMOKING"]},
    ],
)
async def test_filters_that_contradict_themselves_are_refused(
    world: World, subscriber: Subscriber, wanted: dict[str, Any]
) -> None:
    """API-073."""
    (await world.lcm("POST", "/subscriptions", {"callbackUri": subscriber.uri, "filter": wanted})).problem(400)


async def test_both_versions_and_verbosities_get_the_same_notifications(world: World) -> None:
    """API-074, API-076, API-077, API-080."""
    async with Subscriber.listening() as full, Subscriber.listening() as short, Subscriber.listening() as old:
        await subscribe(world, full)
        await subscribe(world, short, verbosity="SHORT")
        await subscribe(world, old, "v1")
        instance_id = await world.create()
        await world.reached(await world.instantiate(instance_id))
        heard = {one.uri: await one.has_heard(instance_id, 4) for one in (full, short, old)}
    for bodies in heard.values():
        states = [(each.get("operationState"), each.get("notificationStatus")) for each in bodies]
        assert states == [(None, None), ("STARTING", "START"), ("PROCESSING", "RESULT"), ("COMPLETED", "RESULT")]
    assert len({tuple(each["id"] for each in bodies) for bodies in heard.values()}) == 1
    assert len({tuple(each["timeStamp"] for each in bodies) for bodies in heard.values()}) == 1
    assert {each.get("verbosity") for each in heard[full.uri][1:]} == {"FULL"}
    assert {each.get("verbosity") for each in heard[short.uri][1:]} == {"SHORT"}
    assert "affectedVnfcs" in heard[full.uri][3]
    assert "affectedVnfcs" not in heard[short.uri][3]
    for one, version in ((full, "v2"), (old, "v1")):
        for each in heard[one.uri]:
            assert all(f"/vnflcm/{version}/" in link["href"] for link in each["_links"].values())
    assert {each.version for each in old.received} == {"1.3.0"}
    assert {each.version for each in full.received} == {"2.0.0"}


async def test_what_a_forceful_termination_of_a_cnf_leaves_is_shown_to_all_who_ask(world: World) -> None:
    """CR-023: the occurrence of both versions, its FULL notifications, and no VNFC as REMOVED."""
    left = {"kind": "Deployment", "name": "web", "uid": "u", "cluster": "https://192.0.2.1:6443"}
    deployment = LeftObject.model_validate({**left, "api_version": "apps/v1", "vdu_id": "web"})
    world.twins.answers["infra.k8s.delete_objects"] = ObjectsDeleted(left=(deployment,))
    await world.sample("cnf")
    world.vims.add("VIM_ID", "kubernetes")
    instance_id = await world.create("cnf")
    await world.reached(await world.instantiate(instance_id, "cnf"), "COMPLETED")
    async with Subscriber.listening() as full, Subscriber.listening() as short:
        await subscribe(world, full)
        await subscribe(world, short, verbosity="SHORT")
        operation_id = await world.ask(instance_id, "terminate", {"terminationType": "FORCEFUL"})
        occ = await world.reached(operation_id, "COMPLETED")
        heard, brief = [(await one.has_heard(instance_id, 3))[-1] for one in (full, short)]
    shown = {"kubevnfm_left": [{"apiVersion": "apps/v1", "vduId": "web", **left}]}
    assert occ["resourceChanges"]["metadata"] == shown
    assert not occ["resourceChanges"].get("affectedVnfcs")
    v1 = (await world.v1("GET", f"/vnf_lcm_op_occs/{operation_id}")).must(200).json
    assert v1["resourceChanges"]["metadata"] == shown
    assert (heard["operationState"], heard["metadata"]) == ("COMPLETED", shown)
    assert "affectedVnfcs" not in heard
    assert "metadata" not in brief


async def test_the_state_can_be_read_when_its_notification_arrives(world: World, subscriber: Subscriber) -> None:
    """API-074."""
    subscriber.goes_on.clear()
    await subscribe(world, subscriber, filter={"operationStates": ["COMPLETED"], "notificationTypes": [OPERATION]})
    operation_id = await world.instantiate(await world.create())
    (body,) = await subscriber.was_tried(1)
    assert (await world.operation(operation_id))["operationState"] == body["operationState"] == "COMPLETED"
    subscriber.goes_on.set()


async def test_notifications_have_an_error_in_the_states_that_have_one(world: World, subscriber: Subscriber) -> None:
    """API-077."""
    await subscribe(world, subscriber, filter={"notificationTypes": [OPERATION]})
    await world.an_operation_in("ROLLED_BACK")
    await world.an_operation_in("FAILED")

    async def all_of_them() -> list[Any] | None:
        return [each.body for each in subscriber.received] if len(subscriber.received) >= 9 else None

    heard = await until(all_of_them, timeout_s=30)
    by_state = {each["operationState"]: "error" in each for each in heard}
    assert by_state == {
        "STARTING": False, "PROCESSING": False, "FAILED_TEMP": True, "ROLLING_BACK": False, "ROLLED_BACK": True,
        "FAILED": True,
    }  # fmt: skip


# --- failures ---------------------------------------------------------------------------------------------------------


async def test_a_subscriber_that_was_down_gets_everything_in_order(world: World) -> None:
    """API-079, API-076, and the state of deliveries."""
    subscriber = Subscriber()
    subscriber.goes_on.set()
    heard = Heard()
    async with world.bus.watch_events(["lcm.notifications.delivered"], heard.record):
        async with subscriber.up():
            subscription_id = await subscribe(world, subscriber)
            first = await deliveries(world, subscription_id)
            assert first.pop("sequence")
            assert first.pop("createdAt")
            assert first == {
                "id": subscription_id, "callbackUri": subscriber.uri, "state": "IDLE", "pending": 0,
                "failuresInARow": 0, "dropped": 0, "api": "v2", "createdBy": "anybody", "filter": [], "health": "ok",
                "_links": {
                    "self": {"href": f"{world.url}/kubevnfm/v1/subscriptions/{subscription_id}"},
                    "subscription": {"href": f"{world.url}/vnflcm/v2/subscriptions/{subscription_id}"},
                },
            }  # fmt: skip
        instance_id = await world.create()
        await world.reached(await world.instantiate(instance_id))
        waiting = await deliveries_with(world, subscription_id, pending=4, state="WAITING")
        assert waiting["lastFailure"].startswith("it did not answer")
        assert waiting["nextTryAt"] > waiting["lastFailureAt"]
        assert waiting["since"] <= waiting["lastFailureAt"]
        assert "lastStatus" not in waiting
        assert waiting["text"].startswith("the subscriber does not accept notifications: it did not answer")
        (failing,) = await listed(world, "?problem=true")
        assert {**failing, "nextTryAt": "", "since": ""} == {
            **{name: value for name, value in waiting.items() if name != "sequence"},
            "nextTryAt": "",
            "since": "",
        }
        assert await listed(world, "?problem=true&api=v1") == []
        async with subscriber.up():
            bodies = await subscriber.has_heard(instance_id, 4)
            state = await deliveries_with(world, subscription_id, pending=0, state="IDLE", failuresInARow=0)
            assert state["lastSuccessAt"] > state["lastFailureAt"]
            assert (state["health"], state["lastStatus"]) == ("ok", 204)
            assert await listed(world, "?problem=true") == []
        assert await heard.have_come(1) == [NotificationsDelivered(subscription_id=subscription_id)]
    assert [each.get("operationState") for each in bodies] == [None, "STARTING", "PROCESSING", "COMPLETED"]


async def test_a_repeat_keeps_its_id_and_waits_as_long_as_it_was_asked_to(world: World, subscriber: Subscriber) -> None:
    """API-076, api.md 3.9: Retry-After."""
    subscriber.refuses, subscriber.retry_after = 1, "600"
    subscription_id = await subscribe(world, subscriber)
    instance_id = await world.create()
    state = await deliveries_with(world, subscription_id, failuresInARow=1)
    assert state["lastFailure"] == "it answered 503"
    assert state["nextTryAt"][:15] > state["lastFailureAt"][:15], "ten minutes, not the second of a first failure"
    subscriber.refuses, subscriber.retry_after = 1, "0"
    other_id = await subscribe(world, subscriber)
    instance_id = await world.create()
    await subscriber.has_heard(instance_id, 1)
    repeats = [each for each in subscriber.tried if each["subscriptionId"] == other_id]
    assert repeats[0] == repeats[1]


@pytest.mark.parametrize("status", [302, 400, 404])
async def test_a_notification_that_is_refused_is_dropped_and_reported(
    world: World, subscriber: Subscriber, status: int
) -> None:
    """API-079, api.md 3.9: 3xx and 4xx are not repeated, the subscription stays."""
    heard = Heard()
    async with world.bus.watch_events(["lcm.notification.dropped"], heard.record):
        subscription_id = await subscribe(world, subscriber)
        subscriber.answers = status
        instance_id = await world.create()
        (dropped,) = await heard.have_come(1)
    assert isinstance(dropped, NotificationDropped)
    assert (dropped.subscription_id, dropped.vnf_instance_id) == (subscription_id, instance_id)
    assert dropped.reason == f"it answered {status}"
    assert len(subscriber.tried) == 1
    subscriber.answers = 200
    await subscriber.has_heard(await world.create(), 1)
    assert (await deliveries(world, subscription_id))["dropped"] == 1


async def test_a_subscriber_that_hangs_does_not_delay_others(world: World) -> None:
    """API-079."""
    async with Subscriber.listening() as hanging, Subscriber.listening() as quick:
        stuck = await subscribe(world, hanging)
        hanging.goes_on.clear()
        await subscribe(world, quick)
        instance_id = await world.create()
        await world.reached(await world.instantiate(instance_id))
        assert len(await quick.has_heard(instance_id, 4)) == 4
        assert hanging.received == []
        assert (await deliveries(world, stuck))["state"] == "DELIVERING"
        hanging.goes_on.set()
        bodies = await hanging.has_heard(instance_id, 4)
        assert [each.get("operationState") for each in bodies] == [None, "STARTING", "PROCESSING", "COMPLETED"]


async def test_what_was_pending_is_delivered_after_a_restart(tmp_path: Path) -> None:
    """API-079."""
    subscriber = Subscriber()
    subscriber.goes_on.set()
    async with lcm_world(tmp_path, **LOOPBACK) as world:
        await world.sample()
        async with subscriber.up():
            subscription_id = await subscribe(world, subscriber)
        instance_id = await world.create()
        await world.reached(await world.instantiate(instance_id))
        await deliveries_with(world, subscription_id, pending=4, state="WAITING")
    async with subscriber.up(), lcm_world(tmp_path, **LOOPBACK):
        bodies = await subscriber.has_heard(instance_id, 4)
    assert [each.get("operationState") for each in bodies] == [None, "STARTING", "PROCESSING", "COMPLETED"]


async def test_a_wake_up_that_comes_while_its_news_come_again_is_not_lost(
    tmp_path: Path, subscriber: Subscriber, monkeypatch: pytest.MonkeyPatch
) -> None:
    """API-079: after a restart both events are delivered again, and nothing else delivers what is pending."""
    clock = SetClock()
    news: list[Envelope[Message]] = []

    async def keep(envelope: Envelope[Message]) -> None:
        news.append(envelope)

    async with lcm_world(tmp_path, clock=clock, **LOOPBACK) as world:
        await world.sample()
        subscriber.refuses, subscriber.retry_after = 1, "3000"
        subscription_id = await subscribe(world, subscriber)
        async with world.bus.watch_events(["lcm.instance.created"], keep):
            instance_id = await world.create()
            await deliveries_with(world, subscription_id, failuresInARow=1, state="WAITING")
        clock.ahead_s = 3001.0
        (entry,) = await world.store.find(NOTIFICATIONS, Query(by(pendingFor=subscription_id)))
        wake_up = Envelope[Message](
            DeliverNotification(subscription_id=subscription_id), source="/x", id=derived_id("deliver", entry.id)
        )
        insert = world.store.insert
        waking: list[asyncio.Task[None]] = []

        async def wakes_up_meanwhile(collection: str, id: str, body: Any, **more: Any) -> Stored:
            if id == entry.id:
                waking.append(asyncio.create_task(world.bus.publish(wake_up)))
                for _ in range(50):  # turns of the loop, for the command to be taken
                    await asyncio.sleep(0)
            return await insert(collection, id, body, **more)

        monkeypatch.setattr(world.store, "insert", wakes_up_meanwhile)
        await world.bus.publish(news[0])
        await subscriber.has_heard(instance_id, 1)
        await asyncio.gather(*waking)


async def test_a_sender_that_the_database_does_not_answer_in_time_reports_that_it_may_repeat(
    tmp_path: Path, subscriber: Subscriber, monkeypatch: pytest.MonkeyPatch
) -> None:
    """API-079: its lease ends before the notification is recorded as delivered. No other process has to take over."""
    async with lcm_world(tmp_path, lease_s=0.3, **LOOPBACK) as world:
        await world.sample()
        await subscribe(world, subscriber)
        update = world.store.update
        answers = asyncio.Event()

        async def stalls(collection: str, id: str, fields: Any, **more: Any) -> Stored:
            if collection == NOTIFICATIONS or "turn/until" in fields:
                # All calls are answered in the end: a renewal would else keep the turn for one that never is.
                await answers.wait()
            return await update(collection, id, fields, **more)

        monkeypatch.setattr(world.store, "update", stalls)
        with capture_logs() as logged:
            instance_id = await world.create()
            await subscriber.has_heard(instance_id, 2)
            answers.set()
            await world.bus.quiet()
    reports = [each for each in logged if each["event"] == "turn_lost"]
    assert 1 <= len(subscriber.received) - 1 <= len(reports)


async def test_a_notification_that_is_dropped_is_counted_by_the_sender_that_has_the_turn(
    world: World, subscriber: Subscriber
) -> None:
    subscription_id = await subscribe(world, subscriber)
    subscriber.answers = 400
    subscriber.goes_on.clear()
    await world.create()
    await subscriber.was_tried(1)
    # As if another process had taken the turn over after a stall of this one, and had died.
    await world.store.update(
        SUBSCRIPTIONS, subscription_id, {"turn/owner": "another", "turn/until": "2020-01-01T00:00:00Z"}
    )
    subscriber.goes_on.set()
    await world.bus.quiet()
    assert len(subscriber.tried) == 2
    state = await deliveries(world, subscription_id)
    assert (state["dropped"], state["pending"], state["lastFailure"]) == (1, 0, "it answered 400")
    assert (state["health"], state["text"]) == ("problem", "notifications were given up: it answered 400")


@pytest.mark.parametrize(
    ("answer", "noted"), [(400, {"dropped": 3, "lastFailure": "it answered 400"}), (204, {"dropped": 2})]
)
async def test_a_notification_that_was_counted_before_a_crash_is_not_counted_again(
    tmp_path: Path, subscriber: Subscriber, answer: int, noted: dict[str, Any]
) -> None:
    clock = SetClock()
    async with lcm_world(tmp_path, clock=clock, **LOOPBACK) as world:
        await world.sample()
        subscription_id = await subscribe(world, subscriber)
        subscriber.refuses, subscriber.retry_after = 1, "3000"
        await world.create()
        await deliveries_with(world, subscription_id, failuresInARow=1, state="WAITING")
        (entry,) = await world.store.find(NOTIFICATIONS, Query(by(pendingFor=subscription_id)))
        counted = {"delivery/dropped": 3, "lastDropped": entry.id}
        await world.store.update(SUBSCRIPTIONS, subscription_id, counted)
    clock.ahead_s = 3001.0
    subscriber.answers = answer
    async with lcm_world(tmp_path, clock=clock, **LOOPBACK) as world:
        await deliveries_with(world, subscription_id, pending=0, **noted)


async def test_deleting_a_subscription_drops_what_is_pending(world: World, subscriber: Subscriber) -> None:
    """API-079."""
    subscription_id = await subscribe(world, subscriber)
    subscriber.refuses = 1
    await world.create()
    await deliveries_with(world, subscription_id, failuresInARow=1)
    (await world.lcm("DELETE", f"/subscriptions/{subscription_id}")).must(204)
    (await world.call("GET", f"/kubevnfm/v1/subscriptions/{subscription_id}")).problem(404)
    await world.bus.quiet()
    assert subscriber.received == []


async def test_notifications_that_a_crash_delayed_are_sent_before_later_ones(
    world: World, subscriber: Subscriber
) -> None:
    """API-074: the bus may bring events in another order than they became true."""
    await subscribe(world, subscriber)
    moment = datetime.now(UTC)
    facts: dict[str, Any] = {
        "vnf_lcm_op_occ_id": "op", "vnf_instance_id": "instance", "operation": "INSTANTIATE",
        "state_entered_time": moment,
    }  # fmt: skip
    start = Envelope(
        OperationChanged(**facts, state="STARTING", is_first=True), source="/kubevnfm/lcm-api", subject="instance"
    )
    later = {**facts, "state_entered_time": moment + timedelta(seconds=1), "follows": start.id, "follows_at": moment}
    processing = Envelope(OperationChanged(**later, state="PROCESSING"), source="/kubevnfm/lcm-api", subject="instance")
    early = asyncio.create_task(world.bus.publish(processing))
    other_id = await world.create()
    await subscriber.has_heard(other_id, 1)
    assert subscriber.about("instance") == []
    await world.bus.publish(start)
    bodies = await subscriber.has_heard("instance", 2)
    await early
    assert [each["operationState"] for each in bodies] == ["STARTING", "PROCESSING"]


async def test_a_notification_that_is_not_accepted_for_an_hour_is_dropped_and_reported(
    world: World, subscriber: Subscriber
) -> None:
    """API-079, api.md 3.9: what is younger stays, in order."""
    heard = Heard()
    subscriber.refuses = 2
    async with world.bus.watch_events(["lcm.notification.dropped"], heard.record):
        subscription_id = await subscribe(world, subscriber)
        old_id = await world.create()
        await deliveries_with(world, subscription_id, failuresInARow=1)
        (entry,) = await world.store.find(NOTIFICATIONS, Query(by(pendingFor=subscription_id)))
        await world.store.update(NOTIFICATIONS, entry.id, {"queuedAt": "2026-01-01T00:00:00.000Z"})
        young_id = await world.create()
        (dropped,) = await heard.have_come(1)
    assert isinstance(dropped, NotificationDropped)
    assert (dropped.vnf_instance_id, dropped.reason) == (old_id, "it answered 503")
    await subscriber.has_heard(young_id, 1)
    assert subscriber.about(old_id) == []
    assert (await deliveries_with(world, subscription_id, failuresInARow=0))["dropped"] == 1
