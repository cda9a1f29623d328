"""The errors of a VNF's stack: one class for each thing that a caller can act on (titles: api.md 4.6)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from kubevnfm_events.stacks import StackResources
from kubevnfm_kit.errors import Conflict, NotFound, OutsideUnavailable, PlacedError, TimedOut, Unprocessable, VnfmError

CREATION = "Stack creation failed"
DELETION = "Stack deletion failed"
UPDATE = "Stack update failed"


class VimUnavailable(PlacedError, OutsideUnavailable, code="vim-unavailable", title="VIM unavailable"):
    """The VIM does not answer or reports an internal fault; the same request may succeed later."""


class VimRefused(PlacedError, code="vim-refused", title="VIM refused the request"):
    """The VIM rejects the request: wrong access data, a missing permission, or a request that it does not support."""


class ServiceMissing(VimRefused, code="vim-service-missing"):
    """The VIM's catalogue does not have the service."""


class VimAccessDataMissing(Unprocessable, code="vim-access-data-missing", title="VIM refused the request"):
    """The VIM connection lacks something that Keystone requires."""


class QuotaExceeded(VnfmError, code="quota-exceeded", title=CREATION):
    """The tenant's quota is too small for the request; only an operator can change that."""

    def __init__(self, resource: str, *, wanted: int, free: int) -> None:
        super().__init__(f"quota of {resource} exceeded: {wanted} wanted, {free} free")
        self.resource, self.wanted, self.free = resource, wanted, free


class StackNameTaken(Conflict, code="stack-name-taken", title=CREATION):
    """A stack of this name exists that does not carry our tag."""

    def __init__(self, name: str) -> None:
        super().__init__(f"a stack named {name} exists but does not belong to this VNF instance (it lacks its tag)")
        self.name = name


class StackRefused(VnfmError, code="stack-refused", title=CREATION):
    """Heat rejects the template or its parameters; the message is Heat's reason."""


class StackFailed(VnfmError, code="stack-failed", title=CREATION):
    """Heat could not create a resource; the message names it and quotes its reason."""

    def __init__(self, reason: str, *, remains: StackResources | None = None) -> None:
        """``remains``: the resources of the failed stack."""
        super().__init__(reason)
        self.remains = remains


class StackNotAsAsked(StackFailed, code="stack-not-as-asked", title="Not as requested"):
    """Heat reports success, but the infrastructure does not show what was asked for; the message names both."""


class StackTimedOut(TimedOut, code="stack-timed-out", title=CREATION):
    """Heat's deadline for the stack passed."""

    def __init__(self, reason: str, *, remains: StackResources | None = None) -> None:
        """``remains``: the resources of the failed stack."""
        super().__init__(reason)
        self.remains = remains


class StackUpdateRefused(StackRefused, title=UPDATE):
    """Heat rejects the change; the message is Heat's reason."""


class StackUpdateFailed(StackFailed, title=UPDATE):
    """Heat could not change a resource; the message names it and quotes its reason."""


class StackUpdateTimedOut(StackTimedOut, title=UPDATE):
    """Heat's deadline for the update passed."""


DeletionState = Literal["DONE", "IN_PROGRESS", "FAILED"]
"""How far Heat is with the deletion of a stack."""
_DELETED: Final[Mapping[DeletionState, str]] = {
    "DONE": "does not exist",
    "IN_PROGRESS": "is being deleted",
    "FAILED": "was deleted in part: its deletion failed",
}


class StackMissing(NotFound, code="stack-missing", title=UPDATE):
    """The VNF's stack does not exist, or was deleted in part, and no operation of ours did that."""

    def __init__(self, name: str, *, deletion: DeletionState = "DONE") -> None:
        super().__init__(f"stack {name} {_DELETED[deletion]}: heal the whole VNF, or terminate it")
        self.name, self.deletion = name, deletion


class ResourceBusy(VnfmError, code="resource-busy", title=UPDATE, status=503, retryable=True):
    """Heat is working on a resource that is to be marked as unhealthy; a later attempt may succeed."""

    # Not OutsideUnavailable: the VIM answers, so only the deadline of the work ends the retries.


class VduNotScalable(Unprocessable, code="vdu-not-scalable", title=UPDATE):
    """The package's Heat template offers no way to change a VDU's number of instances."""


class ServerNotOperable(VnfmError, code="server-not-operable", title="Starting or stopping servers failed"):
    """Nova cannot start or stop a server; the message gives its state."""


class SnapshotFailed(VnfmError, code="snapshot-failed", title="Creating a snapshot failed"):
    """Nova or Cinder could not make a part of a snapshot; the message names it and its state."""


class SnapshotNotDeleted(VnfmError, code="snapshot-not-deleted", title="Deleting a snapshot failed", retryable=True):
    """A part of a snapshot could not be deleted; the message names it and quotes the reason."""

    # Often a volume that was made from it blocks it, and the next attempt succeeds.


class RevertFailed(VnfmError, code="revert-failed", title="Reverting to a snapshot failed"):
    """A machine or a volume could not be put back, or does not show what was asked for; the message names it."""


class StackNotDeleted(VnfmError, code="stack-not-deleted", title=DELETION, retryable=True):
    """Heat could not delete a resource of the stack."""

    # Often another resource blocked it (a port still in use), and the next attempt succeeds.


class BaseHotMissing(Unprocessable, code="base-hot-missing", title=CREATION):
    """The request names user data, but the package has no Heat template for it."""

    def __init__(self, flavour_id: str, reason: str) -> None:
        super().__init__(f"BaseHOT/{flavour_id}", reason)


class UserDataFailed(VnfmError, code="user-data-failed", title="User data execution failed"):
    """The package's LCM operation user data returned no parameters; the message ends with its own output."""


class UserDataTimedOut(TimedOut, code="user-data-timed-out", title="User data execution failed"):
    """The package's LCM operation user data exceeded its time limit."""
