"""What a request shows of its caller, and the port behind which credentials are judged."""

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
    """The parts of a request that say who sent it; its repr shows none of them."""

    authorization: Sequence[str] = ()
    """Values of the Authorization header; one is allowed."""
    auth_token: str | None = None
    """X-Auth-Token."""
    certificate: bytes | None = None
    """DER of the caller's certificate, verified by TLS or by a trusted proxy."""

    def of_scheme(self, scheme: str) -> str | None:
        """Return what Authorization carries for a scheme; None when it is absent or of another scheme.

        Raises: InvalidInput when it cannot be parsed.
        """
        if not self.authorization:
            return None
        if len(self.authorization) > 1:
            raise InvalidInput("Authorization", "given more than once")
        fits = _FORM.match(self.authorization[0].strip())
        if fits is None:
            raise InvalidInput("Authorization", "a scheme and credentials expected")
        return fits[2] if fits[1].lower() == scheme else None

    def bearer_token(self) -> str | None:
        """Return the token of ``Authorization: Bearer``, None without. Raises InvalidInput when it cannot be one."""
        token = self.of_scheme("bearer")
        if token is not None and _TOKEN.match(token) is None:
            raise InvalidInput("Authorization", "a token as RFC 6750 has it expected after Bearer")
        return token


class Authenticator(Protocol):
    """One way to show who one is."""

    @property
    def challenge(self) -> str:
        """What WWW-Authenticate says of it, after ``invalid`` credentials or none."""
        ...

    async def caller(self, credentials: Credentials) -> Caller | None:
        """Return the caller; None when the request shows nothing of this kind.

        Raises: InvalidInput (cannot be parsed), Unauthenticated (wrong), IdentityUnavailable, TooManyRequests.
        """
        ...
