"""The main use: a Kubernetes cluster VNF, its VIM, a CNF on it, and the termination of all."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Any
from uuid import uuid4

import aiohttp
import pytest
from callers.user import FORCEFUL, GRACEFUL, ApiVersion, User, sample_body
from clouds.lab_process import LabControl
from packages.guide_clusters import PODAFFINITY, guide_package, guide_request
from servers.wirings import in_six

CLUSTER_STEPS = ["create_resources", "instantiate_end", "register_vim"]


@in_six
async def test_a_cluster_is_built_becomes_a_vim_takes_a_cnf_and_all_goes(user: User, lab: LabControl) -> None:
    """SEQ-001, 002, 009 to 012, 022 to 029, 034 to 036, 038 to 040, API-031, API-134."""
    cluster_id = await user.create(await user.sample("cluster"), vnfInstanceName="cluster")
    view = await user.do(cluster_id, "instantiate", user.cluster(level="instantiation_level_1"))
    assert [step["name"] for step in view["steps"]] == CLUSTER_STEPS
    _is_in_the_log(user, view["id"], len((await user.instance(cluster_id))["instantiatedVnfInfo"]["vnfcResourceInfo"]))
    shown = await user.instance(cluster_id)

    # Kubernetes and Nova agree on the nodes.
    kubernetes = await lab.cluster_of(cluster_id)
    machines = {server["id"]: server for server in (await lab.inventory())["servers"]}
    vnfcs = shown["instantiatedVnfInfo"]["vnfcResourceInfo"]
    assert sorted(vnfc["vduId"] for vnfc in vnfcs) == ["masterNode", "workerNode", "workerNode"]
    assert {vnfc["computeResource"]["resourceId"] for vnfc in vnfcs} <= set(machines)
    assert {vnfc["metadata"]["node_name"] for vnfc in vnfcs} == {node["name"] for node in kubernetes["nodes"]}
    assert set(kubernetes["joins"].values()) == {1}

    # Two VIM connections: OpenStack's is unchanged; the cluster's is sufficient to register it manually.
    connections = shown["vimConnectionInfo"]
    types = sorted(each["vimType"] for each in connections.values())
    assert types == ["ETSINFV.KUBERNETES.V_1", "ETSINFV.OPENSTACK_KEYSTONE.V_3"]
    cluster = next(each for each in connections.values() if each["vimType"] == "ETSINFV.KUBERNETES.V_1")
    assert cluster["interfaceInfo"]["endpoint"] == kubernetes["endpoint"]
    assert "BEGIN CERTIFICATE" in cluster["interfaceInfo"]["ssl_ca_cert"]
    assert re.fullmatch(r"sha256:[0-9a-f]{64}", cluster["extra"]["ssl_ca_cert_hash"])
    vims = await user.vims()
    vim = vims[f"kubernetes_vim_{cluster_id}"]
    assert (vim["id"], vim["type"], vim["status"]) == (cluster["vimId"], "kubernetes", "ACTIVE")
    assert vim["auth_cred"]["bearer_token"] == "***"

    # A CNF on the cluster, by the VIM's id alone.
    cnf_id = await user.create(await user.sample("cnf"), vnfInstanceName="web")
    on_it = {"cluster": {"vimId": cluster["vimId"], "vimType": cluster["vimType"]}}
    view = await user.do(cnf_id, "instantiate", {**sample_body("cnf", "instantiate"), "vimConnectionInfo": on_it})
    assert [step["name"] for step in view["steps"]] == ["apply_objects"]
    pods = (await user.instance(cnf_id))["instantiatedVnfInfo"]["vnfcResourceInfo"]
    assert pods
    assert {pod["computeResource"]["vimConnectionId"] for pod in pods} <= {"cluster"}
    assert {"Deployment", "Service", "ConfigMap", "PodDisruptionBudget"} <= _kinds(await lab.cluster_of(cluster_id))
    await _are_shown(user, cluster_id, cnf_id, cluster["vimId"])

    # D0: a cluster that carries a CNF cannot be terminated.
    refused = (await user.ask(cluster_id, "terminate", GRACEFUL)).must(409)
    assert cnf_id in refused.detail
    in_use = (await user.call("DELETE", f"/v1.0/vims/{cluster['vimId']}")).must(409)
    assert cnf_id in in_use.json["TackerError"]["message"]

    await user.terminate(cnf_id)
    assert _kinds(await lab.cluster_of(cluster_id)) == set()
    await user.do(cluster_id, "terminate", GRACEFUL)
    assert "ETSINFV.KUBERNETES.V_1" not in str((await user.instance(cluster_id)).get("vimConnectionInfo"))
    await user.delete(cluster_id)
    assert set(await user.vims()) == {"lab"}


def _is_in_the_log(user: User, operation_id: str, nodes: int) -> None:
    """Check that the request is followed by its id through all services, down to the tasks on each machine."""
    texts = [path.read_text() for path in user.installation.log_files()]
    if not texts:  # a given installation keeps its log to itself
        return
    lines = [json.loads(line) for text in texts for line in text.splitlines() if line.startswith("{")]
    (begun,) = [line for line in lines if line["event"] == "operation_begun" and line["operation_id"] == operation_id]
    assert any(f"'X-Request-ID': '{begun['request_id']}'" in answer for answer in user.heard)
    mine = [line for line in lines if line.get("request_id") == begun["request_id"]]
    requests = [line for line in mine if line["event"] == "http_request"]
    # The others are requests of one service to another.
    (asked,) = [line for line in requests if not line["route"].startswith("/internal/")]
    assert (asked["method"], asked["status"]) == ("POST", 202)
    assert asked["route"] == "/vnflcm/v2/vnf_instances/{id}/instantiate"
    events = [line["event"] for line in mine]
    assert events.count("command_begun") == events.count("command_ended") == len(CLUSTER_STEPS)
    ended = [line for line in mine if line["event"] == "task_ended"]
    assert events.count("task_begun") == len(ended)
    assert len({line["node"] for line in ended}) >= nodes
    assert {line["operation_id"] for line in ended} == {operation_id}
    assert {line["outcome"] for line in ended} <= {"done", "skipped"}


async def _are_shown(user: User, cluster_id: str, cnf_id: str, vim_id: str) -> None:
    """Check the trees of a cluster and of a CNF on it, and the view of the cluster's VIM: all three ask other services."""

    async def tree(instance_id: str) -> dict[str, Any]:
        root: dict[str, Any] = (
            (await user.call("GET", f"/kubevnfm/v1/instances/{instance_id}/tree")).must(200).json["root"]
        )
        return root

    shown = await tree(cluster_id)
    stack, vim = shown["children"]
    assert (shown["type"], shown["health"], stack["kind"], vim["kind"]) == ("cluster", "ok", "stack", "vim"), shown
    servers = [each for each in stack["children"] if each["kind"] == "server"]
    assert sorted((each["role"], each["nodeState"]) for each in servers) == [
        ("master", "Ready"), ("worker", "Ready"), ("worker", "Ready"),
    ]  # fmt: skip
    assert [(each["id"], each["type"]) for each in vim["children"]] == [(cnf_id, "cnf")]
    seen = (await user.call("GET", f"/kubevnfm/v1/vims/{vim_id}")).must(200).json
    assert (seen["state"], seen["vnfCount"], seen["vnfInstanceId"]) == ("ACTIVE", 1, cluster_id)
    assert (seen["capacity"]["nodes"], seen["capacity"]["nodesReady"]) == (3, 3)
    async with asyncio.timeout(300):
        # The inventory follows the cluster, and nothing says when it has seen a pod.
        while (shown := await tree(cnf_id))["health"] != "ok":  # noqa: ASYNC110
            await asyncio.sleep(0.2)
    (release,) = shown["children"]
    web = next(each for each in release["children"] if each.get("type") == "Deployment")
    assert {(each["kind"], each["state"], each["health"]) for each in web["children"]} == {("pod", "Running", "ok")}
    assert all(each["addresses"] and each["place"] for each in web["children"])
    found = (await user.call("GET", f"/kubevnfm/v1/search?q={cnf_id[:13]}")).must(200).json
    assert [(each["kind"], each["id"]) for each in found["items"]] == [("instance", cnf_id)]
    graph = (await user.call("GET", f"/kubevnfm/v1/topology?vim={vim_id}")).must(200).json
    assert graph["away"] == []
    assert {"vim", "vnf", "pod", "connection-point", "network"} <= {each["kind"] for each in graph["nodes"]}


