"""A registry of OCI artifacts, a repository of Helm charts and a catalogue of packages in one HTTP server; tests set how they answer, and read what was asked.

The registry speaks what is read of the distribution API: manifests and blobs by digest, token and Basic challenges, ranges.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import unquote

import aiohttp
from aiohttp import web

MANIFEST: Final = "application/vnd.oci.image.manifest.v1+json"
ZIP: Final = "application/zip"
CHART: Final = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
PROVENANCE: Final = "application/vnd.cncf.helm.chart.provenance.v1.prov"
LOGIN: Final = ("puller", "pw-marked-8")
TOKEN: Final = "token-marked-9"


def digest_of(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


@dataclass
class ArtifactServer:
    """One server for both."""

    url: str = ""
    host: str = ""
    manifests: dict[str, bytes] = field(default_factory=dict)
    """By digest."""
    blobs: dict[str, bytes] = field(default_factory=dict)
    packages: dict[str, bytes] = field(default_factory=dict)
    """The catalogue's, by id."""
    attributes: dict[str, Any] = field(default_factory=dict)
    """Further attributes of the catalogue's packages."""
    files: dict[str, bytes] = field(default_factory=dict)
    """Those of a repository of charts, below ``/charts``: its index and the archives."""
    challenge: str = ""
    """``bearer`` or ``basic``: what the registry wants."""
    realm: str = ""
    """The token endpoint, if it is another one."""
    breaks_after: list[int] = field(default_factory=list)
    """After how many bytes each of the next contents breaks off, once ``goes_on`` is set."""
    moved_to: str = ""
    """Where contents are, if elsewhere."""
    has_ranges: bool = True
    status: int = 0
    """The status of every content, unless 0."""
    goes_on: asyncio.Event = field(default_factory=asyncio.Event)
    """Contents are sent only while this is set."""
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    asked: Counter[str] = field(default_factory=Counter)
    """The number of requests by path."""
    ranges: list[str] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)
    scopes: list[str] = field(default_factory=list)

    @classmethod
    @asynccontextmanager
    async def listening(cls) -> AsyncIterator[ArtifactServer]:
        server = cls()
        server.goes_on.set()
        app = web.Application()
        app.add_routes(
            [
                web.get("/v2/{name:.+}/manifests/{digest}", server._manifest),
                web.get("/v2/{name:.+}/blobs/{digest}", server._blob),
                web.get("/token", server._token),
                web.get("/charts/{name}", server._file),
                web.get("/elsewhere/{digest}", server._blob),
                web.get("/vnfpkgm/v2/vnf_packages/{id}", server._package),
                web.get("/vnfpkgm/v2/vnf_packages/{id}/package_content", server._content),
                web.get("/sdc/v1/catalog/resources/{id}/toscaModel", server._content),
            ]
        )
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            server.host = f"127.0.0.1:{runner.addresses[0][1]}"
            server.url = f"http://{server.host}"
            yield server
        finally:
            await runner.cleanup()

    def push(
        self, content: bytes, media_type: str = ZIP, *, beside: Mapping[str, Any] | None = None, **changes: Any
    ) -> str:
        """Store an artifact; return the digest of its manifest.

        ``changes``: of the descriptor of its layer; ``beside``: the descriptor of another layer.
        """
        layer = {"mediaType": media_type, "digest": digest_of(content), "size": len(content), **changes}
        config = {"mediaType": "application/vnd.oci.empty.v1+json", "digest": digest_of(b"{}"), "size": 2}
        manifest: dict[str, Any] = {"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [layer]}
        manifest["layers"] += [] if beside is None else [dict(beside)]
        raw = json.dumps(manifest).encode()
        self.manifests[digest_of(raw)], self.blobs[layer["digest"]] = raw, content
        return digest_of(raw)

    def _refused(self, request: web.Request) -> web.Response | None:
        """Return the challenge, unless the request answers it."""
        basic = aiohttp.encode_basic_auth(*LOGIN)
        wanted = {"": None, "basic": basic, "bearer": f"Bearer {TOKEN}"}[self.challenge]
        if wanted is None or request.headers.get("Authorization") == wanted:
            return None
        realm = self.realm or f"{self.url}/token"
        bearer = f'Bearer realm="{realm}",service="registry.test",scope="repository:x:pull"'
        return web.Response(
            status=401, headers={"WWW-Authenticate": bearer if self.challenge == "bearer" else 'Basic realm="r"'}
        )

    async def _token(self, request: web.Request) -> web.Response:
        self.scopes.append(request.query["scope"])
        if request.headers.get("Authorization") != aiohttp.encode_basic_auth(*LOGIN):
            return web.Response(status=401)
        return web.json_response({"token": TOKEN})

    async def _file(self, request: web.Request) -> web.Response:
        self._note(request)
        body = self.files.get(request.match_info["name"])
        return web.Response(status=self.status or 404) if body is None or self.status else web.Response(body=body)

    async def _manifest(self, request: web.Request) -> web.Response:
        self._note(request)
        if (refused := self._refused(request)) is not None:
            return refused
        raw = self.manifests.get(request.match_info["digest"])
        return web.Response(status=404) if raw is None else web.Response(body=raw, content_type=MANIFEST)

    async def _blob(self, request: web.Request) -> web.StreamResponse:
        self._note(request)
        is_elsewhere = request.path.startswith("/elsewhere/")
        if not is_elsewhere and (refused := self._refused(request)) is not None:
            return refused
        digest = request.match_info["digest"]
        if self.moved_to and not is_elsewhere:
            return web.Response(status=307, headers={"Location": f"{self.moved_to}/elsewhere/{digest}"})
        return await self._send(request, self.blobs.get(digest))

    async def _package(self, request: web.Request) -> web.Response:
        content = self.packages.get(unquote(request.match_info["id"]))
        if content is None:
            return web.Response(status=404)
        checksum = {"algorithm": "SHA-256", "hash": hashlib.sha256(content).hexdigest()}
        return web.json_response({"id": request.match_info["id"], "checksum": checksum, **self.attributes})

    async def _content(self, request: web.Request) -> web.StreamResponse:
        self._note(request)
        return await self._send(request, self.packages.get(unquote(request.match_info["id"])))

    def _note(self, request: web.Request) -> None:
        self.asked[request.path] += 1
        self.headers.append(dict(request.headers))
        if "Range" in request.headers:
            self.ranges.append(request.headers["Range"])

    async def _send(self, request: web.Request, content: bytes | None) -> web.StreamResponse:
        if content is None or self.status:
            return web.Response(status=self.status or 404)
        first = 0
        if self.has_ranges and (wanted := request.http_range.start) is not None:
            first = wanted
        status = 206 if first else 200
        headers = {"ETag": f'"{hashlib.sha256(content).hexdigest()[:16]}"', "Content-Type": ZIP}
        if first:
            headers["Content-Range"] = f"bytes {first}-{len(content) - 1}/{len(content)}"
        response = web.StreamResponse(status=status, headers=headers)
        response.content_length = len(content) - first
        await response.prepare(request)
        self.begun.set()
        if self.breaks_after:
            await response.write(content[first : first + self.breaks_after.pop(0)])
            # A client drops what it has not read yet when a connection breaks.
            await self.goes_on.wait()
            assert request.transport is not None
            request.transport.close()
            return response
        half = first + (len(content) - first) // 2
        await response.write(content[first:half])
        await self.goes_on.wait()
        await response.write(content[half:])
        return response
