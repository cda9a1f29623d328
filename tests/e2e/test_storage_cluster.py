"""A cluster with a storage server and persistent volumes, over both versions of the API."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from callers.user import ApiVersion, User, sample_body
from clouds.lab_process import LabControl
from clusters.shown_clusters import tasks_of, volumes_of
from clusters.storage_clusters import NUMBERS, VDU, VOLUME, storage_cluster, storage_request
from servers.wirings import variants

OUT = {"type": "SCALE_OUT", "aspectId": "worker_instance"}
PLACE = "additionalParams/k8s_cluster_installation_param"


def _in_every_run(wiring: str, version: str) -> bool:
    return (wiring, version) == ("single", "v2")


@pytest.mark.parametrize(
    ("installation", "version"), variants(("v1", "v2"), every_run=_in_every_run), indirect=["installation"]
)
async def test_a_cluster_with_persistent_volumes_is_built_grows_and_is_healed(
    user: User, v1: User, lab: LabControl, version: ApiVersion
) -> None:
    """SEQ-060 to SEQ-067, SEQ-073, SEQ-076, SEQ-077, SEQ-078 to SEQ-085, SEQ-087, SEQ-089, SEQ-092, W-30, W-44, W-50."""
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

    # v1 gives the machine a new volume unless it is asked not to; v2 leaves the old one unless it is asked for a new one.
    await heal_the_server(user, caller, lab, cluster_id, {}, is_kept=version == "v2")
    await heal_the_server(user, caller, lab, cluster_id, {"x_keep_volume": version == "v1"}, is_kept=version == "v1")
    if version == "v1":
        keep = {"additionalParams": {"x_keep_volume": True}}
        assert "the stack is created again" in (await caller.ask(cluster_id, "heal", keep)).must(422).detail
        await heal_as_a_whole(user, caller, lab, cluster_id, {}, is_kept=False)
    await caller.terminate(cluster_id)


@pytest.mark.deep
async def test_a_whole_cluster_with_persistent_volumes_is_built_again(user: User, lab: LabControl) -> None:
    """SEQ-076, SEQ-077, SEQ-156, SEQ-190, 5.2, 5.6: in v2 the stack stays, with the volume or a new one, or is made again."""
    package = await user.upload(storage_cluster(str(uuid4())))
    cluster_id = await user.create(package["vnfdId"])
    await user.do(cluster_id, "instantiate", storage_request(user.installation.lab))
    both = {"additionalParams": {"x_keep_volume": True, "all": True}}
    assert "the stack is created again" in (await user.ask(cluster_id, "heal", both)).must(422).detail
    for parameters, is_kept in (({}, True), ({"x_keep_volume": False}, False), ({"all": True}, False)):
        await heal_as_a_whole(user, user, lab, cluster_id, parameters, is_kept=is_kept)
    # The VIM leads to the new cluster.
    cnf_id = await user.create(await user.sample("cnf"))
    asked = user.on_vim(sample_body("cnf", "instantiate"), await user.vim_of_cluster(cluster_id))
    await user.do(cnf_id, "instantiate", asked)
    await user.terminate(cnf_id)
    await user.terminate(cluster_id)
    assert not any(cluster_id in name for name in await lab.names())


async def heal_as_a_whole(
    user: User, caller: User, lab: LabControl, cluster_id: str, parameters: dict[str, Any], *, is_kept: bool
) -> None:
    """SEQ-076, SEQ-077: all machines are new, and the persistent volumes come with the cluster, before its VIM."""
    name = f"kubernetes_vim_{cluster_id}"
    vim, registered = (await user.vims())[name], await volumes_of(user, lab, cluster_id)
    shown = (await user.instance(cluster_id))["instantiatedVnfInfo"]
    (volume,) = [one["storageResource"]["resourceId"] for one in shown["virtualStorageResourceInfo"]]
    view = await caller.do(cluster_id, "heal", {"additionalParams": parameters})
    is_new_stack = caller.version == "v1" or "all" in parameters
    stack = ["delete_resources", "recreate_resources", "restore_scale"] if is_new_stack else ["heal_resources"]
    assert [step["name"] for step in view["steps"]] == [*stack, "heal_end", "register_vim"]
    assert f"volume {VOLUME}: {'its file system' if is_kept else 'formatted'}" in await user.log(view["id"])
    after = (await user.instance(cluster_id))["instantiatedVnfInfo"]
    (now,) = [one["storageResource"]["resourceId"] for one in after["virtualStorageResourceInfo"]]
    assert (now == volume) == is_kept
    there = {one["id"] for one in (await lab.inventory())["servers"]}
    old, new = ({one["computeResource"]["resourceId"] for one in info["vnfcResourceInfo"]} for info in (shown, after))
    assert len(new) == len(old)
    assert new <= there
    assert not old & there
    volumes = await volumes_of(user, lab, cluster_id)
    assert set(volumes) == set(registered)
    assert not set(volumes.values()) & set(registered.values())
    assert (await user.vims())[name]["id"] == vim["id"]


async def heal_the_server(
    user: User, caller: User, lab: LabControl, cluster_id: str, parameters: dict[str, Any], *, is_kept: bool
) -> None:
    """SEQ-078 to SEQ-084, SEQ-190, 5.5: only the storage server is replaced, and its persistent volumes come back."""
    shown = (await user.instance(cluster_id))["instantiatedVnfInfo"]
    before = {one["vduId"]: one for one in shown["vnfcResourceInfo"]}
    (ill,) = [one for one in shown["vnfcInfo"] if one["vduId"] == VDU]
    (volume,) = [one["storageResource"]["resourceId"] for one in shown["virtualStorageResourceInfo"]]
    registered = await volumes_of(user, lab, cluster_id)
    named = before[VDU]["id"] if caller.version == "v1" else ill["id"]
    asked = {"vnfcInstanceId": [named]}
    both = {"x_keep_volume": True, "all": True}
    refused = (await caller.ask(cluster_id, "heal", {**asked, "additionalParams": both})).must(422)
    assert "additionalParams/x_keep_volume: true, but another parameter asks for new volumes" in refused.detail
    view = await caller.do(cluster_id, "heal", {**asked, "additionalParams": parameters})
    assert [step["name"] for step in view["steps"]] == ["heal_start", "heal_resources", "heal_end"]
    assert {task for task, _ in tasks_of(view)} == {"reach", "release_volumes", "disks", "exports", "register_volumes"}
    after = (await user.instance(cluster_id))["instantiatedVnfInfo"]
    (now,) = [one["storageResource"]["resourceId"] for one in after["virtualStorageResourceInfo"]]
    assert (now == volume) == is_kept
    assert f"volume {VOLUME}: {'its file system' if is_kept else 'formatted'}" in await user.log(view["id"])
    for one in after["vnfcResourceInfo"]:
        is_same = one["computeResource"] in [old["computeResource"] for old in shown["vnfcResourceInfo"]]
        assert is_same == (one["vduId"] != VDU)
    new = await volumes_of(user, lab, cluster_id)
    assert set(new) == set(registered)
    assert not set(new.values()) & set(registered.values())
