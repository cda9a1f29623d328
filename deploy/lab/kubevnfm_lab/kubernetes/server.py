"""The API server's HTTP side: TLS, faults, authentication, authorization, and the dispatch of requests."""

from __future__ import annotations

import asyncio
import json
import ssl
from typing import Any, Final

from aiohttp import web

from kubevnfm_lab.kubernetes import discovery, openapi, podmetrics
from kubevnfm_lab.kubernetes.controllers.kubevirt import SUBRESOURCES, restart
from kubevnfm_lab.kubernetes.errors import ApiError, method_not_allowed, not_served, of_fault
from kubevnfm_lab.kubernetes.evictions import Evictions
from kubevnfm_lab.kubernetes.objects import Key, Obj, value_at
from kubevnfm_lab.kubernetes.paths import RequestInfo, request_info
from kubevnfm_lab.kubernetes.podlogs import pod_log
from kubevnfm_lab.kubernetes.rbac import Attempt, Rbac
from kubevnfm_lab.kubernetes.registry import Registry
from kubevnfm_lab.kubernetes.reviews import Reviews
from kubevnfm_lab.kubernetes.scales import patch_scale, scale_of, set_scale
from kubevnfm_lab.kubernetes.tables import as_metadata, as_table, wants_metadata, wants_table
from kubevnfm_lab.kubernetes.tokens import Identity, Tokens
from kubevnfm_lab.kubernetes.verbs import Target, Verbs, WriteOptions, parse_body, read_deletion, read_object
from kubevnfm_lab.kubernetes.watches import Watch
from kubevnfm_lab.ports import ConnectionDropped, FaultInjected, Faults, Ledger

_PUBLIC: Final = ("/version", "/healthz", "/livez", "/readyz")
"""Open to every caller, as on a cluster made by kubeadm (ClusterRole system:public-info-viewer)."""
_RESTART: Final = (SUBRESOURCES, "update", "virtualmachines/restart")
"""The request that KubeVirt's own API server answers."""
_AGGREGATED: Final = "as=APIGroupDiscoveryList"
_LARGEST_BODY: Final = 8 * 2**20
_OLD_LABEL: Final = "beta.kubernetes.io/os"
_SHUTDOWN_S: Final = 0.2


