"""Change of the package of workload clusters, over HTTP with twins behind, and their roll-out, without a server."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from kubevnfm_events import CommandFailed
from kubevnfm_events.capi import ApplyAddons, AwaitCluster, ClusterUpdated, RollOutMachines, UpdateCluster
from kubevnfm_events.objects import ObjectFacts
from kubevnfm_kit.errors import InvalidInput, Unprocessable
from kubevnfm_lcm_api.lifecycle.core.states import RollbackUnsupported
from kubevnfm_sol.lcm import ChangeCurrentVnfPkgRequest, OperationState, OperationType
from packages.package_variants import CAPI_WORKLOAD, OTHER_WORKLOAD, SAMPLES, changed_package
from worlds.lcm_world import RING, World
from worlds.workload_requests import a_workload_vnf
from worlds.workload_world import AWAIT, KINDS, SHOWN, VNFD, built, machines, sent, shown

ROLL_OUT = {"vnfdId": CAPI_WORKLOAD, "additionalParams": {"capi": {"rollout": True}}}


def roll_out(**changes: Any) -> ChangeCurrentVnfPkgRequest:
    """Return the request."""
    return ChangeCurrentVnfPkgRequest.model_validate({**ROLL_OUT, **changes})


async def test_a_roll_out_replaces_the_machines_and_nothing_else() -> None:
    """CR-103, CR-092: the time is stored with the operation, so that a retry sends the same; the VIM stays."""
    vnf = await a_workload_vnf()
    before = vnf.record.vnf
    vnf.failing = {"infra.k8s.roll_out_machines"}
    assert await vnf.ask(roll_out()) is OperationState.FAILED_TEMP
    assert vnf.operation is OperationType.CHANGE_VNFPKG
    with pytest.raises(RollbackUnsupported):
        vnf.roll_back()
    vnf.failing = set()
    vnf.answers[AWAIT] = machines([7])
    assert vnf.retry() is OperationState.COMPLETED
    first, second = vnf.of_kind(RollOutMachines)
    assert (first.roll_out_after, first.cluster.name) == (second.roll_out_after, "workload")
    assert datetime.fromisoformat(first.roll_out_after) <= datetime.now(UTC)
    assert vnf.of_kind(AwaitCluster)[-1].made_after == first.roll_out_after
    assert [one.id for one in vnf.info.vnfc_resource_info] == ["cp-0", "md-7"]
    after = vnf.record.vnf
    assert (after.vnfd_id, after.vim_connection_info, after.metadata) == (
        before.vnfd_id,
        before.vim_connection_info,
        before.metadata,
    )
    assert vnf.changed == {("md-0", "REMOVED"), ("md-7", "ADDED")}


@pytest.mark.parametrize(
    ("change", "refusal", "field"),
    [
        ({"vnfdId": "another"}, Unprocessable, "vnfdId"),
        ({"additionalParams": {"capi": {"rollout": "now"}}}, InvalidInput, "additionalParams/capi/rollout"),
        ({"additionalParams": {"capi": [True]}}, InvalidInput, "additionalParams/capi"),
        (
            {"additionalParams": {"capi": {"rollout": True, "vim_name": "x"}}},
            Unprocessable,
            "additionalParams/capi/vim_name",
        ),
        (
            {"additionalParams": {"capi": {"rollout": True}, "namespace": "x"}},
            Unprocessable,
            "additionalParams/namespace",
        ),
        (
            {"additionalParams": {"capi": {"rollout": True, "variables": {}}}},
            Unprocessable,
            "additionalParams/capi/variables",
        ),
        (
            {"additionalParams": {"capi": {"rollout": True, "addon-def-files": []}}},
            Unprocessable,
            "additionalParams/capi/addon-def-files",
        ),
    ],
)
async def test_a_roll_out_with_anything_else_is_refused_by_field(
    change: dict[str, Any], refusal: type[InvalidInput | Unprocessable], field: str
) -> None:
    """CR-103: before anything is sent."""
    vnf = await a_workload_vnf()
    with pytest.raises(refusal) as refused:
        await vnf.draft(roll_out(**change))
    assert refused.value.field == field


UPDATED = "infra.k8s.update_cluster"
CLUSTER_FILE = "Files/kubernetes/cluster.yaml"
GIVEN: dict[str, Any] = {"lcm-kubernetes-def-files": [CLUSTER_FILE], "capi": {"variables": {"FLAVOR": "m1.large"}}}
CHANGE = {"vnfdId": OTHER_WORKLOAD, "additionalParams": GIVEN}
PARTS = ["check", "control_plane", "all", "prune"]


async def other_package(world: World) -> None:
    """Upload another version of the sample, and answer as for its objects."""
    descriptor = (SAMPLES / "capi-workload" / VNFD).read_text(encoding="utf-8").replace(CAPI_WORKLOAD, OTHER_WORKLOAD)
    await world.upload(changed_package(world.folder, "capi-workload", {VNFD: descriptor}))
    world.twins.answers[UPDATED] = cluster_updated()


def cluster_updated(version_step: str | None = None) -> ClusterUpdated:
    objects = tuple(
        ObjectFacts(api_version=version, kind=kind, namespace="default", name=name, uid=name)
        for version, kind, name in KINDS
    )
    return ClusterUpdated(namespace="default", objects=objects, version_step=version_step)


async def test_a_cluster_is_changed_to_another_package_at_its_scale(world: World) -> None:
    """CR-042, CR-094, CR-098, CR-100: checked first, then the control plane, then all; what is lacking is pruned at the end."""
    instance_id = await built(world)
    await other_package(world)
    world.twins.answers[AWAIT] = machines([0, 1])
    scaled = await world.ask(instance_id, "scale", {"type": "SCALE_OUT", "aspectId": "workers", "numberOfSteps": 1})
    await world.reached(scaled, "COMPLETED")
    world.twins.answers[AWAIT] = machines([5, 6])
    operation_id = await world.ask(instance_id, "change_vnfpkg", CHANGE)
    await world.reached(operation_id, "COMPLETED")
    commands = sent(world, UpdateCluster)
    assert [each.part for each in commands] == PARTS
    assert {each.package.vnfd_id for each in commands} == {OTHER_WORKLOAD}
    assert all(each.variables is not None and each.variables["FLAVOR"].reveal(RING) == "m1.large" for each in commands)
    assert {target.name: target.replicas for target in commands[0].vdus}["workload-md-0"] == 2
    after = await shown(world, instance_id)
    assert after["vnfdId"] == OTHER_WORKLOAD
    assert [one["id"] for one in after["instantiatedVnfInfo"]["vnfcResourceInfo"]] == ["cp-0", "md-5", "md-6"]
    assert after["metadata"]["workloadVimId"]
    # The cluster is scaled and rolled out as before.
    assert {"scale", "changeCurrentVnfPkg"} <= after["_links"].keys()
    world.twins.answers[AWAIT] = machines([5])
    scaled = await world.ask(instance_id, "scale", {"type": "SCALE_IN", "aspectId": "workers", "numberOfSteps": 1})
    await world.reached(scaled, "COMPLETED")


ADDON = "Files/addons/cni.yaml"


def steps_of(world: World, since: int = 0) -> list[str]:
    """Return the steps of the commands about objects, in order."""
    kinds = (UpdateCluster, ApplyAddons)
    return [each.stepid for each in world.twins.commands[since:] if isinstance(each.data, kinds)]


async def test_the_addons_of_another_package_follow_the_control_plane(world: World) -> None:
    """CR-048, CR-094: applied once the control plane is up to date, pruned once all is; an empty list leaves none."""
    instance_id = await built(world)
    await other_package(world)
    for addons in ([ADDON], []):
        body = {**CHANGE, "additionalParams": {**GIVEN, "capi": {**GIVEN["capi"], "addon-def-files": addons}}}
        before = len(world.twins.commands)
        operation_id = await world.ask(instance_id, "change_vnfpkg", body)
        await world.reached(operation_id, "COMPLETED")
        assert steps_of(world, before) == [
            "update_cluster/check", "update_cluster/control_plane", "update_addons/apply", "update_cluster/all",
            "update_addons/prune", "update_cluster/prune",
        ]  # fmt: skip
        commands = sent(world, ApplyAddons)[-2:]
        assert [(each.part, each.def_files) for each in commands] == [
            ("apply", tuple(addons)),
            ("prune", tuple(addons)),
        ]
        assert {each.package.vnfd_id for each in commands} == {OTHER_WORKLOAD}
        assert all(each.variables["FLAVOR"].reveal(RING) == "m1.large" for each in commands)


async def test_a_rollback_restores_the_addons_before_the_control_plane(world: World) -> None:
    """CR-102: the earlier ones of the earlier package, and those that it lacks are deleted; also of a list that has changed."""
    instance_id = await built(world)
    await other_package(world)
    for addons, earlier in (([], (CAPI_WORKLOAD, (ADDON,))), ([ADDON], (OTHER_WORKLOAD, ()))):
        body = {**CHANGE, "additionalParams": {**GIVEN, "capi": {"addon-def-files": addons}}}
        world.twins.failing = {"infra.k8s.apply_addons"}
        operation_id = await world.ask(instance_id, "change_vnfpkg", body)
        await world.reached(operation_id, "FAILED_TEMP")
        world.twins.failing = set()
        before = len(world.twins.commands)
        (await world.lcm("POST", f"/vnf_lcm_op_occs/{operation_id}/rollback")).must(202)
        await world.reached(operation_id, "ROLLED_BACK")
        assert steps_of(world, before) == [
            "update_addons/apply",
            "update_cluster/control_plane",
            "update_cluster/check",
        ]
        command = sent(world, ApplyAddons)[-1]
        assert (command.part, (command.package.vnfd_id, command.def_files)) == ("replace", earlier)
        await world.reached(await world.ask(instance_id, "change_vnfpkg", body), "COMPLETED")


async def test_a_rollback_applies_the_earlier_package_waits_and_prunes(world: World) -> None:
    """CR-102: the objects of the earlier package come back before those of the new one go."""
    instance_id = await built(world)
    await other_package(world)
    operation_id = await failed_after_the_check(world, instance_id)
    world.twins.answers[AWAIT] = machines([9])
    before = len(world.twins.commands)
    (await world.lcm("POST", f"/vnf_lcm_op_occs/{operation_id}/rollback")).must(202)
    await world.reached(operation_id, "ROLLED_BACK")
    undone = [each.data for each in world.twins.commands[before:]]
    assert [getattr(each, "part", "wait") for each in undone] == ["all", "wait", "prune"]
    updates = [each for each in undone if isinstance(each, UpdateCluster)]
    assert {(each.package.vnfd_id, each.variables) for each in updates} == {(CAPI_WORKLOAD, None)}
    after = await shown(world, instance_id)
    assert after["vnfdId"] == CAPI_WORKLOAD
    assert [one["id"] for one in after["instantiatedVnfInfo"]["vnfcResourceInfo"]] == ["cp-0", "md-9"]


async def failed_after_the_check(world: World, instance_id: str) -> str:
    """Return a change of package whose control plane cannot be applied."""
    step = f"{UPDATED}/update_cluster/control_plane"
    world.twins.answers[step] = CommandFailed(
        command="kubevnfm.infra.k8s.update_cluster.v1", code="object-refused", title="Refused", detail="no", status=422
    )
    operation_id = await world.ask(instance_id, "change_vnfpkg", CHANGE)
    await world.reached(operation_id, "FAILED_TEMP")
    del world.twins.answers[step]
    return operation_id


async def test_a_version_step_has_no_rollback(world: World) -> None:
    """CR-102: Kubernetes has no way down; the operation offers retry and fail."""
    instance_id = await built(world)
    await other_package(world)
    world.twins.answers[UPDATED] = cluster_updated("v1.34.0")
    operation_id = await failed_after_the_check(world, instance_id)
    shown_operation = (await world.lcm("GET", f"/vnf_lcm_op_occs/{operation_id}")).json
    assert "rollback" not in shown_operation["_links"]
    problem = (await world.lcm("POST", f"/vnf_lcm_op_occs/{operation_id}/rollback")).problem(404)
    assert "cannot be rolled back" in problem["detail"]
    (await world.lcm("POST", f"/vnf_lcm_op_occs/{operation_id}/retry")).must(202)
    await world.reached(operation_id, "COMPLETED")


@pytest.mark.parametrize(
    ("parameters", "status", "field"),
    [
        ({}, 400, "additionalParams/lcm-kubernetes-def-files"),
        ({"vdu_params": [{"vdu_id": "worker"}]}, 422, "additionalParams/vdu_params"),
        ({"capi": {"ready": "initialized"}}, 422, "additionalParams/capi/ready"),
        ({"capi": {"addon-def-files": ["Files/none.yaml"]}}, 400, "additionalParams/capi/addon-def-files[0]"),
        ({"capi": {"addon-def-files": "Files/none.yaml"}}, 400, "additionalParams/capi/addon-def-files"),
    ],
)
async def test_a_change_that_a_cluster_cannot_follow_is_refused_by_field(
    world: World, parameters: dict[str, Any], status: int, field: str
) -> None:
    """CR-094: before anything is sent."""
    instance_id = await built(world)
    await other_package(world)
    given = {**(CHANGE["additionalParams"] if parameters else {}), **parameters}  # type: ignore[dict-item]
    body = {**CHANGE, "additionalParams": given}
    answer = await world.lcm("POST", f"{SHOWN.format(instance_id)}/change_vnfpkg", body)
    assert field in answer.problem(status)["detail"]
    assert not sent(world, UpdateCluster)
