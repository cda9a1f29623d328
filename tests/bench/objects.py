"""Many Kubernetes objects in one package, on a given cluster: kubevnfm beside ``kubectl apply --server-side``.

Both apply the same files, one after the other, in namespaces of their own, so that a busy machine slows both. The cluster and the
program ``kubectl`` are the user's: docs/real-kubernetes.md names the variables.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import yaml
from figures import Figure
from kubevnfm.client import GatewayClient
from load import Load, body
from packages.package_variants import variant
from real.real_kubernetes import RealKubernetes
from targets import single

ROUNDS_BY_COUNT = {50: 3, 500: 3, 2000: 1}
_GOAL = 1.0
_PROCESSOR_S = {500: 3.0}
"""The goal for the processor time of an instantiate, by the number of objects."""
_FILE = "Files/kubernetes/many.yaml"


def manifests(count: int, *, is_sorted: bool = False) -> str:
    """Return that many objects of the kinds that packages have many of, in YAML.

    Their kinds alternate, as in a package by component, unless they are sorted by kind.
    """
    made: list[dict[str, object]] = []
    for number in range(count // 5):
        name = f"part-{number}"
        made += [
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b" * 200}},
            {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": {"a": "b" * 200}},
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}},
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": name},
                "spec": {"selector": {"app": name}, "ports": [{"port": 80}]},
            },
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "Role",
                "metadata": {"name": name},
                "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}],
            },
        ]
    return yaml.safe_dump_all(sorted(made, key=lambda each: str(each["kind"])) if is_sorted else made, sort_keys=False)


@dataclass(frozen=True)
class Kubectl:
    """The program, logged in to the given cluster."""

    config: Path

    @classmethod
    def login(cls, given: RealKubernetes, folder: Path) -> Kubectl:
        """Write the kubeconfig."""
        ca = folder / "ca.crt"
        ca.write_text(given.ca_pem)
        config = folder / "kubeconfig"
        config.touch(mode=0o600)
        cluster = {"server": given.endpoint, "certificate-authority": str(ca)}
        context = {"cluster": "given", "user": "given"}
        config.write_text(
            yaml.safe_dump(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "current-context": "given",
                    "clusters": [{"name": "given", "cluster": cluster}],
                    "contexts": [{"name": "given", "context": context}],
                    "users": [{"name": "given", "user": {"token": given.token}}],
                }
            )
        )
        return cls(config)

    async def run(self, *arguments: str) -> float:
        """Return the seconds that a command takes; its failure ends the bench."""
        started = time.perf_counter()
        process = await asyncio.create_subprocess_exec(
            "kubectl", f"--kubeconfig={self.config}", *arguments, stdout=asyncio.subprocess.DEVNULL
        )
        if await process.wait():
            raise RuntimeError(f"kubectl {' '.join(arguments)} has failed")
        return time.perf_counter() - started

    @asynccontextmanager
    async def namespace(self) -> AsyncIterator[str]:
        """Yield a new namespace, which is deleted with all that is in it."""
        name = f"bench-{uuid4().hex[:8]}"
        await self.run("create", "namespace", name)
        try:
            yield name
        finally:
            await self.run("delete", "namespace", name)


async def objects(given: RealKubernetes) -> list[Figure]:
    """Measure sets of each size, interleaved and sorted."""
    return [
        figure
        for count in ROUNDS_BY_COUNT
        for is_sorted in (False, True)
        for figure in await _set(given, count, is_sorted=is_sorted)
    ]


async def _set(given: RealKubernetes, count: int, *, is_sorted: bool) -> list[Figure]:
    """Measure the same objects by kubectl and by an instantiate, in turn."""
    processor_s: list[float] = []
    by_kubectl: list[float] = []
    by_kubevnfm: list[float] = []
    terminated: list[float] = []
    with tempfile.TemporaryDirectory(prefix="kubevnfm-bench-") as made:
        folder = Path(made)
        kubectl = Kubectl.login(given, folder)
        file = folder / "many.yaml"
        file.write_text(manifests(count, is_sorted=is_sorted))
        package = folder / "many.zip"
        vnfd_id = str(uuid4())
        package.write_bytes(variant(folder, vnfd_id=vnfd_id, files={_FILE: file.read_text()}))
        async with single({"ssh_port": 22}, folder / "data") as target, Load(target.url) as load:
            async with GatewayClient(target.url) as client:
                await client.onboard(package)
            vim = await _registered(load, given)
            for _ in range(ROUNDS_BY_COUNT[count]):
                async with kubectl.namespace() as namespace:
                    by_kubectl.append(
                        await kubectl.run("apply", "--server-side", "--namespace", namespace, "-f", str(file))
                    )
                async with kubectl.namespace() as namespace:
                    parameters = {"lcm-kubernetes-def-files": [_FILE], "namespace": namespace}
                    connection = {"cluster": {"vimId": vim, "vimType": "ETSINFV.KUBERNETES.V_1"}}
                    wanted = {
                        **body("cnf", "instantiate"),
                        "additionalParams": parameters,
                        "vimConnectionInfo": connection,
                    }
                    instance = await load.create(vnfd_id)
                    before = sum(target.processor_s().values())
                    by_kubevnfm.append(await load.operate([instance], "instantiate", wanted))
                    processor_s.append(sum(target.processor_s().values()) - before)
                    terminated.append(await load.operate([instance], "terminate", {"terminationType": "FORCEFUL"}))
    what = f"{count} objects, {'sorted' if is_sorted else 'interleaved'}"
    ratios = [mine / theirs for mine, theirs in zip(by_kubevnfm, by_kubectl, strict=True)]
    return [
        Figure(f"kubectl apply --server-side, {what}", "s", by_kubectl),
        Figure(f"instantiate a package of {what}", "s", by_kubevnfm),
        Figure("the second divided by the first", "", ratios, _GOAL),
        Figure("processor time of the instantiate", "s", processor_s, _PROCESSOR_S.get(count)),
        Figure(f"terminate it ({what})", "s", terminated),
    ]


async def _registered(load: Load, given: RealKubernetes) -> str:
    wanted = {
        "name": "given",
        "type": "kubernetes",
        "auth_url": given.endpoint,
        "vim_project": {"name": "default"},
        "auth_cred": {"bearer_token": given.token, "ssl_ca_cert": given.ca_pem},
    }
    answer, _ = await load.call("POST", "/v1.0/vims", {"vim": wanted})
    return str(answer["vim"]["id"])


def is_possible() -> bool:
    """Return whether there is a kubectl to compare with."""
    return shutil.which("kubectl") is not None
