"""The tasks of instances over HTTP, with twins behind: what is judged, what is asked of infra-openstack, what is shown."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping
from typing import Any

import pytest
import pytest_asyncio
import yaml
from kubevnfm_events.stacks import (
    CancelOpenstackStep,
    ChangeConnections,
    ChangeTemplate,
    HealResources,
    OperateServers,
    ResourcesCreated,
    RestoreResources,
    ScaleResources,
)
from packages.package_variants import SAMPLES, changed_package, variant
from packages.vm_packages import OTHER_IMAGE, TWO_FLAVOURS, other_image, two_flavours
from worlds.cnf_world import deployed
from worlds.lcm_builders import RESOURCES, a_server
from worlds.lcm_world import World

SCALE = "infra.openstack.scale_resources"
CLUSTER = "k8s_cluster_installation_param"
OUT = {"type": "SCALE_OUT", "aspectId": "VDU1_scale"}
CHANGE = {"extVirtualLinks": [{"id": "external", "resourceId": "net1", "extCps": [{"cpdId": "VDU1_CP1"}]}]}
TASKS: Mapping[str, Any] = {
    "scale": OUT,
    "scale_to_level": {"instantiationLevelId": "three"},
    "heal": {"cause": "x"},
    "operate": {"changeStateTo": "STOPPED"},
    "change_ext_conn": CHANGE,
    "change_flavour": {"newFlavourId": "large"},
    "change_vnfpkg": {"vnfdId": TWO_FLAVOURS},
    "create_snapshot": {"vnfSnapshotInfoId": "info-1"},
    "revert_to_snapshot": {"vnfSnapshotInfoId": "info-1"},
}


async def built(world: World, content: bytes | None = None) -> str:
    """Return an instance of two flavours (or of a package of its own), INSTANTIATED."""
    package = await world.upload(content or two_flavours(world.folder))
    instance_id = await world.create(vnfdId=package["vnfdId"])
    await world.reached(await world.instantiate(instance_id), "COMPLETED")
    return instance_id


async def test_scale_asks_for_counts_and_moves_the_scale_status(world: World) -> None:
    """API-056, API-055."""
    instance_id = await built(world)
    operation_id = await world.ask(instance_id, "scale", {**OUT, "numberOfSteps": "2"})
    await world.reached(operation_id, "COMPLETED")
    command = world.twins.last(ScaleResources)
    assert command.counts["VDU1"] == 2, "none of the twin's servers is of VDU1, two steps add two"
    assert command.grant_request["operation"] == "SCALE"
    added = [(one["type"], one["resourceTemplateId"]) for one in command.grant_request["addResources"]]
    assert added == [("COMPUTE", "VDU1"), ("LINKPORT", "VDU1_CP1")] * 2
    assert command.instance["id"] == instance_id
    shown = (await world.lcm("GET", f"/vnf_instances/{instance_id}")).json["instantiatedVnfInfo"]
    assert shown["scaleStatus"] == [{"aspectId": "VDU1_scale", "scaleLevel": 2}]


CLASS = {"lcm-operation-user-data": "UserData/x.py", "lcm-operation-user-data-class": "X"}
OTHER_VM = "22222222-aaaa-bbbb-cccc-dddddddddddd"


async def made_by_class(world: World, *, is_numbered: bool) -> str:
    """Return an instance whose stack a class of user data has made, with a resource for each machine or without."""
    server = RESOURCES.servers[0].model_copy(
        update={"vdu_id": "VDU1", "name": "VDU1", "group": "VDU1-0" if is_numbered else "VDU1_group", "ports": ()}
    )
    resources = RESOURCES.model_copy(update={"servers": (server,)})
    world.twins.answers = {
        key: event.model_copy(update={"resources": resources})
        if key.startswith("infra.openstack.") and "resources" in type(event).model_fields
        else event
        for key, event in world.twins.answers.items()
    }
    package = await world.upload(variant(world.folder, "vm", files={"UserData/x.py": "class X: ...\n"}))
    instance_id = await world.create(vnfdId=package["vnfdId"])
    await world.reached(await world.instantiate(instance_id, additionalParams={**CLASS, "own": 1}), "COMPLETED")
    return instance_id


async def test_user_data_belong_to_the_request_that_names_them(world: World) -> None:
    """As Tacker's v2; in v1 the class of the instantiation is that of scale and heal, too. A stack is made again by its class."""
    instance_id = await made_by_class(world, is_numbered=False)

    async def user_data_of(task: str, body: dict[str, Any], version: str = "v2") -> list[tuple[str, str | None]]:
        before = len(world.twins.commands)
        call = world.v1 if version == "v1" else world.lcm
        accepted = (await call("POST", f"/vnf_instances/{instance_id}/{task}", body)).must(202)
        await world.reached(accepted.headers["Location"].rpartition("/")[2], "COMPLETED")
        sent = [one.data for one in world.twins.commands[before:] if hasattr(one.data, "user_data")]
        return [(type(one).__name__, one.user_data.class_name if one.user_data else None) for one in sent]

    vnfc = {"vnfcInstanceId": [RESOURCES.servers[0].vnfc_id]}
    assert await user_data_of("scale", OUT) == [("ScaleResources", None)]
    assert await user_data_of("scale", {**OUT, "additionalParams": CLASS}) == [("ScaleResources", "X")]
    assert await user_data_of("change_ext_conn", CHANGE) == [("ChangeConnections", None)]
    assert await user_data_of("heal", vnfc) == [("HealResources", None)]
    assert await user_data_of("heal", vnfc, "v1") == [("HealResources", "X")]
    again = [("CreateResources", "X"), ("ScaleResources", None)]
    assert await user_data_of("heal", {"additionalParams": {"all": True}}) == again
    assert await user_data_of("heal", {}, "v1") == again
    with_file = variant(world.folder, "vm", vnfd_id=OTHER_VM, files={"UserData/x.py": "class X: ...\n"})
    await world.upload(with_file)
    named = {"vnfdId": OTHER_VM, "additionalParams": CLASS}
    assert await user_data_of("change_vnfpkg", {"vnfdId": OTHER_VM}) == [("ChangeTemplate", None)]
    sent = world.twins.commands[-1].data
    assert isinstance(sent, ChangeTemplate)
    assert sent.request == sent.instantiate_request
    assert sent.request["additionalParams"]["own"] == 1
    assert await user_data_of("change_vnfpkg", named) == [("ChangeTemplate", "X")]
    assert await user_data_of("heal", {"additionalParams": {"all": True}}) == again


