"""Changes of a VNF: its networks and volumes, its revisions, and the way back to one of them (multicloud.md MC-042)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio
import yaml
from kubevnfm_clients.http import ServiceUnavailable
from kubevnfm_clients.multicloud.dry_runs import TakenPlaces
from kubevnfm_clients.multicloud.volumes import PersistentVolume
from kubevnfm_events import Message
from kubevnfm_events.objects import (
    AttachedLink,
    HoldLinks,
    HoldVolumes,
    ReleaseLinks,
    ReleaseVolumes,
    ReplaceObjects,
    UpdateObjects,
)
from kubevnfm_lcm_api.lifecycle.core import occurrence as occurrences
from kubevnfm_secrets import revealed
from packages.package_variants import OTHER_CNF, variant
from worlds.lcm_world import RING, Answer, World, lcm_world

VNFS = "/multicloud/v1/vnf_instances"
FOLDER = "Files/kubernetes"
PATCH = {"Content-Type": "application/merge-patch+json"}
POD = {"containers": [{"name": "main"}], "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}
ROUTER = {
    "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "router"},
    "spec": {"replicas": 1, "template": {"spec": POD}},
}  # fmt: skip
LOGIN = {
    "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"},
    "stringData": {"password": "${password:-none}", "user": "${user:-none}"},
}  # fmt: skip
PASSWORD = "open-sesame-8"
ONE = {"persistent_volume_id": "one", "claim_name": "data"}
MORE = {"persistent_volume_id": "two", "claim_name": "more"}
THIRD = {"persistent_volume_id": "three", "claim_name": "data"}
FIRST = {"vdu_id": "router", "virtual_link_id": "link-1"}
SECOND = {"vdu_id": "router", "virtual_link_id": "link-2", "ip_address": "10.2.0.20"}

pytestmark = pytest.mark.asyncio(loop_scope="module")


@dataclass(frozen=True)
class _Gateway:
    world: World
    csar_id: str
    other_id: str
    """A package of the same content."""

    async def bring_up(self, **members: Any) -> str:
        asked = {"cloud_region_id": "op/edge", "csar_id": self.csar_id, **members}
        made = (await self.world.call("POST", VNFS, asked)).must(201).json
        self.world.twins.commands.clear()
        return f"{VNFS}/{made['vnf_id']}"

    async def patch(self, one: str, **members: Any) -> Answer:
        self.world.twins.commands.clear()
        return await self.world.call("PATCH", one, members, headers=PATCH)

    @property
    def sent(self) -> list[Message]:
        return [each.data for each in self.world.twins.commands]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[_Gateway]:
    async with lcm_world(tmp_path_factory.mktemp("gateway")) as world:
        world.vims.add("vim-edge", "kubernetes")
        world.regions.add("op/edge", "vim-edge")
        for name in ("link-1", "link-2"):
            world.links.attachable[name] = AttachedLink(name=name, type="nad", definition=name)
        for name, refusal in (("one", ""), ("two", ""), ("three", ""), ("taken", "it is in use by vnf:other")):
            world.volumes.by_id[name] = PersistentVolume(
                id=name, cloud_region_id="op/edge", vim_id="vim-edge", name=f"v-{name}", phase="Reserved", size="1Gi",
                access_modes=("ReadWriteOnce",), volume_mode="Filesystem", reclaim="Retain", refusal=refusal,
                created_at="t", updated_at="t",
            )  # fmt: skip
        files = {
            f"{FOLDER}/artifact-order.yaml": "artifacts: [{file: a.yaml, priority: 1}]",
            f"{FOLDER}/a.yaml": yaml.safe_dump_all([ROUTER, LOGIN]),
        }
        packages = [variant(world.folder, files=files), variant(world.folder, files=files, vnfd_id=OTHER_CNF)]
        ids = [(await world.upload(each))["id"] for each in packages]
        yield _Gateway(world, *ids)


async def test_links_and_volumes_are_taken_before_a_change_and_left_after_it(gateway: _Gateway) -> None:
    """MC-042, MC-086, MC-101: GET shows them; null leaves all; an empty change of them sends no command for them."""
    one = await gateway.bring_up(networks=[FIRST], volumes=[ONE])
    shown = (await gateway.world.call("GET", one)).must(200).json
    assert shown["networks"] == [{**FIRST, "interface": "net1", "default_gateway": False}]
    assert shown["volumes"] == [ONE]

    changed = (await gateway.patch(one, networks=[SECOND], volumes=[ONE, MORE])).must(200).json
    assert [each["virtual_link_id"] for each in changed["networks"]] == ["link-2"]
    assert changed["volumes"] == [ONE, MORE]
    hold, take, replace, release = gateway.sent
    assert isinstance(hold, HoldLinks)
    assert isinstance(take, HoldVolumes)
    assert isinstance(replace, ReplaceObjects)
    assert isinstance(release, ReleaseLinks)
    assert [each.virtual_link_id for each in hold.before] == ["link-1"]
    assert hold.networks == replace.networks == release.kept_networks
    assert [each.persistent_volume_id for each in take.volumes] == ["one", "two"]
    assert replace.volumes == take.volumes
    assert (replace.is_rollback, replace.is_undo) == (False, False)

    (await gateway.patch(one, networks=None, volumes=[ONE])).must(200)
    replace, release, leave = gateway.sent
    assert isinstance(replace, ReplaceObjects)
    assert isinstance(release, ReleaseLinks)
    assert isinstance(leave, ReleaseVolumes)
    assert (replace.networks, release.kept_networks) == ((), ())
    assert replace.volumes == leave.kept_volumes == take.volumes[:1]


async def test_null_removes_a_value_for_which_the_default_is_used_again(gateway: _Gateway) -> None:
    """MC-042: a merge patch; a null that a bring-up gives is a value; what is not there is no change."""
    one = await gateway.bring_up(values={"user": "anna", "db": {"host": "h", "port": 1, "role": None}})
    (await gateway.patch(one, values={"user": None, "db": {"port": None, "size": {"least": None, "most": 4}}})).must(
        200
    )
    (replace,) = gateway.sent
    assert isinstance(replace, ReplaceObjects)
    given = revealed(replace.values, RING)
    assert "user" not in given
    assert given["db"] == {"host": "h", "role": None, "size": {"most": 4}}
    (await gateway.patch(one, values={"none": None, "db": {"port": None}})).must(200)
    assert not gateway.sent
    revision = (await gateway.world.call("GET", f"{one}/revisions/1")).must(200).json
    assert revision["values"]["user"] == "anna"


async def test_a_value_that_no_artifact_uses_is_a_warning(gateway: _Gateway) -> None:
    """MC-022: with the nearest name, in the VNF and in its operation; values of an earlier request, and of a homing decision, are free."""
    world, why = gateway.world, "not used, since the package has no variable of this name"
    oof = [{"usr": "b"}]
    one = await gateway.bring_up(values={"user": "a", "passwrd": "p"}, oof_parameters=oof)
    shown = (await world.call("GET", one)).must(200).json
    assert shown["warnings"] == [f"values/passwrd: {why}; the nearest is password"]
    changed = (await gateway.patch(one, values={"password": "x", "usr": "c", "passwrd": None})).must(200).json
    assert changed["warnings"] == [f"values/usr: {why}; the nearest is user"]
    operation = changed["operation"].rpartition("/")[2]
    expected = [f"additionalParams/{changed['warnings'][0]}"]
    assert (await world.operation(operation))["warnings"] == expected
    shown = (await world.call("GET", f"/kubevnfm/v1/operations/{operation}")).must(200).json["warnings"]
    assert shown == [{"text": expected[0], "field": "/additionalParams/values/usr", "nearest": "user"}]
    assert "warnings" not in (await world.v1("GET", f"/vnf_lcm_op_occs/{operation}")).must(200).json
    changed = (await gateway.patch(one, values={"password": "y"})).must(200).json
    assert "warnings" not in changed
    back = (await world.call("POST", f"{one}/rollback", {"revision": 2})).must(200).json
    assert "warnings" not in back


async def test_an_order_with_protected_foreign_namespaces_is_refused(gateway: _Gateway) -> None:
    """MC-018, MC-032: at bring-up and by a change, with a pointer; nothing is sent."""
    gateway.world.regions.add("op/strict", "vim-strict", protected_namespaces=("monitoring",))
    gateway.world.vims.add("vim-strict", "kubernetes")
    order = "artifacts: [{file: a.yaml, priority: 1}]\nforeign_namespaces: [monitoring]"
    files = {f"{FOLDER}/artifact-order.yaml": order, f"{FOLDER}/a.yaml": yaml.safe_dump(LOGIN)}
    csar_id = (await gateway.world.upload(variant(gateway.world.folder, files=files, vnfd_id=str(uuid4()))))["id"]
    asked = {"cloud_region_id": "op/strict", "csar_id": csar_id}
    one = await gateway.bring_up(cloud_region_id="op/strict")
    for refused in (await gateway.world.call("POST", VNFS, asked), await gateway.patch(one, csar_id=csar_id)):
        (error,) = refused.problem(422)["errors"]
        assert error["pointer"] == "/order_artifact"
        assert "monitoring" in error["message"]
    assert not gateway.sent
    (await gateway.world.call("POST", VNFS, {**asked, "cloud_region_id": "op/edge"})).must(201)


async def test_a_change_of_links_and_volumes_that_fails_is_undone(gateway: _Gateway) -> None:
    """MC-042: the rollback leaves what the change has taken alone; after a failure for good, the end leaves all."""
    one = await gateway.bring_up()
    gateway.world.twins.failing.add("infra.k8s.replace_objects")
    for task, reached in (("rollback", "ROLLED_BACK"), ("fail", "FAILED")):
        failed = (await gateway.patch(one, networks=[FIRST], volumes=[ONE])).must(200).json
        operation = failed["operation"].rpartition("/")[2]
        gateway.world.twins.failing.clear()
        await gateway.world.lcm("POST", f"/vnf_lcm_op_occs/{operation}/{task}")
        await gateway.world.reached(operation, reached)
        shown = (await gateway.world.call("GET", one)).must(200).json
        assert (shown["networks"], shown["volumes"]) == ([], [])
        if task == "rollback":
            again, leave, release = gateway.sent[-3:]
            assert isinstance(again, ReplaceObjects)
            assert (again.networks, again.volumes) == ((), ())
            assert (again.is_rollback, again.is_undo) == (True, True)
            assert leave == ReleaseVolumes(vnf_instance_id=shown["vnf_id"])
            assert release == ReleaseLinks(vnf_instance_id=shown["vnf_id"])
            gateway.world.twins.failing.add("infra.k8s.replace_objects")
    (await gateway.world.call("DELETE", one)).must(204)
    assert gateway.world.twins.asked()[-2:] == ["infra.k8s.release_links", "infra.k8s.release_volumes"]


async def test_an_interface_gets_the_address_of_the_network_parameters(gateway: _Gateway) -> None:
    """MC-036, and chapter 6, Bad input: they complete an interface of `networks` by workload and connection point, or are refused."""
    named = {**FIRST, "interface": "oam0"}
    networks = [named, {**SECOND, "interface": "data0"}]
    given = {"workload_name": "router", "connection_point": "oam0", "ip_address": "10.2.0.30"}
    one = await gateway.bring_up(networks=networks, network_parameters={"oam_ip_address": given})
    shown = (await gateway.world.call("GET", one)).must(200).json["networks"]
    assert [each["ip_address"] for each in shown] == ["10.2.0.30", "10.2.0.20"]
    assert [each.ip_address for each in gateway.world.links.asked[-1].networks] == ["10.2.0.30", "10.2.0.20"]
    equal = [{**named, "ip_address": "10.2.0.30"}]
    await gateway.bring_up(networks=equal, network_parameters={"oam_ip_address": given})
    place = "/network_parameters/oam_ip_address"
    for changes, status, pointer in (
        ({"connection_point": "net1"}, 422, f"{place}/connection_point"),
        ({"workload_name": "none"}, 422, f"{place}/workload_name"),
        ({"connection_point": "data0"}, 422, f"{place}/ip_address"),
        ({"ip_address": ""}, 422, f"{place}/ip_address"),
        ({"ip_address": None}, 422, f"{place}/ip_address"),
        ({"mask": 24}, 422, f"{place}/mask"),
        # It is an address of the interface then.
        ({"ip_address": "10.9.9.9"}, 409, "/networks/0/ip_address"),
    ):
        parameters = {"network_parameters": {"oam_ip_address": {**given, **changes}}}
        asked = {"cloud_region_id": "op/edge", "csar_id": gateway.csar_id, "networks": networks, **parameters}
        refused = (await gateway.world.call("POST", VNFS, asked)).problem(status)
        assert [each["pointer"] for each in refused["errors"]] == [pointer], changes
    wrong: tuple[dict[str, Any], ...] = ({}, {"oam_ip_address": None}, {"oam_ip_address": given, "other": {}})
    for whole in wrong:
        asked = {"cloud_region_id": "op/edge", "csar_id": gateway.csar_id, "network_parameters": whole}
        refused = (await gateway.world.call("POST", VNFS, asked)).problem(422)
        assert refused["errors"][0]["pointer"].startswith("/network_parameters/"), whole
    refused = (await gateway.patch(one, network_parameters={"oam_ip_address": given})).problem(422)
    assert refused["errors"][0]["pointer"] == "/network_parameters"


async def test_links_and_volumes_that_a_vnf_cannot_have_are_refused(gateway: _Gateway) -> None:
    """MC-042: a volume that it has is no other user's, keeps its claim, and its claim no other volume gets."""
    one = await gateway.bring_up(volumes=[ONE])
    used = gateway.world.volumes.by_id["one"]
    gateway.world.volumes.by_id["one"] = used.model_copy(update={"refusal": "it is in use by this VNF"})
    for member, value, status, pointer in (
        ("networks", [{**FIRST, "virtual_link_id": "none"}], 422, "/networks/0/virtual_link_id"),
        ("networks", [{**FIRST, "vdu_id": "none"}], 422, "/networks/0/vdu_id"),
        ("networks", [{**FIRST, "ip_address": "10.9.9.9"}], 409, "/networks/0/ip_address"),
        ("networks", [FIRST] * 257, 422, "/networks"),
        ("networks", 3, 422, "/networks"),
        ("volumes", [{**ONE, "claim_name": "other"}], 422, "/volumes/0/claim_name"),
        ("volumes", [{**MORE, "claim_name": "data"}], 422, "/volumes/0/claim_name"),
        ("volumes", [ONE, {**MORE, "persistent_volume_id": "taken"}], 409, "/volumes/1/persistent_volume_id"),
        ("volumes", [{**MORE, "persistent_volume_id": "none"}], 422, "/volumes/0/persistent_volume_id"),
    ):
        refused = (await gateway.patch(one, **{member: value})).problem(status)
        assert [each["pointer"] for each in refused["errors"]] == [pointer], (member, value)
        assert gateway.sent == []
    # MC-006: all of them in one answer, by both requests.
    wrong: dict[str, Any] = {
        "networks": [{**FIRST, "virtual_link_id": "none"}, {**FIRST, "vdu_id": "none"}],
        "volumes": [{**MORE, "persistent_volume_id": "taken"}, {**MORE, "persistent_volume_id": "none"}],
        "compute_profiles": [{"vdu_id": "none", "limits": {"cpu": "1"}}],
    }
    places = {
        "/networks/0/virtual_link_id", "/networks/1/vdu_id", "/volumes/0/persistent_volume_id",
        "/volumes/1/persistent_volume_id", "/volumes/1/claim_name", "/compute_profiles/0/vdu_id",
    }  # fmt: skip
    asked = {"cloud_region_id": "op/edge", "csar_id": gateway.csar_id, **wrong}
    for answer in (await gateway.patch(one, **wrong), await gateway.world.call("POST", VNFS, asked)):
        assert {each["pointer"] for each in answer.problem(422)["errors"]} == places
    assert gateway.sent == []
    (await gateway.patch(one, volumes=[ONE, MORE])).must(200)


