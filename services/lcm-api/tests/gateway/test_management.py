"""Management clusters of Cluster API over HTTP, with twins behind: what is refused, what is sent, what is shown."""

from __future__ import annotations

from typing import Any

import pytest
from kubevnfm_events import CommandFailed
from kubevnfm_events.capi import CheckClusters, ClustersChecked
from kubevnfm_events.objects import ApplyObjects, DeleteObjects, LeftObject, ObjectsDeleted, ReplaceObjects
from kubevnfm_events.vim import RecordCapiProviders
from kubevnfm_lcm_api.lifecycle.core.dependencies import KEY
from worlds.lcm_world import World
from worlds.management_world import (
    OTHER_MANAGEMENT,
    REPLACE,
    applied,
    installed,
    installed_on,
    other_package,
    other_version,
    replaced,
)
from worlds.workload_world import APPLY, built, sent, shown

GRACEFUL, FORCEFUL = {"terminationType": "GRACEFUL"}, {"terminationType": "FORCEFUL"}
CHECK, DELETE, RECORD = "infra.k8s.check_clusters", "infra.k8s.delete_objects", "vim.record_capi_providers"
NEWER = {"app.kubernetes.io/version: v1.14.2": "app.kubernetes.io/version: v1.15.0"}
OLDER_CONTRACT = {
    "  - name: v1beta2\n    served: true\n    storage: true": "  - name: v1beta2\n    served: true\n    storage: false",
    "  - name: v1beta1\n    served: true\n    storage: false": "  - name: v1beta1\n    served: true\n    storage: true",
}


def steps(view: Any) -> list[str]:
    return [step["name"] for step in view["steps"]]


async def view(world: World, operation_id: str) -> Any:
    return (await world.call("GET", f"/kubevnfm/v1/operations/{operation_id}")).json


async def test_the_vim_shows_the_providers_until_they_are_terminated(world: World) -> None:
    """CR-045: with their versions, from what the cluster shows; what no cluster needs is deleted."""
    instance_id = await installed_on(world)
    (recorded,) = sent(world, RecordCapiProviders)
    assert (recorded.vnf_instance_id, recorded.vim_id, recorded.providers) == (instance_id, "k8s", installed())
    operation_id = await world.ask(instance_id, "terminate", GRACEFUL)
    await world.reached(operation_id, "COMPLETED")
    assert steps(await view(world, operation_id)) == ["check_clusters", "delete_objects", "record_capi_providers"]
    assert [each.force for each in sent(world, CheckClusters)] == [False]
    assert sent(world, RecordCapiProviders)[-1].providers is None


async def test_a_rollback_of_the_instantiation_takes_the_providers_from_the_vim(world: World) -> None:
    """CR-045: before their objects are deleted."""
    world.twins.failing.add(RECORD)
    world.twins.answers[APPLY] = applied()
    await world.sample("capi-management")
    world.vims.add("k8s", "kubernetes")
    instance_id = await world.create("capi-management")
    vims = {"management": {"vimId": "k8s", "vimType": "kubernetes"}}
    operation_id = await world.instantiate(instance_id, "capi-management", vimConnectionInfo=vims)
    await world.reached(operation_id, "FAILED_TEMP")
    world.twins.failing.clear()
    (await world.lcm("POST", f"/vnf_lcm_op_occs/{operation_id}/rollback")).must(202)
    await world.reached(operation_id, "ROLLED_BACK")
    assert sent(world, RecordCapiProviders)[-1].providers is None
    assert world.twins.asked()[-2:] == [RECORD, DELETE]


async def test_an_ordinary_cnf_has_no_providers_to_show_or_to_check(world: World) -> None:
    await world.sample("cnf")
    world.vims.add("VIM_ID", "kubernetes")
    instance_id = await world.create("cnf")
    await world.reached(await world.instantiate(instance_id, "cnf"), "COMPLETED")
    await world.reached(await world.ask(instance_id, "terminate", FORCEFUL), "COMPLETED")
    assert world.twins.asked() == [APPLY, DELETE]


# --- terminate --------------------------------------------------------------------------------------------------------


async def test_a_management_cluster_stays_while_workload_clusters_of_ours_need_it(world: World) -> None:
    """CR-043: 409 with their ids at the request; while it is terminated, no further one begins."""
    management_id = await installed_on(world)
    workload_id = await built(world)
    problem = (await world.lcm("POST", f"/vnf_instances/{management_id}/terminate", GRACEFUL)).problem(409)
    assert (problem["type"], workload_id in problem["detail"]) == ("provided-in-use", True)
    assert "management cluster of this VNF instance" in problem["detail"]
    await world.reached(await world.ask(workload_id, "terminate", GRACEFUL), "COMPLETED")
    world.twins.waiting.add(CHECK)
    operation_id = await world.ask(management_id, "terminate", GRACEFUL)
    other_id = await world.create("capi-workload")
    body = {
        "flavourId": "simple",
        "additionalParams": {"lcm-kubernetes-def-files": ["Files/kubernetes/cluster.yaml"], "capi": {}},
        "vimConnectionInfo": {"management": {"vimId": "k8s", "vimType": "kubernetes"}},
    }
    refused = (await world.lcm("POST", f"/vnf_instances/{other_id}/instantiate", body)).problem(409)
    assert (refused["type"], management_id in refused["detail"]) == ("provider-withdraws", True)
    await world.twins.release()
    await world.reached(operation_id, "COMPLETED")


