"""VNF instances over HTTP: create, show, list, delete, and the two API versions' forms."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from kubevnfm_events.stacks import PortFacts, ResourcesCreated
from packages.vm_packages import without_base_hot
from worlds.lcm_builders import RESOURCES
from worlds.lcm_world import World, sample_request

VNFD = sample_request("vm", "create")["vnfdId"]
UNKNOWN = "00000000-0000-4000-8000-000000000000"


async def test_a_created_instance_has_its_vnfds_facts_and_its_links(world: World) -> None:
    await world.sample()
    made = (await world.lcm("POST", "/vnf_instances", {"vnfdId": VNFD, "metadata": {"site": "x"}})).must(201)
    body = made.json
    assert body["instantiationState"] == "NOT_INSTANTIATED"
    assert body["vnfdId"] == VNFD
    assert body["metadata"]["site"] == "x"
    assert set(body["_links"]) == {"self", "instantiate"}
    assert (
        body["_links"]["self"]["href"]
        == made.headers["Location"]
        == f"{world.url}/vnflcm/v2/vnf_instances/{body['id']}"
    )
    assert "instantiatedVnfInfo" not in body
    assert "vnfPkgId" not in body
    assert None not in body.values()
    shown = (await world.call("GET", made.headers["Location"].removeprefix(world.url))).must(200)
    assert shown.json == body


async def test_v1_shows_the_same_instance_in_its_own_form(world: World) -> None:
    package = await world.sample()
    instance_id = (await world.lcm("POST", "/vnf_instances", {"vnfdId": VNFD})).must(201).json["id"]
    v1 = (await world.v1("GET", f"/vnf_instances/{instance_id}")).must(200).json
    assert v1["vnfInstanceName"] == f"vnf-{instance_id}"
    assert v1["vnfPkgId"] == package["id"]
    assert v1["_links"]["self"]["href"].startswith(f"{world.url}/vnflcm/v1/")
    assert "vnfInstanceName" not in (await world.lcm("GET", f"/vnf_instances/{instance_id}")).json


async def test_an_instantiated_instance_is_a_list_in_v1_and_a_map_in_v2(world: World) -> None:
    await world.sample()
    create = "infra.openstack.create_resources"
    of_cluster = world.twins.answers[create]
    # The twin reports a cluster; its master stands for the sample's machine.
    text = of_cluster.model_dump_json().replace("masterNode_CP1", "VDU1_CP1")
    world.twins.answers[create] = type(of_cluster).model_validate_json(text)
    instance_id = await world.create()
    link = {
        "id": "ext", "resourceId": "net0",
        "extCps": [{"cpdId": "VDU1_CP1", "cpConfig": {"c1": {"cpProtocolData": []}}}],
    }  # fmt: skip
    operation = await world.instantiate(
        instance_id, extVirtualLinks=[link], additionalParams={"a": 1, "password": "s3cret"}
    )
    assert (await world.reached(operation))["operationState"] == "COMPLETED"
    v2 = (await world.lcm("GET", f"/vnf_instances/{instance_id}")).json
    v1 = (await world.v1("GET", f"/vnf_instances/{instance_id}")).json
    assert v2["vimConnectionInfo"]["vim-1"] == {
        "vimId": "vim-1",
        "vimType": "ETSINFV.OPENSTACK_KEYSTONE.V_3",
        "interfaceInfo": {},
        "accessInfo": {},
        "extra": {},
    }
    assert v1["vimConnectionInfo"][0]["id"] == "vim-1"
    assert v1["vimConnectionInfo"][0]["vimType"] == "openstack"
    info1, info2 = v1["instantiatedVnfInfo"], v2["instantiatedVnfInfo"]
    assert info2["extCpInfo"][0]["cpConfigId"] == "c1"
    assert "cpConfigId" not in info1["extCpInfo"][0]
    assert info2["extVirtualLinkInfo"][0]["currentVnfExtCpData"]
    assert "currentVnfExtCpData" not in info1["extVirtualLinkInfo"][0]
    assert info1["additionalParams"] == {"a": 1, "password": "***"}
    assert "additionalParams" not in info2
    assert info2["metadata"]["stack_name"]
    assert "metadata" not in info1
    assert [vnfc["id"] for vnfc in info1["vnfcInfo"]] == [vnfc["id"] for vnfc in info2["vnfcInfo"]]
    tasks = {"terminate", "scale", "scaleToLevel", "heal", "operate", "changeExtConn"}
    assert set(v2["_links"]) == {"self", *tasks, "changeCurrentVnfPkg", "createSnapshot", "revertToSnapshot"}
    assert set(v1["_links"]) == {"self", *tasks}
    assert "s3cret" not in str(v1) + str(v2)


@pytest.mark.parametrize("state", ["missing", "disabled", "created"])
async def test_an_instance_needs_a_usable_package(world: World, state: str) -> None:
    if state == "disabled":
        package = await world.sample()
        (await world.packages("PATCH", f"/{package['id']}", {"operationalState": "DISABLED"})).must(200)
    if state == "created":
        (await world.packages("POST", body={})).must(201)
    problem = (await world.lcm("POST", "/vnf_instances", {"vnfdId": VNFD})).problem(422)
    assert "vnfdId" in problem["detail"]
    assert (await world.lcm("GET", "/vnf_instances")).json == []


async def test_a_create_that_races_with_disable_and_delete_leaves_no_orphan(world: World) -> None:
    for _ in range(5):
        package = await world.sample()
        path = f"/{package['id']}"

        async def remove(path: str = path) -> int:
            (await world.packages("PATCH", path, {"operationalState": "DISABLED"})).must(200)
            return (await world.packages("DELETE", path)).status

        async with asyncio.TaskGroup() as tasks:
            removing = tasks.create_task(remove())
            creating = [tasks.create_task(world.lcm("POST", "/vnf_instances", {"vnfdId": VNFD})) for _ in range(4)]
        removed, created = removing.result(), [task.result() for task in creating]
        made = [answer.json["id"] for answer in created if answer.status == 201]
        assert all(answer.status in {201, 422} for answer in created)
        assert removed == 409 or not made
        listed = (await world.lcm("GET", "/vnf_instances", params={"all_records": "yes"})).json
        assert {each["id"] for each in listed} == set(made)
        for instance_id in made:
            (await world.lcm("DELETE", f"/vnf_instances/{instance_id}")).must(204)
        if removed == 409:
            (await world.packages("DELETE", path)).must(204)


async def test_a_deleted_instance_is_gone(world: World) -> None:
    await world.sample()
    instance_id = await world.create()
    answer = (await world.lcm("DELETE", f"/vnf_instances/{instance_id}")).must(204)
    assert answer.raw == b""
    (await world.lcm("GET", f"/vnf_instances/{instance_id}")).problem(404)
    (await world.lcm("DELETE", f"/vnf_instances/{instance_id}")).problem(404)


@pytest.mark.parametrize("state", ["PROCESSING", "FAILED_TEMP", "COMPLETED"])
async def test_an_instance_that_is_busy_or_instantiated_is_not_deleted(world: World, state: str) -> None:
    await world.sample()
    operation_id = await world.an_operation_in(state)
    instance_id = (await world.operation(operation_id))["vnfInstanceId"]
    problem = (await world.lcm("DELETE", f"/vnf_instances/{instance_id}")).problem(409)
    assert ("INSTANTIATED" if state == "COMPLETED" else operation_id) in problem["detail"]
    (await world.lcm("GET", f"/vnf_instances/{instance_id}")).must(200)
    await world.twins.release()


async def test_an_instance_is_not_sent_again_to_a_caller_that_has_it(world: World) -> None:
    await world.sample()
    instance_id = await world.create()
    path = f"/vnf_instances/{instance_id}"
    first = (await world.lcm("GET", path)).must(200)
    tag = first.headers["ETag"]
    assert first.headers["Last-Modified"].endswith("GMT")
    headers = {"Version": "2.0.0"}
    for known in (tag, f'"other", {tag}', f"W/{tag}", "*"):
        answer = (await world.lcm("GET", path, headers={**headers, "If-None-Match": known})).must(304)
        assert answer.headers["ETag"] == tag
    (await world.lcm("GET", path, headers={**headers, "If-None-Match": '"other"'})).must(200)
    assert (await world.v1("GET", path)).headers["ETag"] != tag
    (await world.lcm("DELETE", path, headers={**headers, "If-Match": '"other"'})).problem(412)
    (await world.lcm("DELETE", path, headers={**headers, "If-Match": f"W/{tag}"})).problem(412)
    long_ago = "Thu, 01 Jan 1970 00:00:00 GMT"
    (await world.lcm("DELETE", path, headers={**headers, "If-Unmodified-Since": long_ago})).problem(412)
    for no_date in ("yesterday", "Mon, 01 Jan 99999999999 00:00:00 GMT"):
        (await world.lcm("DELETE", path, headers={**headers, "If-Unmodified-Since": no_date})).problem(400)
    (await world.lcm("DELETE", path, headers={**headers, "If-Match": tag})).must(204)


async def test_occurrences_and_packages_have_tags_too(world: World) -> None:
    package = await world.sample()
    operation_id = await world.an_operation_in("COMPLETED")
    for path in (f"/vnflcm/v2/vnf_lcm_op_occs/{operation_id}", f"/vnfpkgm/v1/vnf_packages/{package['id']}"):
        tag = (await world.call("GET", path)).must(200).headers["ETag"]
        (await world.call("GET", path, headers={"Version": "2.0.0", "If-None-Match": tag})).must(304)


async def test_secrets_of_a_request_are_in_no_answer_and_not_in_the_database(world: World) -> None:
    await world.sample()
    secret = "marked-s3cret"
    connection = {
        "vimType": "openstack",
        "interfaceInfo": {"endpoint": "http://127.0.0.1/v3"},
        "accessInfo": {"username": "nfv", "password": secret, "project": "nfv"},
    }
    instance_id = await world.create(metadata={"token": secret})
    operation_id = await world.instantiate(
        instance_id, vimConnectionInfo={"mine": connection}, additionalParams={"deep": [{"api_key": secret, "a": "b"}]}
    )
    await world.reached(operation_id)
    answers: list[Any] = [
        (await call("GET", path, params={"all_fields": ""})).must(200).json
        for call in (world.lcm, world.v1)
        for path in ("/vnf_instances", "/vnf_lcm_op_occs")
    ]
    answers.append((await world.lcm("GET", f"/vnf_lcm_op_occs/{operation_id}")).json)
    answers.append((await world.call("GET", f"/kubevnfm/v1/operations/{operation_id}")).json)
    assert secret not in str(answers)
    shown = (await world.lcm("GET", f"/vnf_instances/{instance_id}")).json
    assert shown["vimConnectionInfo"]["mine"]["accessInfo"] == {"username": "nfv", "project": "nfv"}
    operation = await world.operation(operation_id)
    assert operation["operationParams"]["additionalParams"] == {"deep": [{"a": "b"}]}
    (command,) = world.twins.commands
    assert secret not in str(command.data)
    for file in world.folder.glob("store.db*"):
        assert secret.encode() not in file.read_bytes()


@pytest.mark.parametrize("version", ["v1", "v2"])
async def test_a_port_that_was_made_before_is_shown_at_its_connection_point(
    world: World, version: str, tmp_path: Path
) -> None:
    """SOL003 5.5.3.2 and 5.5.3.5: a link port has the id that the request gave it."""
    ports = (
        PortFacts(name="", resource_id="port-1", addresses=("10.10.0.9",)),
        PortFacts(name="", resource_id="other"),
    )
    server = RESOURCES.servers[0].model_copy(update={"ports": ports})
    facts = RESOURCES.model_copy(update={"servers": (server,)})
    world.twins.answers["infra.openstack.create_resources"] = ResourcesCreated(resources=facts)
    # The template of the sample takes no port; without one, the VNFD decides.
    assert (await world.upload(without_base_hot(tmp_path)))["onboardingState"] == "ONBOARDED"
    instance_id = await world.create()
    config = {"linkPortId": "link-port-1"}
    link = {
        "id": "external",
        "resourceId": "net0",
        "extLinkPorts": [{"id": "link-port-1", "resourceHandle": {"resourceId": "port-1"}}],
        "extCps": [{"cpdId": "VDU1_CP1", "cpConfig": {"c1": config} if version == "v2" else [config]}],
    }
    call = world.lcm if version == "v2" else world.v1
    body = {"flavourId": "simple", "extVirtualLinks": [link]}
    accepted = (await call("POST", f"/vnf_instances/{instance_id}/instantiate", body)).must(202)
    assert (await world.reached(accepted.headers["Location"].rpartition("/")[2]))["operationState"] == "COMPLETED"

    info = (await call("GET", f"/vnf_instances/{instance_id}")).must(200).json["instantiatedVnfInfo"]
    (vnfc,) = info["vnfcResourceInfo"]
    (cp,) = vnfc["vnfcCpInfo"]
    assert cp["cpdId"] == "VDU1_CP1"
    (external,) = info["extCpInfo"]
    assert (external["cpdId"], external["extLinkPortId"]) == ("VDU1_CP1", "link-port-1")
    assert external["associatedVnfcCpId"] == cp["id"]
    assert cp["vnfExtCpId"] == external["id"]
    (shown,) = info["extVirtualLinkInfo"]
    (port,) = shown["extLinkPorts"]
    assert (port["id"], port["resourceHandle"]["resourceId"]) == ("link-port-1", "port-1")


async def test_metadata_with_a_notifier_that_cannot_be_called_are_refused(world: World) -> None:
    """API-230: by name, in a creation and in a modification; null removes."""
    await world.sample()
    instance_id = await world.create(metadata={"ServerNotifierUri": "http://notifier", "ServerNotifierFaultID": "1234"})
    path = f"/vnf_instances/{instance_id}"
    for name, wrong in (("ServerNotifierUri", "notifier"), ("ServerNotifierFaultID", [])):
        created = {"vnfdId": (await world.lcm("GET", path)).json["vnfdId"], "metadata": {name: wrong}}
        for method, where, body in (("POST", "/vnf_instances", created), ("PATCH", path, {"metadata": {name: wrong}})):
            problem = (await world.lcm(method, where, body)).problem(400)
            assert problem["invalidParams"][0]["name"] == f"metadata/{name}"
    (await world.lcm("PATCH", path, {"metadata": {"ServerNotifierUri": None}})).must(202)
