"""A small A&AI: the nodes that the inventory is exported as, with the rules of the real one.

Written from onap/aai-aai-common (docs/AAI REST API Documentation, and the error codes of its serializer) and the schema of
onap/aai-schema-service (oxm/v14, dbedgerules/v30): an attribute that a node does not have, or a missing one, is 400; a creation
with a ``resource-version``, or a change or removal without the present one, is 412, also for children in a body; the parent of a node
and the ends of relationships must exist (404); a list of children that is sent replaces the one that is there, and one that is not
sent leaves it; ``bulk/single-transaction`` has at most 30 operations, of which all are made or none.
"""

from __future__ import annotations

import asyncio
import base64
import itertools
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qs, unquote, urlsplit

from aiohttp import web
from kubevnfm_kit.http import serving

Body = dict[str, Any]
USER: Final = "vnfm"
PASSWORD: Final = "password-of-aai"
MOST_OPERATIONS: Final = 30


@dataclass(frozen=True)
class Kind:
    """A type of node."""

    keys: tuple[str, ...]
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    bare: tuple[str, ...] = ()
    """Children in a list of their own, without a container."""
    containers: Mapping[str, str] = field(default_factory=dict)
    """The kind of children by the name of their container."""
    has_edges: bool = True
    refuses_with: tuple[str, ...] = ()
    """The containers with which it cannot be deleted."""


# Attributes with a default (in-maint and its like) may be left out.
KINDS: Final[Mapping[str, Kind]] = {
    "cloud-region": Kind(
        ("cloud-owner", "cloud-region-id"), (),
        ("cloud-type", "owner-defined-type", "cloud-region-version", "identity-url", "cloud-zone", "complex-name",
         "sriov-automation", "cloud-extra-info"),
        containers={"tenants": "tenant", "hpa-capabilities": "hpa-capability"}, refuses_with=("tenants",),
    ),
    "tenant": Kind(("tenant-id",), ("tenant-name",), ("tenant-context",), containers={"vservers": "vserver"}, refuses_with=("vservers",)),
    "vserver": Kind(
        ("vserver-id",), ("vserver-name", "vserver-selflink"),
        ("vserver-name2", "prov-status", "in-maint", "is-closed-loop-disabled"), containers={"l-interfaces": "l-interface"},
    ),
    "l-interface": Kind(
        ("interface-name",), (),
        ("interface-role", "macaddr", "network-name", "is-port-mirrored"),
        ("l3-interface-ipv4-address-list", "l3-interface-ipv6-address-list"),
    ),
    "l3-interface-ipv4-address-list": Kind(("l3-interface-ipv4-address",), (), ("l3-interface-ipv4-prefix-length",)),
    "l3-interface-ipv6-address-list": Kind(("l3-interface-ipv6-address",), (), ("l3-interface-ipv6-prefix-length",)),
    "generic-vnf": Kind(
        ("vnf-id",), ("vnf-type",),
        ("vnf-name", "prov-status", "in-maint", "is-closed-loop-disabled", "selflink", "orchestration-status"),
    ),
    "l3-network": Kind(
        ("network-id",), (),
        ("network-name", "network-type", "network-role", "network-technology", "selflink", "is-bound-to-vpn",
         "is-provider-network", "is-shared-network", "is-external-network", "orchestration-status"),
        containers={"subnets": "subnet"},
    ),
    "subnet": Kind(
        ("subnet-id",), (),
        ("subnet-name", "network-start-address", "cidr-mask", "ip-version", "gateway-address", "dhcp-enabled"),
    ),
    "hpa-capability": Kind(
        ("hpa-capability-id",), ("hpa-feature",), ("hpa-version", "architecture"), ("hpa-feature-attributes",)
    ),
    "hpa-feature-attributes": Kind(("hpa-attribute-key",), (), ("hpa-attribute-value",)),
}  # fmt: skip
_ROOTS: Final = {
    "cloud-infrastructure": {"cloud-regions": "cloud-region"},
    "network": {"generic-vnfs": "generic-vnf", "l3-networks": "l3-network"},
}
_EDGES: Final = frozenset({("vserver", "generic-vnf"), ("l3-network", "cloud-region"), ("l3-network", "generic-vnf")})


class Refusal(Exception):
    """An operation that A&AI refuses."""

    def __init__(self, status: int, code: str, text: str) -> None:
        super().__init__(text)
        self.status, self.code = status, code

    def answer(self, method: str, path: str) -> web.Response:
        """Return it as A&AI writes it."""
        variables = [method, path, str(self), f"ERR.5.4.{self.code}"]
        text = "Invalid input performing %1 on %2 (msg=%3) (ec=%4)"
        exception = {"messageId": "SVC3000", "text": text, "variables": variables}
        return web.json_response({"requestError": {"serviceException": exception}}, status=self.status)


