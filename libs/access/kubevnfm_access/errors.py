"""The errors of authentication and authorization."""

from __future__ import annotations

from collections.abc import Sequence

from kubevnfm_kit.errors import OutsideUnavailable, VnfmError


class Unauthenticated(VnfmError, code="unauthenticated", title="Unauthenticated", status=401):
    """No credentials, or wrong ones; ``challenges`` name the accepted schemes (RFC 9110 11.6.1)."""

    def __init__(self, detail: str, challenges: Sequence[str] = ('Bearer realm="kubevnfm"',)) -> None:
        super().__init__(detail)
        self.challenges = tuple(challenges)


class Forbidden(VnfmError, code="forbidden", title="Forbidden", status=403):
    """The caller is authenticated but lacks the permission."""


class LoginRefused(VnfmError, code="login-refused", title="Login refused", status=403):
    """A login at the identity server did not succeed; the detail is a sentence for the person."""


class TooManyRequests(VnfmError, code="too-many-requests", title="Too many requests", status=429, retryable=True):
    """The caller exceeds its rate."""

    def __init__(self, detail: str, *, retry_after_s: int) -> None:
        super().__init__(detail)
        self.retry_after_s = retry_after_s


class IdentityUnavailable(OutsideUnavailable, code="identity-unavailable", title="Identity server unavailable"):
    """The identity server does not answer."""
