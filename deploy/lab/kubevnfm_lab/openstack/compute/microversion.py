"""Nova's micro-versions: the one that a client requests, and the headers of the answer."""

from __future__ import annotations

from aiohttp import web

from kubevnfm_lab.openstack.compute.views import NEWEST_MINOR
from kubevnfm_lab.openstack.wire import Call


def headers(request: web.Request, request_id: str) -> dict[str, str]:
    """Return the headers of every answer of Nova."""
    version = f"2.{_asked_minor(request)}"
    return {
        "OpenStack-API-Version": f"compute {version}",
        "X-OpenStack-Nova-API-Version": version,
        "Vary": "OpenStack-API-Version, X-OpenStack-Nova-API-Version",
        "X-Compute-Request-ID": request_id,
    }


def minor_of(call: Call) -> int:
    """Return the second number of the micro-version that the client asked for."""
    return _asked_minor(call.request)


def _asked_minor(request: web.Request) -> int:
    text = request.headers.get("OpenStack-API-Version", "")
    kind, _, version = text.partition(" ")
    if kind != "compute":
        version = request.headers.get("X-OpenStack-Nova-API-Version", "2.1")
    if version == "latest":
        return NEWEST_MINOR
    minor = version.partition(".")[2]
    return min(int(minor), NEWEST_MINOR) if minor.isdigit() else 1
