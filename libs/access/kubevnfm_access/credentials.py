"""The credentials of a request, and the port of the classes that check them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from kubevnfm_kit.errors import InvalidInput

from kubevnfm_access.caller import Caller

_FORM: Final = re.compile(r"^([A-Za-z0-9!#$%&'*+.^_`|~-]+) +(\S.*)$")
"""scheme SP credentials (RFC 9110 11.4)."""
_TOKEN: Final = re.compile(r"^[A-Za-z0-9._~+/-]+=*$")


@dataclass(frozen=True, repr=False)
class Credentials:
    """The credentials that a request carries; the repr shows none of them."""

    authorization: Sequence[str] = ()
    """Values of the Authorization header; one is allowed."""
    auth_token: str | None = None
    """X-Auth-Token."""
    certificate: bytes | None = None
    """DER of the caller's certificate, verified by TLS or by a trusted proxy."""

    @property
    def are_absent(self) -> bool:
        """Whether the request carries none."""
        return not self.authorization and self.auth_token is None and self.certificate is None

    def of_scheme(self, scheme: str) -> str | None:
        """Return the credentials of Authorization for a scheme; None if it is absent or has another scheme.

        Raises: InvalidInput when it cannot be parsed.
        """
        if not self.authorization:
            return None
        # A proxy and this service could read different ones of several.
        if len(self.authorization) > 1:
            raise InvalidInput("Authorization", "given more than once")
        fits = _FORM.match(self.authorization[0].strip())
        if fits is None:
            raise InvalidInput("Authorization", "must be a scheme and credentials")
        return fits[2] if fits[1].lower() == scheme else None

    def bearer_token(self) -> str | None:
        """Return the token of ``Authorization: Bearer``, None without it. Raises InvalidInput if it is not a valid token."""
        token = self.of_scheme("bearer")
        if token is not None and _TOKEN.match(token) is None:
            raise InvalidInput("Authorization", "must be Bearer and a token as in RFC 6750")
        return token


class Authenticator(Protocol):
    """One way of authentication."""

    @property
    def challenge(self) -> str:
        """The challenge in WWW-Authenticate, for ``invalid`` credentials or for none."""
        ...

    async def caller(self, credentials: Credentials) -> Caller | None:
        """Return the caller; None if the request has no credentials of this kind.

        Raises: InvalidInput (cannot be parsed), Unauthenticated (wrong), IdentityUnavailable, TooManyRequests.
        """
        ...
