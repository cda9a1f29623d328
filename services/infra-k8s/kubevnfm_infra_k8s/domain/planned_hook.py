"""The hook of an object, as it is planned and stored (multicloud.md MC-141)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from kubevnfm_csar.hooks import Hook
from kubevnfm_csar.order_graph import Place
from kubevnfm_csar.waits import Wait, WantedResult, WantedValue

from kubevnfm_infra_k8s.domain.objects import Body, ObjectKey, Resource, Wanted

_RUN_TO_AN_END: Final = frozenset({("batch", "Job"), ("", "Pod")})


@dataclass(frozen=True)
class PlannedHook:
    """A hook as it is sent."""

    key: ObjectKey
    body: Body = field(repr=False)
    """Not in repr, because it may be a Secret."""
    resource: Resource
    file: str
    hook: Hook
    priority: int = 0
    timeout_s: int | None = None
    wait: Wait = Wait.READY
    wanted: WantedValue | WantedResult | None = None
    place: Place = ("", 0)
    after: frozenset[Place] = frozenset()
    """The hooks of its points that run before, whatever the priorities."""

    @property
    def runs_to_an_end(self) -> bool:
        """Whether it is awaited until it has ended well: a Job or a Pod."""
        return (self.key.group, self.key.kind) in _RUN_TO_AN_END

    @classmethod
    def from_wanted(cls, wanted: Wanted, hook: Hook) -> PlannedHook:
        """Return the hook of an object."""
        artifact = wanted.artifact
        return cls(
            wanted.key,
            wanted.body,
            wanted.resource,
            wanted.file,
            hook,
            priority=hook.weight if hook.weight is not None else artifact.priority if artifact is not None else 0,
            timeout_s=artifact.timeout_s if artifact is not None else None,
            wait=artifact.wait if artifact is not None else Wait.READY,
            wanted=artifact.wanted if artifact is not None else None,
            place=(wanted.file, wanted.document),
            after=wanted.after or frozenset(),
        )