@dataclass
class Vertex:
    """A node of the graph."""

    kind: str
    attributes: Body
    version: str
    children: dict[str, Vertex] = field(default_factory=dict)
    """By ``<container or kind>/<key>``."""
    edges: list[Body] = field(default_factory=list)

    @property
    def alone(self) -> Body:
        """The node without children and edges."""
        return {**self.attributes, "resource-version": self.version}


@dataclass
class Aai:
    """The running server."""

    url: str = ""
    roots: dict[str, Vertex] = field(default_factory=dict)
    fault: int = 0
    """The status that every request gets; 0: none."""
    odd: dict[str, str] = field(default_factory=dict)
    """The texts with which requests whose paths end like this are answered, with 200."""
    reads: list[str] = field(default_factory=list)
    """The path and query of each GET."""
    refused: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Parts of paths whose changes are refused: the status, and how often."""
    calls: list[tuple[str, int]] = field(default_factory=list)
    """The method or, of a transaction, the number of its operations, and the status of each request."""
    held: str = ""
    """A part of a path: a transaction with it waits for `let_go`, and is carried out even if its caller has gone."""
    holds: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once a transaction waits."""
    let_go: asyncio.Event = field(default_factory=asyncio.Event)
    collisions: list[str] = field(default_factory=list)
    """Nodes that two transactions changed at the same time: the real one may have made two of them."""
    headers: list[Mapping[str, str]] = field(default_factory=list)
    pause_s: float = 0.0
    _changing: Counter[str] = field(default_factory=Counter)
    _undo: list[Callable[[], object]] = field(default_factory=list)
    _versions: Iterator[int] = field(default_factory=lambda: itertools.count(1_700_000_000_000))

    # The methods for a test, which is another client.

    def node(self, path: str) -> Body | None:
        """Return a node as a GET shows it."""
        found = self._find(_steps(path))
        return None if found is None else self._shown(found)

    def paths(self, kind: str) -> list[str]:
        """Return the paths of all nodes of a kind."""
        return sorted(path for path, vertex in self._walk() if vertex.kind == kind)

    def put(self, path: str, body: Body) -> None:
        """Create or change a node."""
        self._put(path, body)

    def edit(self, path: str, **attributes: Any) -> None:
        """Change attributes of a node, as PATCH does."""
        found = self._find(_steps(path))
        assert found is not None
        found.attributes |= {name.replace("_", "-"): value for name, value in attributes.items()}
        found.version = str(next(self._versions))

    def clear(self) -> None:
        """Lose everything."""
        self.roots.clear()

    # The server.

    async def serve(self, request: web.Request) -> web.Response:
        """Answer one request."""
        prefix, _, path = urlsplit(request.raw_path).path.partition("/v14/")
        raw = await request.read()
        await asyncio.sleep(self.pause_s)
        for end, text in self.odd.items():
            if path.endswith(end):
                return web.Response(text=text)
        answer = self._answer(request, prefix, f"/{path}") if request.method == "GET" else None
        if answer is None:
            answer = await self._bulk(request, raw)
        self.headers.append(dict(request.headers))
        return answer

    def _answer(self, request: web.Request, prefix: str, path: str) -> web.Response:
        answer = self._unfit(request)
        if answer is None:
            self.reads.append(request.raw_path)
            found = self._find(_steps(path)) if prefix == "/aai" else None
            is_whole = request.query.get("depth") == "all"
            answer = (
                web.json_response(self._shown(found) if is_whole else found.alone)
                if found is not None
                else Refusal(404, "6114", "Resource not found").answer("GET", path)
            )
        self.calls.append(("GET", answer.status))
        return answer

    def _unfit(self, request: web.Request) -> web.Response | None:
        if self.fault:
            return web.Response(status=self.fault, text="<html>fault of the test</html>")
        wanted = f"Basic {base64.b64encode(f'{USER}:{PASSWORD}'.encode()).decode()}"
        if request.headers.get("Authorization") != wanted:
            return web.Response(status=401)
        if not request.headers.get("X-FromAppId") or not request.headers.get("X-TransactionId"):
            return Refusal(400, "4009", "Missing header").answer(request.method, request.path)
        return None

    async def _bulk(self, request: web.Request, raw: bytes) -> web.Response:
        answer, count = self._unfit(request), 0
        if answer is None:
            if request.method != "POST" or request.path != "/aai/v14/bulk/single-transaction":
                return web.Response(status=405)
            operations = (await request.json())["operations"]
            count = len(operations)
            paths = [urlsplit(each["uri"]).path for each in operations]
            if self.held and any(self.held in each for each in paths):
                self.held = ""
                self.holds.set()
                await self.let_go.wait()
            self._changing.update(paths)
            self.collisions += [each for each in paths if self._changing[each] > 1]
            # Others come in while one is under way.
            await asyncio.sleep(0)
            answer = self._transaction(request, operations)
            self._changing.subtract(paths)
        self.calls.append((str(count), answer.status))
        return answer

    def _transaction(self, request: web.Request, operations: list[Body]) -> web.Response:
        made: list[Body] = []
        self._undo.clear()
        try:
            if not 0 < len(operations) <= MOST_OPERATIONS:
                raise Refusal(400, "6147", f"Payload Limit Reached: Allowed limit = {MOST_OPERATIONS}")
            for number, each in enumerate(operations):
                try:
                    status = self._operate(each)
                except Refusal as error:
                    text = f"Operation {number} with action ({each['action'].upper()}) on uri ({each['uri']}) failed"
                    raise Refusal(
                        error.status, error.code, f"{text} with status code ({error.status}): {error}"
                    ) from error
                made.append(
                    {
                        "action": each["action"],
                        "uri": each["uri"],
                        "response-status-code": status,
                        "response-body": None,
                    }
                )
        except Refusal as error:
            for back in reversed(self._undo):
                back()
            return error.answer("POST", request.path)
        return web.json_response({"operation-responses": made}, status=201)

    def _operate(self, operation: Body) -> int:
        parts, action = urlsplit(operation["uri"]), operation["action"]
        for part, (status, times) in self.refused.items():
            if part in parts.path and times > 0:
                self.refused[part] = status, times - 1
                raise Refusal(status, "3000", "refused by the test")
        if action == "put":
            return self._put(parts.path, operation["body"])
        if action == "delete":
            version = parse_qs(parts.query).get("resource-version", [""])[0]
            return self._delete(parts.path, version)
        raise Refusal(400, "6111", f"invalid action '{action}'")

    def _put(self, path: str, body: Body) -> int:
        *above, (place, kind, key) = _steps(path)
        siblings = self.roots
        if above:
            parent = self._find(above)
            if parent is None:
                raise Refusal(404, "6114", f"Node Not Found:parent of {path}")
            siblings = parent.children
        given = {**dict(zip(KINDS[kind].keys, key, strict=True)), **body}
        before = siblings.get(place)
        self._set(siblings, place, self._merged(kind, before, given, path))
        return 201 if before is None else 200

    def _set(self, siblings: dict[str, Vertex], place: str, vertex: Vertex | None) -> None:
        """Write a node, or remove it; undone if a later operation of the transaction is refused."""
        before = siblings.get(place)
        if vertex is None:
            del siblings[place]
        else:
            siblings[place] = vertex
        self._undo.append(lambda: siblings.pop(place, None) if before is None else siblings.update({place: before}))

    def _merged(self, kind: str, there: Vertex | None, body: Body, path: str) -> Vertex:
        has, given = KINDS[kind], dict(body)
        version = str(given.pop("resource-version", "") or "")
        self._check_version("update" if there is not None else "create", there, version, path)
        children, edges = ({}, []) if there is None else (dict(there.children), list(there.edges))
        for container, child in has.containers.items():
            if container in given:
                inside = given.pop(container)
                self._replace(children, container, child, inside.get(child, []), path)
        for child in has.bare:
            if child in given:
                self._replace(children, child, child, given.pop(child), path)
        if has.has_edges and "relationship-list" in given:
            edges = [self._edge(kind, each) for each in given.pop("relationship-list").get("relationship", [])]
        unknown = given.keys() - {*has.keys, *has.required, *has.optional}
        missing = [name for name in (*has.keys, *has.required) if not given.get(name)]
        if unknown or missing:
            raise Refusal(400, "3000", f"{kind}: unrecognized {sorted(unknown)}, missing required {missing}")
        for name, value in given.items():
            if isinstance(value, (dict, list)):
                raise Refusal(400, "3000", f"{kind}: {name} is no attribute with members")
        return Vertex(kind, given, str(next(self._versions)), children, edges)

    def _replace(self, children: dict[str, Vertex], place: str, kind: str, bodies: list[Body], path: str) -> None:
        before = {name: children.pop(name) for name in [*children] if name.startswith(f"{place}/")}
        for each in bodies:
            name = f"{place}/{'/'.join(str(each.get(key)) for key in KINDS[kind].keys)}"
            children[name] = self._merged(kind, before.get(name), each, f"{path}/{name}")

    @staticmethod
    def _check_version(action: str, there: Vertex | None, version: str, path: str) -> None:
        present = "" if there is None else there.version
        if version == present:
            return
        if action == "create":
            raise Refusal(412, "6135", f"resource-version passed for create of {path}")
        if not version:
            raise Refusal(412, "6130", f"resource-version not passed for {action} of {path}")
        raise Refusal(412, "6131", f"resource-version MISMATCH for {action} of {path}")

    def _edge(self, kind: str, edge: Body) -> Body:
        other = edge["related-to"]
        if (kind, other) not in _EDGES:
            raise Refusal(400, "6120", f"No EdgeRule found for {kind} and {other}")
        path = str(edge["related-link"]).partition("/v14")[2]
        if self._find(_steps(path)) is None:
            raise Refusal(404, "6129", f"Node of type {other}. Could not find object at: {path}")
        return edge

    def _delete(self, path: str, version: str) -> int:
        *above, (place, _, _) = _steps(path)
        siblings = self.roots
        if above:
            parent = self._find(above)
            siblings = {} if parent is None else parent.children
        there = siblings.get(place)
        if there is None:
            raise Refusal(404, "6114", f"Node Not Found:{path}")
        self._check_version("delete", there, version, path)
        if any(name.partition("/")[0] in KINDS[there.kind].refuses_with for name in there.children):
            raise Refusal(
                400, "6110", f"Object is being reference by additional objects preventing it from being deleted: {path}"
            )
        self._set(siblings, place, None)
        return 204

    def _find(self, steps: list[tuple[str, str, tuple[str, ...]]]) -> Vertex | None:
        children, found = self.roots, None
        for place, _, _ in steps:
            found = children.get(place)
            if found is None:
                return None
            children = found.children
        return found

    def _walk(self) -> Iterator[tuple[str, Vertex]]:
        waiting = [(f"/{name}", vertex) for name, vertex in self.roots.items()]
        while waiting:
            path, vertex = waiting.pop()
            yield path, vertex
            for name, child in vertex.children.items():
                container, _, key = name.partition("/")
                inner = name if container == child.kind else f"{container}/{child.kind}/{key}"
                waiting.append((f"{path}/{inner}", child))

    def _shown(self, vertex: Vertex) -> Body:
        shown = vertex.alone
        for name, child in vertex.children.items():
            container = name.partition("/")[0]
            if container == child.kind:
                shown.setdefault(container, []).append(self._shown(child))
            else:
                shown.setdefault(container, {}).setdefault(child.kind, []).append(self._shown(child))
        # An edge goes with each of its ends.
        there = [each for each in vertex.edges if self._find(_steps(str(each["related-link"]).partition("/v14")[2]))]
        if there:
            label = {"relationship-label": "org.onap.relationships.inventory.Uses"}
            shown["relationship-list"] = {"relationship": [{**each, **label} for each in there]}
        return shown


