"""Volume types: made by a stack or over Cinder's API, and used by volumes."""

from __future__ import annotations

import asyncio
from typing import Any

import openstack
from clouds.openstack_stand import Stand, path_of
from packages.openstack_templates import VERSION

TYPED_VOLUME = (
    VERSION
    + """
parameters:
  name: {type: string, default: multi}
  specs: {type: json, default: {multiattach: "<is> True"}}
resources:
  kind:
    type: OS::Cinder::VolumeType
    properties: {name: {get_param: name}, metadata: {get_param: specs}, description: several servers}
  volume:
    type: OS::Cinder::Volume
    properties: {size: 1, volume_type: {get_resource: kind}}
outputs:
  type_of_the_volume: {value: {get_attr: [volume, volume_type]}}
"""
)

PRIVATE = (
    VERSION
    + """
parameters: {projects: {type: comma_delimited_list, default: nfv}}
resources:
  kind:
    type: OS::Cinder::VolumeType
    properties: {name: private, is_public: false, projects: {get_param: projects}}
"""
)

TWO_SERVERS = """
  a: {type: "OS::Nova::Server", properties: {name: a, flavor: m1.tiny, image: dummy, networks: [{network: net0}]}}
  b: {type: "OS::Nova::Server", properties: {name: b, flavor: m1.tiny, image: dummy, networks: [{network: net0}]}}
  to_a:
    type: OS::Cinder::VolumeAttachment
    properties: {instance_uuid: {get_resource: a}, volume_id: {get_resource: volume}}
  to_b:
    type: OS::Cinder::VolumeAttachment
    depends_on: to_a
    properties: {instance_uuid: {get_resource: b}, volume_id: {get_resource: volume}}
"""


async def types(stand: Stand, query: str = "") -> dict[str, Any]:
    listed = (await stand.get(f"{stand.cinder}/types{query}"))["volume_types"]
    return {one["name"]: one for one in listed}


async def test_a_stack_makes_a_volume_type_and_a_volume_of_it(stand: Stand) -> None:
    stack = await stand.make_stack("typed", TYPED_VOLUME)
    assert stack["stack_status"] == "CREATE_COMPLETE", stack["stack_status_reason"]
    assert stack["outputs"][0]["output_value"] == "multi"
    assert stand.left() == {"stacks": 1, "volumes": 1, "volume_types": 1}
    made = (await types(stand))["multi"]
    assert made["extra_specs"] == {"multiattach": "<is> True"}
    assert made["description"] == "several servers"
    assert made["is_public"] is made["os-volume-type-access:is_public"] is True
    (volume,) = (await stand.get(f"{stand.cinder}/volumes/detail"))["volumes"]
    assert (volume["volume_type"], volume["multiattach"]) == ("multi", True)
    resources = {one["resource_name"]: one for one in await stand.resources(path_of(stack))}
    assert resources["kind"]["physical_resource_id"] == made["id"]
    await stand.delete_stack(path_of(stack))
    assert stand.left() == {}


async def test_a_volume_of_a_multiattach_type_is_in_two_servers(stand: Stand) -> None:
    resources, outputs = TYPED_VOLUME.split("outputs:")
    stack = await stand.make_stack("shared", f"{resources}{TWO_SERVERS}outputs:{outputs}")
    assert stack["stack_status"] == "CREATE_COMPLETE", stack["stack_status_reason"]
    (volume,) = (await stand.get(f"{stand.cinder}/volumes/detail"))["volumes"]
    assert len(volume["attachments"]) == 2
    await stand.delete_stack(path_of(stack))
    assert stand.left() == {}


async def test_a_volume_of_another_type_is_in_one_server_only(stand: Stand) -> None:
    resources, outputs = TYPED_VOLUME.split("outputs:")
    template = f"{resources}{TWO_SERVERS}outputs:{outputs}"
    stack = await stand.make_stack("single", template, parameters={"specs": {}})
    assert stack["stack_status"] == "CREATE_FAILED"
    assert "status must be available" in stack["stack_status_reason"]


async def test_an_update_renames_a_type_in_place_and_its_volume_follows(stand: Stand) -> None:
    path = path_of(await stand.make_stack("typed", TYPED_VOLUME))
    type_id = (await types(stand))["multi"]["id"]
    stack = await stand.update_stack(path, template=TYPED_VOLUME, parameters={"name": "other"})
    assert stack["stack_status"] == "UPDATE_COMPLETE", stack["stack_status_reason"]
    assert (await types(stand))["other"]["id"] == type_id
    assert stack["outputs"][0]["output_value"] == "other"


