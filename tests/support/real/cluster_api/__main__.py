"""Starts and ends the controllers of Cluster API beside the API server that environment variables name.

``python -m real.cluster_api up|check|down|record NAMESPACE VERSION``; docs/real-cluster-api.md. Keys, logs and the processes' ids are in
``.run/cluster-api``.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import yaml
from patience import until
from servers.certificates import Authority
from servers.ports import free_port
from servers.processes import PROJECT, Process, ProcessId, await_answer

from real.cluster_api.manifests import Object, Provider, Webhooks
from real.cluster_api.presence import ABSENT, is_there
from real.cluster_api.recording import recorded
from real.real_cluster import GIVEN, RealCluster

_FOLDER: Final = PROJECT / ".run" / "cluster-api"
_STATE: Final = _FOLDER / "state.json"
_BUILT: Final = PROJECT / ".tools" / "cluster-api"
_SOURCE: Final = _BUILT / "source"
_PROVIDERS: Final = (
    Provider("core", _SOURCE / "core" / "core" / "config"),
    Provider("bootstrap", _SOURCE / "core" / "bootstrap" / "kubeadm" / "config"),
    Provider("control-plane", _SOURCE / "core" / "controlplane" / "kubeadm" / "config"),
    Provider("infrastructure", _SOURCE / "test" / "infrastructure" / "docker" / "config"),
)
_VALID: Final = timedelta(days=365)
_DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_ADMISSION: Final = "/apis/admissionregistration.k8s.io/v1"
_CLUSTERS: Final = "/apis/cluster.x-k8s.io/v1beta2/clusters"
_LABEL: Final = "cluster.x-k8s.io/provider"


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("up", help="build what is missing, and start what does not run")
    commands.add_parser("check", help="fail if the definitions or controllers are not there")
    commands.add_parser("down", help="delete all Clusters and definitions, and end the controllers")
    record = commands.add_parser("record", help="print the objects of a workload cluster, one a line")
    record.add_argument("namespace")
    record.add_argument("version", choices=("v1beta1", "v1beta2"))
    arguments = parser.parse_args()
    if GIVEN is None:
        raise SystemExit("KUBEVNFM_KUBERNETES_ENDPOINT expected; docs/real-kubernetes.md names all variables")
    if arguments.command == "record":
        asyncio.run(show(arguments.namespace, arguments.version))
    else:
        asyncio.run({"up": up, "check": check, "down": down}[arguments.command]())


async def up() -> None:
    """Build what is missing, install the definitions, and start the controllers; running ones stay."""
    if len(_running()) == len(_PROVIDERS):
        say("running already")
        return
    for left in _running().values():
        left.end()
    subprocess.run([Path(__file__).parent / "build.sh", _BUILT], check=True)
    _FOLDER.mkdir(parents=True, exist_ok=True, mode=0o700)
    authority = Authority(_FOLDER, name="webhooks-ca", valid=_VALID)
    authority.issue("tls")
    ca = base64.b64encode(authority.file.read_bytes()).decode()
    kubeconfig = _kubeconfig()
    webhooks = {each.name: Webhooks(free_port(), ca) for each in _PROVIDERS}
    health = {each.name: free_port() for each in _PROVIDERS}
    async with RealCluster() as cluster:
        for provider in _PROVIDERS:
            for each in provider.definitions(webhooks[provider.name]):
                await _apply(cluster, _DEFINITIONS, each)
        for path in await _paths(cluster, _DEFINITIONS):
            await until(lambda path=path: _is_established(cluster, path), timeout_s=60)  # type: ignore[misc]
        processes = [
            _manager(each, kubeconfig, webhook_port=webhooks[each.name].port, health_port=health[each.name])
            for each in _PROVIDERS
        ]
        for process in processes:
            process.start()
        ids = {each.name: ProcessId.find(each.pid) for each in processes}
        _STATE.write_text(json.dumps({name: vars(each) for name, each in ids.items() if each is not None}))
        for process in processes:
            await_answer(f"http://127.0.0.1:{health[process.name]}/readyz", process)
        for provider in _PROVIDERS:
            for each in provider.admission(webhooks[provider.name]):
                await _apply(cluster, f"{_ADMISSION}/{each['kind'].lower()}s", each)
    say(f"running; logs are in {_FOLDER}")


async def check() -> None:
    """Exit with a message if the definitions are not served, or a controller does not run."""
    async with RealCluster() as cluster:
        served = await is_there(cluster)
    missing = [each.name for each in _PROVIDERS if each.name not in _running()]
    if not served or missing:
        raise SystemExit(ABSENT if not served else f"not running: {', '.join(missing)}; `make cluster-api` starts them")


async def down() -> None:
    """Delete what Clusters there are, end the controllers, and delete the definitions, also those of objects that are stuck."""
    async with RealCluster() as cluster:
        for each in (await cluster.get(_CLUSTERS) or {}).get("items", []):
            metadata = each["metadata"]
            name = f"{metadata['namespace']}/clusters/{metadata['name']}"
            try:
                await cluster.remove(f"/apis/cluster.x-k8s.io/v1beta2/namespaces/{name}")
            except TimeoutError:
                say(f"{name} is not gone after two minutes")
        # Controllers make Machines again, and their webhooks refuse changes.
        for name, process in _running().items():
            process.end()
            say(f"{name} ended")
        _STATE.unlink(missing_ok=True)
        for kind in ("mutatingwebhookconfigurations", "validatingwebhookconfigurations"):
            for path in await _paths(cluster, f"{_ADMISSION}/{kind}"):
                await cluster.remove(path)
        for path in await _paths(cluster, _DEFINITIONS):
            await _release(cluster, path)
            await cluster.remove(path)


async def show(namespace: str, version: str) -> None:
    """Print the objects of a workload cluster as JSON lines."""
    async with RealCluster() as cluster:
        for each in await recorded(cluster, namespace, version):
            say(json.dumps(each, sort_keys=True))


def _manager(provider: Provider, kubeconfig: Path, *, webhook_port: int, health_port: int) -> Process:
    command = [
        str(_BUILT / "bin" / provider.name),
        f"--kubeconfig={kubeconfig}",
        "--feature-gates=ClusterTopology=true,MachinePool=true",
        "--diagnostics-address=0",
        f"--health-addr=127.0.0.1:{health_port}",
        f"--webhook-port={webhook_port}",
        f"--webhook-cert-dir={_FOLDER}",
    ]
    # The infrastructure provider serves the API servers of its clusters in memory at this address.
    environment = {"POD_IP": "127.0.0.1", "POD_NAMESPACE": "default"}
    return Process(provider.name, command, log=_FOLDER / f"{provider.name}.log", environment=environment)


def _kubeconfig() -> Path:
    assert GIVEN is not None
    ca = base64.b64encode(GIVEN.ca_pem.encode()).decode()
    text: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "given",
        "clusters": [{"name": "given", "cluster": {"server": GIVEN.endpoint, "certificate-authority-data": ca}}],
        "users": [{"name": "given", "user": {"token": GIVEN.token}}],
        "contexts": [{"name": "given", "context": {"cluster": "given", "user": "given"}}],
    }
    path = _FOLDER / "kubeconfig"
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        yaml.safe_dump(text, file)
    return path


async def _apply(cluster: RealCluster, collection: str, body: Object) -> None:
    path = f"{collection}/{body['metadata']['name']}?fieldManager=cluster-api-bed&force=true"
    status, answer = await cluster.call("PATCH", path, body, kind="application/apply-patch+yaml")
    assert status in {200, 201}, answer


async def _paths(cluster: RealCluster, collection: str) -> list[str]:
    """Return the paths of the providers' objects in a collection."""
    found = await cluster.get(f"{collection}?labelSelector={_LABEL}") or {}
    return [f"{collection}/{each['metadata']['name']}" for each in found.get("items", [])]


