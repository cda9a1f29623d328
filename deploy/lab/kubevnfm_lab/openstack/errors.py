"""Refused calls: what every service raises, its form on the wire, and Heat's text for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from kubevnfm_lab.openstack.ids import new_request_id

TITLE: Final[dict[int, str]] = {
    300: "Multiple Choices",
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    409: "Conflict",
    413: "Request Entity Too Large",
    429: "Too Many Requests",
    500: "Internal Server Error",
    503: "Service Unavailable",
    504: "Gateway Timeout",
}

_HEAT_EXPLANATION: Final[dict[int, str]] = {
    400: "The server could not comply with the request since it is either malformed or otherwise incorrect.",
    401: "This server could not verify that you are authorized to access the document you requested.",
    403: "Access was denied to this resource.",
    404: "The resource could not be found.",
    409: "There was a conflict when trying to complete your request.",
    500: "The server has either erred or is incapable of performing the requested operation.",
    503: "The server is currently unavailable. Please try again at a later time.",
}

_NOVA_FAULT: Final[dict[int, str]] = {
    400: "badRequest",
    401: "unauthorized",
    403: "forbidden",
    404: "itemNotFound",
    405: "badMethod",
    409: "conflictingRequest",
    413: "overLimit",
    429: "overLimit",
    501: "notImplemented",
    503: "serviceUnavailable",
}

_CLIENT_CLASS: Final[dict[int, str]] = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    413: "OverLimit",
    429: "RateLimit",
}


@dataclass(eq=False)
class ServiceError(Exception):
    """A call that one service refuses."""

    part: str
    """keystone, heat, nova, neutron, glance, cinder or octavia."""
    status: int
    kind: str
    """The service's own name of the error: Heat's and Neutron's ``type``."""
    message: str

    def __str__(self) -> str:
        return self.message

    def body(self) -> Any:
        """Return the body of the answer: a JSON-able object, or HTML text for Glance."""
        return _BODY[self.part](self)

    def as_seen_by_heat(self) -> tuple[str, str]:
        """Return the exception's class name and text as Heat's client of the service has them."""
        request_id = new_request_id()
        if self.part == "neutron":
            # Each client library words its exceptions in its own way, and Heat quotes them in stack_status_reason.
            text = f"{self.message}\nNeutron server returns request_ids: ['{request_id}']"
            return self._neutron_client_class(), text
        if self.part == "glance":
            return f"HTTP{self.kind}", f"HTTP {self.status} {TITLE.get(self.status, 'Error')}: {self.message}"
        name = _CLIENT_CLASS.get(self.status, "ClientException")
        return name, f"{self.message} (HTTP {self.status}) (Request-ID: {request_id})"

    def _neutron_client_class(self) -> str:
        if self.kind in _NEUTRON_CLIENT_CLASSES:
            return f"{self.kind}Client"
        return _CLIENT_CLASS.get(self.status, "NeutronClientException")


_NEUTRON_CLIENT_CLASSES: Final = frozenset(
    {
        "NetworkNotFound",
        "PortNotFound",
        "NetworkInUse",
        "PortInUse",
        "IpAddressInUse",
        "IpAddressGenerationFailure",
        "OverQuota",
        "IpAddressAlreadyAllocated",
    }
)


def _keystone(error: ServiceError) -> Any:
    title = TITLE.get(error.status, "Error")
    return {"error": {"code": error.status, "message": error.message, "title": title}}


def _heat(error: ServiceError) -> Any:
    return {
        "code": error.status,
        "title": TITLE.get(error.status, "Error"),
        "explanation": _HEAT_EXPLANATION.get(error.status, ""),
        "error": {"type": error.kind, "traceback": None, "message": error.message},
    }


def _nova(error: ServiceError) -> Any:
    return {_NOVA_FAULT.get(error.status, "computeFault"): {"code": error.status, "message": error.message}}


def _neutron(error: ServiceError) -> Any:
    return {"NeutronError": {"type": error.kind, "message": error.message, "detail": ""}}


def _glance(error: ServiceError) -> Any:
    return webob_page(error.status, f"{error.message}<br /><br />\n")


def _octavia(error: ServiceError) -> Any:
    # The form of WSME, under Octavia's API.
    fault = "Client" if error.status < 500 else "Server"
    return {"faultcode": fault, "faultstring": error.message, "debuginfo": None}


_BODY: Final = {
    "keystone": _keystone,
    "heat": _heat,
    "nova": _nova,
    "cinder": _nova,
    "neutron": _neutron,
    "glance": _glance,
    "octavia": _octavia,
}


def webob_page(status: int, text: str) -> str:
    """Return the HTML page that WebOb, under Heat and Glance, answers for a status without a JSON body."""
    title = f"{status} {TITLE.get(status) or {202: 'Accepted', 302: 'Found'}.get(status, 'Error')}"
    return f"<html>\n <head>\n  <title>{title}</title>\n </head>\n <body>\n  <h1>{title}</h1>\n  {text}\n\n\n </body>\n</html>"


def not_found(part: str, kind: str, message: str) -> ServiceError:
    """Return the 404 of a service."""
    return ServiceError(part, 404, kind, message)


def bad_request(part: str, message: str, kind: str = "BadRequest") -> ServiceError:
    """Return the 400 of a service."""
    return ServiceError(part, 400, kind, message)


def conflict(part: str, kind: str, message: str) -> ServiceError:
    """Return the 409 of a service."""
    return ServiceError(part, 409, kind, message)
