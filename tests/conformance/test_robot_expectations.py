"""The expectations of ETSI's conformance suite (NFV-TST 010, Robot Framework) for V2.6.1, checked over HTTP.

The suite sends no ``Version``, sends the media type of JSON with every request, and checks status, headers and required
attributes. ``etsi_robot.md`` has a row for each difference; `test_the_page_lists_every_difference` checks the rows.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any, Final

import pytest
from callers.etsi_site import (
    INSTANCE,
    LCM,
    NOWHERE,
    ODD,
    PACKAGES,
    SENT,
    TASKS,
    an_instance,
    an_occurrence,
    ask,
    asked,
    built,
    location_of,
    many_files,
    one_file,
    shown,
)
from kubevnfm_events.stacks import PortFacts, ResourcesCreated, ServerFacts, StackResources
from packages.package_builder import zip_of
from packages.vm_packages import without_base_hot
from servers.subscriber import Subscriber
from worlds.lcm_world import Answer, World, lcm_world, sample_request

METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE")
PAGE: Final = Path(__file__).with_name("etsi_robot.md")
CREATE_STACK: Final = "infra.openstack.create_resources"

ERROR_HANDLING: Final = ("retry", "rollback", "fail")
NOTIFICATION: Final = {"id", "notificationType", "subscriptionId", "timeStamp", "vnfInstanceId", "_links"}
OF_AN_OCCURRENCE: Final = {
    "notificationStatus", "operationState", "operation", "isAutomaticInvocation", "vnfLcmOpOccId",
}  # fmt: skip
OCCURRENCE: Final = {
    "id", "operationState", "stateEnteredTime", "startTime", "vnfInstanceId", "operation", "isAutomaticInvocation",
    "operationParams", "isCancelPending",
}  # fmt: skip
PACKAGE: Final = {"id", "onboardingState", "operationalState", "usageState", "_links"}
SUBSCRIPTION: Final = {"id", "callbackUri", "_links"}


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with lcm_world(tmp_path, allowed_networks="127.0.0.0/8") as running:
        yield running


async def answers(world: World, expected: Iterable[tuple[str, str, Any, int]]) -> None:
    """Ask for each method, path and body; every status is the expected one, and an error is a ProblemDetails."""
    wrong = []
    for method, path, body, status in expected:
        answer = await ask(world, method, path, body)
        if answer.status != status:
            wrong.append(f"{method} {path}: {answer.status}, not {status}: {answer.raw[:300]!r}")
        elif status >= 400:
            answer.problem(status)
    assert not wrong, "\n".join(wrong)


async def test_undefined_methods_are_405_and_change_nothing(world: World) -> None:
    """API-153, API-003: sent to resources that exist, as the suite does."""
    occurrence_id = await an_occurrence(world, "COMPLETED")
    instance_id = (await world.operation(occurrence_id))["vnfInstanceId"]
    (package,) = (await ask(world, "GET", f"{PACKAGES}/vnf_packages")).json
    body = {"callbackUri": "http://127.0.0.1:9/callback"}
    lccn = location_of(await ask(world, "POST", f"{LCM}/subscriptions", body), 201)
    pkgm = location_of(await ask(world, "POST", f"{PACKAGES}/subscriptions", body), 201)
    instance, occurrence = f"{LCM}/vnf_instances/{instance_id}", f"{LCM}/vnf_lcm_op_occs/{occurrence_id}"
    one = f"{PACKAGES}/vnf_packages/{package['id']}"
    artifact = f"{one}/artifacts/BaseHOT/simple/vm.yaml"
    defined = {
        "/vnflcm/api_versions": "GET",
        f"{LCM}/api_versions": "GET",
        "/vnfpkgm/api_versions": "GET",
        f"{PACKAGES}/api_versions": "GET",
        f"{LCM}/vnf_instances": "GET POST",
        instance: "GET PATCH DELETE",
        **{f"{instance}/{task}": "POST" for task in ("instantiate", *TASKS)},
        f"{LCM}/vnf_lcm_op_occs": "GET",
        occurrence: "GET",
        **{f"{occurrence}/{task}": "POST" for task in (*ERROR_HANDLING, "cancel")},
        f"{LCM}/subscriptions": "GET POST",
        lccn: "GET DELETE",
        f"{PACKAGES}/vnf_packages": "GET POST",
        one: "GET PATCH DELETE",
        f"{one}/vnfd": "GET",
        f"{one}/package_content": "GET PUT",
        f"{one}/package_content/upload_from_uri": "POST",
        artifact: "GET",
        f"{PACKAGES}/onboarded_vnf_packages": "GET",
        **{
            f"{PACKAGES}/onboarded_vnf_packages/{package['vnfdId']}{below}": "GET"
            for below in ("", "/vnfd", "/package_content", artifact.removeprefix(one))
        },
        f"{PACKAGES}/subscriptions": "GET POST",
        pkgm: "GET DELETE",
    }
    before = {path: (await ask(world, "GET", path)).raw for path in (instance, occurrence, one, lccn, pkgm)}
    await answers(
        world,
        ((method, path, None, 405) for path, has in defined.items() for method in METHODS if method not in has.split()),
    )
    for path, raw in before.items():
        assert (await ask(world, "GET", path)).must(200).raw == raw


async def test_versions_are_returned_without_a_version_header(world: World) -> None:
    """API-153, API-001."""
    for path in ("/vnflcm/api_versions", f"{LCM}/api_versions", "/vnfpkgm/api_versions", f"{PACKAGES}/api_versions"):
        received = shown((await ask(world, "GET", path)).must(200), {"uriPrefix", "apiVersions"})
        assert all({"version"} <= set(each) for each in received["apiVersions"])


async def test_instances_are_created_listed_modified_and_deleted(world: World) -> None:
    """API-153, API-014, API-020, API-029."""
    instance_id = await an_instance(world)
    path = f"{LCM}/vnf_instances/{instance_id}"
    created = await ask(
        world, "POST", f"{LCM}/vnf_instances", {"vnfdId": (await ask(world, "GET", path)).json["vnfdId"]}
    )
    other = location_of(created, 201)
    assert other == f"{LCM}/vnf_instances/{created.json['id']}"
    for query in ("", "?all_fields", "?exclude_default", "?fields=_links", "?exclude_fields=_links"):
        listed = await ask(world, "GET", f"{LCM}/vnf_instances{query}")
        assert len(shown(listed.must(200), INSTANCE)) == 2, query
    await answers(
        world,
        [
            ("GET", f"{LCM}/vnf_instances?attribute_not_exist=some_value", None, 400),
            ("GET", f"{LCM}/vnf_instances?fields=wrong_field", None, 400),
            ("GET", f"{LCM}/vnf_instances?filter=(eq,attribute_not_exist,x)", None, 400),
            ("GET", f"{LCM}/vnf_instances/{NOWHERE}", None, 404),
            ("DELETE", f"{LCM}/vnf_instances/{NOWHERE}", None, 404),
            ("DELETE", other, None, 204),
            ("GET", other, None, 404),
        ],
    )
    one = await ask(world, "GET", path)
    assert shown(one.must(200), INSTANCE)["instantiationState"] == "NOT_INSTANTIATED"
    change = {"vnfInstanceDescription": "changed"}
    patch = {"Content-Type": "application/merge-patch+json"}
    (await ask(world, "PATCH", path, change, **patch, **{"If-Match": '"1234"'})).problem(412)
    location = location_of(await ask(world, "PATCH", path, change, **patch, **{"If-Match": one.headers["ETag"]}), 202)
    await world.reached(location.rpartition("/")[2], "COMPLETED")
    assert (await ask(world, "GET", path)).json["vnfInstanceDescription"] == "changed"
    await asked(world, instance_id, "instantiate", sample_request("vm", "instantiate.v1"))
    (await ask(world, "DELETE", path)).problem(409)
    world.twins.waiting.add("infra.openstack.delete_resources")
    (await ask(world, "POST", f"{path}/terminate", TASKS["terminate"])).must(202)
    (await ask(world, "PATCH", path, change, **patch)).problem(409)
    await world.twins.release()


async def test_each_task_is_accepted_with_the_location_of_its_occurrence(world: World) -> None:
    """API-153, API-013, API-060: 409 where the instance's state forbids it, 404 without an instance."""
    instantiate = sample_request("vm", "instantiate.v1")
    instance_id = await an_instance(world)
    base = f"{LCM}/vnf_instances"
    await answers(world, [("POST", f"{base}/{instance_id}/{task}", body, 409) for task, body in TASKS.items()])
    await answers(
        world, [("POST", f"{base}/{NOWHERE}/{task}", body, 404) for task, body in [*TASKS.items(), ("instantiate", instantiate)]]
    )  # fmt: skip
    await asked(world, instance_id, "instantiate", instantiate)
    await answers(world, [("POST", f"{base}/{instance_id}/instantiate", instantiate, 409)])
    for task, body in TASKS.items():
        occurrence = await asked(world, instance_id, task, body)
        assert occurrence["operation"] == task.upper()
        seen = (await ask(world, "GET", f"{base}/{instance_id}")).must(200).json
        assert seen["instantiationState"] == ("NOT_INSTANTIATED" if task == "terminate" else "INSTANTIATED")
        if task == "operate":
            assert seen["instantiatedVnfInfo"]["vnfState"] == "STOPPED"
        if task == "change_flavour":
            assert seen["instantiatedVnfInfo"]["flavourId"] == "large"


