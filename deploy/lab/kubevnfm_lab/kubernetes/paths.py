"""A request's path and method, taken apart: which resource, which object, which verb."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

_WRITES: Final = {"POST": "create", "PUT": "update", "PATCH": "patch"}


@dataclass(frozen=True)
class RequestInfo:
    """What a request asks for."""

    verb: str
    group: str = ""
    version: str = ""
    resource: str = ""
    """Empty when the path is that of no resource."""
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    path: str = ""

    @property
    def qualified_resource(self) -> str:
        """``pods/log``."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource

    @property
    def spoken(self) -> str:
        """The request as faults and ledger name it: ``patch deployments``, ``get /version``."""
        return f"{self.verb} {self.qualified_resource or self.path}"


def request_info(method: str, path: str, query: Mapping[str, str]) -> RequestInfo:
    """Return what the method and the (still quoted) path ask for."""
    parts = [unquote(part) for part in path.split("/") if part]
    if parts[:1] == ["api"] and len(parts) > 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[:1] == ["apis"] and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return RequestInfo(method.lower(), path="/" + "/".join(parts))
    namespace = ""
    if rest[0] == "namespaces" and not group and (len(rest) < 3 or rest[2] in {"status", "finalize"}):
        # A namespace as an object lives in itself, for authorization.
        namespace = ""
    elif rest[0] == "namespaces" and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    name = rest[1] if len(rest) > 1 else ""
    return RequestInfo(
        verb=_verb(method, name, query),
        group=group,
        version=version,
        resource=rest[0],
        namespace=namespace,
        name=name,
        subresource="/".join(rest[2:]),
        path="/" + "/".join(parts),
    )


def _verb(method: str, name: str, query: Mapping[str, str]) -> str:
    if method in {"GET", "HEAD"}:
        if query.get("watch") in {"true", "1"}:
            return "watch"
        return "get" if name else "list"
    if method == "DELETE":
        return "delete" if name else "deletecollection"
    return _WRITES.get(method, method.lower())
