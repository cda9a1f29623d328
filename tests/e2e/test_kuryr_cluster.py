"""A cluster with Kuryr-Kubernetes: its network, a CNF whose Service is a load balancer of the cloud, and its end."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import aiohttp
from aiohttp import web
from kuryr_clusters import PORT, Balanced, Kuryr, balanced_cnf, kuryr_request
from lab_process import LabControl
from user import GRACEFUL, User, sample_body
from wirings import deep_in_six


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


@deep_in_six
async def test_a_service_of_a_cluster_with_kuryr_is_a_load_balancer_of_the_cloud(user: User, lab: LabControl) -> None:
    """SEQ-013, SEQ-016, SEQ-017, SEQ-018."""
    machines = user.installation.lab
    cluster_id = await user.create(await user.sample("kuryr"))
    view = await user.do(cluster_id, "instantiate", kuryr_request(machines))
    assert [step["name"] for step in view["steps"]] == [
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
    # The load balancer and the ports are still there, and would keep the stack's networks in use.
    view = await user.do(cluster_id, "terminate", GRACEFUL)
    assert [step["name"] for step in view["steps"]][:3] == ["stop_kuryr", "remove_kuryr_resources", "delete_resources"]
    await user.delete(cluster_id)
