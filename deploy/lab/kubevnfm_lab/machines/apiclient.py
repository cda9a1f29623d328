"""A small client of Kubernetes API servers, for the stand-ins of kubectl and kubeadm."""

from __future__ import annotations

import contextlib
import json
import ssl
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import aiohttp

from kubevnfm_lab import yaml_text
from kubevnfm_lab.machines.kubeconfig import Access

DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
CONNECT_TIMEOUT_S = 30.0  # as client-go; loopback refuses at once, so only a loaded machine takes any time
APPLY_PATCH = "application/apply-patch+yaml"
MERGE_PATCH = "application/merge-patch+json"


class ApiUnreachable(Exception):
    """No API server answers; the text is the one that kubectl prints."""


class ApiRefusal(Exception):
    """The API server answered with a Status of failure."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status, self.reason, self.message = status, reason, message


class UnknownResource(Exception):
    """The server has no such resource type."""


@dataclass(frozen=True)
class Resource:
    """One resource type as discovery lists it."""

    group: str
    version: str
    plural: str
    singular: str
    kind: str
    namespaced: bool
    short_names: tuple[str, ...] = ()

    @property
    def api_version(self) -> str:
        """``apps/v1`` or ``v1``."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def full_name(self) -> str:
        """``deployments.apps``, as kubectl writes it in messages."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def singular_name(self) -> str:
        """``deployment.apps``, as ``kubectl get -o name`` writes it."""
        return f"{self.singular}.{self.group}" if self.group else self.singular

    def path(self, namespace: str, name: str = "", subresource: str = "") -> str:
        """Return the URL path of one object, or of all."""
        base = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        scope = f"/namespaces/{namespace}" if self.namespaced and namespace else ""
        parts = [
            base + scope,
            self.plural,
            *([quote(name, safe="")] if name else []),
            *([subresource] if subresource else []),
        ]
        return "/".join(parts)


class Api:
    """One user's access to one API server."""

    def __init__(self, access: Access) -> None:
        self.access = access
        self._session: aiohttp.ClientSession | None = None
        self._resources: list[Resource] | None = None

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None or self._session.closed:
            headers = {"User-Agent": "kubectl/lab", "Accept": "application/json"}
            if self.access.token:
                headers["Authorization"] = f"Bearer {self.access.token}"
            # No limit of connections: every watch keeps one, and `kubectl wait` for many objects opens as many.
            connector = aiohttp.TCPConnector(ssl=_tls(self.access), limit=0)
            timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_S)
            self._session = aiohttp.ClientSession(connector=connector, headers=headers, timeout=timeout)
        return self._session

    async def close(self) -> None:
        """Close the connections."""
        if self._session:
            await self._session.close()

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> Any:
        """Return the decoded answer (text if it is not JSON); raise ApiRefusal, ApiUnreachable."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Accept": accept} | ({"Content-Type": content_type} if data is not None else {})
        try:
            async with self._open().request(
                method, self.access.server + path, params=params, data=data, headers=headers
            ) as response:
                text = await response.text()
                kind = response.content_type
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise ApiUnreachable(self._unreachable(error)) from error
        answer = json.loads(text) if kind.endswith("json") and text else text
        if response.status >= 400:
            status = answer if isinstance(answer, dict) else {}
            raise ApiRefusal(response.status, str(status.get("reason", "")), str(status.get("message") or text))
        return answer

    async def watch(self, path: str, params: Mapping[str, str]) -> AsyncIterator[tuple[str, dict[str, Any]]]:
        """Yield (event type, object): the existing objects, then changes, until the server ends the watch."""
        try:
            async with self._open().get(self.access.server + path, params={**params, "watch": "1"}) as response:
                if response.status >= 400:
                    raise ApiRefusal(response.status, "", await response.text())
                buffer = b""
                # Split here, since aiohttp's own line reader refuses long lines, and an object may be 1 MiB long.
                async for chunk in response.content.iter_any():
                    *lines, buffer = (buffer + chunk).split(b"\n")
                    for line in lines:
                        if line.strip():
                            event = json.loads(line)
                            yield event["type"], event["object"]
        except (aiohttp.ClientError, OSError) as error:
            raise ApiUnreachable(self._unreachable(error)) from error

    async def resources(self, *, again: bool = False) -> Sequence[Resource]:
        """Return all resource types; requested once, and again if one is missing."""
        if self._resources is None or again:
            found: list[Resource] = []
            for path in ("/api", "/apis"):
                found += _discovered(await self.request("GET", path, accept=DISCOVERY))
            self._resources = found
        return self._resources

    async def resource(self, name: str) -> Resource:
        """Return the type for ``pods``, ``po``, ``deployment.apps``…; raise UnknownResource."""
        return await self._find(lambda each: _is_called(each, name.lower()), name)

    async def resource_of(self, obj: Mapping[str, Any]) -> Resource:
        """Return the type of an object by its apiVersion and kind; raise UnknownResource."""
        version, kind = str(obj.get("apiVersion") or ""), str(obj.get("kind") or "")
        return await self._find(lambda each: each.api_version == version and each.kind == kind, f"{kind} {version}")

    async def _find(self, fits: Any, name: str) -> Resource:
        for again in (False, True):
            found = next((each for each in await self.resources(again=again) if fits(each)), None)
            if found:
                return found
        raise UnknownResource(name)

    async def apply(self, obj: Mapping[str, Any], *, namespace: str, manager: str = "kubectl") -> dict[str, Any]:
        """Apply one object on the server's side, and take over fields of other managers."""
        resource = await self.resource_of(obj)
        metadata = obj.get("metadata") or {}
        path = resource.path(str(metadata.get("namespace") or namespace), str(metadata.get("name") or ""))
        params = {"fieldManager": manager, "force": "true"}
        answer: dict[str, Any] = await self.request("PATCH", path, params=params, body=obj, content_type=APPLY_PATCH)
        return answer

    def _unreachable(self, error: BaseException) -> str:
        parts = urlsplit(self.access.server)
        place = f"{parts.hostname}:{parts.port or (443 if parts.scheme == 'https' else 80)}"
        if isinstance(error, aiohttp.ClientConnectorCertificateError | aiohttp.ClientConnectorSSLError):
            return f"Unable to connect to the server: tls: failed to verify certificate: x509: {error}"
        if isinstance(error, aiohttp.ClientConnectorError) and isinstance(error.os_error, ConnectionRefusedError):
            return f"The connection to the server {place} was refused - did you specify the right host or port?"
        if isinstance(error, TimeoutError):
            return f"Unable to connect to the server: dial tcp {place}: i/o timeout"
        return f"Unable to connect to the server: {str(error) or 'EOF'}"


