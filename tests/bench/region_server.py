"""Many API servers in one program, for the bench of many regions: each has its own port, certificate, token and objects.

python tests/bench/region_server.py REGIONS VNFS: prints one line of JSON (`Addresses`). Each region has VNFS VNFs, each with one
Deployment and one pod, and three nodes. The phase of a changed pod is the time of its change. `POST /change` and `POST /fault` at the
port of control begin changes and put a region into a state.
"""

from __future__ import annotations

import asyncio
import asyncio.sslproto
import datetime as dt
import ipaddress
import json
import logging
import re
import ssl
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

MEMBER_OF_SYSTEM: Final = 5
"""Each region with a number that this divides has a certificate of the CA that all programs of the machine trust."""
_NODES: Final = 3
_SLOW_S: Final = 3.0
_SAMPLE_KINDS: Final = 120
"""Kinds that a cluster serves beside those that are used: its own, and those of some operators."""
_VERBS: Final = ["create", "delete", "get", "list", "patch", "update", "watch"]
_JSON: Final = {"Content-Type": "application/json"}
_AGGREGATED: Final = {"Content-Type": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}


def pod(region: int, number: int, phase: str, version: int) -> dict[str, Any]:
    """Return a pod of the size that real ones have."""
    containers = [
        {"name": "main", "image": "nginx:1.27", "env": [{"name": f"V{n}", "value": "x" * 60} for n in range(30)]}
    ]
    address = f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"
    metadata = _metadata(region, number, f"web-{number}-5d9-x", "00000000", version)
    metadata["labels"]["pod-template-hash"] = "5d9"
    metadata["ownerReferences"] = [
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"web-{number}-5d9", "uid": "r", "controller": True}
    ]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"nodeName": f"worker-{number % _NODES}", "containers": containers},
        "status": {"phase": phase, "podIP": address, "podIPs": [{"ip": address}]},
    }


def deployment(region: int, number: int) -> dict[str, Any]:
    """Return the metadata of a Deployment."""
    metadata = _metadata(region, number, f"web-{number}", "11111111", 1)
    fields: dict[str, Any] = {f"f:env{n}": {"f:name": {}, "f:value": {}} for n in range(12)}
    metadata["managedFields"] = [
        {
            "manager": "kubevnfm",
            "operation": "Apply",
            "apiVersion": "apps/v1",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:metadata": {"f:labels": {"f:app": {}}}, "f:spec": {"f:template": {"f:spec": fields}}},
        }
    ]
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata}


def _metadata(region: int, number: int, name: str, uid: str, version: int) -> dict[str, Any]:
    return {
        "name": name,
        "namespace": "vnfs",
        "uid": f"{uid}-0000-4000-{region:04}-{number:012}",
        "resourceVersion": str(version),
        "creationTimestamp": "2030-01-01T00:00:00Z",
        "labels": {
            "kubevnfm.io/vnf-instance-id": instance_id(region, number),
            "app.kubernetes.io/managed-by": "kubevnfm",
        },
    }


def instance_id(region: int, number: int) -> str:
    """Return the VNF of a pod."""
    return f"vnf-{region}-{number}"


def _node(number: int) -> dict[str, Any]:
    labels = {f"feature.node.kubernetes.io/cpu-cpuid.F{n}": "true" for n in range(60)}
    room = {"cpu": "64", "memory": "256Gi", "pods": "110"}
    metadata = {"name": f"worker-{number}", "uid": f"n{number}", "resourceVersion": "1", "labels": labels}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": metadata,
        "status": {"capacity": room, "allocatable": room, "images": [{"names": ["x" * 80]}] * 50},
    }


