"""The third demo: a workload cluster that Cluster API builds from one request, its VIM, a CNF on it, its growth, and the removal of all."""

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
    say,
    show_cluster,
    show_vims_left,
    upload,
)

MACHINES: Final = "cluster"
PROVIDERS: Final = "capi-management"
WORKLOAD: Final = "capi-workload"


async def _job(client: GatewayClient, endpoints: JsonObject, samples: Path) -> None:
    await register_openstack(client, endpoints)
    await upload(client, samples, MACHINES, PROVIDERS, WORKLOAD, "cnf")

    say("\n3. Instantiate a cluster of machines, which becomes the management cluster")
    machines_id = str((await client.create(request_of(MACHINES, "create")))["id"])
    await carry_out(client, machines_id, "instantiate", request_of(MACHINES, "instantiate"))
    management = await show_cluster(client, machines_id)

    say("\n4. Install the providers of Cluster API on it")
    providers_id = await instantiate_on(client, PROVIDERS, management)

    say("\n5. Instantiate a workload cluster, by one request")
    workload_id = await instantiate_on(client, WORKLOAD, management)
    workload = await _show_workload(client, workload_id)
    machines = await _show_machines(client, workload_id)

    say("\n6. Deploy a CNF on the workload cluster")
    cnf_id = await deploy_cnf(client, workload)

    say("\n7. Add two workers to the workload cluster, while the CNF runs on it")
    await carry_out(client, workload_id, "scale", request_of(WORKLOAD, "scale_out"))
    grown = await _show_machines(client, workload_id)
    if len(grown) != len(machines) + 2 or not machines <= grown:
        raise DemoFailed(f"the machines {sorted(machines)} became {sorted(grown)}")

    say("\n8. Take all down: the CNF, the workload cluster, the providers, the machines")
    for instance_id, sample in (
        (cnf_id, "cnf"), (workload_id, WORKLOAD), (providers_id, PROVIDERS), (machines_id, MACHINES),
    ):  # fmt: skip
        await remove(client, instance_id, sample)
    await show_vims_left(client)


async def _show_workload(client: GatewayClient, workload_id: str) -> JsonObject:
    """Show the VIM of a workload cluster; return its entry in ``vimConnectionInfo``. Raises DemoFailed."""
    shown, _ = await client.call("GET", f"/vnflcm/v2/vnf_instances/{workload_id}")
    connection = shown["vimConnectionInfo"].get("workload")
    if connection is None:
        raise DemoFailed("the workload cluster was not registered as a VIM")
    vim, _ = await client.call("GET", f"/v1.0/vims/{connection['vimId']}")
    found = vim["vim"]
    say(f"   Its credentials came by a signed call: VIM {found['name']} is {found['status']}")
    return dict(connection)


async def _show_machines(client: GatewayClient, workload_id: str) -> set[str]:
    """Show the machines of a workload cluster; return the ids that their cloud gave them."""
    shown, _ = await client.call("GET", f"/vnflcm/v2/vnf_instances/{workload_id}")
    machines = {
        vnfc["metadata"]["providerId"]: vnfc["vduId"] for vnfc in shown["instantiatedVnfInfo"]["vnfcResourceInfo"]
    }
    for machine, vdu in sorted(machines.items(), key=lambda one: one[1]):
        say(f"   {vdu}: machine {machine}")
    return set(machines)


CAPI: Final = Demo("a workload cluster that Cluster API builds, its VIM, a CNF on it, more workers", _job)
