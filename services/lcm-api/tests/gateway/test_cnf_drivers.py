"""The management drivers of VNFDs: each one runs, or the request that would leave it out is refused."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import pytest
from kubevnfm_events import ServiceFacts
from kubevnfm_events.mgmt import RunPhase, RunScript, ScriptAnswer, ScriptDone, ScriptEdit
from kubevnfm_events.objects import UpdateObjects
from packages.package_variants import OTHER_CNF, OTHER_VM, scripted_cluster, variant
from worlds.lcm_world import World, sample_request

V1_VIM = [{"id": "cluster", "vimId": "VIM_ID", "vimType": "kubernetes"}]


async def created(
    world: World, sample: str = "cnf", *, phases: Mapping[str, str], files: Mapping[str, str] = {}
) -> str:
    world.vims.add("VIM_ID", "kubernetes")
    onboarded = await world.upload(variant(world.folder, sample, phases=phases, files=files))
    assert onboarded["onboardingState"] == "ONBOARDED", onboarded
    return await world.create(sample)


async def ended(world: World, instance_id: str, task: str, body: Mapping[str, Any]) -> str:
    operation = await world.reached(await world.ask(instance_id, task, body))
    return str(operation["operationState"])


@pytest.mark.parametrize(
    ("phase", "driver", "reason"),
    [
        ("instantiate_end", "mgmt-drivers-kubernetes", "for CNFs this VNFM knows mgmt-container-update"),
        ("terminate_rollback_end", "kubernetes", "for CNFs this VNFM knows mgmt-container-update"),
        (
            "operate_end",
            "own-script",
            "before and after instantiate, scale, scale_to_level, heal, change_current_package, modify_information, terminate, not at operate_end",
        ),
        (
            "instantiate",
            "own-script",
            "before and after instantiate, scale, scale_to_level, heal, change_current_package, modify_information, terminate, not at instantiate",
        ),
        ("operate_start", "mgmt-drivers-other", "for CNFs, a script is run before and after instantiate"),
    ],
)
async def test_a_driver_that_cannot_run_for_a_cnf_is_refused_by_name(
    world: World, phase: str, driver: str, reason: str
) -> None:
    instance_id = await created(world, phases={phase: driver})
    await refused(world, instance_id, phase, driver, reason)


async def refused(world: World, instance_id: str, phase: str, driver: str, reason: str) -> None:
    """Assert that both versions of the API refuse to instantiate the CNF."""
    body = sample_request("cnf", "instantiate")
    path = f"/vnf_instances/{instance_id}/instantiate"
    for answer in (
        await world.lcm("POST", path, body),
        await world.v1("POST", path, {**body, "vimConnectionInfo": V1_VIM}),
    ):
        detail = answer.problem(422)["detail"]
        assert f"maps {phase} to " in detail
        assert driver in detail
        assert reason in detail
    assert world.twins.commands == []


@pytest.mark.parametrize("phase", ["instantiate_end", "modify_information_start", "terminate_rollback_start"])
async def test_a_script_that_a_cnf_cannot_run_is_a_warning_of_its_package_and_refused(world: World, phase: str) -> None:
    script = {"Scripts/own.py": "class Own(VnflcmMgmtAbstractDriver):\n    pass\n"}
    world.vims.add("VIM_ID", "kubernetes")
    package = await world.upload(variant(world.folder, phases={phase: "own"}, files=script))
    reason = f"whose script cannot be run: its driver class Own has no method {phase}"
    assert f"maps {phase} to own, {reason}" in package["warnings"][0]
    await refused(world, await world.create("cnf"), phase, "own", reason)


@pytest.mark.parametrize(
    ("driver", "needs"), [("ansible_driver", "ansible_runner"), ("own_driver", "tacker.common.rpc")]
)
async def test_a_driver_class_that_cannot_run_is_refused_by_name(world: World, driver: str, needs: str) -> None:
    code = (
        f"import {needs}\nclass Own(VnflcmMgmtAbstractDriver):\n    def instantiate_end(self, *args, **kwargs): ...\n"
    )
    script = {f"Scripts/{driver}.py": code}
    package = await world.upload(variant(world.folder, "vm", phases={"instantiate_end": driver}, files=script))
    assert package["onboardingState"] == "ONBOARDED", package
    assert driver in str(package["warnings"])
    path = f"/vnf_instances/{await world.create()}/instantiate"
    for answer in (
        await world.lcm("POST", path, sample_request("vm", "instantiate")),
        await world.v1("POST", path, {"flavourId": "simple"}),
    ):
        detail = answer.problem(422)["detail"]
        assert "maps instantiate_end to" in detail
        assert driver in detail
        assert f"needs {needs}, which management drivers of packages do not have" in detail
    assert world.twins.commands == []


PLAYBOOKS = {
    "ScriptANSIBLE/config.yaml": "vdus: {VDU1: {config: {order: 0, vm_app_config: {username: u, instantiation: "
    "[{path: _VAR_vnf_package_path/Scripts/start.yaml, order: 0}]}}}}\n",
    "Scripts/start.yaml": "[]\n",
}


async def test_playbooks_are_run_for_machines_where_ansible_is_installed(world: World) -> None:
    """SEQ 6.8: otherwise the request says what to install, also that for a change to such a package."""
    phases = dict.fromkeys(("instantiate_end", "heal_end"), "ansible_driver")
    package = await world.upload(variant(world.folder, "vm", phases=phases, files=PLAYBOOKS))
    assert (package["onboardingState"], package.get("warnings")) == ("ONBOARDED", None)
    instance_id = await world.create()
    world.playbooks.lacking = "Ansible playbooks need ansible-core: pip install it"
    answer = await world.lcm("POST", f"/vnf_instances/{instance_id}/instantiate", sample_request("vm", "instantiate"))
    problem = answer.problem(422)
    assert "maps instantiate_end to ansible_driver: Ansible playbooks need ansible-core" in problem["detail"]
    assert problem["type"].endswith("ansible-missing")
    world.playbooks.lacking = ""
    assert await ended(world, instance_id, "instantiate", sample_request("vm", "instantiate")) == "COMPLETED"
    sent = scripts_sent(world)["instantiate_end"]
    assert (sent.file, sent.driver_class, bool(sent.reach)) == ("ScriptANSIBLE/config.yaml", "ansible", True)
    before = [server["server_id"] for server in sent.given["stack"]["servers"]]
    assert (len(before), sent.given["earlier_servers"]) == (3, [])
    assert await ended(world, instance_id, "heal", {}) == "COMPLETED"
    assert scripts_sent(world)["heal_end"].given["earlier_servers"] == before
    await world.upload(variant(world.folder, "vm", phases=phases, files=PLAYBOOKS, vnfd_id=OTHER_VM))
    world.playbooks.lacking = "Ansible playbooks need ansible-core: pip install it"
    changed = await world.lcm("POST", f"/vnf_instances/{instance_id}/change_vnfpkg", {"vnfdId": OTHER_VM})
    assert changed.problem(422)["type"].endswith("ansible-missing")


async def test_playbooks_are_refused_for_a_cnf(world: World) -> None:
    world.vims.add("VIM_ID", "kubernetes")
    await world.upload(variant(world.folder, phases={"instantiate_end": "ansible_driver"}, files=PLAYBOOKS))
    await refused(
        world, await world.create("cnf"), "instantiate_end", "ansible_driver", "playbooks are for the machines"
    )


@pytest.mark.parametrize("driver", ["mgmt-container-update", "mgmt-drivers-cnf-nodeport", "vnflcm_noop", "own"])
async def test_a_package_whose_drivers_run_for_a_cnf_is_onboarded_without_warning(world: World, driver: str) -> None:
    """Its VDUs are of type Vdu.Compute, as in packages for Tacker, so it might be a VNF of machines."""
    package = await world.upload(variant(world.folder, phases={"instantiate_end": driver}))
    assert package["onboardingState"] == "ONBOARDED"
    assert "warnings" not in package


@pytest.mark.parametrize("sample", ["cnf", "vm"])
async def test_a_phase_whose_driver_has_no_work_is_as_one_without_driver(world: World, sample: str) -> None:
    """``vnflcm_noop`` of Tacker."""
    plain = "ApplyObjects", "DeleteObjects"
    machines = "CreateResources", "ScaleResources", "DeleteResources"
    phases = dict.fromkeys(("instantiate_start", "instantiate_end", "scale_end", "terminate_end"), "vnflcm_noop")
    instance_id = await created(world, sample, phases=phases)
    assert await ended(world, instance_id, "instantiate", sample_request(sample, "instantiate")) == "COMPLETED"
    if sample == "vm":
        scale = {"type": "SCALE_OUT", "aspectId": "VDU1_scale"}
        assert await ended(world, instance_id, "scale", scale) == "COMPLETED"
    assert await ended(world, instance_id, "terminate", {"terminationType": "FORCEFUL"}) == "COMPLETED"
    sent = tuple(type(command.data).__name__ for command in world.twins.commands)
    assert sent == (plain if sample == "cnf" else machines)


CHANGED = ScriptDone(answer=ScriptAnswer(edits=(ScriptEdit(path=("metadata", "configured"), change={"value": "yes"}),)))
LIFE = ("instantiate_start", "modify_information_start", "modify_information_end", "terminate_start", "terminate_end")


def scripts_sent(world: World) -> dict[str, RunScript]:
    """Return the commands for scripts, by phase."""
    return {c.data.task: c.data for c in world.twins.commands if isinstance(c.data, RunScript)}


@pytest.mark.parametrize("version", ["v1", "v2"])
async def test_scripts_of_a_cnf_run_beside_its_drivers_in_each_operation(world: World, version: str) -> None:
    """SEQ 6.5: the form of machines, without an address."""
    phases = {**dict.fromkeys(LIFE, "own"), "instantiate_end": "mgmt-drivers-cnf-nodeport"}
    files = {"Scripts/configure_lb.sh": "exit 0\n"}
    instance_id = await created(world, phases=phases, files=files)
    await world.upload(variant(world.folder, phases=phases, files=files, vnfd_id=OTHER_CNF))
    world.twins.answers["mgmt.run_script"] = CHANGED
    by_v1 = version == "v1"
    body = with_balancer(BALANCER) | ({"vimConnectionInfo": V1_VIM} if by_v1 else {})
    call = world.v1 if by_v1 else world.lcm

    async def asked(task: str, body: Mapping[str, Any]) -> None:
        answer = (await call("POST", f"/vnf_instances/{instance_id}/{task}", body)).must(202)
        operation = await world.reached(answer.headers["Location"].rpartition("/")[2])
        assert operation["operationState"] == "COMPLETED", operation

    await asked("instantiate", body)
    change = {"vnfdId": OTHER_CNF, "vnfInstanceName": "n"}
    assert (await modified(world, instance_id, change, by=version))["operationState"] == "COMPLETED"
    shown = (await world.lcm("GET", f"/vnf_instances/{instance_id}")).json
    assert (shown["metadata"], shown["vnfdId"]) == ({"configured": "yes"}, OTHER_CNF)
    await asked("terminate", {"terminationType": "GRACEFUL"})
    assert [type(command.data).__name__ for command in world.twins.commands] == [
        "RunScript", "ApplyObjects", "RunPhase", "RunScript", "RunScript", "RunScript", "DeleteObjects", "RunScript",
        "ForgetInstance",
    ]  # fmt: skip
    sent = scripts_sent(world)
    assert tuple(sent) == LIFE
    for phase, script in sent.items():
        assert (script.reach, script.file) == ((), "Scripts/own.py")
        assert (script.given["grant_request"] is None) == phase.startswith("modify")
        assert script.given["grant_response"] is None
        assert (script.package.vnfd_id == OTHER_CNF) == phase.startswith("terminate")
        assert script.folders["tmp_csar_dir"] == script.package
    new = {phase: script.folders["new_csar_dir"].vnfd_id for phase, script in sent.items() if len(script.folders) > 1}
    assert new == {"modify_information_end": OTHER_CNF}
    first = sent["instantiate_start"].given
    assert set(first["request"]["vimConnectionInfo"]) == {"cluster"}, "a map, as in v2"
    assert [one["vduId"] for one in first["grant_request"]["addResources"] if one["type"] == "COMPUTE"] == ["VDU1"] * 2
    assert sent["modify_information_start"].given["request"] == change
    removed = sent["terminate_start"].given["grant_request"]["removeResources"]
    assert [one["resource"]["resourceId"] for one in removed] == ["web-1"]


async def test_a_script_runs_before_containers_are_changed_and_its_rollback_scripts_around_the_reversal(
    world: World,
) -> None:
    phases = {f"modify_information_{moment}": "own" for moment in ("start", "rollback_start", "rollback_end")}
    phases["modify_information_end"] = "mgmt-container-update"
    instance_id = await created(world, phases=phases)
    other = variant(
        world.folder, phases=phases, vnfd_id=OTHER_CNF, files={"Scripts/own.py": "# with another content\n"}
    )
    await world.upload(other)
    assert await ended(world, instance_id, "instantiate", sample_request("cnf", "instantiate")) == "COMPLETED"
    world.twins.failing.add("infra.k8s.update_objects")
    operation = await modified(world, instance_id, {"vnfdId": OTHER_CNF})
    assert operation["operationState"] == "FAILED_TEMP"
    world.twins.failing.clear()
    (await world.lcm("POST", f"/vnf_lcm_op_occs/{operation['id']}/rollback")).must(202)
    await world.reached(operation["id"], "ROLLED_BACK")
    assert [command.stepid for command in world.twins.commands] == [
        "apply_objects", "modify_information_start", "update_objects",
        "modify_information_rollback_start", "update_objects", "modify_information_rollback_end",
    ]  # fmt: skip
    assert {script.package.vnfd_id for script in scripts_sent(world).values()} != {OTHER_CNF}


async def test_the_records_of_scripts_go_with_a_cnf_whose_termination_has_none(world: World) -> None:
    instance_id = await created(world, phases={"instantiate_end": "own"})
    assert await ended(world, instance_id, "instantiate", sample_request("cnf", "instantiate")) == "COMPLETED"
    assert await ended(world, instance_id, "terminate", {"terminationType": "FORCEFUL"}) == "COMPLETED"
    assert [type(command.data).__name__ for command in world.twins.commands] == [
        "ApplyObjects", "RunScript", "DeleteObjects", "ForgetInstance",
    ]  # fmt: skip


UPDATE = {"modify_information_start": "mgmt-container-update", "modify_information_end": "mgmt-container-update"}
CONFIG = "Files/kubernetes/configmap_2.yaml"


async def an_updatable_cnf(world: World) -> str:
    """Return an INSTANTIATED CNF with the driver; the package that it can change to has one file more."""
    instance_id = await created(world, phases=UPDATE)
    await world.upload(variant(world.folder, phases=UPDATE, vnfd_id=OTHER_CNF, files={CONFIG: "kind: ConfigMap\n"}))
    assert await ended(world, instance_id, "instantiate", sample_request("cnf", "instantiate")) == "COMPLETED"
    return instance_id


async def modified(world: World, instance_id: str, body: Mapping[str, Any], *, by: str = "v2") -> dict[str, Any]:
    call = world.v1 if by == "v1" else world.lcm
    answer = (await call("PATCH", f"/vnf_instances/{instance_id}", body)).must(202)
    return await world.reached(answer.headers["Location"].rpartition("/")[2])


@pytest.mark.parametrize("version", ["v1", "v2"])
async def test_a_modification_changes_configuration_and_images_of_a_cnf(world: World, version: str) -> None:
    """API-047: ``mgmt-container-update`` of Tacker, with the request of its guide."""
    instance_id = await an_updatable_cnf(world)
    metadata = {"configmap_secret_paths": [CONFIG]}
    operation = await modified(world, instance_id, {"vnfdId": OTHER_CNF, "metadata": metadata}, by=version)
    assert operation["operationState"] == "COMPLETED"
    command = world.twins.commands[-1].data
    assert isinstance(command, UpdateObjects)
    assert command.package.vnfd_id == OTHER_CNF
    assert command.before.vnfd_id != OTHER_CNF
    assert command.config_files == (CONFIG,)
    assert "Files/kubernetes/deployment.yaml" in command.def_files
    assert [vdu.name for vdu in command.vdus] == ["web"]
    changes = {(one["changeType"], one["id"]) for one in operation["resourceChanges"]["affectedVnfcs"]}
    assert changes == {("REMOVED", "web-1"), ("ADDED", "web-2")}
    shown = (await world.lcm("GET", f"/vnf_instances/{instance_id}")).json
    assert shown["vnfdId"] == OTHER_CNF
    info = shown["instantiatedVnfInfo"]
    assert [one["id"] for one in info["vnfcResourceInfo"]] == ["web-2"]
    assert info["metadata"]["lcm-kubernetes-def-files"] == ["Files/kubernetes/b.yaml"]
    assert await ended(world, instance_id, "terminate", {"terminationType": "FORCEFUL"}) == "COMPLETED"


async def test_a_modification_of_a_name_alone_changes_nothing_in_the_cluster(world: World) -> None:
    instance_id = await an_updatable_cnf(world)
    assert (await modified(world, instance_id, {"vnfInstanceName": "n"}))["operationState"] == "COMPLETED"
    assert not any(isinstance(command.data, UpdateObjects) for command in world.twins.commands)


async def test_a_modification_that_failed_is_rolled_back_to_the_earlier_package(world: World) -> None:
    instance_id = await an_updatable_cnf(world)
    world.twins.failing.add("infra.k8s.update_objects")
    operation = await modified(world, instance_id, {"vnfdId": OTHER_CNF})
    assert operation["operationState"] == "FAILED_TEMP"
    world.twins.failing.clear()
    (await world.lcm("POST", f"/vnf_lcm_op_occs/{operation['id']}/rollback")).must(202)
    await world.reached(operation["id"], "ROLLED_BACK")
    command = world.twins.commands[-1].data
    assert isinstance(command, UpdateObjects)
    assert command.package == command.before
    assert command.config_files == ()
    shown = (await world.lcm("GET", f"/vnf_instances/{instance_id}")).json
    assert shown["vnfdId"] != OTHER_CNF
    assert [one["id"] for one in shown["instantiatedVnfInfo"]["vnfcResourceInfo"]] == ["web-2"]


@pytest.mark.parametrize(
    ("metadata", "field"),
    [
        ({"configmap_secret_paths": "a.yaml"}, "metadata/configmap_secret_paths"),
        (
            {"configmap_secret_paths": ["none.yaml"]},
            "metadata/configmap_secret_paths[0]: the package has no file none.yaml",
        ),
    ],
)
async def test_changed_files_that_are_not_there_are_refused(world: World, metadata: dict[str, Any], field: str) -> None:
    instance_id = await an_updatable_cnf(world)
    body = {"vnfdId": OTHER_CNF, "metadata": metadata}
    assert field in (await world.lcm("PATCH", f"/vnf_instances/{instance_id}", body)).problem(400)["detail"]


BALANCER = {
    "script_path": "Scripts/configure_lb.sh",
    "external_lb_param": {"ssh_ip": "10.0.0.9", "ssh_username": "ubuntu", "ssh_password": "secret-of-the-lb"},
}
SERVICES = (ServiceFacts(namespace="default", name="web", node_ports=(30080,)),)


async def a_cnf_with_node_ports(world: World) -> str:
    world.vims.add("VIM_ID", "kubernetes")
    phases = dict.fromkeys(("instantiate_start", "instantiate_end", "terminate_end"), "mgmt-drivers-cnf-nodeport")
    await world.upload(variant(world.folder, phases=phases, files={"Scripts/configure_lb.sh": "exit 0\n"}))
    applied = world.twins.answers["infra.k8s.apply_objects"]
    world.twins.answers["infra.k8s.apply_objects"] = applied.model_copy(update={"services": SERVICES})
    return await world.create("cnf")


def with_balancer(balancer: object) -> dict[str, Any]:
    body = sample_request("cnf", "instantiate")
    return {**body, "additionalParams": {**body["additionalParams"], "lcm-kubernetes-external-lb": balancer}}


def phases_sent(world: World) -> list[tuple[str, bool]]:
    return [(c.data.phase, c.data.force) for c in world.twins.commands if isinstance(c.data, RunPhase)]


async def test_node_ports_are_exposed_after_the_objects_and_concealed_after_them(world: World) -> None:
    """``mgmt-drivers-cnf-nodeport`` of Tacker."""
    instance_id = await a_cnf_with_node_ports(world)
    assert await ended(world, instance_id, "instantiate", with_balancer(BALANCER)) == "COMPLETED"
    command = world.twins.commands[-1].data
    assert isinstance(command, RunPhase)
    assert (command.driver, command.phase) == ("mgmt-drivers-cnf-nodeport", "instantiate_end")
    assert command.services == SERVICES
    assert "secret-of-the-lb" not in str((await world.lcm("GET", f"/vnf_instances/{instance_id}")).json)
    assert await ended(world, instance_id, "terminate", {"terminationType": "GRACEFUL"}) == "COMPLETED"
    assert phases_sent(world) == [("instantiate_end", False), ("terminate_end", False)]
    assert [type(command.data).__name__ for command in world.twins.commands] == [
        "ApplyObjects", "RunPhase", "DeleteObjects", "RunPhase", "ForgetInstance",
    ]  # fmt: skip


async def test_a_load_balancer_that_fails_does_not_hold_up_the_rollback(world: World) -> None:
    instance_id = await a_cnf_with_node_ports(world)
    world.twins.failing.add("mgmt.run_phase")
    operation = await world.reached(await world.ask(instance_id, "instantiate", with_balancer(BALANCER)))
    assert operation["operationState"] == "FAILED_TEMP"
    world.twins.failing.clear()
    (await world.lcm("POST", f"/vnf_lcm_op_occs/{operation['id']}/rollback")).must(202)
    await world.reached(operation["id"], "ROLLED_BACK")
    assert phases_sent(world) == [("instantiate_end", False), ("terminate_end", True)]


@pytest.mark.parametrize(
    ("balancer", "field"),
    [
        (None, "additionalParams/lcm-kubernetes-external-lb"),
        ({"script_path": "Scripts/configure_lb.sh"}, "lcm-kubernetes-external-lb/external_lb_param"),
        ({**BALANCER, "script_path": "none.sh"}, "lcm-kubernetes-external-lb/script_path"),
        ({**BALANCER, "port": 22}, "lcm-kubernetes-external-lb/port"),
        ({**BALANCER, "external_lb_param": {"ssh_ip": "lb"}}, "external_lb_param"),
    ],
)
async def test_a_load_balancer_that_cannot_be_used_is_refused_by_name(
    world: World, balancer: object, field: str
) -> None:
    instance_id = await a_cnf_with_node_ports(world)
    path = f"/vnf_instances/{instance_id}/instantiate"
    problem = (await world.lcm("POST", path, with_balancer(balancer))).problem(400)
    assert field in problem["detail"]
    assert world.twins.commands == []


@pytest.mark.parametrize("aspect", ["master_instance", "none_of_the_vnfd"])
async def test_a_cluster_that_a_script_builds_is_registered_if_the_request_describes_it(
    world: World, aspect: str
) -> None:
    """6.7.6: parameters that are not those of a cluster are the script's own, and nothing is made of them."""
    package = await world.upload(scripted_cluster(world.folder))
    assert "warnings" not in package, package
    instance_id = await world.create("cluster")
    body = copy.deepcopy(sample_request("cluster", "instantiate"))
    body["additionalParams"]["k8s_cluster_installation_param"]["master_node"]["aspect_id"] = aspect
    is_cluster = aspect == "master_instance"
    assert await ended(world, instance_id, "instantiate", body) == "COMPLETED"
    # A heal of one machine leaves the cluster what it is; of all it is another one.
    info = (await world.lcm("GET", f"/vnf_instances/{instance_id}")).json["instantiatedVnfInfo"]
    one = {"vnfcInstanceId": [info["vnfcResourceInfo"][-1]["id"]]}
    assert await ended(world, instance_id, "heal", one) == "COMPLETED"
    assert await ended(world, instance_id, "heal", {"additionalParams": {"all": True}}) == "COMPLETED"
    assert await ended(world, instance_id, "terminate", {"terminationType": "FORCEFUL"}) == "COMPLETED"
    sent = [type(command.data).__name__ for command in world.twins.commands]
    registered = [*["RunPhase", "RegisterVim"] * 2, "DeregisterVim"] if is_cluster else []
    assert [one for one in sent if one in ("RunPhase", "RegisterVim", "DeregisterVim")] == registered
