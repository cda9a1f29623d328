"""Why an operation cannot claim its VNF instance, or is refused in its state."""

from __future__ import annotations

from kubevnfm_kit.errors import Conflict
from kubevnfm_sol.lcm import InstantiationState

from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord


class OperationRunning(Conflict, code="operation-running"):
    """Another operation has claimed the instance (api.md 9)."""

    def __init__(self, operation: str, occurrence_id: str, state: str, tasks: frozenset[str] = frozenset()) -> None:
        """``tasks``: those that the operation allows now."""
        ways = "retry, roll back or fail" if "rollback" in tasks else "retry or fail"
        hint = f"; {ways} it first" if "retry" in tasks else ""
        super().__init__(
            f"operation {operation} (occurrence {occurrence_id}, {state}) is running on this VNF instance{hint}"
        )
        self.occurrence_id = occurrence_id


class InstanceChanged(Conflict):
    """The instance was written between the check of a request and its claim, and no operation runs: the same request may
    succeed at once.
    """

    def __init__(self) -> None:
        super().__init__("the VNF instance was changed by another request meanwhile: try again")


def wrong_state(record: InstanceRecord, expected: InstantiationState) -> Conflict:
    """Return why what needs the other state is refused, and how the instance comes to it."""
    first = "instantiate" if expected is InstantiationState.INSTANTIATED else "terminate"
    return Conflict(f"the VNF instance is {record.vnf.instantiation_state}; {expected} expected: {first} it first")