class Apis:
    """The open clients, one per access: connections and discovery are reused by later runs of kubectl."""

    def __init__(self) -> None:
        self._by_access: dict[Access, Api] = {}

    def api(self, access: Access) -> Api:
        """Return the client."""
        return self._by_access.setdefault(access, Api(access))

    async def forget(self, server: str) -> None:
        """Close the clients of a server that is gone; another cluster may get its address."""
        for access in [access for access in self._by_access if access.server == server]:
            await self._by_access.pop(access).close()

    async def close(self) -> None:
        """Close all clients."""
        for api in self._by_access.values():
            await api.close()
        self._by_access.clear()


def manifests(text: str) -> list[dict[str, Any]]:
    """Return the objects in YAML or JSON documents, with lists expanded; raise yaml.YAMLError."""
    objects: list[dict[str, Any]] = []
    for document in yaml_text.load_all(text):
        if isinstance(document, dict):
            objects += document["items"] if document.get("kind") == "List" else [document]
    return objects


def _is_called(resource: Resource, name: str) -> bool:
    short, _, rest = name.partition(".")
    if short not in (resource.plural, resource.singular, resource.kind.lower(), *resource.short_names):
        return False
    return not rest or rest in (resource.group, f"{resource.version}.{resource.group}")


def _discovered(listing: Mapping[str, Any]) -> list[Resource]:
    found = []
    for item in listing.get("items", []):
        group = str((item.get("metadata") or {}).get("name") or "")
        for version in item.get("versions", []):
            for entry in version.get("resources", []):
                kind = (entry.get("responseKind") or {}).get("kind", "")
                found.append(
                    Resource(
                        group=group,
                        version=version["version"],
                        plural=entry["resource"],
                        singular=entry.get("singularResource") or kind.lower(),
                        kind=kind,
                        namespaced=entry.get("scope") == "Namespaced",
                        short_names=tuple(entry.get("shortNames") or ()),
                    )
                )
    return found


def _tls(access: Access) -> ssl.SSLContext | bool:
    if not access.server.startswith("https"):
        return True
    if not access.verify:
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    else:
        context = ssl.create_default_context(cadata=access.ca_pem or None)
    if access.client_certificate_pem:
        # The ssl module reads a chain from files only; they exist for this call alone.
        with contextlib.suppress(ssl.SSLError), tempfile.TemporaryDirectory(prefix="lab-kubectl-") as folder:
            chain = Path(folder) / "chain.pem"
            chain.touch(0o600)
            chain.write_text(access.client_certificate_pem + access.client_key_pem)
            context.load_cert_chain(chain)
    return context
