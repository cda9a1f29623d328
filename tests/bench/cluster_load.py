"""The figures of clusters: each call of kubeadm takes a fixed simulated time, so that what is not done at once shows."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any, Final

import yaml
from figures import Figure
from kubevnfm.client import GatewayClient
from kubevnfm_csar.pack import pack
from load import INSTANCES, SAMPLES, Load, body
from targets import Target

_MOST_WORKERS: Final = 60
_WORKERS: Final = (1, 10, 50)
_FORCEFUL: Final = {"terminationType": "FORCEFUL"}


async def clusters(target: Target, seconds: float) -> list[Figure]:
    """Install clusters with one and with three masters; scale out by 1 and by 20 workers; heal 1 and 5 of them."""
    with tempfile.TemporaryDirectory() as folder:
        package = _wide_cluster(Path(folder))
        async with GatewayClient(target.url) as client, Load(target.url) as load:
            vnfd_id = (await client.onboard(package))["vnfdId"]
            figures = await _installs(load, vnfd_id, seconds)
            return figures + await _changes(load, vnfd_id)


async def _installs(load: Load, vnfd_id: str, seconds: float) -> list[Figure]:
    figures: list[Figure] = []
    for request, masters, workers, at_most in (
        ("instantiate", 1, 1, None),
        ("instantiate", 1, 10, None),
        ("instantiate", 1, 50, 1.3),
        ("instantiate_complex", 3, 50, 1.5),
    ):
        instance = await load.create(vnfd_id)
        taken = await load.operate([instance], "instantiate", _request(request, workers))
        name = f"install a cluster of {masters} + {workers} nodes ({seconds:g} s of kubeadm each)"
        figures.append(Figure(name, "s", [taken], figures[0].value * at_most if at_most else None))
        await load.operate([instance], "terminate", _FORCEFUL)
    return figures


async def _changes(load: Load, vnfd_id: str) -> list[Figure]:
    instance = await load.create(vnfd_id)
    await load.operate([instance], "instantiate", _request("instantiate", 1))
    figures: list[Figure] = []
    for steps in (1, 20):
        scale = {"type": "SCALE_OUT", "aspectId": "worker_instance", "numberOfSteps": steps}
        taken = await load.operate([instance], "scale", scale)
        limit = figures[0].value * 1.3 if steps > 1 else None
        figures.append(Figure(f"scale out by {steps}", "s", [taken], limit))
    alone: float | None = None
    for count in (1, 5):
        shown, _ = await load.call("GET", f"{INSTANCES}/{instance}")
        vnfcs = [one["id"] for one in shown["instantiatedVnfInfo"]["vnfcInfo"] if one["vduId"] == "workerNode"]
        taken = await load.operate([instance], "heal", {"vnfcInstanceId": vnfcs[:count]})
        figures.append(Figure(f"heal of {count} of 22 workers", "s", [taken], alone * 1.3 if alone else None))
        alone = taken
    await load.operate([instance], "terminate", _FORCEFUL)
    return figures


def _request(name: str, workers: int) -> dict[str, Any]:
    request = body("cluster", name)
    request["instantiationLevelId"] = f"workers_{workers}"
    request["additionalParams"]["k8s_cluster_installation_param"]["x_max_parallel_nodes"] = _MOST_WORKERS + 3
    return request


def _wide_cluster(folder: Path) -> Path:
    """Return the cluster sample, packed with more workers and with levels of `_WORKERS`."""
    source = folder / "cluster"
    shutil.copytree(SAMPLES / "cluster", source)
    for flavour in (source / "Definitions").glob("*_df_*.yaml"):
        document = yaml.safe_load(flavour.read_text())
        _widen(document["topology_template"])
        flavour.write_text(yaml.safe_dump(document, sort_keys=False))
    for hot in (source / "BaseHOT").glob("*/cluster_hot.yaml"):
        template = yaml.safe_load(hot.read_text())
        template["resources"]["worker_instance"]["properties"]["max_size"] = _MOST_WORKERS
        hot.write_text(yaml.safe_dump(template, sort_keys=False))
    archive = folder / "wide.zip"
    pack(source, archive)
    return archive


def _widen(topology: dict[str, Any]) -> None:
    topology["node_templates"]["workerNode"]["properties"]["vdu_profile"]["max_number_of_instances"] = _MOST_WORKERS
    for policy in (policy for entry in topology["policies"] for policy in entry.values()):
        properties = policy["properties"]
        if policy["type"] == "tosca.policies.nfv.ScalingAspects":
            properties["aspects"]["worker_instance"]["max_scale_level"] = _MOST_WORKERS - 1
        elif policy["type"] == "tosca.policies.nfv.InstantiationLevels":
            smallest = properties["levels"]["smallest"]
            for workers in _WORKERS:
                scale = {**smallest["scale_info"], "worker_instance": {"scale_level": workers - 1}}
                properties["levels"][f"workers_{workers}"] = {**smallest, "scale_info": scale}
        elif policy["type"] == "tosca.policies.nfv.VduInstantiationLevels":
            is_worker = policy["targets"] == ["workerNode"]
            for workers in _WORKERS:
                level = {"number_of_instances": workers} if is_worker else properties["levels"]["smallest"]
                properties["levels"][f"workers_{workers}"] = dict(level)