async def test_occurrences_are_listed_by_pages_and_shown(world: World) -> None:
    """API-153, API-095: the page size is 2 here."""
    instance_id = await built(world)
    for task in ("scale", "heal"):
        await asked(world, instance_id, task, TASKS[task])
    occurrences = f"{LCM}/vnf_lcm_op_occs"
    for query in ("", "?all_fields", "?exclude_default", "?fields=_links", "?exclude_fields=_links"):
        listed = await ask(world, "GET", f"{occurrences}{query}")
        first = shown(listed.must(200), OCCURRENCE)
        link = re.fullmatch(r'<http://[^/]+([^>]+)>; rel="next"', listed.headers["Link"])
        assert link is not None
        rest = await ask(world, "GET", link[1])
        assert len(first) + len(shown(rest.must(200), OCCURRENCE)) == 3, query
        assert "Link" not in rest.headers
    one = await ask(world, "GET", f"{occurrences}/{first[0]['id']}")
    assert shown(one.must(200), OCCURRENCE)["operationState"] == "COMPLETED"
    await answers(
        world,
        [
            ("GET", f"{occurrences}?attribute_not_exist=some_value", None, 400),
            ("GET", f"{occurrences}?fields=wrong_field", None, 400),
            ("GET", f"{occurrences}/{NOWHERE}", None, 404),
        ],
    )


