"""The reasons for which a pass waits."""

from __future__ import annotations

from dataclasses import dataclass

from kubevnfm_infra_k8s.domain.objects import Body, ObjectKey, Resource, field_at


@dataclass(frozen=True)
class Watched:
    """An object whose change would bring news."""

    resource: Resource
    key: ObjectKey
    version: str
    """The one that was seen."""

    @classmethod
    def from_body(cls, resource: Resource, key: ObjectKey, body: Body) -> Watched:
        return cls(resource, key, version_of(body))


class NotYet(Exception):
    """The document is not as wanted; later it may become so."""

    def __init__(self, reason: str, *watched: Watched) -> None:
        super().__init__(reason)
        self.watched = watched


def version_of(body: Body) -> str:
    """Return the version of an object as it was seen."""
    return str(field_at(body, "metadata", "resourceVersion") or "")