async def test_each_accepted_change_is_a_revision_that_a_vnf_can_return_to(gateway: _Gateway) -> None:
    """MC-009, MC-042: with secret values and package; a patch that changes nothing is none; nothing secret is shown."""
    world = gateway.world
    one = await gateway.bring_up(values={"password": PASSWORD, "user": "a"}, networks=[FIRST], volumes=[THIRD])
    second = {"csar_id": gateway.other_id, "values": {"password": f"{PASSWORD}-2"}, "networks": [], "volumes": [MORE]}
    (await gateway.patch(one, **second)).must(200)
    (await gateway.patch(one, values={"user": "a"})).must(200)
    assert gateway.sent == []
    original = {"vnfdId": OTHER_CNF, "additionalParams": {"values": {"user": "b"}}}
    changed = (await world.lcm("POST", f"{one.removeprefix('/multicloud/v1')}/change_vnfpkg", original)).must(202)
    await world.reached(changed.headers["Location"].rpartition("/")[2], "COMPLETED")

    seen = (await world.call("GET", one)).must(200)
    wrong = await world.call("POST", f"{one}/rollback", {"revision": 1}, headers={"If-Match": '"old"'})
    wrong.problem(412)
    world.twins.commands.clear()
    back = await world.call("POST", f"{one}/rollback", {"revision": 1}, headers={"If-Match": seen.headers["ETag"]})
    shown = back.must(200).json
    assert (shown["revision"], shown["csar_id"], shown["status"]) == (4, gateway.csar_id, "READY")
    assert ([each["virtual_link_id"] for each in shown["networks"]], shown["volumes"]) == (["link-1"], [THIRD])
    replace = next(each for each in gateway.sent if isinstance(each, ReplaceObjects))
    given = revealed(replace.values, RING)
    assert (given["password"], given["user"], replace.package.package_id) == (PASSWORD, "a", gateway.csar_id)

    listed = (await world.call("GET", f"{one}/revisions")).must(200).json
    assert [(each["revision"], each["cause"], each["result"]) for each in listed] == [
        (4, "rollback", "READY"), (3, "sol003", "READY"), (2, "patch", "READY"), (1, "create", "READY"),
    ]  # fmt: skip
    assert (listed[0]["rollback_to"], {each["by"] for each in listed}) == (1, {"anybody"})
    assert listed[0]["digest"] == listed[3]["digest"]
    assert len({each["digest"] for each in listed}) == 3
    # As if it had read the VNF before the occurrence was written, which comes after the release of the VNF.
    operation = listed[0]["operation"].rpartition("/")[2]
    await world.store.update(occurrences.COLLECTION, operation, {"operationState": "PROCESSING"})
    assert (await world.call("GET", f"{one}/revisions")).must(200).json == listed
    (await gateway.patch(one, values={"user": "a"})).must(200)
    assert gateway.sent == []
    first = (await world.call("GET", f"{one}/revisions/1")).must(200).json
    assert first == {
        **listed[3], "values": {"password": "***", "user": "a"}, "compute_profiles": [], "volumes": [THIRD],
        "networks": [{**FIRST, "interface": "net1", "default_gateway": False}],
    }  # fmt: skip
    page = await world.call("GET", f"{one}/revisions?limit=3")
    rest = await world.call("GET", page.headers["Link"].partition(">")[0].removeprefix(f"<{world.url}"))
    assert [each["revision"] for each in rest.must(200).json] == [1]
    stored = b"".join(path.read_bytes() for path in world.folder.glob("store.db*") if path.is_file())
    assert PASSWORD not in f"{listed}{first}{stored!r}"


