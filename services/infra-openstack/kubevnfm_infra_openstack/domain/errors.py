"""What can go wrong with a VNF's stack, one class per thing a caller can act on (titles: api.md 4.6)."""

from __future__ import annotations

from kubevnfm_events.infra import StackResources
from kubevnfm_kit.errors import Conflict, NotFound, OutsideUnavailable, TimedOut, Unprocessable, VnfmError

CREATION = "Stack creation failed"
DELETION = "Stack deletion failed"
UPDATE = "Stack update failed"


class VimUnavailable(OutsideUnavailable):
    """The VIM does not answer now, or answers with a fault of its own; later the same request may work."""

    code = "vim-unavailable"
    title = "VIM unavailable"

    def __init__(self, service: str, reason: str) -> None:
        super().__init__(f"{service}: {reason}")
        self.service = service


class VimRefused(VnfmError):
    """The VIM answers and says no: wrong access data, a missing right, a request that it does not take."""

    code = "vim-refused"
    title = "VIM refused the request"
    status = 422

    def __init__(self, service: str, reason: str) -> None:
        super().__init__(f"{service}: {reason}")
        self.service = service


class VimAccessDataMissing(Unprocessable):
    """The VIM connection lacks what Keystone wants."""

    code = "vim-access-data-missing"
    title = "VIM refused the request"


class QuotaExceeded(VnfmError):
    """The tenant cannot hold what was asked for; only an operator can change that."""

    code = "quota-exceeded"
    title = CREATION
    status = 422

    def __init__(self, resource: str, *, wanted: int, free: int) -> None:
        super().__init__(f"quota of {resource} exceeded: {wanted} wanted, {free} free")
        self.resource, self.wanted, self.free = resource, wanted, free


class StackNameTaken(Conflict):
    """A stack of this name exists that does not carry our tag."""

    code = "stack-name-taken"
    title = CREATION

    def __init__(self, name: str) -> None:
        super().__init__(f"a stack named {name} exists and is not of this VNF instance (its tag is missing)")
        self.name = name


class StackRefused(VnfmError):
    """Heat does not take the template or its parameters; the text is Heat's own reason."""

    code = "stack-refused"
    title = CREATION
    status = 422


class StackFailed(VnfmError):
    """Heat could not make a resource; the text names it and holds its own reason."""

    code = "stack-failed"
    title = CREATION
    status = 422

    def __init__(self, reason: str, *, remains: StackResources | None = None) -> None:
        """``remains``: what the stack holds all the same."""
        super().__init__(reason)
        self.remains = remains


class StackTimedOut(TimedOut):
    """Heat's deadline for the stack passed."""

    code = "stack-timed-out"
    title = CREATION

    def __init__(self, reason: str, *, remains: StackResources | None = None) -> None:
        """``remains``: what the stack holds all the same."""
        super().__init__(reason)
        self.remains = remains


class StackUpdateRefused(StackRefused):
    """Heat does not take the change; the text is Heat's own reason."""

    title = UPDATE


class StackUpdateFailed(StackFailed):
    """Heat could not change a resource; the text names it and holds its own reason."""

    title = UPDATE


class StackUpdateTimedOut(StackTimedOut):
    """Heat's deadline for the update passed."""

    title = UPDATE


class StackMissing(NotFound):
    """The VNF's stack is gone, or being deleted."""

    code = "stack-missing"
    title = UPDATE

    def __init__(self, name: str) -> None:
        super().__init__(f"stack {name} does not exist, or is being deleted")
        self.name = name


class ResourceBusy(VnfmError):
    """Heat is working on a resource that is to be marked as unhealthy; a later attempt may succeed."""

    code = "resource-busy"
    title = UPDATE
    # Not OutsideUnavailable: the VIM answers, so only the deadline of the work ends the retries.
    retryable = True
    status = 503


class VduNotScalable(Unprocessable):
    """The package's Heat template offers no way to change how many instances a VDU has."""

    code = "vdu-not-scalable"
    title = UPDATE


class ServerNotOperable(VnfmError):
    """Nova does not start or stop a server; the text says in which state it is."""

    code = "server-not-operable"
    title = "Starting or stopping servers failed"
    status = 422


class StackNotDeleted(VnfmError):
    """Heat could not delete a resource of the stack; it often can at the next try."""

    code = "stack-not-deleted"
    title = DELETION
    retryable = True
    status = 422


class BaseHotMissing(Unprocessable):
    """User data is to fill a Heat template that the package does not have."""

    code = "base-hot-missing"
    title = CREATION

    def __init__(self, flavour_id: str, reason: str) -> None:
        super().__init__(f"BaseHOT/{flavour_id}", reason)


class UserDataFailed(VnfmError):
    """The package's LCM operation user data did not give Heat's parameters; the text ends with what it said itself."""

    code = "user-data-failed"
    title = "User data execution failed"
    status = 422


class UserDataTimedOut(TimedOut):
    """The package's LCM operation user data did not end in time."""

    code = "user-data-timed-out"
    title = "User data execution failed"
