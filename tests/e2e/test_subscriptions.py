"""Subscriptions: the notifications over the whole life of an instance and of a package."""

from __future__ import annotations

from typing import Any

from callers.user import User, sample_body
from packages.own_packages import own_vm, zipped
from patience import until
from servers.subscriber import CLIENT_ID, CLIENT_PASSWORD, Subscriber
from servers.wirings import in_six

OPERATION = "VnfLcmOperationOccurrenceNotification"


async def _subscribe(user: User, subscriber: Subscriber, **fields: Any) -> str:
    made = (await user.lcm("POST", "/subscriptions", {"callbackUri": subscriber.uri, **fields})).must(201)
    assert made.headers["Location"].endswith(f"/subscriptions/{made.json['id']}")
    assert "authentication" not in made.text
    return str(made.json["id"])


@in_six
async def test_subscribers_of_both_versions_hear_the_whole_life_in_order(user: User, v1: User) -> None:
    """SEQ-044, API-070, API-074, API-076, API-078, API-080."""
    vnfd_id = await user.sample("vm")
    async with Subscriber.listening() as old, Subscriber.listening() as new:
        basic = {"authType": ["BASIC"], "paramsBasic": {"userName": "listener", "password": "heard-only"}}
        wanted = {"vnfInstanceSubscriptionFilter": {"vnfdIds": [vnfd_id]}}
        subscriptions = [
            await _subscribe(v1, old, filter=wanted),
            await _subscribe(user, new, filter=wanted, authentication=basic),
        ]
        instance_id = await user.create(vnfd_id)
        await user.do(instance_id, "instantiate", sample_body("vm", "instantiate"))
        await user.terminate(instance_id)
        heard = {"v1": await old.has_heard(instance_id, 8), "v2": await new.has_heard(instance_id, 8)}
        for version, bodies in heard.items():
            assert [
                (
                    each["notificationType"],
                    each.get("operation"),
                    each.get("operationState"),
                    each.get("notificationStatus"),
                )
                for each in bodies
            ] == [
                ("VnfIdentifierCreationNotification", None, None, None),
                (OPERATION, "INSTANTIATE", "STARTING", "START"),
                (OPERATION, "INSTANTIATE", "PROCESSING", "RESULT"),
                (OPERATION, "INSTANTIATE", "COMPLETED", "RESULT"),
                (OPERATION, "TERMINATE", "STARTING", "START"),
                (OPERATION, "TERMINATE", "PROCESSING", "RESULT"),
                (OPERATION, "TERMINATE", "COMPLETED", "RESULT"),
                ("VnfIdentifierDeletionNotification", None, None, None),
            ]
            for each in bodies:
                assert f"/vnflcm/{version}/" in each["_links"]["vnfInstance"]["href"]
        assert [each["id"] for each in heard["v1"]] == [each["id"] for each in heard["v2"]]
        assert heard["v2"][3]["affectedVnfcs"][0]["changeType"] == "ADDED"
        assert heard["v2"][6]["affectedVnfcs"][0]["changeType"] == "REMOVED"
        assert {each.version for each in old.received} == {"1.3.0"}
        assert {each.version for each in new.received} <= {"2.0.0", "2.3.0"}
        assert {(each.user, each.password) for each in new.received} == {("listener", "heard-only")}
        for caller, subscription in zip((v1, user), subscriptions, strict=True):
            listed = (await caller.lcm("GET", "/subscriptions")).must(200)
            assert "heard-only" not in listed.text
            (await caller.lcm("DELETE", f"/subscriptions/{subscription}")).must(204)
            (await caller.lcm("GET", f"/subscriptions/{subscription}")).must(404)


async def test_a_subscriber_that_is_down_for_a_moment_misses_nothing(user: User) -> None:
    """API-079, API-071, API-073, API-077."""
    vnfd_id = await user.sample("vm")
    async with Subscriber.listening() as away, Subscriber.listening() as there:
        away.refuses = 2
        only = {"notificationTypes": [OPERATION], "operationStates": ["COMPLETED"]}
        one = await _subscribe(user, away, filter={"vnfInstanceSubscriptionFilter": {"vnfdIds": [vnfd_id]}})
        other = await _subscribe(user, there, filter=only, verbosity="SHORT")
        instance_id = await user.create(vnfd_id)
        await user.do(instance_id, "instantiate", sample_body("vm", "instantiate"))
        (short,) = await there.has_heard(instance_id, 1)
        assert short["operationState"] == "COMPLETED"
        assert "affectedVnfcs" not in short
        heard = await away.has_heard(instance_id, 4)
        assert [each.get("operationState") for each in heard] == [None, "STARTING", "PROCESSING", "COMPLETED"]

        async def has_caught_up() -> dict[str, Any] | None:
            state = (await user.call("GET", f"/kubevnfm/v1/subscriptions/{one}")).must(200).json
            return state if (state["state"], state["failuresInARow"]) == ("IDLE", 0) else None

        state = await until(has_caught_up)
        assert state["lastFailure"] == "it answered 503"
        assert (state["pending"], state["dropped"]) == (0, 0)
        for subscription in (one, other):
            (await user.lcm("DELETE", f"/subscriptions/{subscription}")).must(204)
        await user.terminate(instance_id)