async def modified(world: World, one: str, reached: str = "COMPLETED", **body: Any) -> str:
    """Have SOL003 modify a VNF; return the operation's id."""
    accepted = (await world.lcm("PATCH", one.removeprefix("/multicloud/v1"), body)).must(202)
    operation = accepted.headers["Location"].rpartition("/")[2]
    await world.reached(operation, reached)
    return operation


async def test_a_modification_by_sol003_that_changes_the_package_is_a_revision(gateway: _Gateway) -> None:
    """MC-042: it has the inputs of the VNF with the other package, and one can return to it; one of a name is none."""
    world = gateway.world
    one = await gateway.bring_up(values={"password": PASSWORD, "user": "a"}, networks=[FIRST])

    vnfd_id = (await world.lcm("GET", one.removeprefix("/multicloud/v1"))).must(200).json["vnfdId"]
    await modified(world, one, vnfInstanceName="another name")
    await modified(world, one, vnfdId=OTHER_CNF, metadata={"site": "north"})
    (await gateway.patch(one, values={"user": "b"}, networks=[])).must(200)
    await modified(world, one, vnfdId=vnfd_id)
    listed = (await world.call("GET", f"{one}/revisions")).must(200).json
    assert [(each["revision"], each["cause"], each["csar_id"], each["by"]) for each in listed] == [
        (4, "sol003", gateway.csar_id, "anybody"),
        (3, "patch", gateway.other_id, "anybody"),
        (2, "sol003", gateway.other_id, "anybody"),
        (1, "create", gateway.csar_id, "anybody"),
    ]
    assert {each["result"] for each in listed} == {"READY"}
    # The objects follow with the next change.
    assert ["digest" in each for each in listed] == [False, True, False, True]
    second = (await world.call("GET", f"{one}/revisions/2")).must(200).json
    assert (second["values"], len(second["networks"])) == ({"password": "***", "user": "a"}, 1)
    world.twins.commands.clear()
    back = (await world.call("POST", f"{one}/rollback", {"revision": 2})).must(200).json
    assert (back["revision"], back["csar_id"], back["status"]) == (5, gateway.other_id, "READY")
    replace = next(each for each in gateway.sent if isinstance(each, ReplaceObjects))
    given = revealed(replace.values, RING)
    assert (given["password"], given["user"], len(replace.networks)) == (PASSWORD, "a", 1)
    # A patch that asks for what the newest revision has is known by its digest, which a modification has not.
    await modified(world, one, vnfdId=vnfd_id)
    (await gateway.patch(one, values={"user": "a"})).must(200)
    assert any(isinstance(each, ReplaceObjects) for each in gateway.sent)
    (await gateway.patch(one, values={"user": "a"})).must(200)
    assert gateway.sent == []
    stored = b"".join(path.read_bytes() for path in world.folder.glob("store.db*") if path.is_file())
    assert PASSWORD.encode() not in stored


