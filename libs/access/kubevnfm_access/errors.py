"""The errors of authentication and authorization."""

from __future__ import annotations

from collections.abc import Sequence

from kubevnfm_kit.errors import OutsideUnavailable, VnfmError


class Unauthenticated(VnfmError):
    """No credentials, or wrong ones; ``challenges`` name the accepted schemes (RFC 9110 11.6.1)."""

    code = "unauthenticated"
    title = "Unauthenticated"
    status = 401

    def __init__(self, detail: str, challenges: Sequence[str] = ('Bearer realm="kubevnfm"',)) -> None:
        super().__init__(detail)
        self.challenges = tuple(challenges)


class Forbidden(VnfmError):
    """The caller is authenticated but lacks the permission."""

    code = "forbidden"
    title = "Forbidden"
    status = 403


class TooManyRequests(VnfmError):
    """The caller exceeds its rate."""

    code = "too-many-requests"
    title = "Too many requests"
    status = 429
    retryable = True

    def __init__(self, detail: str, *, retry_after_s: int) -> None:
        super().__init__(detail)
        self.retry_after_s = retry_after_s


class IdentityUnavailable(OutsideUnavailable):
    """The identity server does not answer."""

    code = "identity-unavailable"
    title = "Identity server unavailable"
