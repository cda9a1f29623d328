"""The lab's own HTTP interface, for tests and people: faults, inventory, calls, quotas, durations."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from aiohttp import web

from kubevnfm_lab.faults import CallLedger, Fault, FaultBook
from kubevnfm_lab.openstack.cloud import Cloud
from kubevnfm_lab.ports import Clusters, Machines

_KINDS: Final[Mapping[str, tuple[type, ...]]] = {
    "part": (str,),
    "verb": (str,),
    "node": (str,),
    "effect": (str,),
    "seconds": (int, float),
    "status": (int,),
    "message": (str,),
    "times": (int,),
    "after": (int,),
}
"""The fields that a client may give in a fault, with the check of each and what it expects."""


class Refused(Exception):
    """Invalid input: the field and what was expected."""

    def __init__(self, field: str, reason: str, *, status: int = 400) -> None:
        super().__init__(reason)
        self.field, self.reason, self.status = field, reason, status


class Control:
    """The handlers of the routes under /lab/v1."""

    def __init__(
        self, *, cloud: Cloud, machines: Machines, clusters: Clusters, faults: FaultBook, ledger: CallLedger
    ) -> None:
        self._cloud, self._machines, self._clusters = cloud, machines, clusters
        self._faults, self._ledger = faults, ledger

    def serve_on(self, app: web.Application) -> None:
        """Add the routes to an application."""
        routes = (
            ("GET", "/health", self.health),
            ("GET", "/faults", self.list_faults),
            ("POST", "/faults", self.add_fault),
            ("DELETE", "/faults", self.clear_faults),
            ("DELETE", "/faults/{id}", self.remove_fault),
            ("GET", "/inventory", self.inventory),
            ("GET", "/calls", self.calls),
            ("DELETE", "/calls", self.clear_calls),
            ("GET", "/quotas", self.quotas),
            ("PUT", "/quotas", self.change_quotas),
            ("GET", "/settings", self.durations),
            ("PUT", "/settings", self.change_durations),
            ("DELETE", "/tokens", self.revoke_tokens),
        )
        for method, path, handler in routes:
            app.router.add_route(method, f"/lab/v1{path}", handler)

    async def health(self, request: web.Request) -> web.Response:
        """Report that the lab runs."""
        return web.json_response({"status": "ok"})

    async def list_faults(self, request: web.Request) -> web.Response:
        """Return the faults in force."""
        return web.json_response([fault.public() for fault in self._faults.all()])

    async def add_fault(self, request: web.Request) -> web.Response:
        """Add a fault and return it with its id."""
        try:
            rule = await _object(request)
            _check_fault(rule)
            return web.json_response(self._faults.add(**rule).public(), status=201)
        except Refused as refused:
            return _refusal(refused)

    async def clear_faults(self, request: web.Request) -> web.Response:
        """Remove all faults."""
        self._faults.clear()
        return web.Response(status=204)

    async def remove_fault(self, request: web.Request) -> web.Response:
        """Remove one fault; calls that hang in it continue."""
        text = request.match_info["id"]
        if not text.isdigit() or not self._faults.remove(int(text)):
            return _refusal(Refused("id", f"there is no fault {text!r}", status=404))
        return web.Response(status=204)

    async def inventory(self, request: web.Request) -> web.Response:
        """Return everything that users created and did not delete."""
        machines, clusters = list(self._machines.inventory()), list(self._clusters.inventory())
        return web.json_response({**self._cloud.inventory(), "machines": machines, "clusters": clusters})

    async def calls(self, request: web.Request) -> web.Response:
        """Return how often each kind of call was made."""
        return web.json_response(self._ledger.calls())

    async def clear_calls(self, request: web.Request) -> web.Response:
        """Reset the counters."""
        self._ledger.clear()
        return web.Response(status=204)

    async def quotas(self, request: web.Request) -> web.Response:
        """Return the limits; -1 means unlimited."""
        return web.json_response(self._cloud.quotas.limits)

    async def change_quotas(self, request: web.Request) -> web.Response:
        """Change the named limits and return all."""
        try:
            self._cloud.quotas.change(await _object(request))
        except Refused as refused:
            return _refusal(refused)
        except ValueError as error:
            return _refusal(_naming(error))
        return await self.quotas(request)

    async def durations(self, request: web.Request) -> web.Response:
        """Return how long things take."""
        return web.json_response(vars(self._cloud.durations))

    async def change_durations(self, request: web.Request) -> web.Response:
        """Change the named durations and return all."""
        try:
            self._cloud.durations.change(await _object(request))
        except Refused as refused:
            return _refusal(refused)
        except ValueError as error:
            return _refusal(_naming(error))
        return await self.durations(request)

    async def revoke_tokens(self, request: web.Request) -> web.Response:
        """Invalidate all Keystone tokens, as the loss of Keystone's keys does."""
        return web.json_response({"revoked": self._cloud.identity.revoke_all()})


async def _object(request: web.Request) -> dict[str, Any]:
    try:
        body = json.loads(await request.read())
    except ValueError as error:
        raise Refused("", f"a JSON object expected: {error}") from error
    if not isinstance(body, dict):
        raise Refused("", "a JSON object expected")
    return body


def _check_fault(rule: Mapping[str, Any]) -> None:
    for name, value in rule.items():
        kinds = _KINDS.get(name)
        if kinds is None:
            raise Refused(name, f"no such field; there are {', '.join(_KINDS)}")
        # In Python a bool is an int, but `"times": true` is a mistake.
        if isinstance(value, bool) or not isinstance(value, kinds):
            expected = " or ".join(kind.__name__ for kind in kinds)
            raise Refused(name, f"{expected} expected, got {value!r}")
    if rule.get("effect", "fail") not in Fault.EFFECTS:
        raise Refused("effect", f"one of {', '.join(Fault.EFFECTS)} expected, got {rule['effect']!r}")
    if rule.get("seconds", 0) < 0:
        raise Refused("seconds", "0 or more expected")
    if not 100 <= rule.get("status", 500) <= 599:
        raise Refused("status", "an HTTP status, 100 to 599, expected")


def _naming(error: ValueError) -> Refused:
    field, _, reason = str(error).partition(": ")
    return Refused(field, reason)


def _refusal(refused: Refused) -> web.Response:
    body = {"error": {"field": refused.field, "message": refused.reason}}
    return web.json_response(body, status=refused.status)