async def test_a_cluster_under_a_living_cnf_goes_when_it_is_forced(user: User) -> None:
    """SEQ-040, API-156: the check applies to GRACEFUL only; FORCEFUL overrides it, and marks the CNF."""
    cluster_id = await user.create(await user.sample("cluster"))
    await user.do(cluster_id, "instantiate", user.cluster())
    vim_id = (await user.vims())[f"kubernetes_vim_{cluster_id}"]["id"]
    cnf_id = await user.create(await user.sample("cnf"))
    on_it = {"cluster": {"vimId": vim_id, "vimType": "ETSINFV.KUBERNETES.V_1"}}
    await user.do(cnf_id, "instantiate", {**sample_body("cnf", "instantiate"), "vimConnectionInfo": on_it})
    view = await user.do(cluster_id, "terminate", FORCEFUL)
    assert view["steps"][0]["name"] == "mark_orphans"
    assert (await user.instance(cnf_id))["metadata"]["kubevnfm_orphaned"]["provider_id"] == cluster_id
    await user.delete(cluster_id)
    await user.do(cnf_id, "terminate", FORCEFUL)
    await user.delete(cnf_id)


async def test_a_vim_name_of_the_request_is_used_and_may_be_there_once_only(user: User) -> None:
    """SEQ-025: the request is rejected before anything is created."""
    body = user.cluster()
    body["additionalParams"]["k8s_cluster_installation_param"]["vim_name"] = "edge"
    first, second = [await user.create(await user.sample("cluster")) for _ in range(2)]
    await user.do(first, "instantiate", body)
    assert "edge" in await user.vims()
    refused = (await user.ask(second, "instantiate", body)).must(409)
    assert "vim_name" in refused.detail
    await user.delete(second)
    await user.terminate(first)


