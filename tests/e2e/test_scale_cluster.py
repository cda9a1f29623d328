"""Workers that are added to a cluster, healed and taken out of it, over both versions of the API."""

from __future__ import annotations

from typing import Any, Final
from uuid import uuid4

import pytest
from callers.user import ApiVersion, User, sample_body
from clouds.lab_process import LabControl
from clusters.shown_clusters import nodes_of, tasks_of
from kubevnfm_lab.machines.registry import RegistryPort, RegistrySettings
from packages.guide_clusters import guide_package, guide_request
from servers.wirings import variants

OUT: Final = {"type": "SCALE_OUT", "aspectId": "worker_instance"}
IN: Final = {"type": "SCALE_IN", "aspectId": "worker_instance"}


async def a_cluster(user: User, *, level: str = "smallest") -> str:
    """Return an instantiated cluster; ``smallest`` has one worker, ``instantiation_level_1`` two."""
    cluster_id = await user.create(await user.sample("cluster"))
    await user.do(cluster_id, "instantiate", user.cluster(level=level))
    return cluster_id


async def heal_a_worker(user: User, caller: User, lab: LabControl, cluster_id: str, name: str) -> None:
    """SEQ-155, SEQ-156, SEQ-157: the other machines stay, and the new one has the name of the old one."""
    info = (await user.instance(cluster_id))["instantiatedVnfInfo"]
    machines = {one["id"]: one for one in info["vnfcResourceInfo"]}
    ill = next(one for one in info["vnfcInfo"] if machines[one["vnfcResourceInfoId"]]["metadata"]["node_name"] == name)
    named = ill["vnfcResourceInfoId"] if caller.version == "v1" else ill["id"]
    masters = [one["id"] for one in info["vnfcInfo"] if one["vduId"] == "masterNode"]
    refused = (await caller.ask(cluster_id, "heal", {"vnfcInstanceId": [named, *masters]})).must(422)
    assert "HEAL-1M" in refused.detail
    view = await caller.do(cluster_id, "heal", {"vnfcInstanceId": [named]})
    assert [step["name"] for step in view["steps"]] == ["heal_start", "heal_resources", "heal_end"]
    tasks = tasks_of(view)
    for task in ("drain", "delete", "reach", "prepare", "clear", "join"):
        assert tasks[task, name]["state"] in ("finished", "skipped"), task
    assert {node for task, node in tasks if task == "prepare"} == {name}
    now = (await user.instance(cluster_id))["instantiatedVnfInfo"]["vnfcResourceInfo"]
    servers = {one["computeResource"]["resourceId"] for one in machines.values()}
    (new,) = [one for one in now if one["computeResource"]["resourceId"] not in servers]
    assert new["metadata"]["node_name"] == name
    assert (await lab.cluster_of(cluster_id))["joins"][name] == 2


async def heal_as_a_whole(user: User, caller: User, lab: LabControl, cluster_id: str) -> None:
    """SEQ-156, 5.6: all machines are new, their number is what the cluster was scaled to, and the VIM keeps its id."""
    name = f"kubernetes_vim_{cluster_id}"
    vim, count = (await user.vims())[name], len(await nodes_of(user, lab, cluster_id))
    servers = {one["id"] for one in (await lab.inventory())["servers"] if cluster_id in one["name"]}
    view = await caller.do(cluster_id, "heal", {})
    stack = (
        ["delete_resources", "recreate_resources", "restore_scale"] if caller.version == "v1" else ["heal_resources"]
    )
    assert [step["name"] for step in view["steps"]] == [*stack, "heal_end", "register_vim"]
    assert len(await nodes_of(user, lab, cluster_id)) == count
    assert not servers & {one["id"] for one in (await lab.inventory())["servers"]}
    # Registered by a call to the new cluster: the old access data open nothing there.
    assert (await user.vims())[name]["id"] == vim["id"]
    entry = (await user.instance(cluster_id))["vimConnectionInfo"][name]
    assert entry["vimId"] == vim["id"]


