"""Which servers have to leave before a change, because another server needs a volume in them. Without Heat."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from kubevnfm_csar.hot import nested_templates
from kubevnfm_infra_openstack.domain.handover import leaving_first, lost_with
from kubevnfm_infra_openstack.domain.rolling import ReadDefinition
from kubevnfm_infra_openstack.domain.snapshots import StackBefore
from kubevnfm_infra_openstack.domain.stack import (
    HeatResource,
    NovaServer,
    Stack,
    StackContents,
    StackDefinition,
    StackState,
)

SERVER, VOLUME = "OS::Nova::Server", "OS::Cinder::Volume"
STACK = Stack("top", "vnf-1", StackState.READY)


def boots(*volumes: str, **properties: Any) -> dict[str, Any]:
    """Return a server that has these volumes and boots from the first."""
    drives = [
        {"volume_id": {"get_resource": name}, "boot_index": -1 if number else 0} for number, name in enumerate(volumes)
    ]
    return {"type": SERVER, "properties": {"flavor": "m1", "block_device_mapping_v2": drives, **properties}}


def volume(image: object = "ubuntu") -> dict[str, Any]:
    return {"type": VOLUME, "properties": {"size": 1, "image": image}}


def read(resources: Mapping[str, Any], files: Mapping[str, str] | None = None, **parameters: Any) -> ReadDefinition:
    declared = {name: {"type": "string"} for name in parameters}
    template = {"parameters": declared, "resources": resources}
    return ReadDefinition(StackDefinition(template, parameters, files or {}), nested_templates(files or {}))


def contents(
    *, status: str = "CREATE_COMPLETE", nova: str = "ACTIVE", volumes: tuple[str, ...] = ("root",)
) -> StackContents:
    """Return a stack of the server `a` with volumes whose ids are ``id-<name>``."""
    made = [HeatResource(name, VOLUME, f"id-{name}", "CREATE_COMPLETE", "", "top") for name in volumes]
    server = NovaServer("id-a", "a", volume_ids=tuple(f"id-{name}" for name in volumes), status=nova)
    return StackContents([HeatResource("a", SERVER, "id-a", status, "", "top"), *made], {"id-a": server})


OLD = {"a": boots("root", user_data="one"), "root": volume()}


@pytest.mark.parametrize(
    ("new", "goes"),
    [
        pytest.param(OLD, False, id="unchanged"),
        pytest.param({**OLD, "a": boots("root", user_data="one", flavor="m2", name="n")}, False, id="in place"),
        pytest.param({**OLD, "a": boots("root", user_data="two")}, True, id="other user data"),
        pytest.param(
            {**OLD, "a": boots("root", user_data="two", user_data_update_policy="IGNORE")},
            False,
            id="ignored user data",
        ),
        pytest.param(
            {**OLD, "a": boots("root", user_data="one", key_name="k")}, True, id="a property that never changes"
        ),
        pytest.param(
            {**OLD, "a": boots("root", user_data="one", flavor="m2", flavor_update_policy="REPLACE")}, True, id="policy"
        ),
        pytest.param({**OLD, "root": volume("debian")}, False, id="another volume"),
        pytest.param({"root": volume()}, False, id="removed"),
        pytest.param({"b": boots("root"), "root": volume()}, True, id="its volume goes to another server"),
        pytest.param({**OLD, "b": boots("more"), "more": volume()}, False, id="another server comes"),
    ],
)
def test_a_server_leaves_first_if_heat_would_replace_it_and_its_volume_stays(new: dict[str, Any], goes: bool) -> None:
    found = leaving_first(STACK, contents(), lambda _: read(OLD), read(new))
    assert [one.physical_id for one in found] == (["id-a"] if goes else [])


def test_a_data_volume_that_stays_counts_where_the_boot_volume_is_replaced() -> None:
    old = {"a": boots("root", "data"), "root": volume(), "data": volume(None)}
    now = contents(volumes=("root", "data"))
    assert leaving_first(STACK, now, lambda _: read(old), read({**old, "root": volume("debian")}))


def test_the_values_of_parameters_and_of_files_are_compared() -> None:
    files = {"boot.sh": "one"}
    given = {"a": boots("root", key_name={"get_param": "key"}, user_data={"get_file": "boot.sh"}), "root": volume()}
    was = read(given, files, key="one")
    for new, goes in (
        (read(given, files, key="one"), False),
        (read(given, files, key="two"), True),
        (read(given, {"boot.sh": "two"}, key="one"), True),
    ):
        assert bool(leaving_first(STACK, contents(), lambda _: was, new)) is goes


def test_a_server_that_failed_leaves_before_the_next_try() -> None:
    """Its replacement needs all that it holds. One that Heat can still change stays."""
    for status, nova, goes in (
        ("CREATE_FAILED", "ERROR", True),
        ("UPDATE_FAILED", "ACTIVE", False),
        ("CREATE_COMPLETE", "ERROR", False),
    ):
        now = contents(status=status, nova=nova)
        assert bool(leaving_first(STACK, now, lambda _: read(OLD), read(OLD))) is goes


@pytest.mark.parametrize("goes", [True, "true", False, None])
def test_a_volume_that_nova_deletes_with_its_server_is_lost(goes: object) -> None:
    drive = {"volume_id": {"get_resource": "root"}, "boot_index": 0, "delete_on_termination": goes}
    form = read({"a": {"type": SERVER, "properties": {"block_device_mapping_v2": [drive]}}, "root": volume()})
    assert lost_with(STACK, contents(), lambda _: form, ["id-a"]) == ({"id-root"} if goes in (True, "true") else set())
    assert lost_with(STACK, contents(), lambda _: form, []) == set()


def test_only_a_server_that_ran_before_an_operation_is_started_by_its_rollback() -> None:
    before = StackBefore(StackDefinition({}, {}, {}), running=["ran", "runs", "gone"])
    now = {"ran": "SHUTOFF", "runs": "ACTIVE", "was off": "SHUTOFF"}
    assert before.stopped({one: NovaServer(one, one, status=status) for one, status in now.items()}) == ["ran"]
