"""Many workload clusters of Cluster API that are built at once: what infra-k8s holds while all of them wait (capi.md CR-058)."""

from __future__ import annotations

import asyncio
import re
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import aiohttp
from figures import Figure
from kubevnfm.client import GatewayClient
from load import INSTANCES, Load, body
from packages.package_variants import variant
from targets import Target

COUNT: Final = 100
_SERVICE: Final = "infra-k8s"
_MEMORY_MIB: Final = 150.0
_WATCHED_S: Final = 60.0
_BEGINNING_S: Final = 15.0
_TOGETHER: Final = 10
"""Terminations at once."""
_PLACE: Final = "Files/kubernetes/place.yaml"
_NAMESPACE: Final = "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: ${PLACE}\n"
_CLUSTER_KINDS: Final = re.compile(
    r"watch (clusters|machines|machinedeployments|machinepools|kubeadmcontrolplanes|openstackclusters)$"
)
_GRACEFUL: Final = {"terminationType": "GRACEFUL", "gracefulTerminationTimeout": 0}


async def waiting(target: Target, control_url: str, samples: Path, count: int = COUNT) -> list[Figure]:
    """Instantiate ``count`` workload clusters whose machines do not boot; then let them boot, and terminate all."""
    async with aiohttp.ClientSession(f"{control_url.rstrip('/')}/") as lab, Load(target.url) as load:
        async with GatewayClient(target.url) as client:
            management = await _management(client, load, samples)
            vnfd_id = str(uuid4())
            package = variant(_folder(), "capi-workload", vnfd_id=vnfd_id, files={_PLACE: _NAMESPACE})
            archive = _folder() / "workload.zip"
            archive.write_bytes(package)
            await client.onboard(archive)
        instances = [await load.create(vnfd_id) for _ in range(count)]
        wanted = {one: _request(f"place-{number}", management) for number, one in enumerate(instances)}
        async with lab.post("faults", json={"part": "capi", "verb": "boot *", "effect": "hang"}) as answer:
            answer.raise_for_status()
        begun = time.perf_counter()
        operations = asyncio.create_task(load.operate_each(wanted, "instantiate"))
        figures = await _while_waiting(target, lab, operations, count)
        async with lab.delete("faults") as answer:
            answer.raise_for_status()
        released = time.perf_counter()
        await operations
        built_s = time.perf_counter() - released
        for first in range(0, count, _TOGETHER):
            await load.operate(instances[first : first + _TOGETHER], "terminate", _GRACEFUL)
    return [
        *figures,
        Figure(
            f"{count} workload clusters: all are applied after", "s", [released - begun - _WATCHED_S - _BEGINNING_S]
        ),
        Figure(f"{count} workload clusters: machines boot to all registered as VIMs", "s", [built_s]),
        Figure(f"{count} workload clusters: memory of {_SERVICE} at the end", "MiB", [target.memory_mib()[_SERVICE]]),
    ]


async def _while_waiting(
    target: Target, lab: aiohttp.ClientSession, operations: asyncio.Task[float], count: int
) -> list[Figure]:
    """Measure a minute in which every cluster waits for its machines."""
    while await _clusters(lab) < count:
        if operations.done():
            raise RuntimeError(f"the operations ended early: {operations.exception()}")
        await asyncio.sleep(1.0)
    # The last of them begin to wait.
    await asyncio.sleep(_BEGINNING_S)
    async with lab.delete("calls") as answer:
        answer.raise_for_status()
    cpu_before, memory = target.processor_s()[_SERVICE], []
    for _ in range(int(_WATCHED_S)):
        memory.append(target.memory_mib()[_SERVICE])
        await asyncio.sleep(1.0)
    cpu = target.processor_s()[_SERVICE] - cpu_before
    calls: Counter[str] = Counter()
    async with lab.get("calls") as answer:
        for call in await answer.json():
            if call["part"] == "kubernetes":
                calls[call["verb"]] += call["count"]
    watches = [number for verb, number in calls.items() if _CLUSTER_KINDS.match(verb)]
    return [
        Figure(f"{count} workload clusters wait: memory of {_SERVICE}", "MiB", memory, _MEMORY_MIB),
        Figure(f"{count} workload clusters wait: processor of {_SERVICE}", "%", [cpu / _WATCHED_S * 100]),
        Figure(f"{count} workload clusters wait: watches begun for a kind, in a minute", "", watches or [0.0], 1),
        Figure(f"{count} workload clusters wait: requests to the API server", "/min", [sum(calls.values())]),
    ]


async def _clusters(lab: aiohttp.ClientSession) -> int:
    """Return how many Cluster objects there are."""
    async with lab.get("inventory") as answer:
        inventory = await answer.json()
    return sum(name.startswith("Cluster/") for cluster in inventory["clusters"] for name in cluster["objects"])


async def _management(client: GatewayClient, load: Load, samples: Path) -> Mapping[str, Any]:
    """Return the entry in ``vimConnectionInfo`` of a new management cluster."""
    found = {name: (await client.onboard(samples / f"{name}.zip"))["vnfdId"] for name in ("cluster", "capi-management")}
    machines = await load.create(found["cluster"])
    await load.operate([machines], "instantiate", body("cluster", "instantiate"))
    shown, _ = await load.call("GET", f"{INSTANCES}/{machines}")
    connections = shown["vimConnectionInfo"].values()
    vim = next(one for one in connections if "kubernetes" in one["vimType"].lower())
    providers = await load.create(found["capi-management"])
    await load.operate([providers], "instantiate", _on_vim(body("capi-management", "instantiate"), vim["vimId"]))
    return dict(vim)


def _request(place: str, management: Mapping[str, Any]) -> dict[str, Any]:
    request = _on_vim(body("capi-workload", "instantiate"), management["vimId"])
    parameters = request["additionalParams"]
    parameters["namespace"] = place
    parameters["lcm-kubernetes-def-files"].insert(0, _PLACE)
    parameters["capi"]["variables"] = {"PLACE": place}
    return request


def _on_vim(request: dict[str, Any], vim_id: str) -> dict[str, Any]:
    for connection in request["vimConnectionInfo"].values():
        connection["vimId"] = vim_id
    return request


def _folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="kubevnfm-bench-"))