async def test_the_operation_shows_its_steps_nodes_and_times_and_what_machines_printed(user: User) -> None:
    """SEQ-045: an operator can read the output of each command."""
    cluster_id = await user.create(await user.sample("cluster"))
    operation = await user.start(cluster_id, "instantiate", user.cluster())
    view = await user.rest(operation)
    assert view["operation"] == "INSTANTIATE"
    for step in view["steps"]:
        assert step["state"] == "done"
        assert view["startTime"] <= step["startedAt"] <= step["endedAt"] <= view["stateEnteredTime"]
    vnfcs = (await user.instance(cluster_id))["instantiatedVnfInfo"]["vnfcResourceInfo"]
    assert {node["name"] for node in view["nodes"]} == {vnfc["metadata"]["node_name"] for vnfc in vnfcs}
    tasks = {(node["name"], task["task"]): task for node in view["nodes"] for task in node["tasks"]}
    assert all(task["state"] in {"finished", "skipped"} for task in tasks.values())
    assert all("durationS" in task for task in tasks.values() if task["state"] == "finished")
    text = await user.log(operation)
    assert "kubeadm" in text
    only = view["nodes"][0]["name"]
    part = (await user.call("GET", f"/kubevnfm/v1/operations/{operation}/log?node={only}")).must(200).text
    assert 0 < len(part) < len(text)
    assert user.installation.lab.machine_password not in text
    await user.terminate(cluster_id)


async def test_events_of_an_operation_come_live_in_order(user: User) -> None:
    """SEQ-188: server-sent events: every state in order, and the start of each step before its end."""
    instance_id = await user.create(await user.sample("vm"))
    states: list[str] = []
    steps: list[tuple[str, str]] = []
    stream = user.events(instance=instance_id)
    assert await anext(stream) is None
    operation = await user.start(instance_id, "instantiate", sample_body("vm", "instantiate"))
    async for event in stream:
        if event is None or event["operationid"] != operation:
            continue
        assert event["subject"] == instance_id
        if event["type"] == "kubevnfm.lcm.operation.changed.v1":
            states.append(event["data"]["state"])
            if states[-1] == "COMPLETED":
                break
        elif event["type"] == "kubevnfm.lcm.step.changed.v1":
            steps.append((event["data"]["step"], event["data"]["state"]))
    await stream.aclose()  # type: ignore[attr-defined]  # an async generator that is typed as an AsyncIterator
    assert sorted(states, key=["STARTING", "PROCESSING", "COMPLETED"].index) == states
    assert ("create_resources", "started") in steps
    await user.terminate(instance_id)


