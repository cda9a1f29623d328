"""The errors of call-backs (capi.md, chapter 10)."""

from __future__ import annotations

from kubevnfm_kit.errors import Conflict, InvalidInput, NotFound, OutsideUnavailable, VnfmError


class NotSigned(VnfmError):
    """The request has no valid signature. The caller cannot distinguish the causes (CR-067)."""

    code = "not-signed"
    title = "Not authenticated"
    status = 401

    def __init__(self, cause: str) -> None:
        super().__init__("the request is not signed with a valid key and a current timestamp")
        self.cause = cause
        """For the log only."""


class OtherInstance(VnfmError):
    """The signing key and the body belong to different VNF instances."""

    code = "other-instance"
    title = "Forbidden"
    status = 403


class NonceUsed(Conflict):
    """The nonce was used before. The sender may retry with a new one."""

    code = "nonce-used"
    title = "Nonce used"


class KeyReused(Conflict):
    """The Idempotency-Key was used before with another body."""

    code = "idempotency-key-reused"
    title = "Idempotency-Key reused"


class NameTaken(Conflict):
    """The instance has another cluster with this name."""

    code = "cluster-name-taken"
    title = "Cluster name taken"


class Superseded(Conflict):
    """A call-back that was signed later has been stored: this one was late on its way, and what it says is out of date."""

    code = "callback-superseded"
    title = "Superseded"


class NotAwaited(Conflict):
    """The VNF instance awaits no call-back: no operation and no rotation of it sends or withdraws credentials now."""

    code = "callback-not-awaited"
    title = "Call-back not awaited"


class TooLarge(VnfmError):
    """The body is larger than credentials can be."""

    code = "body-too-large"
    title = "Body too large"
    status = 413


class NotJson(VnfmError):
    """The content type of the body is not JSON."""

    code = "unsupported-media-type"
    title = "Unsupported media type"
    status = 415


class TooManyFailures(OutsideUnavailable):
    """The address has failed too often within a minute."""

    code = "too-many-failures"
    title = "Too many failures"
    status = 429

    def __init__(self, retry_after_s: int) -> None:
        super().__init__(f"too many rejected requests; retry after {retry_after_s} s")
        self.retry_after_s = retry_after_s


class CredentialsUnknown(NotFound):
    """No credentials have this id."""

    code = "credentials-unknown"


class HeaderMissing(InvalidInput):
    """A header that is required in every call-back is missing or malformed."""

    code = "header-missing"