@pytest.mark.parametrize("is_numbered", [True, False])
async def test_a_package_without_the_class_of_the_stack(world: World, *, is_numbered: bool) -> None:
    """Only a class makes a resource for each machine; without it a heal of the whole VNF would lose its machines."""
    instance_id = await made_by_class(world, is_numbered=is_numbered)
    await world.upload(variant(world.folder, "vm", vnfd_id=OTHER_VM))
    answer = await world.lcm("POST", f"/vnf_instances/{instance_id}/change_vnfpkg", {"vnfdId": OTHER_VM})
    if is_numbered:
        detail = answer.problem(422)["detail"]
        assert detail.startswith("additionalParams/lcm-operation-user-data: the new package has no UserData/x.py")
        return
    await world.reached(answer.must(202).headers["Location"].rpartition("/")[2], "COMPLETED")
    sent = world.twins.last(ChangeTemplate)
    assert sent.instantiate_request["additionalParams"] == {"own": 1}, "names of a class that is gone are dropped"
    await world.reached(await world.ask(instance_id, "heal", {"additionalParams": {"all": True}}), "COMPLETED")
    sent_by_heal = [one.data for one in world.twins.commands[-2:]]
    assert [(type(one).__name__, one.user_data) for one in sent_by_heal] == [  # type: ignore[attr-defined]
        ("CreateResources", None),
        ("ScaleResources", None),
    ]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def known(shared_world: World) -> str:
    """Return the id of the instance that the refused requests are about."""
    return await built(shared_world)


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    ("task", "body", "place"),
    [
        ("scale", {**OUT, "aspectId": "x"}, "aspectId"),
        ("scale", {**OUT, "numberOfSteps": 0}, "numberOfSteps"),
        ("scale", {**OUT, "numberOfSteps": 3}, "numberOfSteps"),
        ("scale", {**OUT, "type": "SCALE_IN"}, "numberOfSteps"),
        ("scale", {"aspectId": "VDU1_scale"}, "type"),
        ("scale_to_level", {}, "exactly one"),
        ("scale_to_level", {"instantiationLevelId": "x"}, "instantiationLevelId"),
        ("scale_to_level", {"scaleInfo": [{"aspectId": "VDU1_scale", "scaleLevel": 9}]}, "scaleInfo[0]/scaleLevel"),
        (
            "scale_to_level",
            {"scaleInfo": [{"aspectId": "VDU1_scale", "scaleLevel": level} for level in (0, 1)]},
            "scaleInfo[1]/aspectId: aspect VDU1_scale is there already",
        ),
        ("heal", {"vnfcInstanceId": ["x"]}, "vnfcInstanceId[0]"),
        ("heal", {"additionalParams": {"all": 1}}, "additionalParams/all"),
        ("heal", {"healScript": "heal.sh"}, "healScript"),
        ("operate", {"changeStateTo": "STARTED", "stopType": "GRACEFUL"}, "STOPPED"),
        ("operate", {"changeStateTo": "GONE"}, "changeStateTo"),
        ("change_ext_conn", {"extVirtualLinks": []}, "extVirtualLinks"),
        (
            "change_ext_conn",
            {"extVirtualLinks": [{"id": "l", "resourceId": "n", "extCps": [{"cpdId": "x"}]}]},
            "extVirtualLinks[0]/extCps[0]/cpdId",
        ),
        ("change_flavour", {"newFlavourId": "x"}, "newFlavourId"),
        ("change_flavour", {"newFlavourId": "simple"}, "newFlavourId"),
        ("change_flavour", {"newFlavourId": "large", "instantiationLevelId": "x"}, "instantiationLevelId"),
        ("change_vnfpkg", {"vnfdId": "x", "additionalParams": {"upgrade_type": "x"}}, "upgrade_type"),
        (
            "change_vnfpkg",
            {"vnfdId": "x", "additionalParams": {"vdu_params": [{"vdu_id": "x"}]}},
            "vdu_params[0]/vdu_id",
        ),
        (
            "change_vnfpkg",
            {"vnfdId": "x", "additionalParams": {"vdu_params": [{"vdu_id": "VDU1"}] * 2}},
            "vdu_params[1]/vdu_id: VDU VDU1 is there already",
        ),
        (
            "change_vnfpkg",
            {"vnfdId": "x", "additionalParams": {"lcm-operation-coordinate-vnf": "Scripts/a.py"}},
            "lcm-operation-coordinate-vnf: lcm-operation-coordinate-new-vnf or",
        ),
    ],
)
async def test_a_meaningless_attribute_is_refused_by_name(
    shared_world: World, known: str, task: str, body: Any, place: str
) -> None:
    """API-010, API-056, API-058, API-059."""
    before = len(shared_world.twins.commands)
    problem = (await shared_world.lcm("POST", f"/vnf_instances/{known}/{task}", body)).problem(400)
    assert place in problem["detail"]
    assert len(shared_world.twins.commands) == before


