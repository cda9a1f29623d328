"""A cluster with a storage server and persistent volumes, over both versions of the API."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from lab_process import LabControl
from storage_clusters import NUMBERS, VDU, storage_cluster, storage_request
from user import ApiVersion, User
from wirings import variants

OUT = {"type": "SCALE_OUT", "aspectId": "worker_instance"}
PLACE = "additionalParams/k8s_cluster_installation_param"


def _in_every_run(wiring: str, version: str) -> bool:
    return (wiring, version) == ("single", "v2")


def tasks_of(view: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the tasks of an operation by name and node."""
    return {(task["task"], node["name"]): task for node in view["nodes"] for task in node["tasks"]}


async def volumes_of(user: User, lab: LabControl, cluster_id: str) -> dict[str, str]:
    """Return uid by name of the persistent volumes of the VNF."""
    endpoint = (await user.vim_of_cluster(cluster_id))["interfaceInfo"]["endpoint"]
    (cluster,) = [one for one in (await lab.inventory())["clusters"] if one["endpoint"] == endpoint]
    return {
        place.rpartition("/")[2]: one["uid"]
        for place, one in cluster["objects"].items()
        if place.startswith("PersistentVolume/") and one["labels"]["kubevnfm.io/vnf-instance-id"] == cluster_id
    }


@pytest.mark.parametrize(
    ("installation", "version"), variants(("v1", "v2"), every_run=_in_every_run), indirect=["installation"]
)
async def test_a_cluster_with_persistent_volumes_is_built_and_grows(
    user: User, v1: User, lab: LabControl, version: ApiVersion
) -> None:
    """SEQ-060 to SEQ-067, SEQ-073, SEQ-085, SEQ-087, SEQ-089, SEQ-092, W-30, W-44, W-50."""
    caller = v1 if version == "v1" else user
    package = await caller.upload(storage_cluster(str(uuid4())))
    assert package["onboardingState"] == "ONBOARDED", package
    cluster_id = await caller.create(package["vnfdId"])

    wrong: Any = storage_request(user.installation.lab)
    section = wrong["additionalParams"]["k8s_cluster_installation_param"]
    section["pv_registration_params"][1]["pv_manifest_file_path"] = "Files/kubernetes/cni.yaml"
    refused = (await caller.ask(cluster_id, "instantiate", wrong)).must(422)
    assert f"{PLACE}/pv_registration_params/1/pv_manifest_file_path: Files/kubernetes/cni.yaml" in refused.detail

    view = await caller.do(cluster_id, "instantiate", storage_request(user.installation.lab))
    assert [step["name"] for step in view["steps"]] == ["create_resources", "instantiate_end", "register_vim"]
    tasks = tasks_of(view)
    (server,) = {name for task, name in tasks if task == "disks"}
    for task in ("reach", "disks", "exports"):
        assert tasks[task, server]["state"] == "finished"
    (master,) = {name for task, name in tasks if task == "register_volumes"}
    assert {name for task, name in tasks if task == "nfs_client"} == {master, *(n for t, n in tasks if t == "join")}
    first = await volumes_of(user, lab, cluster_id)
    assert set(first) == {f"nfs-pv{number}" for number in NUMBERS}
    # The storage server is a machine of the VNF, but no node.
    shown = (await user.instance(cluster_id))["instantiatedVnfInfo"]
    (machine,) = [one for one in shown["vnfcResourceInfo"] if one["vduId"] == VDU]
    assert "node_name" not in machine.get("metadata", {})
    assert user.installation.lab.machine_password not in str(view) + await user.log(view["id"])

    steps: Any = "1" if version == "v1" else 1
    of_server = {"type": "SCALE_OUT", "aspectId": VDU, "numberOfSteps": steps}
    assert "storage server of the cluster" in (await caller.ask(cluster_id, "scale", of_server)).must(422).detail
    view = await caller.do(cluster_id, "scale", {**OUT, "numberOfSteps": steps})
    tasks = tasks_of(view)
    assert {name for task, name in tasks if task == "nfs_client"} == {name for task, name in tasks if task == "join"}
    assert server not in {name for _, name in tasks}
    assert await volumes_of(user, lab, cluster_id) == first
    await caller.terminate(cluster_id)
