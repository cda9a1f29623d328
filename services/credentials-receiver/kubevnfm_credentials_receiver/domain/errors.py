"""The errors of call-backs (capi.md, chapter 10)."""

from __future__ import annotations

from kubevnfm_kit.errors import Conflict, InvalidInput, NotFound, OutsideUnavailable, VnfmError


class NotSigned(VnfmError, code="not-signed", title="Not authenticated", status=401):
    """The request has no valid signature. The caller cannot distinguish the causes (CR-067)."""

    def __init__(self, cause: str) -> None:
        super().__init__("the request is not signed with a valid key and a current timestamp")
        self.cause = cause
        """For the log only."""


class OtherInstance(VnfmError, code="other-instance", title="Forbidden", status=403):
    """The signing key and the body belong to different VNF instances."""


class NonceUsed(Conflict, code="nonce-used", title="Nonce used"):
    """The nonce was used before. The sender may retry with a new one."""


class NameTaken(Conflict, code="cluster-name-taken", title="Cluster name taken"):
    """The instance has another cluster with this name."""


class Superseded(Conflict, code="callback-superseded", title="Superseded"):
    """A call-back that was signed later has been stored: this one was late on its way, and what it says is out of date."""


class NotAwaited(Conflict, code="callback-not-awaited", title="Call-back not awaited"):
    """The VNF instance awaits no call-back: no operation and no rotation of it sends or withdraws credentials now."""


class TooLarge(VnfmError, code="body-too-large", title="Body too large", status=413):
    """The body is larger than credentials can be."""


class NotJson(VnfmError, code="unsupported-media-type", title="Unsupported media type", status=415):
    """The content type of the body is not JSON."""


class TooManyFailures(OutsideUnavailable, code="too-many-failures", title="Too many failures", status=429):
    """The address has failed too often within a minute."""

    def __init__(self, retry_after_s: int) -> None:
        super().__init__(f"too many rejected requests; retry after {retry_after_s} s")
        self.retry_after_s = retry_after_s


class CredentialsUnknown(NotFound, code="credentials-unknown"):
    """No credentials have this id."""


class HeaderMissing(InvalidInput, code="header-missing"):
    """A header that is required in every call-back is missing or malformed."""