async def test_a_subscriber_that_hangs_does_not_delay_others(user: User) -> None:
    """API-078, API-079."""
    vnfd_id = await user.sample("vm")
    async with Subscriber.listening() as hanging, Subscriber.listening() as quick:
        quick.wants_token = True
        params = {"clientId": CLIENT_ID, "clientPassword": CLIENT_PASSWORD, "tokenEndpoint": quick.token_endpoint}
        by_token = {"authType": ["OAUTH2_CLIENT_CREDENTIALS"], "paramsOauth2ClientCredentials": params}
        wanted = {"vnfInstanceSubscriptionFilter": {"vnfdIds": [vnfd_id]}}
        stuck = await _subscribe(user, hanging, filter=wanted)
        other = await _subscribe(user, quick, filter=wanted, authentication=by_token)
        hanging.goes_on.clear()
        instance_id = await user.create(vnfd_id)
        await user.delete(instance_id)
        heard = await quick.has_heard(instance_id, 2)
        assert hanging.received == []
        assert {each.authorization for each in quick.received} == {"Bearer token-1"}
        hanging.goes_on.set()
        late = await hanging.has_heard(instance_id, 2)
        assert [each["id"] for each in late] == [each["id"] for each in heard]
        for subscription in (stuck, other):
            (await user.lcm("DELETE", f"/subscriptions/{subscription}")).must(204)


async def test_a_subscription_that_cannot_work_is_refused(user: User) -> None:
    """API-070, API-073; a callback into an internal network is refused."""
    inside = (await user.lcm("POST", "/subscriptions", {"callbackUri": "http://169.254.169.254/latest"})).must(422)
    assert "network" in inside.detail
    away = (await user.lcm("POST", "/subscriptions", {"callbackUri": "http://127.0.0.1:9/callback"})).must(422)
    assert "callbackUri" in away.detail
    never = {"notificationTypes": ["VnfIdentifierCreationNotification"], "operationTypes": ["HEAL"]}
    async with Subscriber.listening() as subscriber:
        (await user.lcm("POST", "/subscriptions", {"callbackUri": subscriber.uri, "filter": never})).must(400)
        (await user.lcm("POST", "/subscriptions", {"callbackUri": "ftp://x"})).must(400)


async def test_a_subscriber_of_packages_hears_of_one_from_onboarded_to_deleted(user: User) -> None:
    """API-120, API-122, API-123; a subscriber that is unavailable for a moment misses nothing."""
    many, vnfd_id = "/vnfpkgm/v1/subscriptions", "5b5d5ab5-8a4c-4a4e-9d1b-555555555555"
    async with Subscriber.listening() as subscriber, Subscriber.listening() as away:
        made = []
        for listening in (subscriber, away):
            body = {"callbackUri": listening.uri, "filter": {"vnfdId": [vnfd_id]}}
            answer = (await user.call("POST", many, body)).must(201)
            assert answer.headers["Location"].endswith(f"{many}/{answer.json['id']}")
            made.append(answer.json)
        away.refuses = 2
        package = await user.upload(zipped(own_vm(vnfd_id)))
        one = f"/vnfpkgm/v1/vnf_packages/{package['id']}"
        for state in ("DISABLED", "ENABLED", "DISABLED"):
            (await user.call("PATCH", one, {"operationalState": state})).must(200)
        (await user.call("DELETE", one)).must(204)
        heard = await subscriber.has_heard(package["id"], 5)
        assert [(each.get("changeType"), each.get("operationalState")) for each in heard] == [
            (None, None),
            ("OP_STATE_CHANGE", "DISABLED"),
            ("OP_STATE_CHANGE", "ENABLED"),
            ("OP_STATE_CHANGE", "DISABLED"),
            ("PKG_DELETE", None),
        ]
        assert heard[0]["notificationType"] == "VnfPackageOnboardingNotification"
        assert {each["vnfdId"] for each in heard} == {vnfd_id}
        assert {each.version for each in subscriber.received} == {"1.0.0"}
        late = await away.has_heard(package["id"], 5)
        assert [each["id"] for each in late] == [each["id"] for each in heard]
        for each in made:
            assert (await user.call("GET", f"{many}/{each['id']}")).must(200).json == each
            (await user.call("DELETE", f"{many}/{each['id']}")).must(204)
        assert (await user.call("GET", many)).must(200).json == []