@pytest.mark.parametrize(
    ("installation", "form"),
    variants(("v1", "v2"), every_run=lambda wiring, form: (wiring, form) == ("single", "v1")),
    indirect=["installation"],
)
async def test_workers_come_and_go(user: User, v1: User, lab: LabControl, form: ApiVersion) -> None:
    """SEQ-150 to SEQ-152, SEQ-155, SEQ-156, SEQ-161, SEQ-188, W-50: out by two, one healed, in by one, and back to a level."""
    caller = v1 if form == "v1" else user
    cluster_id = await a_cluster(user)
    vim = (await user.vims())[f"kubernetes_vim_{cluster_id}"]
    first = await nodes_of(user, lab, cluster_id)
    # v1 sends numbers as texts, as Tacker's client does.
    steps: Any = "2" if form == "v1" else 2
    view = await caller.do(cluster_id, "scale", {**OUT, "numberOfSteps": steps})
    assert [step["name"] for step in view["steps"]] == ["scale_rollback_end", "scale_resources", "scale_end"]
    three = await nodes_of(user, lab, cluster_id)
    assert first < three
    assert len(three) == 4
    tasks = tasks_of(view)
    for name in three - first:
        for task in ("reach", "copy", "prepare", "join"):
            assert tasks[task, name]["state"] == "finished", (task, name)
            assert {"startedAt", "durationS"} <= tasks[task, name].keys()
    for name in first:
        assert ("join", name) not in tasks
        assert tasks["hosts", name]["state"] == "finished"
    assert (await user.vims())[f"kubernetes_vim_{cluster_id}"]["id"] == vim["id"]
    assert set((await lab.cluster_of(cluster_id))["joins"].values()) == {1}

    await heal_a_worker(user, caller, lab, cluster_id, min(three - first))
    assert await nodes_of(user, lab, cluster_id) == three
    assert (await user.vims())[f"kubernetes_vim_{cluster_id}"]["id"] == vim["id"]

    view = await caller.do(cluster_id, "scale", {**IN, "numberOfSteps": 1})
    assert [step["name"] for step in view["steps"]] == ["scale_start", "scale_resources", "scale_end"]
    two = await nodes_of(user, lab, cluster_id)
    (left,) = three - two
    assert (left in first) == (form == "v1"), "v1 removes the oldest, v2 the newest (3.4)"
    tasks = tasks_of(view)
    for task in ("drain", "delete"):
        assert tasks[task, left]["state"] in ("finished", "skipped")
    assert "evicting pod" in await user.log(view["id"]) or tasks["drain", left]["state"] == "skipped"

    if form == "v2":
        level = {"instantiationLevelId": "instantiation_level_2"}
        await user.do(cluster_id, "scale_to_level", level)
        assert len(await nodes_of(user, lab, cluster_id)) == 5
        to_one = {"scaleInfo": [{"aspectId": "worker_instance", "scaleLevel": 0}]}
        await user.do(cluster_id, "scale_to_level", to_one)
        assert len(await nodes_of(user, lab, cluster_id)) == 2
    await heal_as_a_whole(user, caller, lab, cluster_id)
    await user.terminate(cluster_id)


@pytest.mark.parametrize(
    ("installation", "form"),
    variants(("v1", "v2"), every_run=lambda wiring, form: (wiring, form) == ("single", "v2")),
    indirect=["installation"],
)
async def test_a_cluster_of_tackers_guide_is_scaled_and_its_masters_are_not(
    user: User, v1: User, lab: LabControl, form: ApiVersion
) -> None:
    """SEQ-131, SEQ-134, SEQ-153, SEQ-187, W-36, W-41: the request of the guide for v2 sends all parameters again."""
    caller = v1 if form == "v1" else user
    registry = RegistryPort(["127.0.0.1"], 0, RegistrySettings(knows=lambda *given: given == ("tacker", "pull-word")))
    await registry.open()
    login = {"username": "tacker", "password": "pull-word"}
    connection = {"connection_type": "0", "server": f"127.0.0.1:{registry.port}", **login}
    vnfd_id = str(uuid4())
    await caller.upload(guide_package(form, vnfd_id))
    body = guide_request(form, caller.installation.lab, (await caller.vims())["lab"]["id"])
    body["additionalParams"]["k8s_cluster_installation_param"]["private_registry_connection_info"] = [connection]
    cluster_id = await caller.create(vnfd_id)
    await caller.do(cluster_id, "instantiate", body)
    first = await nodes_of(user, lab, cluster_id)
    if form == "v1":
        out: dict[str, Any] = {**OUT, "numberOfSteps": 1}
        masters = {"type": "SCALE_OUT", "aspectId": "master_instance", "numberOfSteps": 1}
        refused = (await caller.ask(cluster_id, "scale", masters)).must(422)
        assert "masters of the cluster: only workers can be scaled" in refused.detail
        assert "aspectId" in refused.detail
        largest = {"instantiationLevelId": "instantiation_level_2"}
        assert "masters of the cluster" in (await user.ask(cluster_id, "scale_to_level", largest)).must(422).detail
    else:
        parameters = body["additionalParams"]
        out = {"type": "SCALE_OUT", "aspectId": "workerNode_scale", "numberOfSteps": 1, "additionalParams": parameters}
    view = await caller.do(cluster_id, "scale", out)
    (remark,) = [task for task in view["tasks"] if task["task"] == "files"]
    assert "is not run: the driver's own script works on the nodes" in remark["message"]
    (new,) = await nodes_of(user, lab, cluster_id) - first
    connected = [key for key in tasks_of(view) if key[0] == "registries"]
    assert connected == [("registries", new)]
    assert "pull-word" not in str(await user.instance(cluster_id))
    await caller.do(cluster_id, "scale", {**out, "type": "SCALE_IN"})
    assert len(await nodes_of(user, lab, cluster_id)) == 3
    await caller.terminate(cluster_id)
    registry.close()


