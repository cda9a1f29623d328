"""``/multicloud/v1/vnf_instances`` over HTTP, and each line of bad input of its chapters (multicloud.md chapters 3, 5, 6, 8, 9)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest
import pytest_asyncio
import yaml
from kubevnfm_clients.multicloud.errors import RegionUnavailable
from kubevnfm_clients.multicloud.region_views import KubernetesObject
from kubevnfm_clients.multicloud.suspension import Suspension
from kubevnfm_events.objects import (
    ApplyObjects,
    AttachedLink,
    DeleteObjects,
    HoldLinks,
    LeftObject,
    ObjectsApplied,
    ObjectsDeleted,
    ReplaceObjects,
)
from kubevnfm_lcm_api.lifecycle.core import instance, occurrence
from kubevnfm_lcm_api.multicloud import idempotency
from kubevnfm_secrets import revealed
from kubevnfm_store.port import StoreUnavailable
from kubevnfm_store.query import Query, Stored
from packages.package_variants import OTHER_CNF, variant
from patience import until
from worlds.lcm_builders import ANSWERS
from worlds.lcm_world import RING, FragileStore, Storage
from worlds.multicloud_world import FILES, FOLDER, ORDER, PASSWORD, VNFS, Gateway, a_gateway

ROUTER = "22222222-aaaa-bbbb-cccc-dddddddddddd"
PLAIN_CNF = "11111111-aaaa-bbbb-cccc-dddddddddddd"


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[Gateway]:
    async with a_gateway(tmp_path) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Gateway]:
    """For refused requests, which change nothing."""
    async with a_gateway(tmp_path_factory.mktemp("gateway")) as running:
        yield running


async def test_a_vnf_is_brought_up_by_one_call(gateway: Gateway) -> None:
    """MC-001, MC-004, MC-028, MC-037, MC-038, MC-043: the same instance as SOL003 shows; secret values stay secret."""
    made = await gateway.bring_up(vnf_instance_name="one", namespace="mine", headers={"Prefer": "wait=121"})
    body = made.must(201).json
    assert made.headers["Preference-Applied"] == "wait=120"
    assert made.headers["Location"] == f"{gateway.world.url}{VNFS}/{body['vnf_id']}"
    expected = {"cloud_region_id": "op/edge", "namespace": "mine", "csar_id": gateway.csar_id, "status": "READY"}
    assert {name: body[name] for name in expected} == expected
    assert body["vnf_instance_name"] == "one"
    reported = ANSWERS["infra.k8s.apply_objects"]
    assert isinstance(reported, ObjectsApplied)
    assert [(each["kind"], each["name"], each["uid"], each["ready"]) for each in body["resources"]] == [
        (each.kind, each.name, each.uid, True) for each in reported.objects
    ]
    assert body["vnf_components"] == {each.kind.lower(): [each.name] for each in reported.objects}
    operation = await gateway.world.operation(body["operation"].rpartition("/")[2])
    assert (operation["operation"], operation["operationState"]) == ("INSTANTIATE", "COMPLETED")
    shown = await gateway.call("GET", f"{VNFS}/{body['vnf_id']}")
    assert shown.must(200).json == {name: value for name, value in body.items() if name != "operation"}
    (await gateway.call("GET", f"{VNFS}/{body['vnf_id']}", **{"If-None-Match": shown.headers["ETag"]})).must(304)

    of_sol = (await gateway.world.lcm("GET", f"/vnf_instances/{body['vnf_id']}")).must(200).json
    assert (of_sol["vnfInstanceName"], of_sol["instantiationState"]) == ("one", "INSTANTIATED")
    sent = gateway.world.twins.commands[0].data
    assert isinstance(sent, ApplyObjects)
    given = revealed(sent.values, RING)
    assert (given["cloud_owner"], given["cloud_region"], given["cloud_region_id"]) == ("op", "edge", "op/edge")
    assert (given["password"], sent.namespace, sent.order_artifact) == (PASSWORD, "mine", ORDER)
    for text in (str(body), str(operation), str(of_sol), sent.model_dump_json()):
        assert PASSWORD not in text


async def test_a_vnf_is_on_the_virtual_links_that_its_request_names(gateway: Gateway) -> None:
    """MC-006, MC-035, MC-065, MC-069, MC-086, and the bad input of chapter 10."""
    web = yaml.safe_dump(
        {
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "${role}er"},
            "spec": {"replicas": 1, "template": {"spec": {"containers": [{"name": "main"}]}}},
        }
    )  # fmt: skip
    # Networks name a workload as its variables do.
    order = "artifacts: [{file: r.yaml, priority: 1}]\nvalues: {role: rout}\n"
    files = {ORDER: order, f"{FOLDER}/r.yaml": web}
    csar_id = (await gateway.world.upload(variant(gateway.world.folder, files=files, vnfd_id=ROUTER)))["id"]
    gateway.world.links.attachable["link-1"] = AttachedLink(name="protected", type="kube-ovn", definition="protected")
    one = {"vdu_id": "router", "virtual_link_id": "link-1", "ip_address": "10.2.0.20"}
    for network, status, pointer in (
        ({**one, "virtual_link_id": "none"}, 422, "/networks/0/virtual_link_id"),
        ({**one, "vdu_id": "none"}, 422, "/networks/0/vdu_id"),
        ({**one, "ip_address": "10.9.9.9"}, 409, "/networks/0/ip_address"),
        ({**one, "mtu": 1}, 422, "/networks/0/mtu"),
        ({"vdu_id": "router"}, 422, "/networks/0/virtual_link_id"),
    ):
        refused = await gateway.bring_up(csar_id=csar_id, values={}, networks=[network])
        assert [each["pointer"] for each in refused.problem(status)["errors"]] == [pointer]
    # The same answer names what is wrong with volumes, and with a profile or a value.
    bad = {**one, "virtual_link_id": "none"}
    volume = {"persistent_volume_id": "none", "claim_name": "c"}
    profile = [{"vdu_id": "none", "replicas": 2}]
    for wanted, pointer in (
        ({"csar_id": csar_id, "values": {}, "compute_profiles": profile}, "/compute_profiles/0/vdu_id"),
        ({"values": {}}, "/values"),
    ):
        refused = await gateway.bring_up(**wanted, networks=[bad], volumes=[volume])
        pointers = [each["pointer"] for each in refused.problem(422)["errors"]]
        assert pointers[:2] == ["/networks/0/virtual_link_id", "/volumes/0/persistent_volume_id"]
        assert pointers[2] == pointer
    several = [{"vdu_id": "router", "replicas": 2}]
    refused = await gateway.bring_up(csar_id=csar_id, values={}, networks=[one], compute_profiles=several)
    assert [each["pointer"] for each in refused.problem(422)["errors"]] == ["/networks/0/ip_address"]
    made = (await gateway.bring_up(csar_id=csar_id, values={}, networks=[one])).must(201).json
    hold, apply = (each.data for each in gateway.world.twins.commands)
    assert isinstance(hold, HoldLinks)
    assert isinstance(apply, ApplyObjects)
    assert hold.networks == apply.networks
    assert [(each.vdu_id, each.ip_address) for each in apply.networks] == [("router", "10.2.0.20")]
    checked = gateway.world.links.asked[-1]
    assert (checked.reference, checked.namespace) == (f"vnf:{made['vnf_id']}", made["namespace"])


async def test_values_come_from_three_places_and_any_of_them_may_be_secret(gateway: Gateway) -> None:
    """MC-029, MC-030: a later object of oof_parameters counts above an earlier one, values above all; nothing secret is shown."""
    hidden = {"password": {"$secret": PASSWORD}, "db": {"key": {"$secret": f"{PASSWORD}-db"}, "port": 3}}
    oof = [
        {"x_secret_names": ["pin"], "pin": f"{PASSWORD}-pin", "level": 1, "db": {"port": 1, "host": "a"}},
        {"x_secret_names": ["other"], "level": 2, "db": {"port": 2}},
    ]
    body = (await gateway.bring_up(values=hidden, oof_parameters=oof)).must(201).json
    sent = gateway.world.twins.commands[0].data
    assert isinstance(sent, ApplyObjects)
    given = revealed(sent.values, RING)
    assert (given["level"], given["password"], given["pin"]) == (2, PASSWORD, f"{PASSWORD}-pin")
    assert given["db"] == {"port": 3, "host": "a", "key": f"{PASSWORD}-db"}
    operation = await gateway.world.operation(body["operation"].rpartition("/")[2])
    assert operation["operationParams"]["additionalParams"]["values"]["db"] == {"port": 3, "host": "a"}
    stored = b"".join(path.read_bytes() for path in gateway.world.folder.glob("store.db*") if path.is_file())
    for text in (str(body), str(operation), sent.model_dump_json(), str(stored)):
        assert PASSWORD not in text


async def test_what_is_not_finished_is_answered_at_the_end_of_the_wait(gateway: Gateway) -> None:
    """MC-004, MC-020, MC-038: 202 while it runs; a failed one is FAILED with its reason. An instance of SOL003 is none of ours."""
    gateway.world.twins.waiting.add("infra.k8s.apply_objects")
    made = (await gateway.bring_up(headers={"Prefer": "respond-async"})).must(202).json
    assert (made["status"], made["resources"], made["namespace"]) == ("CREATING", [], f"vnf-{made['vnf_id'][:8]}")
    gateway.world.twins.failing.add("infra.k8s.apply_objects")
    await gateway.world.twins.has_asked(1)
    await gateway.world.twins.release()
    await gateway.world.reached(made["operation"].rpartition("/")[2], "FAILED_TEMP")
    failed = (await gateway.call("GET", f"{VNFS}/{made['vnf_id']}")).must(200).json
    assert (failed["status"], failed["operation"]) == ("FAILED", made["operation"])
    assert "no host" in failed["status_detail"]
    of_sol = await gateway.world.create("cnf")
    (await gateway.call("GET", f"{VNFS}/{of_sol}")).problem(404)


async def test_lists_have_pages_and_filters(gateway: Gateway) -> None:
    """MC-007, MC-038."""
    twins, world = gateway.world.twins, gateway.world
    assert (await gateway.call("GET", VNFS)).must(200).json == []
    ready = (await gateway.bring_up(namespace="one", vnf_instance_name="a")).must(201).json["vnf_id"]
    drifted = (await gateway.bring_up(cloud_region_id="other/twice", namespace="two")).must(201).json["vnf_id"]
    drift = {"state": "CHANGED", "since": "2026-11-26T10:00:00Z", "reason": "web: changed by kubectl"}
    await world.store.update("vnf_instances", drifted, {"metadata/kubevnfm_drift": drift})
    twins.failing.add("infra.k8s.apply_objects")
    failed = (await gateway.bring_up(namespace="two")).must(201).json["vnf_id"]
    twins.waiting.add("infra.k8s.apply_objects")
    creating = (await gateway.bring_up(headers={"Prefer": "wait=0"})).must(202).json["vnf_id"]
    everything = sorted([ready, drifted, failed, creating])
    await world.create("cnf")

    first = (await gateway.call("GET", f"{VNFS}?limit=3")).must(200)
    link = first.headers["Link"].partition(">")[0].removeprefix(f"<{world.url}")
    second = (await gateway.call("GET", link)).must(200)
    assert [each["vnf_id"] for each in [*first.json, *second.json]] == everything
    for query, wanted in (
        ("status=READY", [ready]),
        ("status=DEGRADED", [drifted]),
        ("status=FAILED", [failed]),
        ("status=CREATING", [creating]),
        ("status=UPDATING", []),
        ("status=DELETING", []),
        ("namespace=two", sorted([drifted, failed])),
        ("namespace=two&status=FAILED&limit=1", [failed]),
        ("cloud_region_id=twice", [drifted]),
        ("cloud_region_id=op/edge", sorted([ready, failed, creating])),
        ("cloud_region_id=none", []),
        ("vnf_instance_name=a", [ready]),
    ):
        found = (await gateway.call("GET", f"{VNFS}?{query}")).must(200).json
        assert [each["vnf_id"] for each in found] == wanted, query
    shown = (await gateway.call("GET", f"{VNFS}/{drifted}")).must(200).json
    assert (shown["status"], shown["status_detail"]) == ("DEGRADED", drift["reason"])
    for query in ("limit=0", "limit=1001", "colour=red", "status=GONE", "nextpage_opaque_marker=x"):
        (await gateway.call("GET", f"{VNFS}?{query}")).problem(400)


async def test_live_reads_each_object_in_the_region(gateway: Gateway) -> None:
    """MC-043: without it the region is not called."""
    made = (await gateway.bring_up()).must(201).json
    one = f"{VNFS}/{made['vnf_id']}"
    stored = made["resources"][0]
    key = f"{stored['kind']}/{stored['name']}"
    for uid, wanted in ((stored["uid"], "present"), ("other", "replaced"), (None, "missing")):
        gateway.world.regions.objects.clear()
        if uid is not None:
            gateway.world.regions.objects[key] = KubernetesObject.model_validate({"metadata": {"uid": uid}})
        (seen, *_) = (await gateway.call("GET", f"{one}/resources?live=true")).must(200).json
        assert (seen["live"], seen["ready"]) == (wanted, wanted == "present")
        assert (await gateway.call("GET", f"{one}?live=true")).must(200).json["resources"][0] == seen
    assert (await gateway.call("GET", f"{one}/resources")).must(200).json == made["resources"]
    gateway.world.regions.away.add("op/edge")
    (await gateway.call("GET", one)).must(200)
    for path in (f"{one}?live=true", f"{one}/resources?live=true"):
        (await gateway.call("GET", path)).problem(503)
    gateway.world.dry_runs.taken = RegionUnavailable("cloud region op/edge does not answer")
    (await gateway.call("PATCH", f"{one}?dry_run=server", {"values": {"level": 4}})).problem(503)
    (await gateway.call("GET", f"{one}?live=perhaps")).problem(400)
    (await gateway.call("GET", f"{VNFS}/none/resources")).problem(404)


async def test_a_vnf_is_changed_by_a_patch(gateway: Gateway) -> None:
    """MC-009, MC-042: names alone, or values and package; the region and the namespace stay."""
    world = gateway.world
    made = await gateway.bring_up(namespace="default")
    one, tag = f"{VNFS}/{made.must(201).json['vnf_id']}", made.headers["ETag"]
    named = await gateway.call("PATCH", one, {"vnf_instance_name": "b"}, **{"If-Match": tag})
    assert (named.must(200).json["vnf_instance_name"], named.json["status"]) == ("b", "READY")
    (await gateway.call("PATCH", one, {"values": {"level": 9}}, **{"If-Match": tag})).problem(412)
    changed = await gateway.call("PATCH", one, {"values": {"level": 9}}, **{"If-Match": named.headers["ETag"]})
    assert changed.must(200).json["status"] == "READY"
    sent = world.twins.commands[-1].data
    assert isinstance(sent, ReplaceObjects)
    given = revealed(sent.values, RING)
    assert (given["level"], given["password"], given["cloud_region_id"]) == (9, PASSWORD, "op/edge")
    assert (given["vnf_instance_name"], sent.namespace) == ("b", "default")
    other = await world.upload(variant(world.folder, vnfd_id=OTHER_CNF, files=FILES))
    moved = (await gateway.call("PATCH", one, {"csar_id": other["id"]})).must(200).json
    assert (moved["csar_id"], moved["namespace"], moved["status"]) == (other["id"], "default", "READY")
    assert (await gateway.call("PATCH", one, {})).must(200).json["vnf_instance_name"] == "b"
    assert "vnf_instance_name" not in (await gateway.call("PATCH", one, {"vnf_instance_name": None})).must(200).json
    for patch, pointer in (
        ({"namespace": "other"}, "/namespace"),
        ({"cloud_region_id": "op/twice"}, "/cloud_region_id"),
        ({"values": {"namespace": "other"}}, "/namespace"),
        ({"values": None}, "/values"),
        ({"values": {"vnf_id": "x"}}, "/values/vnf_id"),
        # Together with those that it has.
        ({"values": {"a": "x" * 2**20, "b": "x" * (2**20 - 8)}}, "/values"),
        ({"csar_id": "none"}, "/csar_id"),
        ({"csar_id": other["id"], "vnf_instance_name": "c"}, "/vnf_instance_name"),
        ({"order_artifact": "none.yaml"}, "/order_artifact"),
        ({"interfaces": []}, "/interfaces"),
    ):
        refused = (await gateway.call("PATCH", one, patch)).problem(422)
        assert [error["pointer"] for error in refused["errors"]] == [pointer], patch
    sent_before = len(world.twins.commands)
    world.twins.waiting.add("infra.k8s.replace_objects")
    updating = (await gateway.call("PATCH", one, {"values": {"level": 1}}, Prefer="respond-async")).must(202).json
    assert updating["status"] == "UPDATING"
    await world.twins.has_asked(sent_before + 1)
    busy = (await gateway.call("PATCH", one, {"values": {"level": 2}})).problem(409)
    assert busy["type"] == "operation-running"
    assert (await gateway.call("DELETE", one)).problem(409)["type"] == "operation-running"


async def test_a_vnf_is_brought_down_and_its_instance_deleted(gateway: Gateway) -> None:
    """MC-004, MC-009, MC-057: whichever process ends the termination deletes the instance with it."""
    world, twins = gateway.world, gateway.world.twins
    made = await gateway.bring_up()
    one = f"{VNFS}/{made.must(201).json['vnf_id']}"
    (await gateway.call("DELETE", one, **{"If-Match": '"stale"'})).problem(412)
    for query in ("orphan=perhaps", "force=perhaps", "force=true&orphan=true"):
        (await gateway.call("DELETE", f"{one}?{query}")).problem(400)
    (await gateway.call("DELETE", f"{one}?orphan=true")).problem(409)
    twins.waiting.add("infra.k8s.delete_objects")
    leaving = (await gateway.call("DELETE", one, Prefer="respond-async", **{"If-Match": made.headers["ETag"]})).must(
        202
    )
    assert leaving.json["status"] == "DELETING"
    again = (await gateway.call("DELETE", one, Prefer="wait=0")).must(202)
    assert again.json["operation"] == leaving.json["operation"]
    (await gateway.call("DELETE", f"{one}?force=true")).problem(409)
    await twins.has_asked(2)
    # A termination that has failed is tried again.
    twins.failing.add("infra.k8s.delete_objects")
    await twins.release()
    await world.reached(leaving.json["operation"].rpartition("/")[2], "FAILED_TEMP")
    twins.failing.clear()
    (await gateway.call("DELETE", one)).must(204)
    (await gateway.call("DELETE", one)).problem(404)
    (await gateway.call("GET", one)).problem(404)
    assert (await world.lcm("GET", "/vnf_instances")).must(200).json == []
    operation = await world.operation(leaving.json["operation"].rpartition("/")[2])
    assert operation["operationState"] == "COMPLETED"
    await world.bus.quiet()
    assert (await world.packages("GET", f"/{gateway.csar_id}")).must(200).json["usageState"] == "NOT_IN_USE"


async def test_a_vnf_stays_in_its_region_and_namespace(gateway: Gateway) -> None:
    """Chapter 6: SOL003 may terminate and instantiate it, at the same place."""
    made = (await gateway.bring_up(namespace="mine")).must(201).json
    world, instance_id = gateway.world, made["vnf_id"]
    await world.reached(await world.ask(instance_id, "terminate", {"terminationType": "FORCEFUL"}))
    world.vims.add("vim-other", "kubernetes")

    def place(vim_id: str, namespace: str) -> dict[str, Any]:
        connections = {"k": {"vimId": vim_id, "vimType": "kubernetes"}}
        parameters = {"namespace": namespace, "values": {"password": PASSWORD}}
        return {"flavourId": "simple", "vimConnectionInfo": connections, "additionalParams": parameters}

    for there, name in (
        (place("vim-other", "mine"), "vimConnectionInfo"),
        (place("vim-edge", "other"), "additionalParams/namespace"),
    ):
        refused = await world.lcm("POST", f"/vnf_instances/{instance_id}/instantiate", there)
        assert [each["name"] for each in refused.problem(422)["invalidParams"]] == [name]
    await world.reached(await world.ask(instance_id, "instantiate", place("vim-edge", "mine")))
    assert (await gateway.call("GET", f"{VNFS}/{instance_id}")).must(200).json["status"] == "READY"


async def test_what_was_brought_up_in_part_is_brought_down(gateway: Gateway) -> None:
    """MC-009, MC-020, MC-031, MC-057: the operation is rolled back, and the instance goes with its end; one without objects goes at once."""
    world, twins = gateway.world, gateway.world.twins
    twins.waiting.add("infra.k8s.apply_objects")
    twins.failing.add("infra.k8s.apply_objects")
    creating = (await gateway.bring_up({"Prefer": "wait=0"})).must(202)
    one = f"{VNFS}/{creating.json['vnf_id']}"
    await twins.has_asked(1)
    await twins.release()
    await world.reached(creating.json["operation"].rpartition("/")[2], "FAILED_TEMP")
    answer = (await gateway.call("GET", one)).must(200)
    failed, seen = answer.json, {"If-Match": answer.headers["ETag"]}
    (await gateway.call("DELETE", one, **{"If-Match": creating.headers["ETag"]})).problem(412)
    assert (await gateway.call("PATCH", one, {"values": {}}, **seen)).problem(409)["type"] == "operation-running"
    reason = "others have ConfigMap mine/other there"
    staying = LeftObject(
        api_version="v1", kind="Namespace", namespace=None, name="mine", uid="u", cluster="k", reason=reason
    )
    twins.answers["infra.k8s.delete_objects"] = ObjectsDeleted(left=(staying,))
    answer = (await gateway.call("DELETE", one, **seen)).must(200)
    assert [each["reason"] for each in answer.json["left"]] == [reason]
    assert twins.asked()[-1] == "infra.k8s.delete_objects"
    operation = await world.operation(failed["operation"].rpartition("/")[2])
    assert operation["operationState"] == "ROLLED_BACK"
    assert operation["resourceChanges"]["metadata"]["kubevnfm_left"][0]["reason"] == reason
    twins.answers["infra.k8s.delete_objects"] = ObjectsDeleted()
    failed = (await gateway.bring_up()).must(201).json
    operation_id = failed["operation"].rpartition("/")[2]
    (await world.lcm("POST", f"/vnf_lcm_op_occs/{operation_id}/rollback")).must(202)
    await world.reached(operation_id, "ROLLED_BACK")
    left = (await gateway.call("GET", f"{VNFS}/{failed['vnf_id']}")).must(200).json
    assert (left["status"], "delete it" in left["status_detail"]) == ("FAILED", True)
    (await gateway.call("DELETE", f"{VNFS}/{failed['vnf_id']}")).must(204)
    assert (await world.lcm("GET", "/vnf_instances")).must(200).json == []


async def test_a_vnf_in_a_region_that_does_not_answer_is_given_up_if_the_caller_says_so(gateway: Gateway) -> None:
    """MC-061."""
    made = (await gateway.bring_up()).must(201).json
    one = f"{VNFS}/{made['vnf_id']}"
    gateway.world.regions.away.add("op/edge")
    refused = await gateway.call("DELETE", one)
    assert refused.problem(503)["type"] == "cluster-unavailable"
    assert "Retry-After" in refused.headers
    lost = LeftObject(
        api_version="apps/v1", kind="Deployment", namespace="mine", name="web", uid="u", cluster="https://k"
    )
    gateway.world.twins.answers["infra.k8s.delete_objects"] = ObjectsDeleted(left=(lost,))
    answer = (await gateway.call("DELETE", f"{one}?orphan=true")).must(200).json
    assert [(each["kind"], each["name"]) for each in answer["left"]] == [("Deployment", "web")]
    (await gateway.call("GET", one)).problem(404)


async def test_a_vnf_whose_objects_do_not_go_is_given_up_if_the_caller_says_so(gateway: Gateway) -> None:
    """MC-059: what is left, and its finalizers, are named; they are never removed."""
    twins = gateway.world.twins
    one = f"{VNFS}/{(await gateway.bring_up()).must(201).json['vnf_id']}"
    twins.failing.add("infra.k8s.delete_objects")
    held = (await gateway.call("DELETE", one)).must(202).json
    await gateway.world.reached(held["operation"].rpartition("/")[2], "FAILED_TEMP")
    twins.failing.clear()
    reason = "ConfigMap mine/web: held by acme.example/hold"
    left = LeftObject(
        api_version="v1", kind="ConfigMap", namespace="mine", name="web", uid="u", cluster="k", reason=reason
    )
    twins.answers["infra.k8s.delete_objects"] = ObjectsDeleted(left=(left,))
    answer = (await gateway.call("DELETE", f"{one}?force=true")).must(200).json
    assert [each["reason"] for each in answer["left"]] == [reason]
    (await gateway.call("GET", one)).problem(404)
    other = (await gateway.bring_up()).must(201).json
    asked = len(twins.commands)
    twins.waiting.add("infra.k8s.delete_objects")
    begun = (await gateway.call("DELETE", f"{VNFS}/{other['vnf_id']}?force=true", Prefer="respond-async")).must(202)
    again = (await gateway.call("DELETE", f"{VNFS}/{other['vnf_id']}?force=true", Prefer="wait=0")).must(202)
    assert again.json["operation"] == begun.json["operation"]
    await twins.has_asked(asked + 1)
    await twins.release()
    await gateway.world.reached(begun.json["operation"].rpartition("/")[2])
    sent = [each.data for each in twins.commands if isinstance(each.data, DeleteObjects)]
    assert [each.gives_up_waiting for each in sent] == [False, True, True]
    assert not any(each.force_remove_finalizers or each.force for each in sent)


class _LosesAnEnd(FragileStore):
    """Fails once, between the deletion of an instance and the write that ends its operation."""

    moments: ClassVar[list[str]] = []

    async def delete(self, collection: str, *given: Any, **more: Any) -> bool:
        was_there = await super().delete(collection, *given, **more)
        if collection == instance.COLLECTION:
            self.moments.append("deleted")
        return was_there

    async def replace(self, collection: str, *given: Any, **more: Any) -> Stored:
        if collection == occurrence.COLLECTION and self.moments == ["deleted"]:
            self.moments.append("lost")
            raise StoreUnavailable("the process has lost the database")
        return await super().replace(collection, *given, **more)


async def test_a_removal_ends_once_if_the_process_ends_between_its_two_writes(tmp_path: Path) -> None:
    """MC-057, MC-061: also of a bring-up that waits FAILED_TEMP in a region that does not answer."""
    async with a_gateway(tmp_path, Storage(kind=_LosesAnEnd)) as gateway:
        world = gateway.world
        made = (await gateway.bring_up()).must(201).json
        (await gateway.call("DELETE", f"{VNFS}/{made['vnf_id']}")).must(204)
        assert _LosesAnEnd.moments[:2] == ["deleted", "lost"]

        async def ends() -> list[str] | None:
            return [each.vnf_instance_id for each in world.changes if (each.operation, each.state) == ended] or None

        # The answer may come before the event that says it.
        ended = ("TERMINATE", "COMPLETED")
        assert await until(ends) == [made["vnf_id"]]
        assert world.twins.asked().count("infra.k8s.delete_objects") == 1
        (await gateway.call("DELETE", f"{VNFS}/{made['vnf_id']}")).problem(404)

        world.twins.failing.add("infra.k8s.apply_objects")
        failed = (await gateway.bring_up()).must(201).json
        world.regions.away.add("op/edge")
        (await gateway.call("DELETE", f"{VNFS}/{failed['vnf_id']}")).problem(503)
        (await gateway.call("DELETE", f"{VNFS}/{failed['vnf_id']}?orphan=true")).must(204)
        assert (await world.operation(failed["operation"].rpartition("/")[2]))["operationState"] == "FAILED"
        assert (await world.lcm("GET", "/vnf_instances")).must(200).json == []


class _LosesAnOperation(FragileStore):
    """Fails once, between the two writes of an acceptance."""

    has_failed = False

    async def insert(self, collection: str, *given: Any, **more: Any) -> Stored:
        if collection == occurrence.COLLECTION and not _LosesAnOperation.has_failed:
            _LosesAnOperation.has_failed = True
            raise StoreUnavailable("the process has lost the database")
        return await super().insert(collection, *given, **more)


async def test_an_operation_goes_on_if_the_process_ends_after_the_first_write(tmp_path: Path) -> None:
    """MC-021: the one write has the instance with the message that wakes its operation."""
    async with a_gateway(tmp_path, Storage(kind=_LosesAnOperation)) as gateway:
        (await gateway.bring_up()).problem(503)
        await gateway.world.until(lambda: any(change.state == "COMPLETED" for change in gateway.world.changes))
        (stored,) = (await gateway.world.lcm("GET", "/vnf_instances")).must(200).json
        body = (await gateway.call("GET", f"{VNFS}/{stored['id']}")).must(200).json
        assert (body["status"], body["cloud_region_id"]) == ("READY", "op/edge")


_BAD: list[tuple[Mapping[str, Any], list[str]]] = [
    ({"cloud_region_id": "op/none"}, ["/cloud_region_id"]),
    ({"cloud_region_id": "twice"}, ["/cloud_region_id"]),
    ({"cloud_region_id": "op/edge/more"}, ["/cloud_region_id"]),
    ({"cloud_region_id": None}, ["/cloud_region_id"]),
    ({"csar_id": "none"}, ["/csar_id"]),
    ({"csar_id": 5}, ["/csar_id"]),
    ({"csar_id": 5, "cloud_region_id": 7}, ["/cloud_region_id", "/csar_id"]),
    ({"namespace": "Mine"}, ["/namespace"]),
    ({"namespace": "kube-mine"}, ["/namespace"]),
    ({"namespace": "ours"}, ["/namespace"]),
    ({"namespace": "a", "values": {"namespace": "b"}}, ["/namespace"]),
    ({"values": []}, ["/values"]),
    ({"values": {"-a": 1}}, ["/values/-a"]),
    ({"values": {"vnf_id": "x"}}, ["/values/vnf_id"]),
    ({"values": {"level": "x" * (2**20 + 1)}}, ["/values/level"]),
    ({"values": {}}, ["/values"]),
    ({"values": {"a": {"$secret": "x" * 2**20}, "b": ["x" * 2**20]}}, ["/values"]),
    ({"values": {"a": {"$secret": 5}, "b": [{"$secret": "***"}]}}, ["/values/a", "/values/b/0"]),
    ({"values": {"a": {"$secret": "x" * (2**20 + 1)}}}, ["/values/a"]),
    ({"values": {"level": {"$secret": PASSWORD}, "password": "x"}}, ["/values"]),
    ({"oof_parameters": {}}, ["/oof_parameters"]),
    ({"oof_parameters": [{}, {"-a": 1, "vnf_id": 2}, {"c d": 1}]}, ["/oof_parameters/1/-a", "/oof_parameters/1/vnf_id", "/oof_parameters/2/c d"]),
    ({"oof_parameters": [{}] * 101}, ["/oof_parameters"]),
    ({"oof_parameters": [{"namespace": "b"}], "namespace": "a"}, ["/namespace"]),
    ({"order_artifact": "none.yaml"}, ["/order_artifact"]),
    ({"kubernetes_version": "1"}, ["/kubernetes_version"]),
    ({"kubernetes_version": "1.31"}, ["/kubernetes_version"]),
    ({"order_artifact": f"{FOLDER}/a.yaml"}, ["/order_artifact"]),
    ({"vnf_instance_name": "x" * 256}, ["/vnf_instance_name"]),
    *(
        ({name: []}, [f"/{name}"])
        for name in (
            "regions", "artifacts",
            "network_parameters", "colour",
        )
    ),
]  # fmt: skip


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(("changes", "pointers"), _BAD, ids=lambda value: str(value)[:60])
async def test_bad_input_is_refused_before_anything_is_stored(
    shared_gateway: Gateway, changes: Mapping[str, Any], pointers: list[str]
) -> None:
    """MC-008, MC-034, and chapters 3, 4, 5 and 6, Bad input: 422 with the pointers; never with a value."""
    refused = await shared_gateway.bring_up(**changes)
    assert [error["pointer"] for error in refused.problem(422)["errors"]][: len(pointers)] == pointers
    assert PASSWORD not in str(refused.raw)
    assert (await shared_gateway.world.lcm("GET", "/vnf_instances")).must(200).json == []


@pytest.mark.asyncio(loop_scope="module")
async def test_what_is_no_request_is_400(shared_gateway: Gateway) -> None:
    """Chapter 3, Bad input."""
    for values in ({"$secret": "x"}, {"a": {"$secret": "x", "b": 1}}, {"a": {"$sealed": "x"}}, {"a": {"b": {"$x": 1}}}):
        (await shared_gateway.bring_up(values=values)).problem(400)
    (await shared_gateway.bring_up(oof_parameters=[{"a": {"$secret": "x"}}])).problem(400)
    (await shared_gateway.call("POST", f"{VNFS}?dry_runs=render", {})).problem(400)
    shared_gateway.world.regions.away.add("op/edge")
    away = await shared_gateway.bring_up()
    shared_gateway.world.regions.away.clear()
    assert away.problem(503)["type"] == "cluster-unavailable"
    assert "Retry-After" in away.headers
    assert (await shared_gateway.world.lcm("GET", "/vnf_instances")).must(200).json == []


@pytest.mark.asyncio(loop_scope="module")
async def test_a_package_without_an_order_is_refused(shared_gateway: Gateway) -> None:
    """MC-015 is not built here."""
    plain = await shared_gateway.world.upload(variant(shared_gateway.world.folder, vnfd_id=PLAIN_CNF))
    refused = (await shared_gateway.bring_up(csar_id=plain["id"])).problem(422)
    assert [error["pointer"] for error in refused["errors"]] == ["/order_artifact"]
    (await shared_gateway.world.packages("PATCH", f"/{plain['id']}", {"operationalState": "DISABLED"})).must(200)
    refused = (await shared_gateway.bring_up(csar_id=plain["id"])).problem(422)
    assert [error["pointer"] for error in refused["errors"]] == ["/csar_id"]


async def test_a_repeat_under_a_key_brings_up_no_second_vnf(gateway: Gateway) -> None:
    """MC-005: also after a crash between the acceptance and the answer."""
    key = {"Idempotency-Key": "k"}
    made = (await gateway.bring_up(key)).must(201)
    store = gateway.world.store
    (record,) = await store.find(idempotency.COLLECTION, Query())
    crashed = {"state": "running", "leaseUntil": "2000-01-01T00:00:00.000Z"}
    await store.update(idempotency.COLLECTION, record.id, crashed)
    again = (await gateway.bring_up(key)).must(201)
    assert (again.json, again.headers["Location"]) == (made.json, made.headers["Location"])
    assert [each["vnf_id"] for each in (await gateway.call("GET", VNFS)).must(200).json] == [made.json["vnf_id"]]


async def test_a_suspension_is_shown_and_refuses(gateway: Gateway) -> None:
    """MC-139: bring-up, change and bring-down, for the instance and for its region."""
    made = (await gateway.bring_up()).must(201).json
    one = f"{VNFS}/{made['vnf_id']}"
    begun = (await gateway.call("PUT", f"{one}/suspension", {"reason": "new disks"})).must(200).json
    assert (await gateway.call("GET", one)).must(200).json["suspended"] == begun
    assert (await gateway.call("GET", VNFS)).must(200).json[0]["suspended"] == begun
    for answer in (await gateway.call("PATCH", one, {"values": {"level": 9}}), await gateway.call("DELETE", one)):
        assert answer.problem(409)["type"] == "suspended"
    (await gateway.call("DELETE", f"{one}/suspension")).must(204)

    gateway.world.twins.failing = {"infra.k8s.apply_objects"}
    failed = (await gateway.bring_up(namespace="other")).must(201).json
    suspension = Suspension(by="ann", since="2026-11-26T10:00:00.000Z", reason="new switches", scope="region")
    gateway.world.regions.suspended["vim-edge"] = suspension
    refused = [
        await gateway.bring_up(namespace="third"),
        await gateway.call("PATCH", one, {"values": {"level": 9}}),
        await gateway.call("DELETE", one),
        await gateway.call("DELETE", f"{VNFS}/{failed['vnf_id']}"),
    ]
    for answer in refused:
        assert answer.problem(409)["type"] == "suspended"