async def test_coordination_scripts_are_those_of_the_packages_that_run_them(world: World) -> None:
    """API-059: a rollback runs that of the package which the VNF has; what cannot be imported is known at the request."""
    ids = str(uuid.uuid4()), str(uuid.uuid4())
    scripts = {"Scripts/old.py": "import paramiko\n"}, {"Scripts/new.py": "import requests\n", "Scripts/fine.py": ""}
    present, new = (
        variant(world.folder, "vm", vnfd_id=one, files=files) for one, files in zip(ids, scripts, strict=True)
    )
    instance_id = await built(world, present)
    await world.upload(new)
    login = {"cp_name": "VDU1_CP1", "username": "u", "password": "p"}
    vdus = [{"vdu_id": "VDU1", "old_vnfc_param": login, "new_vnfc_param": login}]

    def request(**scripts: str) -> dict[str, Any]:
        named = {f"lcm-operation-coordinate-{age}-vnf": file for age, file in scripts.items()}
        return {"vnfdId": ids[1], "additionalParams": {**named, "vdu_params": vdus}}

    path = f"/vnf_instances/{instance_id}/change_vnfpkg"
    for wanted, reason in (
        (
            request(old="Scripts/fine.py"),
            f"old-vnf: the present package, of VNFD {ids[0]}, has no file Scripts/fine.py",
        ),
        (request(new="Scripts/old.py"), f"new-vnf: the new package, of VNFD {ids[1]}, has no file Scripts/old.py"),
        (request(new="Scripts/new.py"), "new-vnf: the script cannot be run: it imports requests, which scripts of"),
    ):
        assert reason in (await world.lcm("POST", path, wanted)).problem(422)["detail"]


async def test_heal_takes_both_ids_and_no_body(world: World) -> None:
    """API-058."""
    instance_id = await built(world)
    info = (await world.lcm("GET", f"/vnf_instances/{instance_id}")).json["instantiatedVnfInfo"]
    server = RESOURCES.servers[1]
    (vnfc,) = [one["id"] for one in info["vnfcInfo"] if one["vnfcResourceInfoId"] == server.vnfc_id]
    for vnfc_id in (server.vnfc_id, vnfc):
        operation_id = await world.ask(instance_id, "heal", {"vnfcInstanceId": [vnfc_id]})
        await world.reached(operation_id, "COMPLETED")
        assert world.twins.last(HealResources).servers == (server.server_id,)
    answer = (await world.lcm("POST", f"/vnf_instances/{instance_id}/heal")).must(202)
    await world.reached(answer.headers["Location"].rpartition("/")[2], "COMPLETED")
    assert world.twins.last(HealResources).servers == tuple(one.server_id for one in RESOURCES.servers)


async def test_a_stop_waits_as_long_as_requested(world: World) -> None:
    """API-060."""
    instance_id = await built(world)
    for body, waits in (({"stopType": "GRACEFUL", "gracefulStopTimeout": 7}, 7.0), ({}, 0.0)):
        operation_id = await world.ask(instance_id, "operate", {"changeStateTo": "STOPPED", **body})
        await world.reached(operation_id, "COMPLETED")
        assert world.twins.last(OperateServers).graceful_wait_s == waits
        again = await world.lcm("POST", f"/vnf_instances/{instance_id}/operate", {"changeStateTo": "STOPPED"})
        assert "STOPPED already" in again.problem(409)["detail"]
        await world.reached(await world.ask(instance_id, "operate", {"changeStateTo": "STARTED"}), "COMPLETED")