async def test_a_scaling_that_contradicts_the_cluster_changes_nothing(user: User, lab: LabControl) -> None:
    """SEQ-191, 5.1."""
    cluster_id = await a_cluster(user)
    before = await lab.names()
    section = {"master_node": {"pod_cidr": "172.20.0.0/16"}}
    other = {**OUT, "numberOfSteps": 1, "additionalParams": {"k8s_cluster_installation_param": section}}
    refused = (await user.ask(cluster_id, "scale", other)).must(422)
    assert (
        "k8s_cluster_installation_param/master_node/pod_cidr: differs from that of the instantiation" in refused.detail
    )
    half = {**OUT, "numberOfSteps": 1, "additionalParams": {"worker_node_username": "ubuntu"}}
    assert "worker_node_password" in (await user.ask(cluster_id, "scale", half)).must(400).detail
    stop = (await user.ask(cluster_id, "operate", sample_body("vm", "stop"))).must(404)
    assert "clusters support instantiate, scale, scale to level, heal and terminate only" in stop.detail
    assert await lab.names() == before
    await user.terminate(cluster_id)


async def test_a_failed_scale_out_is_rolled_back_and_then_succeeds(user: User, lab: LabControl) -> None:
    """1.11, SEQ-180: the nodes that had joined leave the cluster before their machines go."""
    cluster_id = await a_cluster(user)
    first, machines = await nodes_of(user, lab, cluster_id), await lab.names()
    async with lab.fault("program", "kubeadm join", message="stop here", after=1, times=1):
        view = await user.rest(await user.start(cluster_id, "scale", {**OUT, "numberOfSteps": 2}))
    assert view["state"] == "FAILED_TEMP"
    assert "task join" in view["error"]["detail"]
    view = await user.act(view["id"], "rollback")
    assert view["state"] == "ROLLED_BACK"
    assert await nodes_of(user, lab, cluster_id) == first
    assert await lab.names() == machines
    tasks = tasks_of(view)
    assert {name for task, name in tasks if task == "drain"} == {name for _, name in tasks} - first - {""}
    await user.do(cluster_id, "scale", {**OUT, "numberOfSteps": 2})
    assert len(await nodes_of(user, lab, cluster_id)) == 4
    await user.terminate(cluster_id)


async def test_a_drain_that_is_refused_names_the_pods_and_a_retry_ends_it(user: User, lab: LabControl) -> None:
    """SEQ-188, W-09, W-10: what holds a drain up is shown while it waits."""
    body = user.cluster(level="instantiation_level_1")
    body["additionalParams"]["k8s_cluster_installation_param"]["x_timeouts"] = {"drain": 3}
    cluster_id = await user.create(await user.sample("cluster"))
    await user.do(cluster_id, "instantiate", body)
    first = await nodes_of(user, lab, cluster_id)
    vim = (await user.vims())[f"kubernetes_vim_{cluster_id}"]
    cnf_id = await user.create(await user.sample("cnf"))
    on_it = {"cluster": {"vimId": vim["id"], "vimType": "ETSINFV.KUBERNETES.V_1"}}
    await user.do(cnf_id, "instantiate", {**sample_body("cnf", "instantiate"), "vimConnectionInfo": on_it})
    budget = "Cannot evict pod as it would violate the pod's disruption budget."
    async with lab.fault("kubernetes", "create pods/eviction", status=429, message=budget):
        view = await user.rest(await user.start(cluster_id, "scale", {**IN, "numberOfSteps": 1}))
    assert view["state"] == "FAILED_TEMP"
    assert "not drained within 3 s; it waits for" in view["error"]["detail"]
    assert "violate the pod's disruption budget" in view["error"]["detail"]
    assert await nodes_of(user, lab, cluster_id) == first, "no machine is gone"
    view = await user.act(view["id"], "retry")
    assert view["state"] == "COMPLETED", view
    assert len(await nodes_of(user, lab, cluster_id)) == 2
    await user.terminate(cnf_id)
    await user.terminate(cluster_id)
