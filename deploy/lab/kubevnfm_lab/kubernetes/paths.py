"""A request's method and path, parsed: which resource, which object, which verb."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

_WRITES: Final = {"POST": "create", "PUT": "update", "PATCH": "patch"}


@dataclass(frozen=True)
class RequestInfo:
    """The parsed request."""

    verb: str
    group: str = ""
    version: str = ""
    resource: str = ""
    """Empty if the path is not that of a resource."""
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
        """The request's name for faults and ledger: ``patch deployments``, ``get /version``."""
        return f"{self.verb} {self.qualified_resource or self.path}"


def request_info(method: str, path: str, query: Mapping[str, str]) -> RequestInfo:
    """Return the parsed form of a method and a path that is still quoted."""
    parts = [unquote(part) for part in path.split("/") if part]
    if parts[:1] == ["api"] and len(parts) > 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[:1] == ["apis"] and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return RequestInfo(method.lower(), path="/" + "/".join(parts))
    namespace = ""
    if rest[0] == "namespaces" and not group and (len(rest) < 3 or rest[2] in {"status", "finalize"}):
        # For authorization a namespace, as an object, is inside itself.
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
