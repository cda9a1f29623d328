"""Why a call-back is refused (capi.md chapter 10)."""

from __future__ import annotations

from kubevnfm_kit.errors import Conflict, InvalidInput, NotFound, OutsideUnavailable, VnfmError


class NotSigned(VnfmError):
    """The request does not prove where it comes from. All causes look alike to the caller (CR-067)."""

    code = "not-signed"
    title = "Not authenticated"
    status = 401

    def __init__(self, cause: str) -> None:
        super().__init__("the request is not signed with a valid key at the present time")
        self.cause = cause
        """For the log."""


class OtherInstance(VnfmError):
    """The key is one VNF instance's, the body is about another."""

    code = "other-instance"
    title = "Forbidden"
    status = 403


class NonceUsed(Conflict):
    """The nonce was used before: the sender tries again with a new one."""

    code = "nonce-used"
    title = "Nonce used"


class KeyReused(Conflict):
    """The Idempotency-Key came before with another body."""

    code = "idempotency-key-reused"
    title = "Idempotency-Key reused"


class NameTaken(Conflict):
    """Another cluster of the instance has the name."""

    code = "cluster-name-taken"
    title = "Cluster name taken"


class TooLarge(VnfmError):
    """The body is larger than credentials ever are."""

    code = "body-too-large"
    title = "Body too large"
    status = 413


class NotJson(VnfmError):
    """The body is announced as something else than JSON."""

    code = "unsupported-media-type"
    title = "Unsupported media type"
    status = 415


class TooManyFailures(OutsideUnavailable):
    """The address has failed too often within a minute."""

    code = "too-many-failures"
    title = "Too many failures"
    status = 429

    def __init__(self, retry_after_s: int) -> None:
        super().__init__(f"too many refused requests; again after {retry_after_s} s")
        self.retry_after_s = retry_after_s


class CredentialsUnknown(NotFound):
    """No credentials are kept under that id."""

    code = "credentials-unknown"


class HeaderMissing(InvalidInput):
    """A header that every call-back carries is absent or malformed."""

    code = "header-missing"
