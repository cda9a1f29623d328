"""Clusters with several masters, over HTTP: the API stays reachable while one master is down."""

from __future__ import annotations

from typing import Any

import aiohttp
import pytest
from user import User, sample_body


def a_request(user: User) -> dict[str, Any]:
    """Return the request for three masters and one worker on the lab's machines."""
    body = {**sample_body("cluster", "instantiate_complex"), "instantiationLevelId": "smallest"}
    install = body["additionalParams"]["k8s_cluster_installation_param"]
    for role in ("master_node", "worker_node"):
        install[role]["password"] = user.installation.lab.machine_password
    return body


async def power(user: User, server_id: str, action: str) -> None:
    """Stop or start a server of the cloud, as its owner does: ``os-stop``, ``os-start``."""
    lab = user.installation.lab.endpoints
    domain = {"name": lab["domain"]}
    login = {
        "identity": {
            "methods": ["password"],
            "password": {"user": {"name": lab["username"], "domain": domain, "password": lab["password"]}},
        },
        "scope": {"project": {"name": lab["project"], "domain": domain}},
    }
    async with aiohttp.ClientSession(raise_for_status=True) as session:
        async with session.post(f"{lab['auth_url']}/auth/tokens", json={"auth": login}) as answer:
            token, catalogue = answer.headers["X-Subject-Token"], (await answer.json())["token"]["catalog"]
        (nova,) = [one["endpoints"][0]["url"] for one in catalogue if one["type"] == "compute"]
        headers = {"X-Auth-Token": token}
        await session.post(f"{nova}/servers/{server_id}/action", json={action: None}, headers=headers)


@pytest.mark.faults  # servers are stopped behind the back of the service
async def test_a_cluster_works_while_a_master_is_down(user: User) -> None:
    """SEQ-048, SEQ-158: a CNF comes and goes without the first master; with it back, a worker joins."""
    cluster_id = await user.create(await user.sample("cluster"))
    view = await user.do(cluster_id, "instantiate", a_request(user))
    assert len(view["nodes"]) == 4
    connection = await user.vim_of_cluster(cluster_id)
    assert connection["interfaceInfo"]["endpoint"].endswith(":16443")
    vnfcs = (await user.instance(cluster_id))["instantiatedVnfInfo"]["vnfcResourceInfo"]
    (name,) = [node["name"] for node in view["nodes"] if "init" in {task["task"] for task in node["tasks"]}]
    (first,) = [v["computeResource"]["resourceId"] for v in vnfcs if v["metadata"]["node_name"] == name]

    await power(user, first, "os-stop")
    cnf_id = await user.create(await user.sample("cnf"))
    await user.do(cnf_id, "instantiate", user.on_vim(sample_body("cnf", "instantiate"), connection))
    await user.terminate(cnf_id)
    await power(user, first, "os-start")
    await user.do(cluster_id, "scale", {"type": "SCALE_OUT", "aspectId": "worker_instance", "numberOfSteps": 1})
    await user.terminate(cluster_id)