async def test_links_that_are_not_named_stay(world: World) -> None:
    """API-034: the links of a v1 request are those of a v2 one."""
    instance_id = await built(world)
    config = {"cpInstanceId": "c9", "cpProtocolData": [{"layerProtocol": "IP_OVER_ETHERNET"}]}
    v1 = {"id": "more", "resourceId": "net2", "extCps": [{"cpdId": "VDU1_CP1", "cpConfig": [config]}]}
    answer = (await world.v1("POST", f"/vnf_instances/{instance_id}/change_ext_conn", {"extVirtualLinks": [v1]})).must(
        202
    )
    occurrence = await world.reached(answer.headers["Location"].rpartition("/")[2], "COMPLETED")
    (link,) = world.twins.last(ChangeConnections).connections["extVirtualLinks"]
    assert (link["id"], link["resourceId"]) == ("more", "net2"), "a point is on one link only"
    assert set(link["extCps"][0]["cpConfig"]) == {"VDU1_CP1_1", "c9"}
    back = {**v1, "id": "back", "resourceId": "net0"}
    answer = await world.v1("POST", f"/vnf_instances/{instance_id}/change_ext_conn", {"extVirtualLinks": [back]})
    problem = answer.problem(422)
    assert problem["detail"].startswith("extVirtualLinks[0]/extCps[0]/cpConfig: VDU1_CP1_1 expected too"), (
        "a move of one instance would move the other too"
    )
    (changed,) = occurrence["changedExtConnectivity"]
    assert changed["resourceHandle"]["resourceId"] == "net2"
    link_info = (await world.lcm("GET", f"/vnf_instances/{instance_id}")).json["instantiatedVnfInfo"]
    assert [one["id"] for one in link_info["extVirtualLinkInfo"]] == ["more"]


CONFIGURING = {
    "v1": ("instantiate", "change_ext_conn", "change_flavour"),
    "v2": ("instantiate", "change_ext_conn", "change_flavour", "change_vnfpkg"),
}


@pytest.mark.parametrize(
    ("version", "config", "place"),
    [
        ("v2", {"c": {}}, "/c"),
        ("v2", {"a": {"linkPortId": "p"}, "c": {"linkPortId": None, "createExtLinkPort": True}}, "/c"),
        ("v2", {"c": {"linkPortId": 5}}, "/c/linkPortId"),
        ("v2", [{"cpInstanceId": "c", "linkPortId": "p"}], ""),
        ("v1", [{"cpInstanceId": "c"}], "/c"),
        ("v1", [{"linkPortId": "p"}, {"netAttDefResourceId": "v2 has it"}], "[1]/netAttDefResourceId"),
        ("v1", [5], "[0]"),
        ("v1", [{"cpInstanceId": "c", "linkPortId": "p"}] * 2, "[1]/cpInstanceId"),
        ("v1", {"c": {"linkPortId": "p"}}, ""),
    ],
)
async def test_a_connection_point_needs_a_link_port_or_protocol_data(
    world: World, version: str, config: Any, place: str
) -> None:
    """API-010; SOL003 4.4.1.10a."""
    link = {"id": "l", "resourceId": "n", "extCps": [{"cpdId": "VDU1_CP1", "cpConfig": config}]}
    needed = {"instantiate": "flavourId", "change_flavour": "newFlavourId", "change_vnfpkg": "vnfdId"}
    ask = world.v1 if version == "v1" else world.lcm
    for task in CONFIGURING[version]:
        body = {"extVirtualLinks": [link], **({needed[task]: "x"} if task in needed else {})}
        problem = (await ask("POST", f"/vnf_instances/nowhere/{task}", body)).problem(400)
        named = [each["name"] for each in problem["invalidParams"]]
        assert f"extVirtualLinks[0]/extCps[0]/cpConfig{place}" in named, task


async def test_null_takes_a_configuration_away(world: World) -> None:
    """In v2 null is the one entry that need not say what is connected."""
    instance_id = await built(world)
    config = {"VDU1_CP1_1": None, "c9": {"cpProtocolData": [{"layerProtocol": "IP_OVER_ETHERNET"}]}}
    link = {"id": "external", "resourceId": "net0", "extCps": [{"cpdId": "VDU1_CP1", "cpConfig": config}]}
    operation_id = await world.ask(instance_id, "change_ext_conn", {"extVirtualLinks": [link]})
    await world.reached(operation_id, "COMPLETED")
    (changed,) = world.twins.last(ChangeConnections).connections["extVirtualLinks"]
    assert changed["extCps"] == [{"cpdId": "VDU1_CP1", "cpConfig": {"c9": config["c9"]}}]


async def test_another_flavour_takes_the_place_of_the_first_and_can_be_rolled_back(world: World) -> None:
    """API-060."""
    instance_id = await built(world)
    world.twins.failing.add("infra.openstack.change_template")
    operation_id = await world.ask(instance_id, "change_flavour", {"newFlavourId": "large"})
    assert "rollback" in (await world.reached(operation_id, "FAILED_TEMP"))["_links"]
    world.twins.failing.clear()
    (await world.lcm("POST", f"/vnf_lcm_op_occs/{operation_id}/rollback")).must(202)
    await world.reached(operation_id, "ROLLED_BACK")
    restored = world.twins.last(RestoreResources)
    assert restored.flavour_id == "simple"
    assert set(restored.staying) == {server.server_id for server in RESOURCES.servers}
    shown = (await world.lcm("GET", f"/vnf_instances/{instance_id}")).json["instantiatedVnfInfo"]
    assert shown["flavourId"] == "simple"

    operation_id = await world.ask(instance_id, "change_flavour", {"newFlavourId": "large"})
    await world.reached(operation_id, "COMPLETED")
    command = world.twins.last(ChangeTemplate)
    assert (command.flavour_id, command.counts) == ("large", {"VDU1": 2})
    assert command.request["flavourId"] == "large"
    assert command.request["extVirtualLinks"][0]["id"] == "external", "the links stay when none are given"
    shown = (await world.lcm("GET", f"/vnf_instances/{instance_id}")).json["instantiatedVnfInfo"]
    assert (shown["flavourId"], shown["scaleStatus"][0]["scaleLevel"]) == ("large", 2)