class ApiServer:
    """Serves one cluster's API on one address."""

    def __init__(
        self,
        registry: Registry,
        *,
        version: str,
        tokens: Tokens,
        rbac: Rbac,
        faults: Faults,
        ledger: Ledger,
    ) -> None:
        self._registry, self._version = registry, version
        self._table, self._store = registry.table, registry.store
        self._tokens, self._rbac, self._faults, self._ledger = tokens, rbac, faults, ledger
        self._verbs = Verbs(registry)
        self._reviews = Reviews(registry.store, tokens, rbac)
        self._evictions = Evictions(registry)
        self._metrics = podmetrics.PodMetrics(registry.store)
        self._watches: set[Watch] = set()
        # Cancelling a handler ends the watch of a client that hung up; writes have no await inside and stay whole.
        self._server = web.Server(self._handle, handler_cancellation=True, access_log=None)
        self._listener: asyncio.Server | None = None
        self._address = ""

    async def start(self, address: str, port: int, context: ssl.SSLContext) -> None:
        """Listen, unless it does already; raise OSError if the address is taken."""
        self._address = f"{address}:{port}"
        if self._listener is None:
            # Not yet serving, so that there is no turn of the event loop between the bind and the assignment: a caller
            # that is cancelled in that turn would leave a port that stays taken.
            self._listener = await asyncio.get_running_loop().create_server(
                self._server, address, port, ssl=context, start_serving=False
            )
        await self._listener.start_serving()

    async def close(self) -> None:
        """Stop listening, end all watches and connections."""
        for watch in tuple(self._watches):
            watch.end()
        if self._listener is not None:
            self._listener.close()
            self._listener = None
            # Connections without a request end now; the others have some time.
            self._server.pre_shutdown()
            await self._server.shutdown(_SHUTDOWN_S)

    @property
    def open_watches(self) -> int:
        """The number of watches that clients hold open."""
        return len(self._watches)

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        # The raw path, since decoding would turn %2F in a name into a separator.
        info = request_info(request.method, request.raw_path.partition("?")[0], request.query)
        try:
            self._ledger.count("kubernetes", info.spoken)
            await self._faults.check("kubernetes", info.spoken)
            identity = self._authenticate(request, info)
            if identity is not None:
                self._authorize(identity, info)
            return await self._answer(request, info, identity)
        except ApiError as error:
            return _refusal(error)
        except FaultInjected as fault:
            return _refusal(of_fault(fault.status, fault.message))
        except ConnectionDropped as dropped:
            if request.transport is not None:
                request.transport.abort()
            # aiohttp treats this as a client that disconnected, which closes the connection without an answer.
            raise ConnectionResetError(str(dropped)) from dropped

    def _authenticate(self, request: web.BaseRequest, info: RequestInfo) -> Identity | None:
        """Return the caller, None where no authentication is needed; raise ApiError 401."""
        transport = request.transport
        certificate = transport.get_extra_info("peercert") if transport is not None else None
        identity = self._tokens.authenticate(request.headers.get("Authorization", ""), certificate)
        # kubeadm opens these paths to anonymous users so that load balancers can probe them.
        if identity is None and not (info.verb == "get" and info.path.startswith(_PUBLIC) and not info.resource):
            raise ApiError(401, "Unauthorized")
        return identity

    def _authorize(self, identity: Identity, info: RequestInfo) -> None:
        if not info.resource:
            self._rbac.check(identity, Attempt(verb=info.verb, path=info.path))
            return
        self._rbac.check(
            identity,
            Attempt(info.verb, info.group, info.qualified_resource, info.namespace, info.name),
        )

    async def _answer(
        self, request: web.BaseRequest, info: RequestInfo, identity: Identity | None
    ) -> web.StreamResponse:
        if not info.resource:
            return self._answer_path(request, info)
        if info.group in self._table.away:
            return _away()
        if (info.group, info.verb, info.qualified_resource) == _RESTART:
            restart(self._registry, Key(info.namespace, info.name))
            return web.Response(status=202)
        resource = self._table.by_path(info.group, info.version, info.resource)
        # A namespaced object without a namespace in the path does not exist; listing all namespaces does.
        if resource is None and info.version not in self._table.versions(info.group):
            return _no_page()
        if resource is None or (resource.namespaced and not info.namespace and (info.name or info.verb == "create")):
            raise not_served()
        target = Target(resource, info.namespace, info.name, info.subresource)
        if resource.group == podmetrics.GROUP and not info.subresource:
            return _json(self._metrics.answer(target, info.verb, request.query), 200)
        if info.verb == "watch":
            return await self._watch(request, target)
        body = await self._body(request)
        if info.subresource:
            answer, code = self._answer_subresource(request, info, target, body)
            if isinstance(answer, str):
                return web.Response(text=answer)
            return _json(answer, code)
        if info.verb not in resource.verbs:
            raise method_not_allowed(resource.group, resource.plural)
        if self._reviews.answers(resource) and identity is not None:
            return _json(self._reviews.answer(resource, read_object(body, target), identity), 201)
        answer, code = self._answer_resource(request, info, target, body)
        if info.verb in {"get", "list"} and wants_table(request.headers.get("Accept", "")):
            # kubectl asks for tables with Accept; scripts do not, and get the objects.
            return _json(as_table(answer, resource), code)
        if info.verb in {"get", "list"} and wants_metadata(request.headers.get("Accept", "")):
            return _json(as_metadata(answer), code)
        return _warned(_json(answer, code), answer, info.verb)

    def _answer_resource(
        self, request: web.BaseRequest, info: RequestInfo, target: Target, body: Any
    ) -> tuple[Obj, int]:
        query, verbs = request.query, self._verbs
        options = WriteOptions.read(query, request.headers.get("User-Agent", ""))
        match info.verb:
            case "get":
                return verbs.get(target), 200
            case "list":
                return verbs.list(target, query), 200
            case "create":
                return verbs.create(target, body, options), 201
            case "update":
                return verbs.update(target, body, options), 200
            case "patch":
                obj, is_new = verbs.patch(target, body, request.headers.get("Content-Type", ""), options)
                return obj, 201 if is_new else 200
            case "delete":
                return verbs.delete(target, read_deletion(query, body)), 200
            case "deletecollection":
                return verbs.delete_collection(target, query, read_deletion(query, body)), 200
            case _:
                raise method_not_allowed(target.resource.group, target.resource.plural)

    def _answer_subresource(
        self, request: web.BaseRequest, info: RequestInfo, target: Target, body: Any
    ) -> tuple[Obj | str, int]:
        resource, subresource = target.resource, target.subresource
        if subresource not in resource.subresources:
            raise not_served()
        content_type = request.headers.get("Content-Type", "")
        options = WriteOptions.read(request.query, request.headers.get("User-Agent", ""))
        match (subresource, info.verb):
            case ("scale", "get"):
                return scale_of(target, self._verbs.get(target)), 200
            case ("scale", "update"):
                return set_scale(self._registry, target, body, options), 200
            case ("scale", "patch"):
                return patch_scale(self._registry, target, body, content_type, options), 200
            case ("token", "create"):
                return self._reviews.request_token(target.key, body if isinstance(body, dict) else {}), 201
            case ("eviction", "create"):
                return self._evictions.evict(target, read_deletion({}, value_at(body, "deleteOptions"))), 201
            case ("log", "get"):
                return pod_log(self._verbs.get(target), request.query), 200
            case ("status" | "finalize" | "approval", "get"):
                return self._verbs.get(target), 200
            case ("status" | "finalize" | "approval", "update"):
                return self._verbs.update(target, body, options), 200
            case ("status" | "finalize" | "approval", "patch"):
                return self._verbs.patch(target, body, content_type, options)[0], 200
            case _:
                raise method_not_allowed(resource.group, resource.plural)

    def _answer_path(self, request: web.BaseRequest, info: RequestInfo) -> web.StreamResponse:
        parts = info.path.strip("/").split("/")
        accept = request.headers.get("Accept", "")
        if info.verb not in {"get", "head"}:
            raise method_not_allowed("", "")
        match parts:
            case ["version"]:
                return _json(_version_info(self._version), 200)
            case ["healthz" | "livez" | "readyz", *_]:
                return web.Response(text="ok")
            # Clients prefer aggregated discovery and fall back to the per-group documents.
            case ["api" | "apis"] if _AGGREGATED in accept:
                groups = [""] if parts == ["api"] else self._table.groups()
                return _aggregated(discovery.aggregated(self._table, groups, _aggregated_version(accept)), accept)
            case ["api"]:
                return _json(discovery.api_versions(self._table, self._address), 200)
            case ["apis"]:
                return _json(discovery.api_groups(self._table), 200)
            case ["api", version] if version in self._table.versions(""):
                return _json(discovery.api_resources(self._table, "", version), 200)
            case ["apis", group] if group in self._table.groups():
                return _json(discovery.api_group(self._table, group), 200)
            case ["apis", group, _] if group in self._table.away:
                return _away()
            case ["apis", group, version] if version in self._table.versions(group):
                return _json(discovery.api_resources(self._table, group, version), 200)
            case ["openapi", "v3", *rest]:
                return _json(openapi.document(self._table, rest, self._version), 200)
            case _:
                return _no_page()

    async def _body(self, request: web.BaseRequest) -> Any:
        if not request.can_read_body:
            return None
        body = bytearray()
        async for chunk in request.content.iter_any():
            body += chunk
            if len(body) > _LARGEST_BODY:
                raise ApiError(413, "Request entity too large: limit is 8388608")
        return parse_body(bytes(body), request.headers.get("Content-Type", "application/json")) if body else None

    async def _watch(self, request: web.BaseRequest, target: Target) -> web.StreamResponse:
        query = dict(request.query)
        # Watching a single object is a watch of its collection with a field selector.
        if target.name:
            query["fieldSelector"] = f"metadata.name={target.name}"
        shown = as_metadata if wants_metadata(request.headers.get("Accept", "")) else None
        watch = Watch(self._store, target, query, shown)
        self._watches.add(watch)
        try:
            response = web.StreamResponse(headers={"Content-Type": "application/json"})
            response.enable_chunked_encoding()
            await response.prepare(request)
            async for line in watch.lines():
                await response.write(line)
            await response.write_eof()
        finally:
            self._watches.discard(watch)
        return response


