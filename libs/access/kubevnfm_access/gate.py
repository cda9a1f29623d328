"""Lets callers in: the modes that are on, in their order, and how often each caller may ask."""

from __future__ import annotations

from collections.abc import Sequence

from kubevnfm_kit.errors import InvalidInput, OutsideUnavailable, VnfmError

from kubevnfm_access.caller import ANYBODY, Caller, needed_role
from kubevnfm_access.credentials import Authenticator, Credentials
from kubevnfm_access.errors import Forbidden, TooManyRequests, Unauthenticated
from kubevnfm_access.limiter import RateLimit


class Gate:
    """The way in. Without authenticators everybody may everything (mode none)."""

    def __init__(self, authenticators: Sequence[Authenticator] = (), limit: RateLimit | None = None) -> None:
        self._authenticators, self._limit = tuple(authenticators), limit

    async def admit(self, credentials: Credentials, *, address: str) -> Caller:
        """Return who asks. Raises Unauthenticated, InvalidInput, TooManyRequests, OutsideUnavailable.

        Whoever has no valid credentials is counted by address, and a full count is told before anything is verified.
        """
        if not self._authenticators:
            self._count(f"address {address}")
            return ANYBODY
        if self._limit is not None:
            _refuse(self._limit.wait_s(f"address {address}"))
        try:
            caller = await self._who(credentials)
        except (Unauthenticated, InvalidInput):
            self._count(f"address {address}")
            raise
        self._count(f"{caller.mode} {caller.subject}")
        return caller

    async def again(self, caller: Caller, credentials: Credentials, method: str, path: str) -> Caller | None:
        """Return who shows the same credentials later on, None when they would not do any more. Nothing is counted.

        While the one who knows cannot be asked, the caller is who it was.
        """
        if not self._authenticators:
            return caller
        try:
            found = await self._who(credentials)
            check_right(found, method, path)
        except (OutsideUnavailable, TooManyRequests):
            return caller
        except (Unauthenticated, Forbidden, InvalidInput):
            return None
        return found

    async def _who(self, credentials: Credentials) -> Caller:
        refusals: list[VnfmError] = []
        for authenticator in self._authenticators:
            try:
                caller = await authenticator.caller(credentials)
            except Unauthenticated as refusal:
                refusals.append(refusal)
            except (InvalidInput, OutsideUnavailable, TooManyRequests) as refusal:
                refusals.insert(0, refusal)  # says more than that the others did not do
            else:
                if caller is not None:
                    return caller
        challenges = [authenticator.challenge for authenticator in self._authenticators]
        if not refusals:
            raise Unauthenticated("credentials are required", challenges)
        if isinstance(refusals[0], Unauthenticated):
            invalid = [f'{one}, error="invalid_token"' if one.startswith("Bearer ") else one for one in challenges]
            raise Unauthenticated(str(refusals[0]), invalid)
        raise refusals[0]

    def _count(self, caller: str) -> None:
        if self._limit is not None:
            _refuse(self._limit.take(caller))


def check_right(caller: Caller, method: str, path: str) -> None:
    """Raise Forbidden when the caller may not do this."""
    needed = needed_role(method, path)
    if not caller.may(needed):
        raise Forbidden(f"the role {needed} is needed for this")


def _refuse(wait_s: int) -> None:
    if wait_s:
        raise TooManyRequests(f"too many requests; again in {wait_s} s", retry_after_s=wait_s)