async def test_another_package_changes_the_instances_identity(world: World) -> None:
    """API-059."""
    instance_id = await built(world)
    (await world.v1("POST", f"/vnf_instances/{instance_id}/change_vnfpkg", {"vnfdId": OTHER_IMAGE})).problem(404)
    (await world.lcm("POST", f"/vnf_instances/{instance_id}/change_vnfpkg", {"vnfdId": OTHER_IMAGE})).problem(422)
    await world.upload(other_image(world.folder))
    operation_id = await world.ask(instance_id, "change_vnfpkg", {"vnfdId": OTHER_IMAGE})
    occurrence = await world.reached(operation_id, "COMPLETED")
    modified = occurrence["modificationsTriggeredByVnfPkgChange"]
    assert (modified["vnfdId"], modified["vnfSoftwareVersion"]) == (OTHER_IMAGE, "2.0")
    assert world.twins.last(ChangeTemplate).package.vnfd_id == OTHER_IMAGE
    shown = (await world.lcm("GET", f"/vnf_instances/{instance_id}")).json
    assert (shown["vnfdId"], shown["vnfSoftwareVersion"]) == (OTHER_IMAGE, "2.0")
    assert "changeFlavour" not in shown["_links"], "the new descriptor has one flavour only"


async def test_a_value_that_the_new_template_refuses_is_refused_at_the_request(world: World) -> None:
    """API-163: also one that the VNF has from before, unless the request names another one; its text is not shown if it is hidden."""
    await world.sample("vm")
    instance_id = await world.create("vm")
    earlier = {"size": 9, "password_of_it": "in-clear-and-long", "colour": "red"}
    await world.reached(await world.instantiate(instance_id, additionalParams=earlier), "COMPLETED")
    vnfd, name = "Definitions/vm.vnfd.yaml", "BaseHOT/simple/vm_hot.yaml"
    top = yaml.safe_load((SAMPLES / "vm" / name).read_text(encoding="utf-8"))
    top["parameters"] |= {
        "size": {"type": "number", "default": 1, "constraints": [{"range": {"min": 1, "max": 5}}]},
        "password_of_it": {"type": "string", "default": "x", "hidden": True, "constraints": [{"length": {"max": 8}}]},
        "colour": {"type": "string", "default": "red"},
    }
    text = (SAMPLES / "vm" / vnfd).read_text(encoding="utf-8")
    own = yaml.safe_load(text)["topology_template"]["node_templates"]["VNF"]["properties"]["descriptor_id"]
    await world.upload(
        changed_package(
            world.folder, "vm", {name: yaml.safe_dump(top, sort_keys=False), vnfd: text.replace(own, OTHER_IMAGE)}
        )
    )
    path = f"/vnf_instances/{instance_id}/change_vnfpkg"
    problem = (await world.lcm("POST", path, {"vnfdId": OTHER_IMAGE})).problem(422)
    assert [each["name"] for each in problem["invalidParams"]] == [
        "additionalParams/size",
        "additionalParams/password_of_it",
    ]
    assert problem["invalidParams"][0]["reason"].startswith("1 to 5 expected: range of the Base HOT, and the VNF has")
    assert "in-clear" not in str(problem)
    given = {"vnfdId": OTHER_IMAGE, "additionalParams": {"size": 6, "password_of_it": "short"}}
    (await world.lcm("POST", path, given)).problem(400)
    given["additionalParams"] = {"size": 5, "password_of_it": "short"}
    (await world.lcm("POST", path, given, params={"dry_run": "true"})).must(200)


async def test_the_package_that_a_vnf_is_being_changed_to_is_in_use_until_that_ends(world: World) -> None:
    """API-111, API-118."""
    instance_id = await built(world)
    package_id = (await world.upload(other_image(world.folder)))["id"]

    async def usage() -> str:
        await world.bus.quiet()
        return str((await world.packages("GET", f"/{package_id}")).json["usageState"])

    world.twins.failing.add("infra.openstack.change_template")
    operation_id = await world.ask(instance_id, "change_vnfpkg", {"vnfdId": OTHER_IMAGE})
    await world.reached(operation_id, "FAILED_TEMP")
    assert await usage() == "IN_USE"
    (await world.packages("PATCH", f"/{package_id}", {"operationalState": "DISABLED"})).must(200)
    assert "changed to it" in (await world.packages("DELETE", f"/{package_id}")).problem(409)["detail"]
    (await world.lcm("POST", f"/vnf_lcm_op_occs/{operation_id}/rollback")).must(202)
    await world.reached(operation_id, "ROLLED_BACK")
    assert await usage() == "NOT_IN_USE"
    (await world.packages("DELETE", f"/{package_id}")).must(204)


