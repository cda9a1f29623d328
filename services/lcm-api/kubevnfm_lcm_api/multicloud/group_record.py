"""The document of a group operation, and its moves. No I/O.

The regions are in the order of their ids. A region is marked RUNNING before its VNF is accepted, and the id of its VNF is derived from
the group and the region: a crash in between leads to the same VNF, never to a second one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, Self

from kubevnfm_kit.ids import derived_id
from kubevnfm_secrets import KeyRing, SecretParams, sealing
from kubevnfm_sol.base import SolType
from kubevnfm_sol.problem import ProblemDetails
from kubevnfm_store.query import Index, Stored
from pydantic import Field

from kubevnfm_lcm_api.multicloud.group_types import (
    GroupCounts,
    GroupOperation,
    GroupRegionResult,
    GroupStatus,
    RegionState,
)

COLLECTION: Final = "group_operations"
INDEXES: Final = {COLLECTION: [Index(["id"]), Index(["isOpen"]), Index(["expiresAt"])]}
LARGE: Final = ("request", "valuesByRegion")
"""The large attributes, which no move changes."""
_ENDED: Final = ("READY", "FAILED", "NOT_STARTED")


class RegionEntry(SolType):
    """A region of the group."""

    cloud_region_id: str
    state: RegionState = "WAITING"
    operation: str | None = None
    """The occurrence that is known to bring its VNF up."""
    failed_at: str | None = None
    """When the operation entered the state that counts as its failure: one that rests there since was not tried again."""
    error: ProblemDetails | None = None

    def vnf_id(self, group_id: str) -> str:
        """Return the id of its VNF."""
        return derived_id("multicloud-group-vnf", group_id, self.cloud_region_id)

    def failed(self, error: ProblemDetails, *, failed_at: str | None = None) -> Self:
        """Return the region after a failure."""
        return self.model_copy(update={"state": "FAILED", "error": error, "failed_at": failed_at})


class GroupRecord(SolType):
    """A group operation."""

    id: str
    created_at: str
    expires_at: str
    by: str = ""
    """The user who has asked for it."""
    traceparent: str = ""
    """The span of that request (W3C Trace Context), to which its operations belong; empty: it has named none."""
    request_id: str = ""
    """The id of that request, or of the last retry."""
    parallel: int
    stop_after_failures: int
    is_cancelled: bool = False
    is_stopped: bool = False
    regions: tuple[RegionEntry, ...]
    request: SecretParams = Field(default_factory=dict)
    """The body of a request for each region, without its region."""
    values_by_region: SecretParams = Field(default_factory=dict)
    owner: str = ""
    """The process that brings it to its end."""
    lease_until: str = ""
    revision: int = 0

    @classmethod
    def from_stored(cls, stored: Stored) -> Self:
        """Return it as it is stored."""
        return cls.model_validate({**stored.body, "id": stored.id, "revision": stored.revision})

    def stored(self, ring: KeyRing) -> dict[str, Any]:
        """Return what is stored."""
        body = self.model_dump(
            mode="json", by_alias=True, exclude_none=True, exclude={"revision"}, context=sealing(ring)
        )
        return {**body, "isOpen": self.is_open}

    def moves(self) -> dict[str, Any]:
        """Return the fields that moves change."""
        regions = [each.model_dump(mode="json", by_alias=True, exclude_none=True) for each in self.regions]
        flags = {"isCancelled": self.is_cancelled, "isStopped": self.is_stopped, "isOpen": self.is_open}
        return {"regions": regions, **flags}

    @property
    def counts(self) -> Mapping[str, int]:
        """The number of regions by state."""
        return Counter(each.state for each in self.regions)

    @property
    def is_open(self) -> bool:
        """Whether a region waits or runs."""
        return any(each.state not in _ENDED for each in self.regions)

    @property
    def status(self) -> GroupStatus:
        """RUNNING ... (MC-140)."""
        if self.is_open:
            return "RUNNING"
        if self.counts["NOT_STARTED"]:
            return "CANCELLED" if self.is_cancelled else "STOPPED"
        return "PARTLY_FAILED" if self.counts["FAILED"] else "COMPLETED"

    def with_entries(self, changed: Sequence[RegionEntry]) -> Self:
        """Return the group with these regions in the place of those with their ids; no further one starts after enough failures."""
        by_id = {each.cloud_region_id: each for each in changed}
        found = tuple(by_id.get(each.cloud_region_id, each) for each in self.regions)
        after = self.model_copy(update={"regions": found})
        most = self.stop_after_failures
        return after._without_waiting(is_stopped=True) if most and after.counts["FAILED"] >= most else after

    def starting(self) -> Self:
        """Return the group with as many further regions RUNNING as may run at a time."""
        free = max(0, self.parallel - self.counts["RUNNING"])
        waiting = [each for each in self.regions if each.state == "WAITING"][:free]
        return self.with_entries([each.model_copy(update={"state": "RUNNING"}) for each in waiting])

    def cancelled(self) -> Self:
        """Return the group with no further region to start."""
        return self._without_waiting(is_cancelled=True)

    def retried(self) -> Self:
        """Return the group with its failed regions, and those that were not started, to be started."""
        found = tuple(
            each.model_copy(update={"state": "WAITING", "error": None})
            if each.state in ("FAILED", "NOT_STARTED")
            else each
            for each in self.regions
        )
        return self.model_copy(update={"regions": found, "is_cancelled": False, "is_stopped": False})

    def _without_waiting(self, **flags: bool) -> Self:
        found = tuple(
            each.model_copy(update={"state": "NOT_STARTED"}) if each.state == "WAITING" else each
            for each in self.regions
        )
        return self.model_copy(update={"regions": found, **flags})

    def view(self, root: str) -> GroupOperation:
        """Return what is shown."""
        counts = self.counts
        return GroupOperation(
            id=self.id,
            status=self.status,
            parallel=self.parallel,
            stop_after_failures=self.stop_after_failures,
            counts=GroupCounts(
                waiting=counts["WAITING"],
                running=counts["RUNNING"],
                ready=counts["READY"],
                failed=counts["FAILED"],
                not_started=counts["NOT_STARTED"],
            ),
            regions=tuple(
                GroupRegionResult(
                    cloud_region_id=each.cloud_region_id,
                    state=each.state,
                    vnf_id=each.vnf_id(self.id) if each.operation is not None else None,
                    operation=f"{root}/vnflcm/v2/vnf_lcm_op_occs/{each.operation}" if each.operation else None,
                    error=each.error,
                )
                for each in self.regions
            ),
            created_at=self.created_at,
        )