async def test_specs_of_a_type_in_use_are_frozen(stand: Stand) -> None:
    path = path_of(await stand.make_stack("typed", TYPED_VOLUME))
    stack = await stand.update_stack(path, template=TYPED_VOLUME, parameters={"specs": {"a": "b"}})
    assert stack["stack_status"] == "UPDATE_FAILED"
    assert "Volume Type is currently in use." in stack["stack_status_reason"]
    type_id = (await types(stand))["multi"]["id"]
    refused = await stand.call("DELETE", f"{stand.cinder}/types/{type_id}")
    assert (refused.status, refused.body["badRequest"]["message"]) == (400, "Target volume type is still in use.")


async def test_a_private_type_lists_its_projects(stand: Stand) -> None:
    path = path_of(await stand.make_stack("private", PRIVATE))
    assert set(await types(stand)) == {"__DEFAULT__"}
    assert set(await types(stand, "?is_public=False")) == {"private"}
    type_id = (await types(stand, "?is_public=None"))["private"]["id"]
    access = f"{stand.cinder}/types/{type_id}/os-volume-type-access"
    assert (await stand.get(access))["volume_type_access"] == [
        {"volume_type_id": type_id, "project_id": stand.project_id}
    ]
    stack = await stand.update_stack(path, template=PRIVATE, parameters={"projects": ""})
    assert stack["stack_status"] == "UPDATE_COMPLETE", stack["stack_status_reason"]
    assert (await stand.get(access))["volume_type_access"] == []


async def test_openstacksdk_works_with_volume_types(stand: Stand) -> None:
    def use() -> None:
        cloud = openstack.connect(
            auth_url=stand.auth_url,
            username="nfv",
            password="nfv",
            project_name="nfv",
            user_domain_name="Default",
            project_domain_name="Default",
            region_name="RegionOne",
        )
        storage: Any = cloud.block_storage
        made = storage.create_type(name="fast", description="ssd", is_public=False)
        assert made.is_public is False
        storage.update_type_extra_specs(made, tier="gold", shared="no")
        storage.delete_type_extra_specs(made, ["shared"])
        assert storage.get_type(made).extra_specs == {"tier": "gold"}
        storage.add_type_access(made, stand.project_id)
        assert [one["project_id"] for one in storage.get_type_access(made)] == [stand.project_id]
        storage.remove_type_access(made, stand.project_id)
        assert storage.get_type_access(made) == []
        assert storage.update_type(made, name="faster", is_public=True).name == "faster"
        assert storage.find_type("faster").id == made.id
        volume = storage.create_volume(size=1, volume_type="faster")
        assert volume.volume_type == "faster"
        storage.wait_for_status(volume, interval=0.01)
        storage.retype_volume(volume, "__DEFAULT__")
        assert storage.get_volume(volume).volume_type == "__DEFAULT__"
        storage.delete_volume(volume)
        storage.delete_type(made)
        assert [one.name for one in storage.types()] == ["__DEFAULT__"]

    await asyncio.to_thread(use)
    assert stand.left() == {}


async def test_mistakes_with_volume_types_are_refused_in_cinders_words(stand: Stand) -> None:
    root = f"{stand.cinder}/types"
    default = (await stand.get(f"{root}/default"))["volume_type"]["id"]
    made = (await stand.call("POST", root, {"volume_type": {"name": "t"}})).body["volume_type"]["id"]
    wrong: list[tuple[str, str, Any, int, str]] = [
        ("POST", root, {"volume_type": {"name": "t"}}, 409, "Volume Type t already exists."),
        ("POST", root, {"volume_type": {"name": ""}}, 400, "Invalid input for field/attribute name."),
        ("GET", f"{root}/t", None, 404, "Volume type t could not be found."),
        ("PUT", f"{root}/{made}", {"volume_type": {}}, 400, "Specify volume type name, description, is_public"),
        ("DELETE", f"{root}/{default}", None, 400, f"The volume type {default} is a default volume type"),
        ("POST", f"{root}/{made}/extra_specs", {"extra_specs": {"a": 1}}, 400, "Invalid input for field/attribute a."),
        ("GET", f"{root}/{made}/extra_specs/b", None, 404, f"Volume Type {made} has no extra specs with key b."),
        ("PUT", f"{root}/{made}/extra_specs/b", {"c": "d"}, 400, "Request body and URI mismatch"),
        ("GET", f"{root}/{made}/os-volume-type-access", None, 404, "Access list not available for public"),
        ("POST", f"{root}/{made}/action", {"addProjectAccess": {"project": "p"}}, 400, "Invalid volume type: Type"),
        (
            "POST",
            f"{stand.cinder}/volumes",
            {"volume": {"size": 1, "volume_type": "zz"}},
            404,
            "Volume type with name zz",
        ),
    ]
    for method, path, body, status, text in wrong:
        answer = await stand.call(method, path, body)
        assert answer.status == status, (method, path, answer)
        assert next(iter(answer.body.values()))["message"].startswith(text), (method, path, answer)