@pytest.mark.parametrize("task", TASKS)
async def test_a_task_needs_an_instance_that_is_instantiated_and_free(world: World, task: str) -> None:
    """API-041, API-044; api.md chapter 9."""
    (await world.lcm("POST", f"/vnf_instances/nowhere/{task}", TASKS[task])).problem(404)
    package = await world.upload(two_flavours(world.folder))
    instance_id = await world.create(vnfdId=package["vnfdId"])
    path = f"/vnf_instances/{instance_id}/{task}"
    assert "NOT_INSTANTIATED" in (await world.lcm("POST", path, TASKS[task])).problem(409)["detail"]
    await world.reached(await world.instantiate(instance_id), "COMPLETED")
    world.twins.waiting.add(SCALE)
    operation_id = await world.ask(instance_id, "scale", OUT)
    assert operation_id in (await world.lcm("POST", path, TASKS[task])).problem(409)["detail"]
    await world.twins.release()


async def test_one_of_many_tasks_at_once_is_accepted(world: World) -> None:
    """API-043."""
    instance_id = await built(world)
    world.twins.waiting |= {SCALE, "infra.openstack.heal_resources"}
    answers = await asyncio.gather(
        *(world.lcm("POST", f"/vnf_instances/{instance_id}/{task}", TASKS[task]) for task in ("scale", "heal") * 4)
    )
    assert sorted(answer.status for answer in answers) == [202, *[409] * 7]
    await world.twins.release()


async def test_a_cnf_has_the_tasks_of_containers(world: World) -> None:
    """API-033, API-060."""
    instance_id = await deployed(world)
    shown = (await world.lcm("GET", f"/vnf_instances/{instance_id}")).json
    assert set(shown["_links"]) == {"self", "terminate", "scale", "scaleToLevel", "heal", "changeCurrentVnfPkg"}
    for task in ("operate", "change_ext_conn", "change_flavour", "create_snapshot", "revert_to_snapshot"):
        problem = (await world.lcm("POST", f"/vnf_instances/{instance_id}/{task}", TASKS[task])).problem(404)
        assert "CNF" in problem["detail"]


async def test_a_cluster_has_scale_heal_and_terminate(world: World) -> None:
    """API-033, API-060."""
    await world.sample("cluster")
    instance_id = await world.create("cluster")
    await world.reached(await world.instantiate(instance_id, "cluster"), "COMPLETED")
    shown = (await world.lcm("GET", f"/vnf_instances/{instance_id}")).json
    assert set(shown["_links"]) == {"self", "terminate", "scale", "scaleToLevel", "heal"}
    for task in ("operate", "change_ext_conn", "create_snapshot", "revert_to_snapshot"):
        problem = (await world.lcm("POST", f"/vnf_instances/{instance_id}/{task}", TASKS[task])).problem(404)
        assert "clusters support instantiate, scale, scale to level, heal and terminate only" in problem["detail"]


async def test_a_size_that_heat_would_refuse_is_refused_before_anything_is_drained(world: World) -> None:
    """The Base HOT allows two or three workers, the VNFD one to ten."""
    name = "BaseHOT/simple/cluster_hot.yaml"
    top = yaml.safe_load((SAMPLES / "cluster" / name).read_text(encoding="utf-8"))
    top["resources"]["worker_instance"]["properties"].update(min_size=2, max_size=3)
    await world.upload(changed_package(world.folder, "cluster", {name: yaml.safe_dump(top)}))
    instance_id = await world.create("cluster")
    await world.reached(await world.instantiate(instance_id, "cluster"), "COMPLETED")
    workers = {"type": "SCALE_OUT", "aspectId": "worker_instance"}
    await world.reached(await world.ask(instance_id, "scale", workers), "COMPLETED")
    sent = len(world.twins.commands)
    # The twin still has two workers.
    to_level = {"scaleInfo": [{"aspectId": "worker_instance", "scaleLevel": 4}]}
    for task, body, place in (
        ("scale", {**workers, "numberOfSteps": 2}, "aspectId: 4"),
        ("scale", {**workers, "type": "SCALE_IN"}, "aspectId: 1"),
        ("scale_to_level", to_level, "scaleInfo: 4"),
    ):
        problem = (await world.lcm("POST", f"/vnf_instances/{instance_id}/{task}", body)).problem(422)
        limits = "machines of workerNode: group worker_instance of the Base HOT has min_size 2, max_size 3"
        assert problem["detail"] == f"{place} {limits}"
    assert len(world.twins.commands) == sent


async def test_a_heal_that_a_cluster_does_not_survive_is_refused_before_anything_changes(world: World) -> None:
    """SEQ-157, 5.3, HEAL-1M; E1, row 1."""
    await world.sample("cluster")
    instance_id = await world.create("cluster")
    await world.reached(await world.instantiate(instance_id, "cluster"), "COMPLETED")
    path = f"/vnf_instances/{instance_id}"
    info = (await world.lcm("GET", path)).json["instantiatedVnfInfo"]
    master, worker = (
        next(one["id"] for one in info["vnfcResourceInfo"] if one["vduId"] == vdu)
        for vdu in ("masterNode", "workerNode")
    )
    sent = len(world.twins.commands)
    for chosen in ([master], [worker, master]):
        problem = (await world.lcm("POST", f"{path}/heal", {"vnfcInstanceId": chosen})).problem(422)
        assert "vnfcInstanceId: HEAL-1M: this is the only master" in problem["detail"]
    assert len(world.twins.commands) == sent
    half = {"vnfcInstanceId": [worker], "additionalParams": {"worker_node_username": "ubuntu"}}
    assert "worker_node_password" in (await world.lcm("POST", f"{path}/heal", half)).problem(400)["detail"]