async def _release(cluster: RealCluster, definition: str) -> None:
    """Remove the finalizers of the objects of a kind: those that lost their Cluster or their machines are held for ever."""
    spec = (await cluster.get(definition) or {})["spec"]
    # Objects are stored in this version, so that no conversion webhook is asked.
    version = next(each["name"] for each in spec["versions"] if each["storage"])
    base, plural = f"/apis/{spec['group']}/{version}", spec["names"]["plural"]
    for each in (await cluster.get(f"{base}/{plural}") or {}).get("items", []):
        metadata = each["metadata"]
        if metadata.get("finalizers"):
            place = f"namespaces/{metadata['namespace']}/" if "namespace" in metadata else ""
            body = {"metadata": {"finalizers": None}}
            await cluster.change(f"{base}/{place}{plural}/{metadata['name']}", body)


async def _is_established(cluster: RealCluster, path: str) -> bool | None:
    found: Mapping[str, Any] = await cluster.get(path) or {}
    conditions = found.get("status", {}).get("conditions") or []
    return ("Established", "True") in [(each["type"], each["status"]) for each in conditions] or None


def _running() -> dict[str, ProcessId]:
    recorded = json.loads(_STATE.read_text()) if _STATE.exists() else {}
    found = {name: ProcessId(**facts) for name, facts in recorded.items()}
    return {name: process for name, process in found.items() if process.is_alive}


def say(line: str) -> None:
    """Print a line on the terminal."""
    sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    main()