async def test_errors_are_handled_where_the_state_allows_it(world: World) -> None:
    """API-153, API-041: without a body, as the suite sends it."""
    done = await an_occurrence(world, "COMPLETED")
    cancel = {"cancelMode": "GRACEFUL"}
    base = f"{LCM}/vnf_lcm_op_occs"
    for occurrence_id, status in ((done, 409), (NOWHERE, 404)):
        await answers(
            world,
            [
                *(("POST", f"{base}/{occurrence_id}/{task}", None, status) for task in ERROR_HANDLING),
                ("POST", f"{base}/{occurrence_id}/cancel", cancel, status),
            ],
        )
    for task, ends in (("retry", "COMPLETED"), ("rollback", "ROLLED_BACK")):
        failed = await world.an_operation_in("FAILED_TEMP")
        (await ask(world, "POST", f"{base}/{failed}/cancel", cancel)).problem(409)
        assert location_of(await ask(world, "POST", f"{base}/{failed}/{task}"), 202) == f"{base}/{failed}"
        assert (await world.reached(failed, ends))["operationState"] == ends
    failed = await world.an_operation_in("FAILED_TEMP")
    given_up = (await ask(world, "POST", f"{base}/{failed}/fail")).must(200)
    assert shown(given_up, OCCURRENCE)["operationState"] == "FAILED"
    running = await world.an_operation_in("PROCESSING")
    assert location_of(await ask(world, "POST", f"{base}/{running}/cancel", cancel), 202) == f"{base}/{running}"
    await world.twins.release()
    await world.reached(running)


