"""A second real control plane: etcd, kube-apiserver and kube-controller-manager of `PATH`, as processes of the tests.

Nothing of it is shared with the given cluster (`RealCluster`). It has no kubelet and no scheduler: `Kubelet` plays both.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import shutil
import signal
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import aiohttp
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from servers.certificates import Authority
from servers.ports import free_port
from servers.processes import Process, await_answer

from real.real_cluster import Body, RealCluster
from real.real_kubernetes import RealKubernetes

PROGRAMS: Final = ("etcd", "kube-apiserver", "kube-controller-manager")
NODE: Final = "node-1"
_CONTROLLERS: Final = (
    "deployment,replicaset,job,namespace,serviceaccount,serviceaccount-token,root-ca-cert-publisher,garbagecollector"
)


def missing_programs() -> list[str]:
    """Return the programs of a control plane that `PATH` lacks."""
    return [each for each in PROGRAMS if shutil.which(each) is None]


class OwnControlPlane:
    """The processes, and what an administrator connects with. A stop and a start keep its objects."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        authority = Authority(folder)
        self._ca = authority.file
        self._pair = authority.issue("kube-apiserver")
        self._signer = folder / "accounts.key"
        self._write_signer()
        self._store_url = f"http://127.0.0.1:{free_port()}"
        self._port = free_port()
        token = secrets.token_hex(16)
        (folder / "tokens.csv").write_text(f"{token},admin,admin,system:masters\n")
        self.access = RealKubernetes(f"https://127.0.0.1:{self._port}", token, self._ca.read_text())
        self._etcd = self._process("etcd", self._of_etcd())
        self._api = self._process("kube-apiserver", self._of_api(self._port))
        self._controllers = self._process("kube-controller-manager", self._of_controllers())
        self._is_up = False

    def start(self) -> None:
        """Start all processes; return when the API server is ready."""
        self._etcd.start()
        await_answer(f"{self._store_url}/health", self._etcd)
        self.start_api()
        self._controllers.start()

    def stop(self) -> None:
        """End all processes."""
        for each in (self._controllers, self._api, self._etcd):
            each.kill()

    def start_api(self) -> None:
        """Start the API server unless it runs; return when it is ready."""
        if not self._is_up:
            self._api.start()
            self._is_up = True
            self._await(self._api, self._port)

    def kill_api(self) -> None:
        """End the API server as a power cut does."""
        self._api.kill()
        self._is_up = False

    def hang_api(self) -> None:
        """Have the API server accept connections and answer nothing, until it is killed."""
        os.kill(self._api.pid, signal.SIGSTOP)

    @asynccontextmanager
    async def elsewhere(self) -> AsyncIterator[RealCluster]:
        """Yield the cluster by an API server at another address, which kubevnfm does not know."""
        port = free_port()
        other = self._process("kube-apiserver", self._of_api(port), log="other")
        await asyncio.to_thread(other.start)
        try:
            await asyncio.to_thread(self._await, other, port)
            access = RealKubernetes(f"https://127.0.0.1:{port}", self.access.token, self.access.ca_pem)
            async with RealCluster(access) as cluster:
                yield cluster
        finally:
            await asyncio.to_thread(other.kill)

    def _process(self, program: str, options: list[str], *, log: str = "") -> Process:
        path = shutil.which(program)
        assert path is not None, program
        file = self._folder / f"{log or program}.log"
        return Process(program, [path, *options], log=file, environment={})

    def _await(self, process: Process, port: int) -> None:
        context = ssl.create_default_context(cafile=str(self._ca))
        await_answer(f"https://127.0.0.1:{port}/readyz", process, context=context)

    def _of_etcd(self) -> list[str]:
        peers = f"http://127.0.0.1:{free_port()}"
        return [
            f"--data-dir={self._folder / 'etcd'}", "--unsafe-no-fsync=true", "--log-level=warn",
            f"--listen-client-urls={self._store_url}", f"--advertise-client-urls={self._store_url}",
            f"--listen-peer-urls={peers}", f"--initial-advertise-peer-urls={peers}", f"--initial-cluster=default={peers}",
        ]  # fmt: skip

    def _of_api(self, port: int) -> list[str]:
        return [
            f"--etcd-servers={self._store_url}", "--bind-address=127.0.0.1", f"--secure-port={port}",
            "--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none",
            f"--tls-cert-file={self._pair.certificate}", f"--tls-private-key-file={self._pair.key}",
            f"--token-auth-file={self._folder / 'tokens.csv'}", "--authorization-mode=RBAC",
            "--service-cluster-ip-range=10.97.0.0/16", "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={self._signer}", f"--service-account-signing-key-file={self._signer}",
        ]  # fmt: skip

    def _of_controllers(self) -> list[str]:
        file = self._folder / "controllers.kubeconfig"
        cluster = {"server": self.access.endpoint, "certificate-authority": str(self._ca)}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": {"token": self.access.token}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "c",
        }
        file.write_text(json.dumps(config))
        return [
            f"--kubeconfig={file}", f"--service-account-private-key-file={self._signer}", f"--root-ca-file={self._ca}",
            "--leader-elect=false", "--bind-address=127.0.0.1", f"--secure-port={free_port()}",
            f"--cert-dir={self._folder}", f"--controllers={_CONTROLLERS}",
        ]  # fmt: skip

    def _write_signer(self) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        form = serialization.PrivateFormat.TraditionalOpenSSL
        pem = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
        self._signer.write_bytes(pem)