async def test_clusters_of_others_fail_the_first_step_before_anything_is_deleted(world: World) -> None:
    """CR-043: status 409 with their names; once they are gone, the retry continues."""
    instance_id = await installed_on(world)
    detail = "the management cluster has the Clusters team-a/edge: delete those first"
    world.twins.answers[CHECK] = CommandFailed(
        command=CheckClusters.type, code="clusters-exist", title="Clusters exist", detail=detail, status=409
    )
    operation_id = await world.ask(instance_id, "terminate", GRACEFUL)
    error = (await world.reached(operation_id, "FAILED_TEMP"))["error"]
    assert (error["status"], "check_clusters" in error["detail"], "team-a/edge" in error["detail"]) == (409, True, True)
    assert sent(world, DeleteObjects) == []
    world.twins.answers[CHECK] = ClustersChecked()
    (await world.lcm("POST", f"/vnf_lcm_op_occs/{operation_id}/retry")).must(202)
    await world.reached(operation_id, "COMPLETED")
    assert len(sent(world, DeleteObjects)) == 1


async def test_a_forceful_termination_reports_what_it_orphans(world: World) -> None:
    """CR-043: workload clusters of ours are marked; all Clusters are in kubevnfm_left, with what else is left."""
    management_id = await installed_on(world)
    workload_id = await built(world)
    cluster = LeftObject(
        api_version="cluster.x-k8s.io/v1beta2", kind="Cluster", namespace="team-a", name="edge", uid="u", cluster="c"
    )
    machine = cluster.model_copy(update={"kind": "Machine", "name": "edge-1", "provider_id": "openstack:///1"})
    definition = LeftObject(
        api_version="a/v1", kind="CustomResourceDefinition", name="clusters.cluster.x-k8s.io", uid="d"
    )
    world.twins.answers[CHECK] = ClustersChecked(clusters=(cluster, machine))
    world.twins.answers[DELETE] = ObjectsDeleted(count=3, left=(definition,))
    operation_id = await world.ask(management_id, "terminate", FORCEFUL)
    changes = (await world.reached(operation_id, "COMPLETED"))["resourceChanges"]
    assert [(each["kind"], each["name"]) for each in changes["metadata"]["kubevnfm_left"]] == [
        ("Cluster", "edge"), ("Machine", "edge-1"), ("CustomResourceDefinition", "clusters.cluster.x-k8s.io")
    ]  # fmt: skip
    assert steps(await view(world, operation_id))[:2] == ["check_clusters", "mark_orphans"]
    assert [each.force for each in sent(world, CheckClusters)] == [True]
    mark = (await shown(world, workload_id))["metadata"][KEY]
    assert (mark["provided"], mark["provider_id"]) == ("management", management_id)


# --- change of package ------------------------------------------------------------------------------------------------


def change(files: list[str] | None = None) -> dict[str, Any]:
    listed = files or [f"Files/kubernetes/{name}.yaml" for name in ("cert-manager", "core", "bootstrap")]
    return {"vnfdId": OTHER_MANAGEMENT, "additionalParams": {"lcm-kubernetes-def-files": listed}}


async def test_an_upgrade_of_the_providers_is_shown_by_the_vim_and_its_rollback_too(world: World) -> None:
    """CR-045, CR-046: the versions of what is applied."""
    instance_id = await installed_on(world)
    newer = other_version(NEWER)
    await other_package(world, newer)
    world.twins.answers[REPLACE] = replaced(newer)
    world.twins.failing.add(RECORD)
    operation_id = await world.ask(instance_id, "change_vnfpkg", change())
    await world.reached(operation_id, "FAILED_TEMP")
    world.twins.failing.clear()
    world.twins.answers[REPLACE] = replaced(other_version({}))
    (await world.lcm("POST", f"/vnf_lcm_op_occs/{operation_id}/rollback")).must(202)
    await world.reached(operation_id, "ROLLED_BACK")
    world.twins.answers[REPLACE] = replaced(newer)
    operation_id = await world.ask(instance_id, "change_vnfpkg", change())
    await world.reached(operation_id, "COMPLETED")
    assert steps(await view(world, operation_id)) == ["replace_objects", "record_capi_providers"]
    versions = [each.providers.core.version for each in sent(world, RecordCapiProviders)]
    assert versions == ["v1.14.2", "v1.15.0", "v1.14.2", "v1.15.0"]
    # The same package again: the VIM shows it already.
    await world.reached(await world.ask(instance_id, "change_vnfpkg", change()), "COMPLETED")
    assert len(sent(world, RecordCapiProviders)) == 4


