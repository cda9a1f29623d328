"""The figures of ordered packages, on a given cluster: one bring-up beside the API server's own times, and many at once.

The package has 24 objects in 12 priorities, each awaited until it exists, so almost all of the time is the manager's and the API
server's. Variables are read without a cluster.
"""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import tempfile
import time
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import aiohttp
from figures import Figure
from kubevnfm.client import GatewayClient
from kubevnfm_csar.artifact_order import ArtifactOrder, OrderedArtifact
from kubevnfm_infra_k8s.domain.reading.manifests import read_ordered
from load import Load
from packages.package_variants import variant
from real.real_kubernetes import RealKubernetes
from targets import single

_API: Final = "/multicloud/v1"
_PRIORITIES: Final = 12
_ROUNDS: Final = 10
_AT_ONCE, _NAMESPACES = 100, 20
_OWN_MS, _RATIO, _PER_MINUTE, _RENDERED_MS = 20.0, 1.3, 300.0, 250.0
"""The goals of MC-142."""
_OBJECTS, _VARIABLES = 1000, 50
_MANY, _DRY_RUNS, _DRY_RUN_S = 500, 5, 3.0
"""Objects of one VNF that is changed without a change, and the goal of MC-033."""


def _map(name: str) -> str:
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: '{name}-${{part}}'}}\ndata: {{a: '${{text}}', b: '{'b' * 200}'}}\n"


def _service(name: str) -> str:
    return (
        f"apiVersion: v1\nkind: Service\nmetadata: {{name: '{name}-${{part}}'}}\n"
        "spec: {clusterIP: None, selector: {app: a}, ports: [{port: 80}]}\n"
    )


def _package(folder: Path, *, pairs: int = 1, priorities: int = _PRIORITIES) -> bytes:
    """Return a package with so many pairs of objects in each priority."""
    files, entries = {}, []
    for number in range(priorities):
        file = f"step-{number:02}.yaml"
        files[f"Files/kubernetes/{file}"] = "---\n".join(
            f"{_map(f'm{number}-{pair}')}---\n{_service(f's{number}-{pair}')}" for pair in range(pairs)
        )
        entries.append({"file": file, "priority": number + 1, "wait": "exists"})
    files["Files/kubernetes/artifact-order.yaml"] = json.dumps({"artifacts": entries})
    return variant(folder, vnfd_id=str(uuid4()), files=files)


class _ApiServer:
    """The given cluster, asked without a manager."""

    def __init__(self, given: RealKubernetes) -> None:
        self._given = given

    async def __aenter__(self) -> _ApiServer:
        trust = ssl.create_default_context(cadata=self._given.ca_pem)
        headers = {"Authorization": f"Bearer {self._given.token}", "Content-Type": "application/apply-patch+yaml"}
        connector = aiohttp.TCPConnector(ssl=trust)
        self._session = aiohttp.ClientSession(self._given.endpoint, headers=headers, connector=connector)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def call(self, method: str, path: str, body: Any = None) -> None:
        query = {"fieldManager": "bench", "force": "true"} if method == "PATCH" else {}
        async with self._session.request(method, path, params=query, json=body) as response:
            if response.status >= 400:
                raise RuntimeError(f"{method} {path}: {response.status} {await response.text()}")

    async def own_time_s(self) -> float:
        """Return the seconds that a server-side apply and a read of each object take, one priority after the other."""
        name = f"bench-{uuid4().hex[:8]}"
        await self.call("PATCH", f"/api/v1/namespaces/{name}", _body("Namespace", name))
        started = time.perf_counter()
        for number in range(_PRIORITIES):
            bodies = [
                (
                    f"/api/v1/namespaces/{name}/configmaps/m{number}",
                    _body("ConfigMap", f"m{number}", data={"a": "b" * 200}),
                ),
                (
                    f"/api/v1/namespaces/{name}/services/s{number}",
                    _body("Service", f"s{number}", spec={"clusterIP": "None", "ports": [{"port": 80}]}),
                ),
            ]
            await asyncio.gather(*(self.call("PATCH", path, body) for path, body in bodies))
            await asyncio.gather(*(self.call("GET", path) for path, _ in bodies))
        taken = time.perf_counter() - started
        await self.call("DELETE", f"/api/v1/namespaces/{name}")
        return taken


def _body(kind: str, name: str, **members: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, **members}