def _no_page() -> web.Response:
    """Return what a path gets that is below no group and version: no Status object."""
    return web.Response(status=404, text="404 page not found\n")


def _away() -> web.Response:
    """Return what the paths of a group get whose own API server does not answer: no Status object."""
    return web.Response(status=503, text="service unavailable\n")


def _json(obj: Obj, code: int) -> web.Response:
    return web.Response(
        body=json.dumps(obj, separators=(",", ":")).encode(), status=code, content_type="application/json"
    )


def _warned(response: web.Response, obj: Obj, verb: str) -> web.Response:
    """Add the warning of an API server about a label of nodes that is deprecated."""
    template = ((obj.get("spec") or {}).get("template") or {}).get("spec") or {}
    if verb in {"create", "update", "patch"} and _OLD_LABEL in (template.get("nodeSelector") or {}):
        place = f"spec.template.spec.nodeSelector[{_OLD_LABEL}]"
        text = f'{place}: deprecated since v1.14; use \\"kubernetes.io/os\\" instead'
        response.headers.add("Warning", f'299 - "{text}"')
    return response


def _refusal(error: ApiError) -> web.Response:
    response = _json(error.status(), error.code)
    if error.retry_after_s:
        response.headers["Retry-After"] = str(error.retry_after_s)
    return response


def _aggregated_version(accept: str) -> str:
    asked = next(part for part in accept.split(",") if _AGGREGATED in part)
    parameters = dict(piece.strip().partition("=")[::2] for piece in asked.split(";")[1:])
    # v2 if the client names no version; kubectl before 1.30 asks for v2beta1.
    return f"apidiscovery.k8s.io/{parameters.get('v', 'v2')}"


def _aggregated(document: Obj, accept: str) -> web.Response:
    version = _aggregated_version(accept).partition("/")[2]
    response = _json(document, 200)
    response.headers["Content-Type"] = f"application/json;g=apidiscovery.k8s.io;v={version};{_AGGREGATED}"
    return response


def _version_info(version: str) -> Obj:
    major, minor, *_ = version.removeprefix("v").split(".")
    return {
        "major": major,
        "minor": minor,
        "gitVersion": version,
        "gitCommit": "0" * 40,
        "gitTreeState": "clean",
        "buildDate": "2024-12-10T00:00:00Z",
        "goVersion": "go1.23",
        "compiler": "gc",
        "platform": "linux/amd64",
    }
