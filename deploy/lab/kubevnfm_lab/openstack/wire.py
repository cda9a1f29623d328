"""One HTTP call to one service: count and faults first, then the token, the handler, and the service's errors."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from aiohttp import web

from kubevnfm_lab.openstack.errors import ServiceError, bad_request
from kubevnfm_lab.openstack.ids import new_request_id
from kubevnfm_lab.openstack.tokens import Identity, Token
from kubevnfm_lab.ports import ConnectionDropped, FaultInjected, Faults, Ledger

log = logging.getLogger(__name__)

Json = dict[str, Any]
_GLANCE_STRANGER: Final = (
    "This server could not verify that you are authorized to access the document you requested. Either you supplied the"
    " wrong credentials (e.g., bad password), or your browser does not understand how to supply the credentials required."
)
_TYPES: Final = {
    "heat": "orchestration", "nova": "compute", "neutron": "network", "glance": "image", "cinder": "volumev3",
}  # fmt: skip
"""The names of the services in access rules; Keystone does not limit what is called here."""
_WILD: Final = {"**": ".*", "*": "[^/]+"}
_WITH_BODY: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})


class Gate:
    """The gate of every call, over HTTP or from Heat to another service: it is counted, then faults apply."""

    def __init__(self, faults: Faults, ledger: Ledger) -> None:
        self._faults, self._ledger = faults, ledger

    async def enter(self, part: str, verb: str, node: str = "") -> None:
        """Return if the call may proceed; raise the fault's error otherwise."""
        self._ledger.count(part, verb, node=node)
        await self._faults.check(part, verb, node=node)


class Call:
    """One call, as its handler sees it."""

    __slots__ = ("body", "request", "token")

    def __init__(self, request: web.Request, token: Token, body: Json) -> None:
        self.request, self.token, self.body = request, token, body

    @property
    def project_id(self) -> str:
        """The project of the caller's token."""
        return self.token.project.project_id

    def path(self, name: str) -> str:
        """Return a variable of the route."""
        return self.request.match_info[name]

    def query(self, name: str) -> str | None:
        """Return the first value of a query parameter."""
        return self.request.query.get(name)

    def queries(self, name: str) -> list[str]:
        """Return all values of a query parameter."""
        return list(self.request.query.getall(name, ()))

    def part_of_body(self, part: str, key: str) -> Json:
        """Return the object under ``key`` in the body; raise the service's 400 that names the key if there is none."""
        value = self.body.get(key)
        if not isinstance(value, dict):
            raise bad_request(part, f"Invalid input for field/attribute {key}: an object is expected.")
        return value


Handler = Callable[[Call], Awaitable[web.StreamResponse]]
NodeOf = Callable[[Call], str]
HeadersOf = Callable[[web.Request, str], Mapping[str, str]]
"""Returns the headers of all answers of a service, for a request and its id."""


class Wire:
    """The routes of one service under its prefix."""

    def __init__(
        self,
        part: str,
        prefix: str,
        app: web.Application,
        *,
        gate: Gate,
        identity: Identity,
        headers: HeadersOf = lambda request, request_id: {},
    ) -> None:
        self.part, self.prefix = part, prefix
        self._headers = headers
        self._app, self._gate, self._identity = app, gate, identity

    def route(
        self,
        method: str,
        path: str,
        verb: str,
        handler: Handler,
        *,
        open_to_all: bool = False,
        raw_body: bool = False,
        node: NodeOf | None = None,
    ) -> None:
        """Serve ``method prefix+path``; ``verb``: its name for faults and counters; ``node``: finds the machine's name."""

        async def answer(request: web.Request) -> web.StreamResponse:
            request_id = new_request_id()
            try:
                body = {} if raw_body or method not in _WITH_BODY else await self._json(request)
                call = Call(request, ANONYMOUS, body)
                # Before the token is checked: a service that is down refuses every call.
                await self._gate.enter(self.part, verb, node(call) if node else "")
                if not open_to_all:
                    call.token = self._token(request)
                response = await handler(call)
            except ServiceError as error:
                response = self.refusal(error)
            except FaultInjected as fault:
                kind = "HTTPInternalServerError" if fault.status == 500 else "FaultInjected"
                response = self.refusal(ServiceError(self.part, fault.status, kind, fault.message))
            except ConnectionDropped:
                return drop(request)
            if not response.prepared:
                response.headers["X-OpenStack-Request-ID"] = request_id
                response.headers.update(self._headers(request, request_id))
            return response

        self._app.router.add_route(method, self.prefix + path, answer)

    def refusal(self, error: ServiceError) -> web.Response:
        """Return the answer to a refused call, in the service's own format."""
        body = error.body()
        if isinstance(body, str):
            response = web.Response(text=body, status=error.status, content_type="text/html")
        else:
            response = json_answer(body, error.status)
        if error.status == 401:
            response.headers["WWW-Authenticate"] = 'Keystone uri="/identity"'
        return response

    def _token(self, request: web.Request) -> Token:
        token = self._identity.find(request.headers.get("X-Auth-Token", ""))
        if token is None or not self._is_allowed(token, request):
            # Glance answers with a page of its own, the others with the JSON of keystonemiddleware.
            if self.part == "glance":
                raise ServiceError("glance", 401, "Unauthorized", _GLANCE_STRANGER)
            message = "The request you have made requires authentication."
            raise ServiceError("keystone", 401, "Unauthorized", message)
        return token

    def _is_allowed(self, token: Token, request: web.Request) -> bool:
        """Return whether the access rules of the token's application credential allow the call (keystonemiddleware)."""
        rules = token.credential.rules if token.credential is not None else []
        if not rules or self.part not in _TYPES:
            return True
        path = request.path.removeprefix(self.prefix)
        return any(
            (rule["service"], rule["method"]) == (_TYPES[self.part], request.method)
            and re.fullmatch(re.sub(r"\*\*|\*", lambda found: _WILD[found[0]], rule["path"]), path)
            for rule in rules
        )

    async def _json(self, request: web.Request) -> Json:
        if not request.can_read_body:
            return {}
        raw = await request.read()
        if not raw:
            return {}
        try:
            body = json.loads(raw)
        except ValueError as error:
            raise bad_request(self.part, f"Malformed request body: {error}", "HTTPBadRequest") from error
        if body is None:
            return {}
        if not isinstance(body, dict):
            # Handlers look up the member that they need and refuse the body that lacks it.
            return {"": body}
        return body


def drop(request: web.Request) -> web.Response:
    """Close the connection without an answer; the returned one is never sent."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response(status=499)


def json_answer(body: Any, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    """Return a JSON answer."""
    return web.Response(body=json.dumps(body).encode(), status=status, headers=headers, content_type="application/json")


def no_content(status: int = 204, headers: Mapping[str, str] | None = None) -> web.Response:
    """Return an answer without a body."""
    return web.Response(status=status, headers=headers)


def base_url(request: web.Request) -> str:
    """Return the scheme and host under which the client reached the lab, for links."""
    return f"{request.scheme}://{request.host}"


ANONYMOUS: Final = Token.anonymous()
