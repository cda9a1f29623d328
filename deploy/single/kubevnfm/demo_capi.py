"""The third demo: a workload cluster that Cluster API builds from one request, its VIM, a CNF on it, and the removal of all."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from kubevnfm_kit.json_types import JsonObject

from kubevnfm.client import GatewayClient
from kubevnfm.demo import (
    Demo,
    DemoFailed,
    carry_out,
    deploy_cnf,
    instantiate_on,
    register_openstack,
    remove,
    request_of,
    show_cluster,
    show_vims_left,
    upload,
)
from kubevnfm.watch import say

MACHINES: Final = "cluster"
PROVIDERS: Final = "capi-management"
WORKLOAD: Final = "capi-workload"


async def _job(client: GatewayClient, endpoints: JsonObject, samples: Path) -> None:
    await register_openstack(client, endpoints)
    await upload(client, samples, MACHINES, PROVIDERS, WORKLOAD, "cnf")

    say("\n3. Instantiate a cluster of machines, which becomes the management cluster")
    machines = await client.create(request_of(MACHINES, "create"))
    machines_id = str(machines["id"])
    await carry_out(client, machines_id, "instantiate", request_of(MACHINES, "instantiate"))
    management = await show_cluster(client, machines_id)

    say("\n4. Install the providers of Cluster API on it")
    providers_id = await instantiate_on(client, PROVIDERS, management)

    say("\n5. Instantiate a workload cluster, by one request")
    workload_id = await instantiate_on(client, WORKLOAD, management)
    workload = await _show_workload(client, workload_id)

    say("\n6. Deploy a CNF on the workload cluster")
    cnf_id = await deploy_cnf(client, workload)

    say("\n7. Take all down: the CNF, the workload cluster, the providers, the machines")
    for instance_id, sample in (
        (cnf_id, "cnf"), (workload_id, WORKLOAD), (providers_id, PROVIDERS), (machines_id, MACHINES),
    ):  # fmt: skip
        await remove(client, instance_id, sample)
    await show_vims_left(client)


async def _show_workload(client: GatewayClient, workload_id: str) -> JsonObject:
    """Show the machines and the VIM of a workload cluster; return its VIM's entry in ``vimConnectionInfo``.

    Raises: DemoFailed.
    """
    shown, _ = await client.call("GET", f"/vnflcm/v2/vnf_instances/{workload_id}")
    for vnfc in shown["instantiatedVnfInfo"]["vnfcResourceInfo"]:
        say(f"   {vnfc['vduId']}: machine {vnfc['metadata']['providerId']}")
    connection = shown["vimConnectionInfo"].get("workload")
    if connection is None:
        raise DemoFailed("the workload cluster was not registered as a VIM")
    vim, _ = await client.call("GET", f"/v1.0/vims/{connection['vimId']}")
    found = vim["vim"]
    say(f"   Its credentials came by a signed call: VIM {found['name']} is {found['status']}")
    return dict(connection)


CAPI: Final = Demo("a workload cluster that Cluster API builds, its VIM, a CNF on it", _job)