async def test_a_modification_that_changes_containers_is_a_revision_of_a_package(gateway: _Gateway) -> None:
    """MC-042: also one that fails; files beside the order are refused, as no later change would have them."""
    world, driver = gateway.world, {"modify_information_end": "mgmt-container-update"}
    files = {
        f"{FOLDER}/artifact-order.yaml": "artifacts: [{file: a.yaml, priority: 1}]",
        f"{FOLDER}/a.yaml": yaml.safe_dump(ROUTER),
        # The twin says that the CNF is made from it now.
        f"{FOLDER}/b.yaml": yaml.safe_dump(LOGIN),
    }
    ids = [str(uuid4()), str(uuid4())]
    packages = [
        (await world.upload(variant(world.folder, files=files, vnfd_id=each, phases=driver)))["id"] for each in ids
    ]
    one = await gateway.bring_up(csar_id=packages[0])
    path = one.removeprefix("/multicloud/v1")
    metadata = {"configmap_secret_paths": [f"{FOLDER}/a.yaml"]}
    problem = (await world.lcm("PATCH", path, {"vnfdId": ids[1], "metadata": metadata})).problem(422)
    assert "metadata/configmap_secret_paths" in problem["detail"]
    await modified(world, one, vnfdId=ids[1])
    assert [type(each) for each in gateway.sent] == [UpdateObjects]
    world.twins.failing.add("infra.k8s.update_objects")
    failed = await modified(world, one, "FAILED_TEMP", vnfdId=ids[0])
    world.twins.failing.clear()
    await world.lcm("POST", f"/vnf_lcm_op_occs/{failed}/rollback")
    await world.reached(failed, "ROLLED_BACK")
    listed = (await world.call("GET", f"{one}/revisions")).must(200).json
    assert [(each["csar_id"], each["result"]) for each in listed] == [
        (packages[0], "FAILED"), (packages[1], "READY"), (packages[0], "READY"),
    ]  # fmt: skip
    assert (await world.call("GET", one)).must(200).json["csar_id"] == packages[1]