@pytest.mark.parametrize("api", [LCM, PACKAGES])
async def test_subscriptions_are_created_listed_and_deleted(world: World, api: str) -> None:
    """API-153, API-071: duplicate subscriptions are not merged."""
    async with Subscriber.listening() as subscriber:
        body = {"callbackUri": subscriber.uri}
        path = location_of(made := await ask(world, "POST", f"{api}/subscriptions", body), 201)
        again = location_of(await ask(world, "POST", f"{api}/subscriptions", body), 201)
    assert again != path
    one = shown(await ask(world, "GET", path), SUBSCRIPTION)
    assert one == shown(made, SUBSCRIPTION)
    assert one["callbackUri"] == subscriber.uri
    for query in ("", "?all_fields", "?exclude_default", "?fields=_links", "?exclude_fields=_links",
                  f"?filter=(eq,callbackUri,{subscriber.uri})"):  # fmt: skip
        assert len(shown((await ask(world, "GET", f"{api}/subscriptions{query}")).must(200), SUBSCRIPTION)) == 2, query
    (await ask(world, "POST", f"{api}/subscriptions", body)).must(201)
    first = await ask(world, "GET", f"{api}/subscriptions")
    assert 'rel="next"' in first.headers["Link"]
    await answers(
        world,
        [
            ("GET", f"{api}/subscriptions?attribute_not_exist=some_value", None, 400),
            ("GET", f"{api}/subscriptions?filter=(eq,attribute_not_exist,x)", None, 400),
            ("GET", f"{api}/subscription", None, 404),
            ("DELETE", path, None, 204),
            ("GET", path, None, 404),
            ("DELETE", path, None, 404),
        ],
    )


async def test_each_operation_is_notified_state_by_state(tmp_path: Path) -> None:
    """API-153, API-074: the suite's workflows, with its callback test."""
    loopback: dict[str, Any] = {"allowed_networks": "127.0.0.0/8", "test_callbacks": True}
    async with lcm_world(tmp_path, **loopback) as world, Subscriber.listening() as subscriber:
        (await ask(world, "POST", f"{LCM}/subscriptions", {"callbackUri": subscriber.uri})).must(201)
        assert len(subscriber.tested) == 1
        instance_id, heard = await an_instance(world), 1
        path = f"{LCM}/vnf_instances/{instance_id}"
        await subscriber.has_heard(instance_id, heard)
        modified = await ask(world, "PATCH", path, {"vnfInstanceName": "x"})
        await world.reached(location_of(modified, 202).rpartition("/")[2], "COMPLETED")
        modify = (await subscriber.has_heard(instance_id, heard := heard + 2))[-2:]
        assert [each["operationState"] for each in modify] == ["PROCESSING", "COMPLETED"]
        assert [each["notificationStatus"] for each in modify] == ["START", "RESULT"]
        tasks = {"instantiate": sample_request("vm", "instantiate.v1"), **TASKS}
        for task, body in tasks.items():
            occurrence = await asked(world, instance_id, task, body)
            received = (await subscriber.has_heard(instance_id, heard := heard + 3))[-3:]
            assert [each["operationState"] for each in received] == ["STARTING", "PROCESSING", "COMPLETED"], task
            assert {each["vnfLcmOpOccId"] for each in received} == {occurrence["id"]}
            assert {each["operation"] for each in received} == {task.upper()}
        world.twins.failing.add(CREATE_STACK)
        location = location_of(await ask(world, "POST", f"{path}/instantiate", tasks["instantiate"]), 202)
        await world.reached(failed := location.rpartition("/")[2], "FAILED_TEMP")
        (await ask(world, "POST", f"{location}/rollback")).must(202)
        await world.reached(failed, "ROLLED_BACK")
        states = ["STARTING", "PROCESSING", "FAILED_TEMP", "ROLLING_BACK", "ROLLED_BACK"]
        received = (await subscriber.has_heard(instance_id, heard := heard + 5))[-5:]
        assert [each["operationState"] for each in received] == states
        (await ask(world, "DELETE", path)).must(204)
        bodies = await subscriber.has_heard(instance_id, heard + 1)
    kinds = [each["notificationType"] for each in bodies]
    assert (kinds[0], kinds[-1]) == ("VnfIdentifierCreationNotification", "VnfIdentifierDeletionNotification")
    for each in bodies:
        needed = NOTIFICATION | (OF_AN_OCCURRENCE if "Occurrence" in each["notificationType"] else set())
        assert needed <= set(each)
        assert {"vnfInstance", "subscription"} <= set(each["_links"])