async def test_the_contract_of_the_providers_never_goes_back(world: World) -> None:
    """CR-046: 422 with both contracts, before anything is sent."""
    instance_id = await installed_on(world)
    await other_package(world, other_version(OLDER_CONTRACT))
    answer = await world.lcm("POST", f"/vnf_instances/{instance_id}/change_vnfpkg", change())
    detail = answer.problem(422)["detail"]
    assert "vnfdId: cluster-api: contract v1beta1, which is older than v1beta2" in detail
    assert sent(world, ReplaceObjects) == []


# --- workload packages ------------------------------------------------------------------------------------------------


def with_capi(world: World, **changes: Any) -> None:
    """Have the VIM show providers: the core provider and kubeadm, without one for an infrastructure."""
    core = {"name": "cluster-api", "version": "v1.14.2", "contract": "v1beta2", "kinds": [
        {"group": "cluster.x-k8s.io", "kind": kind, "versions": ["v1beta1", "v1beta2"]}
        for kind in ("Cluster", "MachineDeployment")
    ]}  # fmt: skip
    plane = {"group": "controlplane.cluster.x-k8s.io", "kind": "KubeadmControlPlane", "versions": ["v1beta1"]}
    kubeadm = {"name": "kubeadm", "version": "v1.10.4", "contract": "v1beta1"}
    capi = {
        "core": core,
        "bootstrap": [],
        "controlPlane": [{**kubeadm, "kinds": [plane]}],
        "infrastructure": [],
        "contract": "v1beta2",
        **changes,
    }
    world.vims.records["k8s"]["extra"] = {"capi": capi}


CLUSTER, PLANE = "Files/kubernetes/cluster.yaml", "Files/kubernetes/control-plane.yaml"


def workload(*files: str) -> dict[str, Any]:
    return {
        "flavourId": "simple",
        "additionalParams": {"lcm-kubernetes-def-files": list(files), "capi": {}},
        "vimConnectionInfo": {"management": {"vimId": "k8s", "vimType": "kubernetes"}},
    }


@pytest.mark.parametrize(
    ("file", "says"),
    [
        (CLUSTER, ["OpenStackCluster", "infrastructure.cluster.x-k8s.io/v1beta2", "infrastructure providers are none"]),
        (
            PLANE,
            ["KubeadmControlPlane", "/v1beta2) does not fit VIM k8s", "kubeadm v1.10.4 there serves it as v1beta1"],
        ),
    ],
)
async def test_a_workload_package_must_fit_the_providers_that_the_vim_shows(
    world: World, file: str, says: list[str]
) -> None:
    """CR-045: a kind that is not there, and a contract that is newer, are named before anything is sent."""
    await world.sample("capi-workload")
    world.vims.add("k8s", "kubernetes")
    with_capi(world)
    instance_id = await world.create("capi-workload")
    answer = await world.lcm("POST", f"/vnf_instances/{instance_id}/instantiate", workload(file))
    detail = answer.problem(422)["detail"]
    assert detail.startswith(f"additionalParams/lcm-kubernetes-def-files: {file}: ")
    for part in says:
        assert part in detail
    assert world.twins.commands == []


async def test_what_others_have_installed_is_not_checked(world: World) -> None:
    """CR-045: a VIM without extra.capi; roles of which nothing is known, if the core provider is another's; own definitions."""
    await world.sample("capi-workload")
    world.vims.add("k8s", "kubernetes")
    await world.reached(await world.ask(await world.create("capi-workload"), "instantiate", workload(CLUSTER)))
    with_capi(world, core=None, contract=None)
    await world.reached(await world.ask(await world.create("capi-workload"), "instantiate", workload(CLUSTER)))
    with_capi(world)
    await world.sample("capi-management")
    management_id = await world.create("capi-management")
    vims = {"management": {"vimId": "k8s", "vimType": "kubernetes"}}
    await world.reached(await world.instantiate(management_id, "capi-management", vimConnectionInfo=vims))
    assert len(sent(world, ApplyObjects)) == 3


async def test_another_package_of_a_workload_cluster_must_fit_too(world: World) -> None:
    """CR-045: at the request of the change."""
    workload_id = await built(world)
    with_capi(world)
    vnfd_id = (await shown(world, workload_id))["vnfdId"]
    body = {"vnfdId": vnfd_id, "additionalParams": {"lcm-kubernetes-def-files": [CLUSTER]}}
    answer = await world.lcm("POST", f"/vnf_instances/{workload_id}/change_vnfpkg", body)
    assert "OpenStackCluster" in answer.problem(422)["detail"]
