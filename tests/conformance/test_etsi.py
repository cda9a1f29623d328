"""The v2 API's answers in every state, and those about package subscriptions, are valid against ETSI's OpenAPI files.

The module `etsi` lists the defects of the files that are corrected. The files are not part of the project:
``$ETSI_OPENAPI`` names their folder. If it is set, every other test that calls the gateway checks its v2 answers against
them as well (`documented.judge`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from callers.etsi import VARIABLE, EtsiSchemas, etsi_schemas
from servers.subscriber import Subscriber
from worlds.lcm_world import World, lcm_world, sample_request

STATES = ["PROCESSING", "FAILED_TEMP", "ROLLING_BACK", "COMPLETED", "FAILED", "ROLLED_BACK"]


@pytest.fixture(scope="module")
def etsi() -> EtsiSchemas:
    schemas = etsi_schemas()
    if schemas is None:
        reason = f"NOT CHECKED AGAINST ETSI: {VARIABLE} does not name the folder of its OpenAPI files"
        pytest.skip(reason)
    return schemas


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with lcm_world(tmp_path, allowed_networks="127.0.0.0/8") as running:
        await running.sample()
        yield running


async def _shown(world: World, etsi: EtsiSchemas, name: str, collection: str, one: str) -> dict[str, Any]:
    """Check a resource alone, and in lists with each selection of attributes; return it."""
    document = (await world.lcm("GET", f"/{collection}/{one}")).must(200).json
    etsi.check_type(name, document)
    for query in ("", "?all_fields", "?exclude_default"):
        listed = (await world.lcm("GET", f"/{collection}{query}")).must(200).json
        assert one in {each["id"] for each in listed}
        for each in listed:
            etsi.check_type(name, each)
    return dict(document)


@pytest.mark.parametrize("state", STATES)
async def test_an_occurrence_and_its_instance_in_each_state(world: World, etsi: EtsiSchemas, state: str) -> None:
    """SEQ-042, API-152."""
    operation_id = await world.an_operation_in(state)
    occurrence = await _shown(world, etsi, "VnfLcmOpOcc", "vnf_lcm_op_occs", operation_id)
    assert occurrence["operationState"] == state
    instance = await _shown(world, etsi, "VnfInstance", "vnf_instances", occurrence["vnfInstanceId"])
    assert instance["instantiationState"] == ("INSTANTIATED" if state == "COMPLETED" else "NOT_INSTANTIATED")
    await world.twins.release()


@pytest.mark.parametrize(
    ("task", "request_name"),
    [
        ("scale", "scale_out"),
        ("scale_to_level", "scale_to_level"),
        ("heal", "heal"),
        ("operate", "stop"),
        ("change_ext_conn", "change_ext_conn"),
        ("terminate", "terminate"),
    ],
)
async def test_an_occurrence_of_each_operation(world: World, etsi: EtsiSchemas, task: str, request_name: str) -> None:
    """API-152."""
    instance_id = (await world.operation(await world.an_operation_in("COMPLETED")))["vnfInstanceId"]
    operation_id = await world.ask(instance_id, task, sample_request("vm", request_name))
    await world.reached(operation_id)
    await _shown(world, etsi, "VnfLcmOpOcc", "vnf_lcm_op_occs", operation_id)
    await _shown(world, etsi, "VnfInstance", "vnf_instances", instance_id)


async def test_a_modification(world: World, etsi: EtsiSchemas) -> None:
    """API-152."""
    instance_id = await world.create()
    accepted = await world.lcm("PATCH", f"/vnf_instances/{instance_id}", sample_request("vm", "modify"))
    operation_id = accepted.must(202).headers["Location"].rsplit("/", 1)[-1]
    await world.reached(operation_id, "COMPLETED")
    await _shown(world, etsi, "VnfLcmOpOcc", "vnf_lcm_op_occs", operation_id)


async def test_subscriptions_and_their_notifications(world: World, etsi: EtsiSchemas) -> None:
    """API-152: each kind of notification, in each state of an operation that fails and is rolled back."""
    async with Subscriber.listening() as subscriber:
        wanted: list[dict[str, Any]] = [
            {},
            {"verbosity": "SHORT"},
            {"filter": {"vnfInstanceSubscriptionFilter": {"vnfInstanceNames": ["no such name"]}}},
            {"filter": {"operationTypes": ["INSTANTIATE"], "operationStates": ["COMPLETED"]}},
        ]
        for fields in wanted:
            made = (await world.lcm("POST", "/subscriptions", {"callbackUri": subscriber.uri, **fields})).must(201).json
            etsi.check_type("LccnSubscription", made)
            await _shown_subscription(world, etsi, made["id"])
        operation_id = await world.an_operation_in("ROLLED_BACK")
        instance_id = (await world.operation(operation_id))["vnfInstanceId"]
        await world.reached(await world.instantiate(instance_id), "COMPLETED")
        # Two subscriptions get 9 notifications each: 1 of the creation, 5 of the failed operation, 3 of the other one.
        # Another one gets only the COMPLETED one.
        received = await subscriber.has_heard(instance_id, 2 * 9 + 1)
        for each in received:
            etsi.check_type(each["notificationType"], each)
        states = {each.get("operationState") for each in received}
        assert {"STARTING", "PROCESSING", "FAILED_TEMP", "ROLLING_BACK", "ROLLED_BACK", "COMPLETED"} <= states


async def _shown_subscription(world: World, etsi: EtsiSchemas, subscription_id: str) -> None:
    etsi.check_type("LccnSubscription", (await world.lcm("GET", f"/subscriptions/{subscription_id}")).must(200).json)
    for each in (await world.lcm("GET", "/subscriptions?all_fields")).must(200).json:
        etsi.check_type("LccnSubscription", each)


async def test_package_subscriptions_and_their_notifications(world: World, etsi: EtsiSchemas) -> None:
    """API-120, API-122, API-152: each kind of notification."""
    async with Subscriber.listening() as subscriber:
        wanted: list[dict[str, Any]] = [
            {},
            {"filter": {"vnfPkgId": ["nothing"], "usageState": ["IN_USE"]}},
            {
                "filter": {
                    "vnfProductsFromProviders": [{"vnfProvider": "no such provider"}],
                    "operationalState": ["ENABLED"],
                }
            },
            {"filter": {"vnfdId": ["nothing"], "notificationTypes": ["VnfPackageOnboardingNotification"]}},
        ]
        for fields in wanted:
            made = await world.package_subscriptions("POST", body={"callbackUri": subscriber.uri, **fields})
            etsi.check_type("PkgmSubscription", made.must(201).json)
            shown = await world.package_subscriptions("GET", f"/{made.json['id']}")
            etsi.check_type("PkgmSubscription", shown.must(200).json)
        for each in (await world.package_subscriptions("GET")).must(200).json:
            etsi.check_type("PkgmSubscription", each)
        package = await world.sample("cnf")
        (await world.packages("PATCH", f"/{package['id']}", {"operationalState": "DISABLED"})).must(200)
        (await world.packages("DELETE", f"/{package['id']}")).must(204)
        received = await subscriber.has_heard(package["id"], 3)
        for each in received:
            etsi.check_type(each["notificationType"], each)
        assert {each.get("changeType") for each in received} == {None, "OP_STATE_CHANGE", "PKG_DELETE"}


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/vnf_instances/none", None, 404),
        ("PUT", "/vnf_instances", {}, 405),
        ("POST", "/vnf_instances", {"vnfdId": 7}, 400),
        ("POST", "/vnf_instances", {"vnfdId": "unknown"}, 422),
        ("GET", "/vnf_instances?filter=(what", None, 400),
    ],
)
async def test_problems(
    world: World, etsi: EtsiSchemas, method: str, path: str, body: dict[str, Any] | None, status: int
) -> None:
    """API-011, API-152."""
    etsi.check_type("ProblemDetails", (await world.lcm(method, path, body)).problem(status))


async def test_packages(world: World, etsi: EtsiSchemas) -> None:
    """API-124, API-152: a package in each state that stays, at both addresses."""
    (await world.packages("POST", body={})).must(201)
    refused = await world.upload(b"PK\x05\x06" + bytes(18))
    assert refused["onboardingState"] == "ERROR"
    for sample in ("cnf", "cluster"):
        await world.sample(sample)
    for address in ("vnf_packages", "onboarded_vnf_packages"):
        listed = (await world.call("GET", f"/vnfpkgm/v1/{address}?all_fields", headers={})).must(200).json
        assert len(listed) >= 2
        for each in listed:
            etsi.check_type("VnfPkgInfo", each)
            path = each["_links"]["self"]["href"].removeprefix(world.url)
            etsi.check_type("VnfPkgInfo", (await world.call("GET", path, headers={})).must(200).json)


async def test_versions(world: World, etsi: EtsiSchemas) -> None:
    """API-001, API-152."""
    for path in ("/vnflcm/api_versions", "/vnflcm/v2/api_versions", "/vnfpkgm/api_versions"):
        etsi.check_type("ApiVersionInformation", (await world.call("GET", path)).must(200).json)