@pytest.mark.parametrize(("form", "flavour"), [("v1", PODAFFINITY), ("v2", "simple"), ("v1", "complex")])
async def test_the_cluster_package_of_tackers_guide_runs_unchanged(
    user: User, v1: User, lab: LabControl, form: ApiVersion, flavour: str
) -> None:
    """SEQ-004, 021, 037, 047, 048, 154, 161, 187: its own script has another interface, and its own driver is not loaded."""
    caller = v1 if form == "v1" else user
    vnfd_id = str(uuid4())
    package = await caller.upload(guide_package(form, vnfd_id))
    assert (package["onboardingState"], package.get("warnings")) == ("ONBOARDED", None), package
    body = guide_request(form, caller.installation.lab, (await caller.vims())["lab"]["id"], flavour=flavour)
    cluster_id = await caller.create(vnfd_id)
    view = await caller.do(cluster_id, "instantiate", body)
    assert [step["name"] for step in view["steps"]] == CLUSTER_STEPS
    (remark,) = [task for task in view["tasks"] if task["task"] == "files"]
    assert "Scripts/install_k8s_cluster.sh of the package has another interface and is not run" in remark["message"]
    assert "of the package was run" not in await caller.log(view["id"])
    assert len(view["nodes"]) == (5 if flavour == "complex" else 3)
    vim = (await caller.vims())["kubernetes_vim"]
    assert vim["auth_url"].endswith(":16443" if flavour == "complex" else ":6443")
    assert (vim["type"], vim["status"]) == ("kubernetes", "ACTIVE")
    connection = _connection(await v1.instance(cluster_id))
    assert connection["vimId"] == vim["id"]
    assert vim["auth_cred"]["bearer_token"] == "***"
    certificate = connection["interfaceInfo"]["ssl_ca_cert"]
    assert hashlib.sha256(base64.b64decode("".join(certificate.strip().splitlines()[1:-1]))).digest()
    if flavour == "complex":
        await _heal_a_master(caller, lab, cluster_id, vim["auth_url"])
    if flavour == PODAFFINITY:
        (cluster,) = [one for one in (await lab.inventory())["clusters"] if one["endpoint"] == vim["auth_url"]]
        labels = {each["name"]: each["labels"] for each in cluster["nodes"]}
        hosts = {labels[name]["CIS-node"] for name in labels if name.startswith("worker")}
        assert len(hosts) == 2, labels

    await caller.terminate(cluster_id)
    assert set(await caller.vims()) == {"lab"}, "also without terminate_end in the VNFD, as in the guide for v2"


async def _heal_a_master(user: User, lab: LabControl, cluster_id: str, url: str) -> None:
    """SEQ-154, SEQ-158, SEQ-160: the API answers at the virtual address meanwhile, and the new master has the old name."""
    before = (await user.instance(cluster_id))["instantiatedVnfInfo"]["vnfcResourceInfo"]
    masters = [one for one in before if one["metadata"]["node_name"].startswith("master")]
    assert len(masters) == 3
    ids = [one["id"] for one in masters]
    assert "these are all 3 masters" in (await user.ask(cluster_id, "heal", {"vnfcInstanceId": ids})).must(422).detail
    answers: list[bool] = []
    polling = asyncio.create_task(_poll(f"{url}/readyz", answers))
    try:
        view = await user.do(cluster_id, "heal", {"vnfcInstanceId": ids[:1]})
    finally:
        polling.cancel()
        await asyncio.gather(polling, return_exceptions=True)
    # A connection may break in the moment in which the address moves, and the next one finds it at its new place.
    assert answers.count(True) > 3
    assert (False, False) not in pairwise(answers)
    assert [step["name"] for step in view["steps"]] == ["heal_start/1", "heal_resources/1", "heal_end/1"]
    name = masters[0]["metadata"]["node_name"]
    done = {(task["task"], node["name"]) for node in view["nodes"] for task in node["tasks"]}
    assert {
        (task, name) for task in ("stand_down", "remove_member", "delete", "prepare", "join_master", "member")
    } <= done
    now = (await user.instance(cluster_id))["instantiatedVnfInfo"]["vnfcResourceInfo"]
    (new,) = [one for one in now if one["id"] not in {old["id"] for old in before}]
    assert new["metadata"]["node_name"] == name
    names = {one["metadata"]["node_name"] for one in now}
    found = [{node["name"] for node in one["nodes"] if node["ready"]} for one in (await lab.inventory())["clusters"]]
    assert names in found


async def _poll(url: str, answers: list[bool]) -> None:
    """Ask again and again; add whether there was an answer."""
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(10)) as session:
        while True:
            try:
                # Each time by a new connection: one that stays open would not show where the address is.
                async with session.get(url, ssl=False, headers={"Connection": "close"}) as response:
                    answers.append(response.status in (200, 401))
            except (aiohttp.ClientError, TimeoutError):
                answers.append(False)
            await asyncio.sleep(0.1)


def _kinds(cluster: Mapping[str, Any]) -> set[str]:
    """Return the kinds of the objects in the CNF's namespace."""
    return {kind for kind, namespace, _ in (place.split("/") for place in cluster["objects"]) if namespace == "default"}


def _connection(instance: Mapping[str, Any]) -> dict[str, Any]:
    return next(each for each in instance["vimConnectionInfo"] if each["vimType"] == "kubernetes")