async def test_packages_are_listed_created_switched_and_deleted(world: World) -> None:
    """API-153, API-111, API-114."""
    onboarded = await world.upload(zip_of(world.folder / "a.zip", many_files()).read_bytes())
    packages = f"{PACKAGES}/vnf_packages"
    hidden = {"softwareImages", "additionalArtifacts", "userDefinedData", "checksum"}
    for query, left_out in (
        ("", hidden),
        ("?exclude_default", hidden),
        ("?all_fields", set()),
        ("?fields=softwareImages,additionalArtifacts", {"checksum"}),
        ("?exclude_fields=softwareImages,additionalArtifacts", {"softwareImages", "additionalArtifacts"}),
        (f"?filter=(eq,vnfdId,{onboarded['vnfdId']});(eq,vnfProvider,{onboarded['vnfProvider']})", hidden),
    ):
        (listed,) = shown((await ask(world, "GET", f"{packages}{query}")).must(200), PACKAGE)
        assert not left_out & set(listed), query
        assert {"softwareImages", "additionalArtifacts"} - left_out <= set(listed), query
        assert {"self", "packageContent"} <= set(listed["_links"])
    created = await ask(world, "POST", packages, {"userDefinedData": {"a": "b"}})
    path = location_of(created, 201)
    assert shown(created, PACKAGE)["onboardingState"] == "CREATED"
    await answers(
        world,
        [
            ("GET", f"{packages}?filter=(eq,nfvId,x)", None, 400),
            ("GET", f"{packages}?nfvId=x", None, 400),
            ("GET", f"{PACKAGES}/vnf_package", None, 404),
            ("GET", path, None, 200),
            ("GET", f"{packages}/{NOWHERE}", None, 404),
            ("DELETE", path, None, 204),
            ("GET", path, None, 404),
        ],
    )
    one = f"{packages}/{onboarded['id']}"
    assert shown((await ask(world, "GET", one)).must(200), PACKAGE)["id"] == onboarded["id"]
    (await ask(world, "DELETE", one)).problem(409)
    disabled = (await ask(world, "PATCH", one, {"operationalState": "DISABLED"})).must(200)
    assert disabled.json == {"operationalState": "DISABLED"}
    (await ask(world, "PATCH", one, {"operationalState": "DISABLED"})).problem(409)
    (await ask(world, "PATCH", one, {"operationalState": "ENABLED"})).must(200)
    (await ask(world, "PATCH", one, {"operationalState": "DISABLED"})).must(200)
    (await ask(world, "DELETE", one)).must(204)
    used = f"{packages}/{(await ask(world, 'GET', f'{LCM}/vnf_instances/{await built(world)}')).json['vnfPkgId']}"
    (await ask(world, "PATCH", used, {"operationalState": "DISABLED"})).must(200)
    (await ask(world, "DELETE", used)).problem(409)


async def test_the_content_of_a_package_is_read_whole_and_by_ranges(world: World) -> None:
    """API-153, API-115, API-116, API-117."""
    content = zip_of(world.folder / "m.zip", many_files()).read_bytes()
    many, one = await world.upload(content), await world.upload(zip_of(world.folder / "o.zip", one_file()).read_bytes())
    empty = (await ask(world, "POST", f"{PACKAGES}/vnf_packages", {})).must(201).json
    base = f"{PACKAGES}/vnf_packages"
    for package, accept, status, kind in (
        (one, "text/plain", 200, "text/plain"),
        (many, "application/zip", 200, "application/zip"),
        (one, "application/zip", 200, "application/zip"),
        (one, "text/plain,application/zip", 200, "text/plain"),
        (many, "text/plain,application/zip", 200, "application/zip"),
        (many, "text/plain", 406, "application/problem+json"),
        (empty, "application/zip", 409, "application/problem+json"),
        ({"id": "erroneousPkgId"}, "application/zip", 404, "application/problem+json"),
    ):
        answer = await ask(world, "GET", f"{base}/{package['id']}/vnfd", Accept=accept)
        assert answer.status == status
        assert answer.headers["Content-Type"].partition(";")[0] == kind
    for path, kind, whole, accept in (
        (f"{base}/{many['id']}/package_content", "application/zip", content, "application/zip"),
        (f"{base}/{one['id']}/artifacts/Scripts/odd.bin", "application/octet-stream", ODD, "application/json"),
    ):
        got = (await ask(world, "GET", path, Accept=accept)).must(200)
        assert (got.raw, got.headers["Content-Type"]) == (whole, kind)
        part = (await ask(world, "GET", path, Accept=accept, Range="bytes=0-1023")).must(206)
        assert (part.raw, part.headers["Content-Length"]) == (whole[:1024], "1024")
        assert part.headers["Content-Range"] == f"bytes 0-1023/{len(whole)}"
        (await ask(world, "GET", path, Accept=accept, Range="bytes=100000-1000000")).problem(416)
        for other, status in ((empty["id"], 409), ("erroneousPkgId", 404)):
            elsewhere = f"{base}/{other}/{path.split('/', 5)[5]}"
            (await ask(world, "GET", elsewhere, Accept=accept)).problem(status)


