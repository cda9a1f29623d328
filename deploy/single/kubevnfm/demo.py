"""The main use case over HTTP: a cluster VNF on the lab, its VIM, a CNF on it, and the removal of all.

`demo_ha` shows what a cluster of several masters adds, `demo_capi` a cluster that Cluster API builds.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kubevnfm_cli.contexts import Context
from kubevnfm_cli.credentials import Authentication
from kubevnfm_cli.faults import Fault
from kubevnfm_cli.following import Lines, follow
from kubevnfm_cli.gateway import Gateway
from kubevnfm_kit.errors import VnfmError
from kubevnfm_kit.json_types import JsonObject

from kubevnfm.client import GatewayClient
from kubevnfm.settings import Settings
from kubevnfm.single import single_node

_LONGEST_S: Final = 7200.0


class DemoFailed(VnfmError):
    """The demo did not reach its result."""


def say(line: str) -> None:
    """Print a line at once: this is the command line's output, not a log."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


@asynccontextmanager
async def lab(node_seconds: float) -> AsyncIterator[JsonObject]:
    """Yield the endpoints of a lab in a process of its own; leaving the block ends it."""
    # Settings for the user's own installation must not change the lab.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KUBEVNFM_")}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "kubevnfm_lab",
        "--node-seconds",
        str(node_seconds),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=environment,
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(60):
            line = await process.stdout.readline()
        if not line:
            raise DemoFailed("the lab did not start: run `python -m kubevnfm_lab` to see why")
        yield json.loads(line)
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


@dataclass(frozen=True)
class Demo:
    """A demo: what it shows, and the calls that do it."""

    title: str
    job: Callable[[GatewayClient, JsonObject, Path], Awaitable[None]]
    """Gets the client, the endpoints of the lab and the folder of the packed samples; leaves an empty cloud."""


async def run(demo: Demo, samples: Path, node_seconds: float) -> None:
    """Run the demo with the packed samples of a folder. Raises DemoFailed, Refused."""
    started = time.monotonic()
    say(f"kubevnfm demo: {demo.title}; on the lab, in one process")
    with tempfile.TemporaryDirectory(prefix="kubevnfm-demo-") as data_dir:
        async with lab(node_seconds) as endpoints:
            say(f"the lab is up: OpenStack at {endpoints['auth_url']}, machines on SSH port {endpoints['ssh_port']}")
            alone: Any = dict.fromkeys(
                ("tls_certificate", "tls_key", "tls_client_ca", "callback_tls_certificate", "callback_tls_key")
            )  # the settings of `run` do not apply
            settings = Settings(
                host="127.0.0.1", port=0, data_dir=Path(data_dir), ssh_port=endpoints["ssh_port"], log_level="WARNING",
                auth_modes=("none",), rate_limit_per_s=0, allowed_networks="127.0.0.0/8", vnf_networks="127.0.0.0/8",
                trust_packages=True,  # they are our own samples, and the demo must run on every kernel
                **alone,
            )  # fmt: skip
            async with single_node(settings) as node, GatewayClient(node.url) as client:
                say(f"kubevnfm is up: {node.url}")
                await demo.job(client, endpoints, samples)
                await _must_be_empty(endpoints)
    say("")
    say(f"All of it in {time.monotonic() - started:.1f} s, and the cloud is empty again. Next steps:")
    say("  make lab            the lab alone; its control API makes it slow, failing or wrong (deploy/lab/README.md)")
    say("  make run            kubevnfm for your own OpenStack (README.md, 'Your own infrastructure')")
    say("  make up             the six services on RabbitMQ and a MongoDB-protocol server")
    say("  deploy/samples/     the packages that were just used, with their request bodies")


async def _main_job(client: GatewayClient, endpoints: JsonObject, samples: Path) -> None:
    await register_openstack(client, endpoints)
    await upload(client, samples, "cluster", "cnf")

    say("\n3. Instantiate the cluster VNF")
    cluster = await client.create(request_of("cluster", "create"))
    await carry_out(client, cluster["id"], "instantiate", request_of("cluster", "instantiate"))
    connection = await show_cluster(client, cluster["id"])

    say("\n4. Deploy a CNF on it")
    cnf_id = await deploy_cnf(client, connection)

    say("\n5. Take all down: the CNF, then the cluster")
    for instance_id, name in ((cnf_id, "cnf"), (cluster["id"], "cluster")):
        await remove(client, instance_id, name)
    await show_vims_left(client)


MAIN: Final = Demo("a Kubernetes cluster as a VNF, its VIM, a CNF on it", _main_job)


async def register_openstack(client: GatewayClient, endpoints: JsonObject) -> None:
    """Register the lab's OpenStack, as the first part of a demo."""
    say("\n1. Register the OpenStack as the default VIM")
    vim, _ = await client.call("POST", "/v1.0/vims", {"vim": openstack_vim(endpoints)})
    say(f"   VIM {vim['vim']['name']} is {vim['vim']['status']}")