def _steps(path: str) -> list[tuple[str, str, tuple[str, ...]]]:
    """Return the nodes that a path leads through: place, kind and key of each."""
    namespace, _, rest = path.strip("/").partition("/")
    parts = [unquote(each) for each in rest.split("/")]
    containers: Mapping[str, str] = _ROOTS.get(namespace, {})
    steps: list[tuple[str, str, tuple[str, ...]]] = []
    prefix = f"{namespace}/"
    while parts:
        container, *parts = parts
        kind = containers.get(container)
        if kind is None or not parts or parts.pop(0) != kind:
            raise Refusal(400, "3001", f"Request uri is not valid: {path}")
        count = len(KINDS[kind].keys)
        key, parts = tuple(parts[:count]), parts[count:]
        if len(key) != count:
            raise Refusal(400, "3001", f"Request uri is not valid: {path}")
        place = f"{prefix}{container}/{kind}/{'/'.join(key)}" if prefix else f"{container}/{'/'.join(key)}"
        steps.append((place, kind, key))
        containers, prefix = KINDS[kind].containers, ""
    return steps


@asynccontextmanager
async def aai() -> AsyncIterator[Aai]:
    """Yield a server that has nothing."""
    server = Aai()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server.serve)
    async with serving(app, host="127.0.0.1", port=0) as port:
        server.url = f"http://127.0.0.1:{port}"
        yield server
