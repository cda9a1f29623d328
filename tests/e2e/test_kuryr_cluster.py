"""A cluster with Kuryr-Kubernetes: its network, a CNF whose Service is a load balancer of the cloud, and its end."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import aiohttp
from aiohttp import web
from callers.user import GRACEFUL, User, sample_body
from clouds.lab_process import LabControl
from clusters.kuryr_clusters import PORT, Balanced, Kuryr, balanced_cnf, kuryr_request


def tasks_of(view: dict[str, Any]) -> set[str]:
    """Return the names of the tasks of an operation that are done on a node."""
    return {
        task["task"] for node in view["nodes"] for task in node["tasks"] if task["state"] in ("finished", "skipped")
    }


async def answer_of(balanced: Balanced) -> str:
    """Return what a pod answers to one who calls the Service; the lab runs no images, so the pods' servers are here."""

    async def greet(request: web.Request) -> web.Response:
        assert request.transport is not None
        return web.Response(text=f"from {request.transport.get_extra_info('sockname')[0]}")

    application = web.Application()
    application.router.add_get("/", greet)
    runner = web.AppRunner(application)
    await runner.setup()
    try:
        for pod in balanced.pods:
            await web.TCPSite(runner, pod, PORT).start()
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"http://{balanced.address}:{PORT}/") as response,
        ):
            return await response.text()
    finally:
        await runner.cleanup()


def steps_of(view: dict[str, Any]) -> list[str]:
    """Return the names of the steps of an operation."""
    return [step["name"] for step in view["steps"]]


async def vnfcs_of(user: User, cluster_id: str) -> dict[str, str]:
    """Return the Nova id of each machine by the name of its node."""
    shown = (await user.instance(cluster_id))["instantiatedVnfInfo"]["vnfcResourceInfo"]
    return {one["metadata"]["node_name"]: one["computeResource"]["resourceId"] for one in shown}


async def grow_and_heal(user: User, lab: LabControl, cluster_id: str) -> None:
    """Let workers come and go, then build the cluster again while load balancers of the old one are left."""
    worker = {"aspectId": "worker_instance", "numberOfSteps": 1}
    view = await user.do(cluster_id, "scale", {"type": "SCALE_OUT", **worker})
    assert steps_of(view) == ["scale_rollback_end", "scale_resources", "await_new_trunks", "scale_end"]
    before = await vnfcs_of(user, cluster_id)
    assert len(before) == 3

    shown = (await user.instance(cluster_id))["instantiatedVnfInfo"]
    ill = next(one["id"] for one in shown["vnfcInfo"] if one["vduId"] == "workerNode")
    view = await user.do(cluster_id, "heal", {"vnfcInstanceId": [ill]})
    assert steps_of(view) == ["heal_start", "heal_resources", "await_new_trunks", "heal_end"]
    after = await vnfcs_of(user, cluster_id)
    assert set(after) == set(before)
    assert len(set(after.values()) & set(before.values())) == 2

    view = await user.do(cluster_id, "scale", {"type": "SCALE_IN", **worker})
    assert steps_of(view) == ["scale_start", "scale_resources", "scale_end"]
    view = await user.do(cluster_id, "heal", {})
    assert steps_of(view) == [
        "stop_ill_kuryr",
        "remove_kuryr_resources",
        "heal_resources",
        "prepare_kuryr_network",
        "heal_end",
        "register_vim",
    ]
    assert {"etcd", "kuryr", "entry"} <= tasks_of(view)
    assert [one["name"] for one in (await lab.inventory())["load_balancers"]] == ["default/kubernetes"]
    assert not set((await vnfcs_of(user, cluster_id)).values()) & set(after.values())


async def test_a_service_of_a_cluster_with_kuryr_is_a_load_balancer_of_the_cloud(user: User, lab: LabControl) -> None:
    """SEQ-013, SEQ-016, SEQ-017, SEQ-018."""
    machines = user.installation.lab
    cluster_id = await user.create(await user.sample("kuryr"))
    view = await user.do(cluster_id, "instantiate", kuryr_request(machines))
    assert steps_of(view) == [
        "create_resources",
        "prepare_kuryr_network",
        "instantiate_end",
        "register_vim",
    ]
    assert {"etcd", "kuryr", "entry", "join"} <= tasks_of(view)

    package = await user.upload(balanced_cnf(str(uuid4())))
    cnf_id = await user.create(package["vnfdId"])
    vim = await user.vim_of_cluster(cluster_id)
    operation = await user.start(cnf_id, "instantiate", user.on_vim(sample_body("cnf", "instantiate"), vim))
    kuryr = Kuryr(machines, str(urlsplit(vim["interfaceInfo"]["endpoint"]).hostname))
    # The CNF waits until its Service has an address.
    balanced = await kuryr.balance("web")
    assert (await user.rest(operation))["state"] == "COMPLETED"
    assert await answer_of(balanced) in {f"from {pod}" for pod in balanced.pods}

    refused = (await user.ask(cluster_id, "terminate", GRACEFUL)).must(409)
    assert cnf_id in refused.detail
    await user.terminate(cnf_id)
    await grow_and_heal(user, lab, cluster_id)
    # The cluster is another one now, with another login. New load balancers and ports would keep the stack in use.
    await kuryr.balance("kube-dns", "kube-system")
    view = await user.do(cluster_id, "terminate", GRACEFUL)
    assert steps_of(view)[:3] == ["stop_kuryr", "remove_kuryr_resources", "delete_resources"]
    await user.delete(cluster_id)