async def bring_ups(given: RealKubernetes) -> list[Figure]:
    """Measure one bring-up after the other, each beside the API server alone, a hundred at once, and dry runs of many objects."""
    with tempfile.TemporaryDirectory(prefix="kubevnfm-bench-") as made:
        folder = Path(made)
        package, large = folder / "ordered.zip", folder / "large.zip"
        package.write_bytes(_package(folder))
        large.write_bytes(_package(folder, pairs=_MANY // 2, priorities=1))
        async with (
            single({"ssh_port": 22}, folder / "data") as target,
            Load(target.url) as load,
            _ApiServer(given) as alone,
        ):
            async with GatewayClient(target.url) as client:
                csar_id, large_id = [str((await client.onboard(each))["id"]) for each in (package, large)]
            region = await _region(load, given)
            vnfs = _Vnfs(load, region, csar_id)
            return [
                *await _one_by_one(vnfs, alone),
                await _at_once(vnfs),
                *await _dry_runs(load, _Vnfs(load, region, large_id)),
            ]


async def _one_by_one(vnfs: _Vnfs, alone: _ApiServer) -> list[Figure]:
    ours, theirs = [], []
    for _ in range(_ROUNDS):
        theirs.append(await alone.own_time_s())
        started = time.perf_counter()
        vnf = await vnfs.bring_up(f"bench-{uuid4().hex[:8]}", "one")
        ours.append(time.perf_counter() - started)
        await vnfs.bring_down(vnf)
    own = [(mine - their) / _PRIORITIES * 1000 for mine, their in zip(ours, theirs, strict=True)]
    ratios = [mine / their for mine, their in zip(ours, theirs, strict=True)]
    title = f"{2 * _PRIORITIES} objects in {_PRIORITIES} priorities"
    return [
        Figure(f"{title}: the API server alone", "ms", [each * 1000 for each in theirs]),
        Figure(f"{title}: bring-up", "ms", [each * 1000 for each in ours]),
        Figure("the second divided by the first", "", ratios, _RATIO),
        Figure("the manager's own time for a priority", "ms", own, _OWN_MS),
    ]


async def _at_once(vnfs: _Vnfs) -> Figure:
    place = f"bench-{uuid4().hex[:8]}"
    wanted = [(f"{place}-{number % _NAMESPACES}", f"part{number}") for number in range(_AT_ONCE)]
    started = time.perf_counter()
    made = await asyncio.gather(*(vnfs.bring_up(namespace, part) for namespace, part in wanted))
    per_minute = _AT_ONCE / (time.perf_counter() - started) * 60
    await asyncio.gather(*map(vnfs.bring_down, made))
    return Figure(f"{_AT_ONCE} of them at once in {_NAMESPACES} namespaces", "/min", [per_minute], _PER_MINUTE, "more")


async def _dry_runs(load: Load, vnfs: _Vnfs) -> list[Figure]:
    """Bring many objects up, and have the API server say what another value would change in half of them."""
    started = time.perf_counter()
    vnf = await vnfs.bring_up(f"bench-{uuid4().hex[:8]}", "many")
    made = time.perf_counter() - started
    taken: dict[str, list[float]] = {"diff": [], "render": []}
    for mode, seconds in taken.items():
        for _ in range(_DRY_RUNS):
            started = time.perf_counter()
            path, change = f"{_API}/vnf_instances/{vnf}?dry_run={mode}", {"values": {"text": "changed"}}
            found, _ = await load.call("PATCH", path, change, {"Content-Type": "application/merge-patch+json"})
            seconds.append(time.perf_counter() - started)
            # The implied Namespace is one more.
            if len(found["objects"]) < _MANY or (mode == "diff" and found["summary"].get("update") != _MANY // 2):
                raise RuntimeError(f"a dry run of {_MANY} objects found {found.get('summary')}")
    await vnfs.bring_down(vnf)
    return [
        Figure(f"{_MANY} objects: bring-up", "s", [made]),
        Figure(f"{_MANY} objects: dry run with differences", "s", taken["diff"], _DRY_RUN_S),
        Figure(f"{_MANY} objects: dry run that renders", "s", taken["render"]),
    ]


class _Vnfs:
    """VNFs of one package in one region."""

    def __init__(self, load: Load, region: str, csar_id: str) -> None:
        self._load, self._region, self._csar_id = load, region, csar_id

    async def bring_up(self, namespace: str, part: str) -> str:
        """Return the id of a VNF once it is ready."""
        body = {
            "cloud_region_id": self._region, "csar_id": self._csar_id, "namespace": namespace,
            "values": {"part": part, "text": part},
        }  # fmt: skip
        made, _ = await self._load.call("POST", f"{_API}/vnf_instances", body, {"Prefer": "wait=120"})
        if made["status"] != "READY":
            raise RuntimeError(f"a bring-up ended {made['status']}: {made}")
        return str(made["vnf_id"])

    async def bring_down(self, vnf_id: str) -> None:
        """Return when nothing of the VNF is left."""
        path = f"{_API}/vnf_instances/{vnf_id}"
        going, _ = await self._load.call("DELETE", path, None, {"Prefer": "wait=120"})
        if going is not None:
            await self._load.await_gone(path)


async def _region(load: Load, given: RealKubernetes) -> str:
    ca = base64.b64encode(given.ca_pem.encode()).decode()
    config = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": given.endpoint, "certificate-authority-data": ca}}],
        "users": [{"name": "u", "user": {"token": given.token}}],
    }
    kubeconfig = base64.b64encode(json.dumps(config).encode()).decode()
    body = {"cloud_owner": "bench", "cloud_region": "given", "kubeconfig": kubeconfig}
    made, _ = await load.call("POST", f"{_API}/cloud-regions", body)
    return str(made["id"])


def rendering() -> Figure:
    """Measure how long the objects of a package take from text to what is applied, with their variables filled in."""
    files = [
        (
            f"part-{number}.yaml",
            "---\n".join(f(f"p{number}-{f.__name__.strip('_')}-{n}") for n in range(5) for f in (_map, _service)),
        )
        for number in range(_OBJECTS // 10)
    ]
    texts = [(name, _with_variables(text, number)) for number, (name, text) in enumerate(files)]
    order = ArtifactOrder(
        name="artifact-order.yaml",
        values={},
        foreign_namespaces=frozenset(),
        artifacts=[OrderedArtifact(name) for name, _ in texts],
    )
    values = {f"v{number}": f"value-{number}" for number in range(_VARIABLES)} | {"part": "x", "text": "x"}
    taken = []
    for _ in range(_ROUNDS):
        started = time.perf_counter()
        found = read_ordered(order, texts, values, namespace="bench")
        taken.append((time.perf_counter() - started) * 1000)
        assert len(found) == _OBJECTS
    return Figure(f"{_OBJECTS} objects with {_VARIABLES} variables, rendered", "ms", taken, _RENDERED_MS)


def _with_variables(text: str, number: int) -> str:
    return text.replace("b" * 200, f"${{v{number % _VARIABLES}}} and $v{(number + 7) % _VARIABLES}")
