"""The calls of ONAP SO's CNF adapter: bundles, and instances of them (multicloud.md MC-130, MC-131, MC-133, MC-134)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from callers.documented import onap_documented
from kubevnfm_clients.multicloud.region_views import KubernetesObject
from kubevnfm_events import Envelope
from kubevnfm_events.objects import ApplyObjects, ReplaceObjects
from kubevnfm_events.outputs import OutputsChanged
from kubevnfm_lcm_api.notifications.domain.subscription import COLLECTION as SUBSCRIPTIONS
from kubevnfm_store.query import AllOf
from packages.resource_bundles import CHART, PROFILE, packed
from patience import until
from servers.subscriber import Notification, Subscriber
from worlds.lcm_builders import ANSWERS
from worlds.lcm_world import Answer
from worlds.multicloud_world import PASSWORD, VNFS, Gateway, a_gateway, a_pod

RB = "/v1/rb/definition"
PACKAGES = "/vnfpkgm/v1/vnf_packages?all_records=yes"
INSTANCES = "/v1/instance"
BAD_VALUES: Final[tuple[Mapping[str, Any], ...]] = (
    {"namespace": "x"}, {"a..b": "1"}, {"a": "1", "a.b": "2"}, {"vnf_id": "x"}, {"1a": "x"}, {"a": 1}, {"a.$sealed": "x"},
    {"a[0].$secret": "x"}, {"a.x_secret_names": "5"},
)  # fmt: skip


async def call(gateway: Gateway, method: str, path: str, body: Any = None) -> Answer:
    """Call as the CNF adapter does; errors are plain text."""
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    headers = {"Prefer": "wait=60", "Content-Type": "application/json"}
    world = gateway.world
    async with world.session.request(method, f"{world.url}{path}", data=data, headers=headers) as response:
        answer = Answer(response.status, response.headers, await response.read())
    onap_documented().check(method, path, answer.status, answer.headers, answer.raw)
    if answer.status >= 400:
        assert answer.headers["Content-Type"].startswith("text/plain")
        assert answer.raw.strip()
    return answer


async def check_definitions(gateway: Gateway) -> None:
    """MC-131, MC-133: definitions and profiles, their content, and what is refused."""
    named = {"rb-name": "rb1", "rb-version": "v1"}
    one = f"{RB}/rb1/v1"
    (await call(gateway, "POST", RB, b"")).must(400)
    (await call(gateway, "POST", RB, b"{")).must(422)
    (await call(gateway, "POST", RB, {"rb-name": "rb1"})).must(422)
    (await call(gateway, "POST", RB, {**named, "rb-name": "a/b"})).must(422)
    (await call(gateway, "GET", one)).must(404)
    assert (await call(gateway, "GET", RB)).must(200).json == []
    made = {**named, "chart-name": None, "description": "a firewall", "labels": {"a": "b"}}
    shown = (await call(gateway, "POST", RB, made)).must(201).json
    assert shown == {**named, "description": "a firewall", "labels": {"a": "b"}}
    (await call(gateway, "POST", RB, made)).must(409)
    assert (await call(gateway, "GET", RB)).must(200).json == [shown]
    assert (await call(gateway, "GET", f"{RB}/rb1")).must(200).json == [shown]
    (await call(gateway, "GET", f"{RB}/rb2")).must(404)
    assert [each["profile-name"] for each in (await call(gateway, "GET", f"{one}/profile")).must(200).json] == [
        "default"
    ]

    # No instance without content; what is no chart, or would leave its folder, is refused.
    asked = {**named, "profile-name": "default", "cloud-region": "edge"}
    assert b"no content" in (await call(gateway, "POST", INSTANCES, asked)).must(422).raw
    (await call(gateway, "POST", f"{one}/content", b"")).must(400)
    for content in (b"no tar", packed({"a": "b"}), packed({"../vfw/Chart.yaml": "x"})):
        (await call(gateway, "POST", f"{one}/content", content)).must(422)
    (await call(gateway, "POST", f"{RB}/rb2/v1/content", packed(CHART))).must(404)
    (await call(gateway, "POST", f"{one}/content", packed(CHART))).must(200)
    count = len((await gateway.world.call("GET", PACKAGES)).json)
    (await call(gateway, "POST", f"{one}/content", packed(CHART))).must(200)
    assert len((await gateway.world.call("GET", PACKAGES)).json) == count
    assert (await call(gateway, "GET", one)).must(200).json["chart-name"] == "vfw"
    (await call(gateway, "PUT", one, {"chart-name": "other"})).must(422)
    (await call(gateway, "PUT", one, {"rb-name": "other"})).must(422)
    assert (await call(gateway, "PUT", one, {"description": "b"})).must(201).json["description"] == "b"

    profile = {**named, "profile-name": "p1", "release-name": "fw", "namespace": "ns1", "kubernetes-version": "1.27.5"}
    refused: tuple[dict[str, Any], ...] = (
        {"kubernetes-version": "1"}, {"extra-resource-types": [{}]}, {"namespace": "A"}, {"rb-name": "x"}
    )  # fmt: skip
    for bad in refused:
        answer = (await call(gateway, "POST", f"{one}/profile", {**profile, **bad})).must(422)
        assert next(iter(bad)).encode() in answer.raw
    (await call(gateway, "POST", f"{one}/profile", profile)).must(201)
    (await call(gateway, "POST", f"{one}/profile", profile)).must(409)
    for content in (packed({"x": "y"}), packed({**PROFILE, "manifest.yaml": "type: {values: none.yaml}"})):
        (await call(gateway, "POST", f"{one}/profile/p1/content", content)).must(422)
    for _ in range(2):
        (await call(gateway, "POST", f"{one}/profile/p1/content", packed(PROFILE))).must(200)
    assert (await call(gateway, "GET", f"{one}/profile/p1")).must(200).json["release-name"] == "fw"
    (await call(gateway, "GET", f"{one}/profile/p2")).must(404)
    # The chart stays while the content of a profile was made for it.
    other = packed({**CHART, "vfw/more": "x"})
    assert b"profile p1" in (await call(gateway, "POST", f"{one}/content", other)).must(409).raw


async def check_contents_at_once(gateway: Gateway) -> None:
    """MC-131: one of two contents is that of the definition; a package that was disabled is enabled by its content."""
    one = f"{RB}/rb9/v1"
    before = {each["id"] for each in (await gateway.world.call("GET", PACKAGES)).json}
    (await call(gateway, "POST", RB, {"rb-name": "rb9", "rb-version": "v1"})).must(201)
    contents = [packed({**CHART, "vfw/which": each}) for each in ("a", "b")]
    sent = await asyncio.gather(*(call(gateway, "POST", f"{one}/content", each) for each in contents))
    assert {each.status for each in sent} in ({200}, {200, 409})
    (package_id,) = {each["id"] for each in (await gateway.world.call("GET", PACKAGES)).json} - before
    disabled = {"operationalState": "DISABLED"}
    assert (await gateway.world.call("PATCH", f"/vnfpkgm/v1/vnf_packages/{package_id}", disabled)).status == 200
    for content in contents:
        (await call(gateway, "POST", f"{one}/content", content)).must(200)
    (package,) = (each for each in (await gateway.world.call("GET", PACKAGES)).json if each["id"] not in before)
    assert package["operationalState"] == "ENABLED"
    (await call(gateway, "DELETE", one)).must(204)
    assert {each["id"] for each in (await gateway.world.call("GET", PACKAGES)).json} == before


async def test_an_instance_lives_as_the_cnf_adapter_asks(tmp_path: Path) -> None:
    """MC-002, MC-113, MC-130, MC-131, MC-133, MC-134: SOL003 and ``/multicloud/v1`` show the same VNF."""
    async with (
        Subscriber.listening() as subscriber,
        a_gateway(tmp_path, onap_compat=True, allowed_networks="127.0.0.0/8") as gateway,
    ):
        world, one = gateway.world, f"{RB}/rb1/v1"
        for key in ("infra.k8s.apply_objects", "infra.k8s.replace_objects"):
            world.twins.answers[key] = ANSWERS[key].model_copy(update={"namespace": "ns1"})
        await check_definitions(gateway)
        await check_contents_at_once(gateway)
        packages = len((await world.call("GET", PACKAGES)).json)
        asked = {
            "cloud-region": "edge", "rb-name": "rb1", "rb-version": "v1", "profile-name": "p1", "release-name": "uuid-1",
            "labels": None, "override-values": {"image.tag": "7", "db.password": PASSWORD, "nginx-ingress.on": "true"},
        }  # fmt: skip
        for name in ("cloud-region", "rb-name", "rb-version", "profile-name"):
            assert name.encode() in (await call(gateway, "POST", INSTANCES, {**asked, name: ""})).must(422).raw
        for bad in BAD_VALUES:
            answer = (await call(gateway, "POST", INSTANCES, {**asked, "override-values": bad})).must(422)
            assert b"override-values" in answer.raw
        (await call(gateway, "POST", f"{one}/profile", {"profile-name": "Upper"})).must(201)
        upper = {**asked, "profile-name": "Upper", "release-name": ""}
        assert b"release-name" in (await call(gateway, "POST", INSTANCES, upper)).must(422).raw
        (await call(gateway, "DELETE", f"{one}/profile/Upper")).must(204)
        for member in ({"colour": "red"}, {"release-name": "Not one"}, {"release-name": "x" * 54}):
            assert (
                next(iter(member)).encode()
                in (await call(gateway, "POST", INSTANCES, {**asked, **member})).must(422).raw
            )
        for unknown in ({"profile-name": "p2"}, {"rb-name": "x"}, {"cloud-region": "none"}):
            (await call(gateway, "POST", INSTANCES, {**asked, **unknown})).must(404)
        (await call(gateway, "POST", INSTANCES, {**asked, "cloud-region": "twice"})).must(409)

        made = (await call(gateway, "POST", INSTANCES, asked)).must(201).json
        assert (made["namespace"], made["release-name"], made["hooks"]) == ("ns1", "uuid-1", None)
        shown = {"db.password": "***", "image.tag": "7", "nginx-ingress.on": "true"}
        assert made["request"]["override-values"] == shown
        assert {name: made["request"][name] for name in ("rb-name", "rb-version", "profile-name", "cloud-region")} == {
            name: asked[name] for name in ("rb-name", "rb-version", "profile-name", "cloud-region")
        }
        assert made["resources"]
        assert set(made["resources"][0]) == {"GVK", "Name"}
        assert "_" in made["id"]
        here = f"{INSTANCES}/{made['id']}"
        assert (await call(gateway, "GET", here)).must(200).json == made
        (ours,) = (await gateway.call("GET", VNFS)).must(200).json
        assert (ours["vnf_instance_name"], ours["status"]) == (made["id"], "READY")
        assert (await call(gateway, "GET", f"{INSTANCES}/{ours['vnf_id']}")).must(200).json == made
        assert (await world.lcm("GET", f"/vnf_instances/{ours['vnf_id']}")).must(200).json["vnfInstanceName"] == made[
            "id"
        ]
        (applied,) = (each.data for each in world.twins.commands if isinstance(each.data, ApplyObjects))
        assert (applied.release_name, applied.namespace, applied.kubernetes_version) == ("uuid-1", "ns1", "1.27.5")
        assert (applied.values["image"], applied.values["nginx-ingress"]) == ({"tag": 7}, {"on": True})
        entry = {name: made[name] for name in ("id", "request", "release-name", "namespace")}
        for query in ("", "?rb-name=rb1&rb-version=v1&profile-name=p1", "?rb-name=&profile-name=p1"):
            assert (await call(gateway, "GET", f"{INSTANCES}{query}")).must(200).json == [entry]
        assert (await call(gateway, "GET", f"{INSTANCES}?rb-name=other")).must(200).json == []
        (await call(gateway, "GET", f"{INSTANCES}?colour=red")).must(422)

        await check_status(gateway, made, ours["vnf_id"])
        await check_subscriptions(gateway, subscriber, here, ours["vnf_id"])
        await check_upgrade(gateway, asked, here)
        vnfd_id = (await world.lcm("GET", f"/vnf_instances/{ours['vnf_id']}")).json["vnfdId"]
        change = {"vnfdId": vnfd_id, "additionalParams": {"release_name": "other"}}
        refused = await world.lcm("POST", f"/vnf_instances/{ours['vnf_id']}/change_vnfpkg", change)
        assert "release_name" in refused.problem(422)["detail"]

        await check_end(gateway, one, here, packages)


async def check_end(gateway: Gateway, one: str, here: str, packages: int) -> None:
    """MC-131, MC-133: what is in use stays; then all goes, with its packages and subscriptions."""
    world = gateway.world
    # In use: neither goes, nor changes.
    for path in (one, f"{one}/profile/p1"):
        assert b"instances are made of it" in (await call(gateway, "DELETE", path)).must(409).raw
    changed = packed({**PROFILE, "c.txt": "other"})
    (await call(gateway, "POST", f"{one}/profile/p1/content", changed)).must(409)
    assert (await call(gateway, "DELETE", here)).must(202).raw == b""
    for each in (await world.lcm("GET", "/vnf_lcm_op_occs?filter=(eq,operation,TERMINATE)&all_records=yes")).json:
        await world.reached(each["id"])
    for method in ("GET", "DELETE"):
        (await call(gateway, method, here)).must(404)
    # It has gone with its subscriptions.
    await until(partial(no_subscription, gateway), timeout_s=300)
    (await call(gateway, "POST", f"{one}/profile/p1/content", changed)).must(200)
    assert len((await world.call("GET", PACKAGES)).json) == packages
    (await call(gateway, "DELETE", f"{one}/profile/p1")).must(204)
    (await call(gateway, "DELETE", one)).must(204)
    (await call(gateway, "DELETE", one)).must(404)
    assert (await call(gateway, "GET", RB)).must(200).json == []
    # The package of the world is left alone.
    assert [each["id"] for each in (await world.call("GET", PACKAGES)).json] == [gateway.csar_id]


async def check_status(gateway: Gateway, made: Any, vnf_id: str) -> None:
    """MC-134: whole objects, with the pods."""
    here, regions = f"{INSTANCES}/{made['id']}", gateway.world.regions
    for each in (await gateway.call("GET", f"{VNFS}/{vnf_id}/resources")).must(200).json:
        body = {
            "apiVersion": each["api_version"],
            "kind": each["kind"],
            "metadata": {x: each[x] for x in ("name", "uid")},
        }
        regions.objects[f"{each['kind']}/{each['name']}"] = KubernetesObject.model_validate(body)
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web-1", "uid": "u"}, "status": {"phase": "Running"}}
    regions.objects["Pod/None"] = KubernetesObject.model_validate(pod)
    status = (await call(gateway, "GET", f"{here}/status")).must(200).json
    assert status["request"] == made["request"]
    assert status["resourceCount"] == len(status["resourcesStatus"]) == len(made["resources"]) + 1
    assert status["resourcesStatus"][-1] == {
        "name": "web-1", "GVK": {"Group": "", "Version": "v1", "Kind": "Pod"}, "status": pod
    }  # fmt: skip
    assert all(each["status"]["metadata"]["name"] == each["name"] for each in status["resourcesStatus"])
    assert isinstance(status["ready"], bool)
    found = (await call(gateway, "GET", f"{here}/query?ApiVersion=v1&Kind=Pod&Labels=app%3Dweb")).must(200).json
    assert (found["resourceCount"], found["resourcesStatus"][0]["status"]) == (1, pod)
    everywhere = (await call(gateway, "GET", "/v1/query?CloudRegion=edge&ApiVersion=v1&Kind=Pod&Namespace=ns1")).must(
        200
    )
    assert everywhere.json["resourcesStatus"] == found["resourcesStatus"]
    for query in ("", "?ApiVersion=v1", "?Kind=Pod"):
        (await call(gateway, "GET", f"{here}/query{query}")).must(400)
    (await call(gateway, "GET", "/v1/query?ApiVersion=v1&Kind=Pod")).must(400)
    (await call(gateway, "GET", f"{here}/query?ApiVersion=v1&Kind=../x")).must(422)
    (await call(gateway, "GET", f"{INSTANCES}/none_such/status")).must(404)
    (await call(gateway, "GET", "/v1/healthcheck")).must(200)
    # Behind ONAP's bus; and what is not built.
    behind = f"/api/multicloud-k8s/v1{INSTANCES}/{made['id']}"
    assert (await call(gateway, "GET", behind)).must(200).json == made
    (await call(gateway, "POST", f"{here}/config")).must(404)
    await check_health(gateway, here)
    regions.away.add("op/edge")
    (await call(gateway, "GET", f"{here}/status")).must(503)
    regions.away.clear()


async def check_health(gateway: Gateway, here: str) -> None:
    """MC-134: the tests of the chart; one check at a time, none of an instance that is not there."""
    twin, checks = gateway.world.health_checks, f"{here}/healthcheck"
    begun = (await call(gateway, "POST", checks)).must(201).json
    assert begun == {"healthcheck-id": begun["healthcheck-id"], "status": "Running"}
    assert b"one runs at a time" in (await call(gateway, "POST", checks)).must(409).raw
    one = f"{checks}/{begun['healthcheck-id']}"
    shown = (await call(gateway, "GET", one)).must(200).json
    (result,) = shown["test-suite"]["Results"]
    assert (shown["status"], result["name"], result["status"]) == ("Running", "web-test", "Running")
    assert result["completed_at"] == shown["test-suite"]["CompletedAt"] == "0001-01-01T00:00:00Z"
    twin.end(begun["healthcheck-id"], "Failed", "exit 3")
    shown = (await call(gateway, "GET", one)).must(200).json
    assert (shown["status"], shown["test-suite"]["Results"][0]["reason"]) == ("Failed", "exit 3")
    listed = (await call(gateway, "GET", checks)).must(200).json
    assert listed == {
        "instance-id": shown["instance-id"], "healthcheck-summary": [{**begun, "status": "Failed"}], "hooks": None
    }  # fmt: skip
    (await call(gateway, "DELETE", one)).must(202)
    for method, path in (("GET", one), ("DELETE", one), ("POST", f"{INSTANCES}/none_such/healthcheck")):
        (await call(gateway, method, path)).must(404)


async def check_upgrade(gateway: Gateway, asked: Mapping[str, Any], here: str) -> None:
    """MC-134: another profile, and the given values alone."""
    profile = {"profile-name": "p3", "namespace": "ns1", "kubernetes-version": ""}
    (await call(gateway, "POST", f"{RB}/rb1/v1/profile", profile)).must(201)
    wanted = {**asked, "profile-name": "p3", "override-values": {"image.tag": "8"}}
    gateway.world.regions.add("op/far", "vim-edge")
    for name, value in (("cloud-region", "far"), ("release-name", "other"), ("labels", {"a": "b"}), ("colour", "red")):
        answer = (await call(gateway, "POST", f"{here}/upgrade", {**wanted, name: value})).must(422)
        assert name.encode() in answer.raw
    answer = (await call(gateway, "POST", f"{here}/upgrade", {**wanted, "profile-name": "default"})).must(422)
    assert b"namespace" in answer.raw
    (await call(gateway, "POST", f"{INSTANCES}/none_such/upgrade", wanted)).must(404)
    done = (await call(gateway, "POST", f"{here}/upgrade", wanted)).must(201).json
    assert done["request"]["profile-name"] == "p3"
    replaced = [each.data for each in gateway.world.twins.commands if isinstance(each.data, ReplaceObjects)]
    assert [each.kubernetes_version for each in replaced] == [None]
    assert done["request"]["override-values"] == {"image.tag": "8"}
    assert done["release-name"] == "uuid-1"
    # Back again, for the profile with content.
    (await call(gateway, "POST", f"{here}/upgrade", asked)).must(201)
    (await call(gateway, "DELETE", f"{RB}/rb1/v1/profile/p3")).must(204)


async def no_subscription(gateway: Gateway) -> bool | None:
    """Return True once there is no subscription."""
    return await gateway.world.store.count(SUBSCRIPTIONS, AllOf(), limit=1) == 0 or None


async def check_subscriptions(gateway: Gateway, subscriber: Subscriber, here: str, vnf_id: str) -> None:
    """MC-134: changes of pods of the instance, in ONAP's form; of no other type of MC-052, as it has none for them."""
    many = f"{here}/status/subscription"
    assert (await call(gateway, "GET", many)).must(200).json == []
    asked = {"name": "s1", "callback-url": subscriber.uri, "min-notify-interval": 0, "metadata": {"order": 7}}
    (await call(gateway, "POST", many, b"")).must(400)
    bad: tuple[dict[str, Any], ...] = (
        {"name": ""}, {"callback-url": "ftp://x"}, {"callback-url": "http://192.0.2.1/x"}, {"min-notify-interval": -1},
        {"metadata": {"password": "x"}}, {"colour": 1},
    )  # fmt: skip
    for member in bad:
        assert next(iter(member)).encode() in (await call(gateway, "POST", many, {**asked, **member})).must(422).raw
    made = (await call(gateway, "POST", many, asked)).must(201).json
    assert {name: made[name] for name in asked} == asked
    assert made["last-notify-status"] == 0
    (await call(gateway, "POST", many, asked)).must(409)
    assert (await call(gateway, "GET", many)).must(200).json == [made]
    assert (await call(gateway, "GET", f"{many}/s1")).must(200).json == made
    for method, body in (("GET", None), ("PUT", {**asked, "name": "s2"}), ("DELETE", None)):
        (await call(gateway, method, f"{many}/s2", body)).must(404)
    # The other API does not show them.
    assert (await gateway.call("GET", "/multicloud/v1/subscriptions")).must(200).json == []
    (await call(gateway, "PUT", f"{many}/s1", {**asked, "name": "s2"})).must(422)
    changed = (await call(gateway, "PUT", f"{many}/s1", {**asked, "metadata": {"order": 8}})).must(200).json
    assert changed["metadata"] == {"order": 8}

    publish = gateway.world.bus.publish
    await publish(a_pod("another-vnf", "web-9"))
    outputs = OutputsChanged(vnf_instance_id=vnf_id, vim_ids=("vim-edge",), outputs={"a": 1}, changed=("a",))
    await publish(Envelope(outputs, source="/kubevnfm/lcm-api", subject=vnf_id))
    await publish(a_pod(vnf_id, "web-1"))
    (notification,) = await until(partial(heard, subscriber, 1), timeout_s=300)
    assert {name: notification.body[name] for name in ("instance-id", "subscription-name", "metadata")} == {
        "instance-id": here.rpartition("/")[2], "subscription-name": "s1", "metadata": {"order": 8}
    }  # fmt: skip
    changes = notification.body["resource-changes"]
    assert (changes["deleted"], changes["modified"], [each["name"] for each in changes["created"]]) == (
        [],
        [],
        ["web-1"],
    )
    pod = changes["created"][0]
    assert pod["GVK"] == {"Group": "", "Version": "v1", "Kind": "Pod"}
    assert (pod["status"]["status"], pod["status"]["spec"]) == (
        {"phase": "Running", "podIPs": [{"ip": "10.0.0.9"}]},
        {"nodeName": "n1"},
    )
    await publish(a_pod(vnf_id, "web-1", "Running", "Failed"))
    await publish(a_pod(vnf_id, "web-1", "Failed", None))
    last = (await until(partial(heard, subscriber, 3), timeout_s=300))[-1].body["resource-changes"]
    assert [each["status"]["status"]["phase"] for each in last["deleted"]] == ["Failed"]
    (await call(gateway, "POST", many, {**asked, "name": "s3"})).must(201)
    assert (await call(gateway, "DELETE", f"{many}/s1")).must(202).raw == b""
    (await call(gateway, "GET", f"{many}/s1")).must(404)


async def heard(subscriber: Subscriber, count: int) -> list[Notification] | None:
    """Return the notifications once there are so many."""
    return subscriber.received if len(subscriber.received) >= count else None
