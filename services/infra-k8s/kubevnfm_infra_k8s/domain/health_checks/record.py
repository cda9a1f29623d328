"""A health check as it is stored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from kubevnfm_clients.multicloud.health_checks import CheckStatus, HealthCheck, HookResult
from kubevnfm_kit.json_types import JsonObject
from kubevnfm_store.query import Stored
from pydantic import Field

from kubevnfm_infra_k8s.domain.objects import ObjectKey
from kubevnfm_infra_k8s.domain.planned_hook import PlannedHook


class StoredCheck(HealthCheck):
    """`reconciling.ports.Document` for health checks."""

    vim_id: str
    limit_s: float
    """How long it may take from its beginning on."""
    uids: dict[str, str] = Field(default_factory=dict)
    """Those of the objects of its tests that the API server has confirmed, by the number of the test."""
    is_removed: bool = False
    revision: int = 0

    @property
    def is_decided(self) -> bool:
        """Whether it has ended."""
        return self.status != "Running"

    @property
    def is_settled(self) -> bool:
        """Whether nothing is to be done."""
        return self.is_decided and not self.is_removed

    @classmethod
    def from_stored(cls, stored: Stored) -> Self:
        """Return the check of a document."""
        return cls.model_validate({**stored.body["check"], "revision": stored.revision})

    def stored(self) -> JsonObject:
        """Return the document. ``runningOf`` is unique: one check runs at a time for an instance."""
        running = {"runningOf": self.vnf_instance_id} if not self.is_decided and not self.is_removed else {}
        found = {"vnfInstanceId": self.vnf_instance_id, "vimId": self.vim_id, "startedAt": self.started_at}
        return {
            **found,
            **running,
            "settled": self.is_settled,
            "check": self.model_dump(mode="json", exclude={"revision"}),
        }

    def with_result(self, number: int, **changes: Any) -> Self:
        """Return the check with changes of one result."""
        results = list(self.results)
        results[number] = results[number].model_copy(update=changes)
        return self.model_copy(update={"results": tuple(results), "reason": ""})

    def with_uid(self, number: int, uid: str) -> Self:
        """Return the check with the uid of the object of a test."""
        return self.model_copy(update={"uids": {**self.uids, str(number): uid}})

    def ended(self, now: str, *, reason: str = "") -> Self:
        """Return the check at its end. Tests of which no end is known are Unknown then."""
        results = tuple(
            each
            if each.completed_at is not None
            else each.model_copy(update={"status": "Unknown", "completed_at": now, "reason": reason})
            for each in self.results
        )
        found = {each.status for each in results}
        status: CheckStatus = "Failed" if "Failed" in found else "Unknown" if "Unknown" in found else "Succeeded"
        return self.model_copy(update={"results": results, "status": status, "completed_at": now, "reason": reason})

    def without_region(self, reason: str, *, now: str) -> Self:
        """Return the check as it is when its region is not registered any more."""
        return self if self.is_decided else self.ended(now, reason=reason)


def results_of(hooks: Sequence[PlannedHook]) -> tuple[HookResult, ...]:
    """Return the results of tests that have not begun."""
    keys = [each.key for each in hooks]
    return tuple(
        HookResult(api_version=key.api_version, kind=key.kind, namespace=key.namespace, name=key.name) for key in keys
    )


def key_of(result: HookResult) -> ObjectKey:
    """Return the object of a test."""
    return ObjectKey(result.api_version, result.kind, result.namespace, result.name)