async def test_a_revision_that_a_vnf_cannot_return_to_is_refused(gateway: _Gateway) -> None:
    """MC-042: unknown, the newest, with a package or a link that is gone; one below the limit unless it is the newest READY one."""
    world = gateway.world
    one = await gateway.bring_up(values={"user": "a"}, networks=[FIRST])
    for body, status, pointer in (
        ({"revision": 9}, 422, "/revision"),
        ({"revision": 1}, 409, "/revision"),
        ({"revision": 0}, 422, "/revision"),
        ({"revision": "1"}, 422, "/revision"),
        ({}, 422, "/revision"),
        ({"revision": 1, "volumes": []}, 422, "/volumes"),
    ):
        refused = (await world.call("POST", f"{one}/rollback", body)).problem(status)
        assert [each["pointer"] for each in refused["errors"]] == [pointer], body
    for path in ("9", "0", "x", "9" * 30):
        (await world.call("GET", f"{one}/revisions/{path}")).problem(404)
    (await gateway.patch(one, networks=[])).must(200)
    gone = world.links.attachable.pop("link-1")
    refused = (await world.call("POST", f"{one}/rollback", {"revision": 1})).problem(422)
    assert [each["pointer"] for each in refused["errors"]] == ["/revision"]
    world.links.attachable["link-1"] = gone

    gateway.world.twins.failing.add("infra.k8s.replace_objects")
    for number in range(3, 24):
        failed = (await gateway.patch(one, values={"user": f"u{number}"})).must(200).json
        operation = failed["operation"].rpartition("/")[2]
        await world.lcm("POST", f"/vnf_lcm_op_occs/{operation}/fail")
        await world.reached(operation, "FAILED")
    gateway.world.twins.failing.clear()
    listed = (await world.call("GET", f"{one}/revisions")).must(200).json
    assert [each["revision"] for each in listed] == [*range(23, 3, -1), 2]
    assert [each["result"] for each in listed] == [*["FAILED"] * 20, "READY"]
    (await world.call("POST", f"{one}/rollback", {"revision": 1})).problem(422)
    (await gateway.patch(one, csar_id=gateway.other_id)).must(200)
    await world.packages("PATCH", f"/{gateway.csar_id}", {"operationalState": "DISABLED"})
    refused = (await world.call("POST", f"{one}/rollback", {"revision": 23})).problem(409)
    assert [each["pointer"] for each in refused["errors"]] == ["/revision"]
    await world.packages("PATCH", f"/{gateway.csar_id}", {"operationalState": "ENABLED"})