@asynccontextmanager
async def kubelet(cluster: RealCluster) -> AsyncIterator[None]:
    """Place each pod of the cluster on one node, have it run at once, and let it go when it is deleted."""
    task = asyncio.create_task(_Kubelet(cluster).run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


class _Kubelet:
    """The scheduler and the one kubelet of a cluster. It outlives the API server."""

    _PAUSE_S: Final = 0.5
    """Between a watch that has broken and the next one."""

    def __init__(self, cluster: RealCluster) -> None:
        self._cluster = cluster
        self._addresses = 0

    async def run(self) -> None:
        while True:
            try:
                async for kind, pod in self._cluster.watched("/api/v1/pods"):
                    if kind in {"ADDED", "MODIFIED"}:
                        await self._attend(pod)
            except (aiohttp.ClientError, ConnectionError, TimeoutError):
                pass
            await asyncio.sleep(self._PAUSE_S)

    async def _attend(self, pod: Body) -> None:
        metadata, status = pod["metadata"], pod.get("status", {})
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
        if metadata.get("deletionTimestamp"):
            await self._cluster.call("DELETE", path, {"gracePeriodSeconds": 0})
        elif not pod["spec"].get("nodeName"):
            target = {"apiVersion": "v1", "kind": "Node", "name": NODE}
            await self._cluster.call(
                "POST", f"{path}/binding", {"metadata": {"name": metadata["name"]}, "target": target}
            )
        elif status.get("phase") == "Pending":
            await self._cluster.call(
                "PATCH", f"{path}/status", {"status": self._running(pod)}, kind="application/merge-patch+json"
            )

    def _running(self, pod: Body) -> dict[str, Any]:
        self._addresses += 1
        address = f"10.245.{self._addresses >> 8 & 255}.{self._addresses & 255}"
        at = "2026-01-01T00:00:00Z"
        containers = [
            {
                "name": each["name"],
                "image": each["image"],
                "imageID": each["image"],
                "ready": True,
                "restartCount": 0,
                "state": {"running": {"startedAt": at}},
            }
            for each in pod["spec"]["containers"]
        ]
        conditions = [
            {"type": each, "status": "True", "lastTransitionTime": at} for each in ("Ready", "ContainersReady")
        ]
        addresses = {"podIP": address, "podIPs": [{"ip": address}]}
        return {"phase": "Running", **addresses, "conditions": conditions, "containerStatuses": containers}