def _discovery() -> tuple[bytes, bytes]:
    def served(kind: str, plural: str, scope: str = "Namespaced") -> dict[str, Any]:
        status = {"subresource": "status", "responseKind": {"kind": kind}, "verbs": ["get", "patch", "update"]}
        return {
            "resource": plural, "responseKind": {"group": "", "version": "", "kind": kind}, "scope": scope,
            "singularResource": kind.lower(), "verbs": _VERBS, "shortNames": [plural[:3]], "subresources": [status],
        }  # fmt: skip

    def group(name: str, *resources: dict[str, Any]) -> dict[str, Any]:
        version = {"version": "v1", "resources": list(resources), "freshness": "Current"}
        return {"metadata": {"name": name, "creationTimestamp": None}, "versions": [version]}

    def document(*groups: dict[str, Any]) -> bytes:
        kind = {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2"}
        return json.dumps({**kind, "metadata": {}, "items": list(groups)}).encode()

    core = group(
        "",
        served("Pod", "pods"),
        served("Node", "nodes", "Cluster"),
        served("Namespace", "namespaces", "Cluster"),
        served("ConfigMap", "configmaps"),
    )
    others = [group(f"g{n}.example.com", served(f"Kind{n}", f"kind{n}s")) for n in range(_SAMPLE_KINDS)]
    return document(core), document(group("apps", served("Deployment", "deployments")), *others)


_CORE, _GROUPS = _discovery()


@dataclass
class Region:
    """One API server."""

    number: int
    vnfs: int
    tls: ssl.SSLContext
    port: int = 0
    version: int = 1
    fault: str = ""
    phases: dict[int, str] = field(default_factory=dict)
    applied: dict[str, dict[str, Any]] = field(default_factory=dict)
    watches: dict[asyncio.Queue[bytes], str] = field(default_factory=dict)
    """With the path of each."""
    requests: int = 0
    listening: asyncio.Server | None = None
    http: web.Server | None = None
    mute: set[asyncio.BaseTransport] = field(default_factory=set)

    async def listen(self) -> None:
        """Begin to answer, with what the state is."""
        loop = asyncio.get_running_loop()
        self.http = web.Server(self._answer, access_log=None)
        if self.fault == "silent":
            self.listening = await loop.create_server(lambda: _Mute(self.mute), "127.0.0.1", self.port)
        elif self.fault != "refusing":
            self.listening = await loop.create_server(self.http, "127.0.0.1", self.port, ssl=self.tls, backlog=128)
            self.port = self.listening.sockets[0].getsockname()[1]

    async def turn(self, fault: str) -> None:
        """Close all connections and go on in another state."""
        self.fault = fault
        if self.listening is not None:
            self.listening.close()
            self.listening = None
        for each in [*self.mute, *(one.transport for one in (self.http.connections if self.http else ()))]:
            if each is not None:
                each.abort()  # type: ignore[attr-defined]  # both kinds of transports have it
        self.mute.clear()
        # Their answers end later, when they are written to.
        self.watches.clear()
        await self.listen()

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        self.requests += 1
        if self.fault == "slow":
            await asyncio.sleep(_SLOW_S)
        path = request.path
        if path == "/api":
            return web.Response(body=_CORE, headers=_AGGREGATED)
        if path == "/apis":
            return web.Response(body=_GROUPS, headers=_AGGREGATED)
        if path.endswith("/token"):
            ends = dt.datetime.now(dt.UTC) + dt.timedelta(hours=1)
            token = {"token": f"t{self.number}", "expirationTimestamp": ends.strftime("%Y-%m-%dT%H:%M:%SZ")}
            return web.json_response({"kind": "TokenRequest", "status": token}, status=201)
        if request.query.get("watch"):
            return await self._watch(request, path)
        if request.method == "PATCH":
            body = {**json.loads(await request.read())}
            body["metadata"] = {**body["metadata"], "uid": f"a{len(self.applied)}", "resourceVersion": "1"}
            self.applied[unquote(path)] = body
            self._publish("ADDED", body, path.rpartition("/")[0])
            return web.json_response(body, status=201)
        if (found := self.applied.get(unquote(path))) is not None:
            return web.json_response(found)
        if path == "/api/v1/namespaces/vnfs":
            return web.json_response(
                {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "vnfs", "uid": "u"}}
            )
        if "limit" in request.query:
            return self._list(request, path)
        return web.json_response({"kind": "Status", "message": "not found", "reason": "NotFound"}, status=404)

    def _list(self, request: web.BaseRequest, path: str) -> web.Response:
        first, limit = int(request.query.get("continue", 0)), int(request.query["limit"])
        kind = path.rpartition("/")[2]
        total = {"pods": self.vnfs, "deployments": self.vnfs, "nodes": _NODES}.get(kind, 0)
        last = min(first + limit, total)
        metadata = {"resourceVersion": str(self.version), **({"continue": str(last)} if last < total else {})}
        items = [self._object(kind, number) for number in range(first, last)]
        items += [each for key, each in self.applied.items() if path in _collections(key.rpartition("/")[0])]
        return web.Response(body=json.dumps({"metadata": metadata, "items": items}).encode(), headers=_JSON)

    def _object(self, kind: str, number: int) -> dict[str, Any]:
        if kind == "pods":
            return pod(self.number, number, self.phases.get(number, "Running"), 1)
        return deployment(self.number, number) if kind == "deployments" else _node(number)

    async def _watch(self, request: web.BaseRequest, path: str) -> web.StreamResponse:
        answer = web.StreamResponse(headers=_JSON)
        await answer.prepare(request)
        news: asyncio.Queue[bytes] = asyncio.Queue()
        is_pods = path == "/api/v1/pods"
        if is_pods and int(request.query["resourceVersion"]) < self.version:
            expired = {"kind": "Status", "code": 410, "reason": "Expired"}
            await answer.write(json.dumps({"type": "ERROR", "object": expired}).encode() + b"\n")
            return answer
        self.watches[news] = path
        try:
            async with asyncio.timeout(float(request.query.get("timeoutSeconds", 300))):
                while True:
                    await answer.write(await news.get())
        except (TimeoutError, ConnectionError):
            return answer
        finally:
            self.watches.pop(news, None)

    def change(self, number: int) -> None:
        """Change a pod."""
        self.version += 1
        self.phases[number] = repr(time.time())
        changed = pod(self.number, number, self.phases[number], self.version)
        self._publish("MODIFIED", changed, "/api/v1/pods")

    def _publish(self, change: str, body: dict[str, Any], collection: str) -> None:
        line = json.dumps({"type": change, "object": body}).encode() + b"\n"
        for news, path in self.watches.items():
            if path in _collections(collection):
                news.put_nowait(line)