async def test_a_dry_run_asks_for_what_its_request_would_and_stores_nothing(gateway: _Gateway) -> None:
    """MC-005, MC-033: create, PATCH and rollback, in three modes; Prefer is ignored and a key is not stored; bad input of chapter 5."""
    world = gateway.world
    one = await gateway.bring_up(values={"password": PASSWORD}, networks=[FIRST])
    (await gateway.patch(one, networks=[], values={"user": "b"})).must(200)
    before = (await world.call("GET", one)).must(200)
    world.twins.commands.clear()
    world.dry_runs.asked.clear()
    new = {"cloud_region_id": "op/edge", "csar_id": gateway.csar_id, "values": {"user": "c"}, "namespace": "other"}
    many = len((await world.call("GET", VNFS)).must(200).json)
    headers = {"Prefer": "respond-async", "Idempotency-Key": "the-same"}
    for mode in ("render", "server", "diff"):
        # The same key with another query: it would be a conflict if it was stored.
        (await world.call("POST", f"{VNFS}?dry_run={mode}", new, headers=headers)).must(200)
        (await world.call("PATCH", f"{one}?dry_run={mode}", {"values": {"user": "d"}}, headers=PATCH)).must(200)
        answer = await world.call("POST", f"{one}/rollback?dry_run={mode}", {"revision": 1}, headers=headers)
        assert answer.must(200).json == {"summary": {}, "objects": []}
    create, patch, rollback = world.dry_runs.asked[-3:]
    assert [each.mode for each in world.dry_runs.asked[::3]] == ["render", "server", "diff"]
    assert [each.occasion for each in (create, patch, rollback)] == ["create", "update", "rollback"]
    assert (create.namespace, revealed(create.values, RING)["user"], create.networks) == ("other", "c", ())
    assert patch.vnf_instance_id == rollback.vnf_instance_id == before.json["vnf_id"] != create.vnf_instance_id
    assert revealed(patch.values, RING)["user"] == "d"
    assert "user" not in revealed(rollback.values, RING)
    assert [each.virtual_link_id for each in rollback.networks] == ["link-1"]
    asked = len(world.dry_runs.asked)
    # Nothing of the region is asked where no object changes.
    (await world.call("PATCH", f"{one}?dry_run=diff", {"vnf_instance_name": "x"}, headers=PATCH)).must(200)
    for method, path, body in (
        ("POST", VNFS, new),
        ("PATCH", one, {"values": {}}),
        ("POST", f"{one}/rollback", {"revision": 1}),
    ):
        for mode in ("", "apply"):
            given = PATCH if method == "PATCH" else {}
            (await world.call(method, f"{path}?dry_run={mode}", body, headers=given)).problem(400)
    (await world.call("POST", f"{one}/rollback?dry_run=diff", {"revision": 9})).problem(422)
    (await world.call("POST", f"{VNFS}?dry_run=diff", {**new, "namespace": "kube-system"})).problem(422)
    (await world.call("DELETE", f"{one}?dry_run=diff")).problem(400)
    # A group would be begun: it has no dry run.
    group = {**{name: new[name] for name in ("csar_id", "values")}, "regions": [{"cloud_region_id": "op/edge"}]}
    refused = (await world.call("POST", f"{VNFS}?dry_run=diff", group)).problem(400)
    assert [each["pointer"] for each in refused["errors"]] == ["/dry_run"]
    assert len(world.dry_runs.asked) == asked
    assert (await world.call("GET", one)).must(200).json == before.json
    assert len((await world.call("GET", VNFS)).must(200).json) == many
    assert gateway.sent == []