async def test_a_stored_password_of_nodes_is_only_for_the_port_that_it_was_given_for(world: World) -> None:
    """5.1: the instance has its cluster, and the parameters that this was read from, sealed apart from each other."""
    await world.sample("cluster")
    instance_id = await world.create("cluster")
    await world.reached(await world.instantiate(instance_id, "cluster"), "COMPLETED")
    workers = {"type": "SCALE_OUT", "aspectId": "worker_instance"}
    moved = {**workers, "additionalParams": {CLUSTER: {"worker_node": {"ssh_port": 2022}}}}
    problem = (await world.lcm("POST", f"/vnf_instances/{instance_id}/scale", moved)).problem(400)
    assert "worker_node/password: required again, because ssh_port changes" in problem["detail"]
    await world.ask(instance_id, "scale", {**workers, "additionalParams": {CLUSTER: {"x_max_parallel_nodes": 3}}})


async def test_a_cluster_whose_stored_parameters_are_no_longer_accepted_is_no_vnf_of_plain_machines(
    world: World,
) -> None:
    await world.sample("cluster")
    instance_id = await world.create("cluster")
    await world.reached(await world.instantiate(instance_id, "cluster"), "COMPLETED")
    stored = await world.store.get("vnf_instances", instance_id)
    assert stored is not None
    internal = {name: value for name, value in stored.body["internal"].items() if name != "cluster"}
    section = {**internal["parameters"][CLUSTER], "x_kubernetes_version": "1.99.0"}
    body = {**stored.body, "internal": {**internal, "parameters": {**internal["parameters"], CLUSTER: section}}}
    await world.store.replace("vnf_instances", instance_id, body, if_revision=stored.revision)
    sent = len(world.twins.commands)
    for task, request in (("scale", {"type": "SCALE_OUT", "aspectId": "worker_instance"}), ("heal", {"cause": "x"})):
        problem = (await world.lcm("POST", f"/vnf_instances/{instance_id}/{task}", request)).problem(422)
        assert f"additionalParams/{CLUSTER}/x_kubernetes_version" in problem["detail"]
    assert len(world.twins.commands) == sent


@pytest.mark.parametrize("state", ["PROCESSING", "FAILED_TEMP", "ROLLING_BACK", "COMPLETED", "FAILED", "ROLLED_BACK"])
async def test_cancel_is_taken_and_linked_where_something_runs(world: World, state: str) -> None:
    """API-041, API-052, API-053."""
    await world.sample()
    operation_id = await world.an_operation_in(state)
    runs = state in {"PROCESSING", "ROLLING_BACK"}
    assert ("cancel" in (await world.operation(operation_id))["_links"]) == runs
    path = f"/vnf_lcm_op_occs/{operation_id}/cancel"
    (await world.lcm("POST", path, {"cancelMode": "NOW"})).problem(400)
    (await world.lcm("POST", path)).problem(400)
    answer = await world.lcm("POST", path, {"cancelMode": "GRACEFUL"})
    if not runs:
        expected = f"cancel is not possible while the operation occurrence is {state}"
        assert answer.problem(409)["detail"] == expected
        return
    assert answer.must(202).raw == b""
    pending = await world.operation(operation_id)
    assert (pending["operationState"], pending["isCancelPending"], pending["cancelMode"]) == (state, True, "GRACEFUL")
    (await world.lcm("POST", path, {"cancelMode": "GRACEFUL"})).problem(409)
    (await world.lcm("POST", path, {"cancelMode": "FORCEFUL"})).must(202)
    occurrence = await world.reached(operation_id, "FAILED_TEMP")
    assert isinstance(world.twins.commands[-1].data, CancelOpenstackStep)
    assert (occurrence["error"]["status"], occurrence["error"]["title"]) == (409, "Operation cancelled")
    assert (occurrence["isCancelPending"], "cancelMode" in occurrence) == (False, False)
    assert {"retry", "rollback", "fail"} <= set(occurrence["_links"])