async def test_content_is_uploaded_once(world: World) -> None:
    """API-153, API-111, API-113."""
    base = f"{PACKAGES}/vnf_packages"
    path = location_of(await ask(world, "POST", base, {}), 201)
    content = zip_of(world.folder / "o.zip", one_file()).read_bytes()
    put: dict[str, Any] = {"data": content, "headers": {**SENT, "Content-Type": "application/zip"}}
    assert (await world.call("PUT", f"{path}/package_content", **put)).must(202).raw == b""
    await world.onboarded(path.rpartition("/")[2])
    got = await ask(world, "GET", f"{path}/package_content", Accept="application/zip")
    assert got.must(200).raw == content
    (await world.call("PUT", f"{path}/package_content", **put)).problem(409)
    from_uri = {"addressInformation": "http://127.0.0.1:9/package.zip"}
    (await ask(world, "POST", f"{path}/package_content/upload_from_uri", from_uri)).problem(409)
    fetched = location_of(await ask(world, "POST", base, {}), 201)
    accepted = await ask(world, "POST", f"{fetched}/package_content/upload_from_uri", from_uri)
    assert accepted.must(202).raw == b""
    assert (await world.onboarded(fetched.rpartition("/")[2]))["onboardingState"] == "ERROR", "no server listens there"


async def test_a_missing_token_is_401_and_a_malformed_one_400(tmp_path: Path) -> None:
    """API-153, API-140."""
    bearer: dict[str, Any] = {
        "auth_modes": "bearer",
        "auth_bearer_audience": "a",
        "auth_bearer_issuer": "http://127.0.0.1:9",
    }
    async with lcm_world(tmp_path, **bearer) as world:
        for path in (f"{LCM}/vnf_instances", f"{PACKAGES}/vnf_packages"):
            assert (await ask(world, "GET", path)).headers["WWW-Authenticate"].startswith("Bearer")
            (await ask(world, "GET", path)).problem(401)
            (await ask(world, "GET", path, Authorization="Bearer a malformed one")).problem(400)


@pytest.mark.parametrize("version", ["v1", "v2"])
async def test_addresses_say_whether_the_request_fixed_them(world: World, version: str) -> None:
    """API-153, API-152: every address has isDynamic, which is false for those that the request has fixed."""
    port = PortFacts(
        name="VDU1_CP1", resource_id="port-1", addresses=("10.0.0.5", "fd00::9", "10.0.0.6"), mac="fa:16:3e:0:0:1"
    )
    server = ServerFacts(vnfc_id="vnfc-1", name="VDU1", vdu_id="VDU1", server_id="s-1", stack_id="st-1", ports=(port,))
    world.twins.answers[CREATE_STACK] = ResourcesCreated(
        resources=StackResources(stack_id="st-1", stack_name="vnf", servers=(server,))
    )
    fixed = [
        {"type": "IPV4", "fixedAddresses": ["10.0.0.5"]},
        {"type": "IPV6", "fixedAddresses": ["fd00:0:0::0009"]},
    ]
    request = sample_request("vm", "instantiate.v1")
    request["extVirtualLinks"][0]["extCps"][0]["cpConfig"][0]["cpProtocolData"][0]["ipOverEthernet"] = {
        "ipAddresses": fixed
    }
    # The template of the sample takes no addresses.
    await world.upload(without_base_hot(world.folder))
    instance_id = await an_instance(world)
    await asked(world, instance_id, "instantiate", request)
    headers = {"Version": "2.0.0"} if version == "v2" else {}
    info = (
        (await world.call("GET", f"/vnflcm/{version}/vnf_instances/{instance_id}", headers=headers))
        .must(200)
        .json["instantiatedVnfInfo"]
    )
    for cp in (info["vnfcResourceInfo"][0]["vnfcCpInfo"][0], info["extCpInfo"][0]):
        ethernet = cp["cpProtocolInfo"][0]["ipOverEthernet"]
        assert ethernet["macAddress"] == "fa:16:3e:0:0:1"
        assert [(each["addresses"], each["isDynamic"]) for each in ethernet["ipAddresses"]] == [
            (["10.0.0.5"], False),
            (["fd00::9"], False),
            (["10.0.0.6"], True),
        ]