async def test_places_that_others_have_are_refused_before_an_operation_begins(gateway: _Gateway) -> None:
    """MC-039: 409 of create, PATCH and rollback. A request passes if infra-k8s does not answer."""
    world = gateway.world
    one = await gateway.bring_up(values={"password": PASSWORD})
    (await gateway.patch(one, values={"user": "b"})).must(200)
    before, operations = (await world.call("GET", one)).must(200), (await world.lcm("GET", "/vnf_lcm_op_occs")).json
    new = {"cloud_region_id": "op/edge", "csar_id": gateway.csar_id, "values": {"user": "c"}, "namespace": "other"}
    world.dry_runs.placed.clear()
    world.dry_runs.taken = TakenPlaces(objects=("ConfigMap other/a",), count=3)
    for method, path, body in (
        ("POST", VNFS, new),
        ("PATCH", one, {"values": {"user": "d"}}),
        ("POST", f"{one}/rollback", {"revision": 1}),
    ):
        refused = await world.call(method, path, body, headers=PATCH if method == "PATCH" else {})
        problem = refused.problem(409)
        assert problem["type"] == "foreign-object"
        assert "ConfigMap other/a and 2 more" in problem["detail"]
    create, patch, rollback = world.dry_runs.placed
    assert create.order_artifact is not None
    assert (create.namespace, revealed(create.values, RING)["user"]) == ("other", "c")
    assert patch.vnf_instance_id == rollback.vnf_instance_id == before.json["vnf_id"] != create.vnf_instance_id
    assert (await world.call("GET", one)).must(200).json == before.json
    assert (await world.lcm("GET", "/vnf_lcm_op_occs")).json == operations
    assert (await world.call("GET", f"{VNFS}?namespace=other")).must(200).json == []

    world.dry_runs.taken = ServiceUnavailable("infra-k8s does not answer")
    made = (await world.call("POST", VNFS, new)).must(201).json
    world.dry_runs.taken = TakenPlaces()
    (await world.call("DELETE", f"{VNFS}/{made['vnf_id']}")).must(204)
