"""Admits callers: the configured modes in their order, and the rate of each caller."""

from __future__ import annotations

from collections.abc import Sequence

from kubevnfm_kit.errors import InvalidInput, OutsideUnavailable, VnfmError

from kubevnfm_access.caller import ANYBODY, Caller, needed_role
from kubevnfm_access.credentials import Authenticator, Credentials
from kubevnfm_access.errors import Forbidden, TooManyRequests, Unauthenticated
from kubevnfm_access.limiter import RateLimit
from kubevnfm_access.tries import Tries


class Gate:
    """Authentication and limits. Without authenticators every caller has every permission (mode none)."""

    def __init__(
        self,
        authenticators: Sequence[Authenticator] = (),
        limit: RateLimit | None = None,
        tries: Tries | None = None,
    ) -> None:
        self._authenticators, self._limit, self._tries = tuple(authenticators), limit, tries

    @property
    def is_open(self) -> bool:
        """Whether every caller has every permission."""
        return not self._authenticators

    async def admit(self, credentials: Credentials, *, address: str, is_session: bool = False) -> Caller:
        """Return the caller. Raises Unauthenticated, InvalidInput, TooManyRequests, OutsideUnavailable.

        Requests without valid credentials are counted by address; above the rates they are refused before any check.
        ``is_session``: these are of a session, whose key is no guess, and which renews its tokens by itself.
        """
        if self.is_open:
            self._count(f"address {address}")
            return ANYBODY
        # Before the credentials: checking a password takes 32 MiB and a processor, so guesses must be refused earlier.
        if self._limit is not None:
            _refuse(self._limit.wait_s(f"address {address}"))
        if self._tries is not None and not is_session:
            _refuse(self._tries.wait_s(credentials, address=address))
        try:
            caller = await self._who(credentials)
        except (Unauthenticated, InvalidInput):
            if self._tries is not None:
                self._tries.note_wrong(credentials, address=address)
            self._count(f"address {address}")
            raise
        if self._tries is not None:
            self._tries.note_right(credentials)
        self._count(f"{caller.mode} {caller.subject}")
        return caller

    def check_address(self, address: str) -> None:
        """Raise TooManyRequests if the address has sent too much; for requests that no caller has authenticated yet."""
        self._count(f"address {address}")
        if self._tries is not None:
            _refuse(self._tries.wait_s(Credentials(), address=address))

    def note_wrong(self, address: str) -> None:
        """Count an attempt to log in that was wrong."""
        if self._tries is not None:
            self._tries.charge(address)

    async def again(self, caller: Caller, credentials: Credentials, method: str, path: str) -> Caller | None:
        """Check the same credentials later: return the caller, None if they are not valid any more. Nothing is counted.

        While the identity server does not answer, the caller stays the same.
        """
        if self.is_open:
            return caller
        try:
            found = await self._who(credentials)
            check_right(found, method, path)
        # No verdict: an outage of the identity server must not end every stream at once.
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
                refusals.insert(0, refusal)  # more specific than the refusals of the others
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
            _refuse(self._limit.count(caller))


def check_right(caller: Caller, method: str, path: str, *, is_dry_run: bool = False) -> None:
    """Raise Forbidden if the caller lacks the role that the request needs; ``is_dry_run`` as of `needed_role`."""
    needed = needed_role(method, path, is_dry_run=is_dry_run)
    if not caller.may(needed):
        raise Forbidden(f"this request needs the role {needed}")


def _refuse(wait_s: int) -> None:
    if wait_s:
        raise TooManyRequests(f"too many requests; again in {wait_s} s", retry_after_s=wait_s)