async def test_a_modification_is_conditional_and_merges(world: World) -> None:
    """API-014, API-027, API-028, API-047."""
    instance_id = await built(world)
    path = f"/vnf_instances/{instance_id}"
    tag = (await world.lcm("GET", path)).headers["ETag"]
    headers = {"Version": "2.0.0", "If-Match": tag, "Content-Type": "application/merge-patch+json"}
    answers = await asyncio.gather(
        *(world.lcm("PATCH", path, {"vnfInstanceName": name}, headers=headers) for name in ("a", "b"))
    )
    assert sorted(answer.status for answer in answers)[0] == 202
    assert {answer.status for answer in answers} & {409, 412}
    (accepted,) = [answer for answer in answers if answer.status == 202]
    occurrence = await world.reached(accepted.headers["Location"].rpartition("/")[2], "COMPLETED")
    assert occurrence["operation"] == "MODIFY_INFO"
    assert "grantId" not in occurrence
    states = [c.state for c in world.changes if c.vnf_lcm_op_occ_id == occurrence["id"]]
    assert states == ["PROCESSING", "COMPLETED"]
    (await world.lcm("PATCH", path, {"vnfInstanceName": "c"}, headers=headers)).problem(412)
    refused = (await world.lcm("PATCH", path, {"extensions": {"x": 1}, "vnfInstanceName": "d"})).problem(422)
    assert "extensions/x" in refused["detail"]
    assert (await world.lcm("GET", path)).json["vnfInstanceName"] in {"a", "b"}
    await world.upload(other_image(world.folder))
    for task, body in (("change_flavour", {"newFlavourId": "large"}), ("change_vnfpkg", {"vnfdId": OTHER_IMAGE})):
        for undeclared in ("extensions", "vnfConfigurableProperties"):
            answer = await world.lcm("POST", f"{path}/{task}", {**body, undeclared: {"x": 1}})
            assert f"{undeclared}/x: the VNFD does not declare" in answer.problem(422)["detail"]

    for patch, name, metadata in (
        ({"metadata": {"a": {"b": 1, "c": 2}}}, True, {"a": {"b": 1, "c": 2}}),
        ({"metadata": {"a": {"b": None}}, "vnfInstanceName": None}, False, {"a": {"c": 2}}),
        ({}, False, {"a": {"c": 2}}),
    ):
        answer = (await world.lcm("PATCH", path, patch)).must(202)
        await world.reached(answer.headers["Location"].rpartition("/")[2], "COMPLETED")
        shown = (await world.lcm("GET", path)).json
        assert ("vnfInstanceName" in shown, shown["metadata"]) == (name, metadata)


@pytest.mark.parametrize(
    ("patch", "named"),
    [
        ({"vnfInstanceNam": "a"}, "vnfInstanceNam"),
        ({"metadata": {"a": 1}, "instantiationState": "INSTANTIATED"}, "instantiationState"),
        ({"vnf_instance_name": "a"}, "vnf_instance_name"),
        ({"vnfPkgId": "x"}, "vnfPkgId"),
        ({"vnfcInfoModificationsDeleteIds": ["x"]}, "vnfcInfoModificationsDeleteIds"),
        (
            {"vnfcInfoModifications": [{"id": "x", "vnfcConfigurableProperties": {}, "more": 1}]},
            "vnfcInfoModifications[0]/more",
        ),
    ],
)
async def test_a_modification_of_an_attribute_that_does_not_exist_is_refused(
    world: World, patch: dict[str, Any], named: str
) -> None:
    """API-026: no operation occurrence is created."""
    await world.sample()
    instance_id = await world.create()
    path = f"/vnf_instances/{instance_id}"
    calls = [world.lcm] if named == "vnfPkgId" else [world.lcm, world.v1]
    for call in calls:
        problem = (await call("PATCH", path, patch)).problem(400)
        assert [each["name"] for each in problem["invalidParams"]] == [named]
        assert "no such attribute" in problem["detail"]
    assert (await world.lcm("GET", "/vnf_lcm_op_occs")).must(200).json == []


async def test_a_modification_names_another_package_if_it_has_the_machines_of_the_vnf(world: World) -> None:
    """api.md 3.4."""
    await world.upload(other_image(world.folder))
    path = f"/vnf_instances/{await built(world, world.zipped('vm'))}"
    assert (
        "lacks the VDU masterNode" in (await world.lcm("PATCH", path, {"vnfdId": OTHER_IMAGE})).problem(422)["detail"]
    )
    (await world.lcm("PATCH", path, {"vnfdId": "nowhere"})).problem(422)
    machine = RESOURCES.model_copy(update={"servers": (a_server("m1", "VDU1", "VDU1_group", "10.10.0.4"),)})
    world.twins.answers["infra.openstack.create_resources"] = ResourcesCreated(resources=machine)
    instance_id = await world.create()
    await world.reached(await world.instantiate(instance_id), "COMPLETED")
    path = f"/vnf_instances/{instance_id}"
    answer = (await world.lcm("PATCH", path, {"vnfdId": OTHER_IMAGE})).must(202)
    await world.reached(answer.headers["Location"].rpartition("/")[2], "COMPLETED")
    assert (await world.lcm("GET", path)).json["vnfSoftwareVersion"] == "2.0"


async def test_vim_connections_are_modified_and_their_secrets_hidden(world: World) -> None:
    """API-023, API-030."""
    instance_id = await built(world)
    entry = {
        "vimId": "v9",
        "vimType": "openstack",
        "interfaceInfo": {"endpoint": "http://k"},
        "accessInfo": {"username": "u", "password": "hidden-9"},
    }
    path = f"/vnf_instances/{instance_id}"
    answer = (await world.v1("PATCH", path, {"vimConnectionInfo": [{"id": "more", **entry}]})).must(202)
    operation_id = answer.headers["Location"].rpartition("/")[2]
    occurrence = await world.reached(operation_id, "COMPLETED")
    assert occurrence["changedInfo"]["vimConnectionInfo"]["more"]["accessInfo"] == {"username": "u"}
    v1 = (await world.v1("GET", f"/vnf_lcm_op_occs/{operation_id}")).json
    assert [one["id"] for one in v1["changedInfo"]["vimConnectionInfo"]] == ["more"]
    shown = (await world.lcm("GET", path)).json
    assert set(shown["vimConnectionInfo"]) == {"vim-1", "more"}
    assert "hidden-9" not in str(occurrence) + str(v1) + str(shown) + str([c.changed_info for c in world.changes])