def _collections(path: str) -> tuple[str, str]:
    """Return where objects of a collection are listed: there, and with those of all namespaces."""
    return path, re.sub(r"/namespaces/[^/]+/", "/", path)


class _Mute(asyncio.Protocol):
    """Takes a connection and says nothing."""

    def __init__(self, known: set[asyncio.BaseTransport]) -> None:
        self._known = known

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._known.add(transport)


@dataclass
class _Control:
    regions: list[Region]
    changing: asyncio.Task[None] | None = None

    async def change(self, request: web.Request) -> web.Response:
        """Change pods of all regions in turn, ``per_s`` a second, for ``seconds``."""
        per_s, seconds = float(request.query["per_s"]), float(request.query["seconds"])
        self.changing = asyncio.create_task(self._change(per_s, int(per_s * seconds)))
        return web.Response()

    async def _change(self, per_s: float, changes: int) -> None:
        begun = time.monotonic()
        for number in range(changes):
            await asyncio.sleep(max(0.0, begun + number / per_s - time.monotonic()))
            region = self.regions[number * 37 % len(self.regions)]
            region.change(number * 41 % region.vnfs)

    async def fault(self, request: web.Request) -> web.Response:
        """Put a region into a state: refusing, silent, slow, or none."""
        await self.regions[int(request.query["region"])].turn(request.query["fault"])
        return web.Response()

    async def counts(self, request: web.Request) -> web.Response:
        """Return what is open, in all regions or in one."""
        asked = request.query.get("region")
        regions = self.regions if asked is None else [self.regions[int(asked)]]
        return web.json_response(
            {
                "connections": sum(len(each.http.connections) for each in regions if each.http is not None),
                "watches": sum(len(each.watches) for each in regions),
                "requests": sum(each.requests for each in regions),
            }
        )


def certified(folder: Path, name: str, issuer: tuple[x509.Certificate, ec.EllipticCurvePrivateKey] | None) -> Any:
    """Return a new certificate for loopback, its key, and a file with both; ``issuer``: None makes it a CA, which signs itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    named = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder(named if issuer is None else issuer[0].subject, named, key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=10))
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key if issuer is None else issuer[1], hashes.SHA256())
    )
    pem = made.public_bytes(serialization.Encoding.PEM)
    file = folder / f"{name}.pem"
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file.write_bytes(pem + secret)
    return made, key, file, pem.decode()


async def serve(count: int, vnfs: int) -> None:
    # Connections that a fault ends are no errors here.
    logging.disable(logging.ERROR)
    # This program has some thousand TLS connections too: its memory is not what is measured.
    asyncio.sslproto.SSLProtocol.max_size = 2**14
    with tempfile.TemporaryDirectory() as folder:
        authority, key, _, system_ca = certified(Path(folder), "system", None)
        regions, authorities = [], []
        for number in range(count):
            is_of_system = number % MEMBER_OF_SYSTEM == 0
            _, _, file, pem = certified(Path(folder), f"region-{number}", (authority, key) if is_of_system else None)
            tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            tls.load_cert_chain(file)
            regions.append(Region(number, vnfs, tls))
            authorities.append(None if is_of_system else pem)
            await regions[-1].listen()
    control, app = _Control(regions), web.Application()
    app.add_routes(
        [web.post("/change", control.change), web.post("/fault", control.fault), web.get("/counts", control.counts)]
    )
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    ports = [each.port for each in regions]
    addresses = {
        "control": runner.addresses[0][1], "ports": ports, "authorities": authorities, "system_ca": system_ca
    }  # fmt: skip
    sys.stdout.write(f"{json.dumps(addresses)}\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), int(sys.argv[2])))