async def upload(client: GatewayClient, samples: Path, *names: str) -> None:
    """Upload sample packages, as the second part of a demo."""
    say("\n2. Upload the VNF packages")
    for name in names:
        package = await client.onboard(samples / f"{name}.zip")
        say(f"   {name}: {package['vnfProductName']} {package['vnfSoftwareVersion']}, VNFD {package['vnfdId']}")


async def show_cluster(client: GatewayClient, cluster_id: str) -> JsonObject:
    """Show the machines and the API of a cluster; return the entry of its VIM in ``vimConnectionInfo``."""
    shown, _ = await client.call("GET", f"/vnflcm/v2/vnf_instances/{cluster_id}")
    for vnfc in shown["instantiatedVnfInfo"]["vnfcResourceInfo"]:
        name = vnfc.get("metadata", {}).get("node_name", "no node of the cluster")
        say(f"   {vnfc['vduId']}: {name} on {vnfc['computeResource']['resourceId']}")
    key, connection = next(
        (key, one) for key, one in shown["vimConnectionInfo"].items() if one["vimType"] == "ETSINFV.KUBERNETES.V_1"
    )
    say(f"   Kubernetes answers at {connection['interfaceInfo']['endpoint']}, registered as VIM {key}")
    return dict(connection)


async def instantiate_on(client: GatewayClient, sample: str, connection: JsonObject) -> str:
    """Create and instantiate a VNF of objects on the VIM of an entry of ``vimConnectionInfo``; return the instance's id."""
    instance = await client.create(request_of(sample, "create"))
    wanted = request_of(sample, "instantiate")
    wanted["vimConnectionInfo"] = {"cluster": {"vimId": connection["vimId"], "vimType": connection["vimType"]}}
    await carry_out(client, instance["id"], "instantiate", wanted)
    return str(instance["id"])


async def deploy_cnf(client: GatewayClient, connection: JsonObject) -> str:
    """Deploy the sample CNF on a VIM and show its pods; return the instance's id."""
    cnf_id = await instantiate_on(client, "cnf", connection)
    shown, _ = await client.call("GET", f"/vnflcm/v2/vnf_instances/{cnf_id}")
    for vnfc in shown["instantiatedVnfInfo"]["vnfcResourceInfo"]:
        say(f"   {vnfc['vduId']}: pod {vnfc['id']} on node {vnfc['metadata'].get('node', '?')}")
    return cnf_id


async def show_vims_left(client: GatewayClient) -> None:
    """Show which VIMs are registered after the VNFs are gone."""
    vims, _ = await client.call("GET", "/v1.0/vims")
    say(f"   VIMs left: {', '.join(one['name'] for one in vims['vims'])}")


async def remove(client: GatewayClient, instance_id: str, sample: str) -> None:
    """Terminate and delete a VNF instance."""
    await carry_out(client, instance_id, "terminate", request_of(sample, "terminate"))
    await client.call("DELETE", f"/vnflcm/v2/vnf_instances/{instance_id}")


async def carry_out(client: GatewayClient, instance_id: str, task: str, request: JsonObject) -> None:
    """Carry an operation out and show its progress. Raises DemoFailed."""
    operation_id = await client.start(instance_id, task, request)
    view = await asyncio.to_thread(_followed, client.url, operation_id)
    if view["state"] != "COMPLETED":
        raise DemoFailed(f"{task} ended {view['state']}: {view.get('error', {}).get('detail', '')}")


def _followed(url: str, operation_id: str) -> JsonObject:
    """Show an operation as ``kubevnfm wait`` does until it rests; return its view. Raises DemoFailed."""

    def refuse(trouble: str) -> None:
        # The gateway is in this process: it does not come back.
        raise DemoFailed(trouble)

    gateway = Gateway(url, Authentication(Context(url), {}))
    gateway.give_up_after(_LONGEST_S)
    try:
        return follow(gateway, operation_id, Lines(say, refuse)).view
    except Fault as fault:
        raise DemoFailed(str(fault)) from fault


async def inventory(endpoints: JsonObject) -> JsonObject:
    """Return what exists in the lab, by kind."""
    async with GatewayClient(endpoints["control_url"].removesuffix("/lab/v1")) as control:
        found, _ = await control.call("GET", "/lab/v1/inventory")
    return dict(found)


async def _must_be_empty(endpoints: JsonObject) -> None:
    left = await inventory(endpoints)
    kinds = {kind: len(found) for kind, found in left.items() if found}
    if kinds:
        raise DemoFailed(f"the cloud is not empty: {kinds}")


def openstack_vim(endpoints: JsonObject) -> JsonObject:
    return {
        "name": "lab",
        "type": "openstack",
        "is_default": True,
        "auth_url": endpoints["auth_url"],
        "vim_project": {"name": endpoints["project"], "project_domain_name": endpoints["domain"]},
        "auth_cred": {
            "username": endpoints["username"],
            "password": endpoints["password"],
            "user_domain_name": endpoints["domain"],
            "cert_verify": "False",
        },
    }


def request_of(sample: str, name: str) -> JsonObject:
    """Return a request body of a sample package."""
    folder = Path(__file__).parents[2] / "samples"
    return dict(json.loads((folder / sample / "requests" / f"{name}.json").read_text()))