async def test_the_page_lists_every_difference(world: World) -> None:
    """API-153: the test sends the request of each row with two statuses; the page has exactly these rows."""
    await world.sample()
    idle = await an_instance(world)
    failed = await world.an_operation_in("FAILED_TEMP")
    running = await world.an_operation_in("PROCESSING")
    callback = {"callbackUri": "http://127.0.0.1:9/callback"}
    subscription = location_of(await ask(world, "POST", f"{LCM}/subscriptions", callback), 201)
    fresh = location_of(await ask(world, "POST", f"{PACKAGES}/vnf_packages", {}), 201)
    occurrences = f"{LCM}/vnf_lcm_op_occs"
    content = zip_of(world.folder / "o.zip", one_file()).read_bytes()
    sent: dict[str, Answer] = {
        "R-01": await ask(world, "GET", "/vnflcm/api_version"),
        "R-02": await ask(world, "GET", occurrences),
        "R-03": await ask(world, "GET", f"{occurrences}?all_fields"),
        "R-04": await ask(world, "POST", f"{LCM}/vnf_instances/{idle}/terminate", TASKS["terminate"]),
        "R-05": await ask(world, "POST", f"{occurrences}/{failed}/fail"),
        "R-06": await world.call("POST", f"{occurrences}/{running}/cancel", data=b"GRACEFUL", headers=SENT),
        "R-07": await ask(world, "POST", f"{occurrences}/{NOWHERE}/retry"),
        "R-08": await ask(world, "POST", f"{LCM}/subscriptions", callback),
        "R-09": await ask(world, "DELETE", subscription),
        "R-10": await ask(world, "GET", f"{LCM}/vnf_instances?fields=criteria,objectInstanceIds"),
        "R-11": await ask(world, "GET", f"{PACKAGES}/vnf_packages?vnfdId=x"),
        "R-12": await ask(world, "GET", f"{PACKAGES}/vnf_packages?exlude_fields=checksum"),
        "R-13": await ask(world, "POST", f"{PACKAGES}/vnf_packages", {}),
        "R-14": await ask(world, "PATCH", fresh, {"userDefinedData": {"a": "b"}}),
        "R-16": await world.call("PUT", f"{fresh}/package_content", data=content, headers=SENT),
        "R-17": await world.call(
            "PUT", f"{fresh}/package_content", data=content, headers={"Content-Type": "application/zip"}
        ),
        "R-18": await world.call("PUT", f"/vnfpkgm/v1/ns_descriptors/{NOWHERE}/nsd_content", data=b"x", headers=SENT),
        "R-19": await ask(world, "GET", "//vnflcm/v1/vnf_instances"),
        "R-20": await world.call("PUT", f"{fresh}/package_content", data=b"", headers=SENT),
        "R-21": await ask(world, "GET", f"{PACKAGES}/onboarded_vnf_packages/{NOWHERE}/vnfd", Accept="application/zip"),
    }
    await world.onboarded(fresh.rpartition("/")[2])
    (await ask(world, "PATCH", fresh, {"operationalState": "DISABLED"})).must(200)
    sent["R-15"] = await ask(world, "DELETE", fresh)
    await world.twins.release()
    await world.reached(running)
    rows = re.findall(
        r"^\| (R-\d\d) \|[^|]*\| (\d{3}) \| (\d{3}) \| ([^|]+) \|$", PAGE.read_text(encoding="utf-8"), re.M
    )
    assert {row[0]: int(row[2]) for row in rows} == {key: answer.status for key, answer in sent.items()}
    for key, theirs, ours, reason in rows:
        assert theirs != ours, f"{key} is no difference"
        assert reason.strip(), key
