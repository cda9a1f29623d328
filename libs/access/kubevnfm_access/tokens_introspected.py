"""Opaque bearer tokens, validated at the issuer's introspection endpoint (RFC 7662)."""

from __future__ import annotations

import time
from base64 import b64encode
from collections.abc import Callable, Mapping
from urllib.parse import quote_plus

import aiohttp
from kubevnfm_kit.json_types import JsonMapping

from kubevnfm_access.caller import Caller, Role
from kubevnfm_access.credentials import Credentials
from kubevnfm_access.errors import IdentityUnavailable, Unauthenticated
from kubevnfm_access.identity_http import call
from kubevnfm_access.memory import VerdictMemory
from kubevnfm_access.tokens_jwt import caller_of


class IntrospectedTokens:
    """`Authenticator` by introspection."""

    challenge = 'Bearer realm="kubevnfm"'

    def __init__(
        self,
        session: aiohttp.ClientSession,
        *,
        url: str,
        client_id: str,
        client_secret: str,
        audience: str,
        roles_claim: str,
        role_by_name: Mapping[str, Role],
        keep_s: float,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._session, self._url, self._audience, self._now = session, url, audience, now
        client = f"{quote_plus(client_id)}:{quote_plus(client_secret)}"  # RFC 6749 2.3.1
        self._headers = {"Authorization": f"Basic {b64encode(client.encode()).decode()}"}
        self._roles_claim, self._role_by_name = roles_claim, role_by_name
        self._memory = VerdictMemory(keep_s=keep_s, now=now)

    async def caller(self, credentials: Credentials) -> Caller | None:
        token = credentials.bearer_token()
        if token is None:
            return None
        return await self._memory.caller(token, lambda: self._ask(token))

    async def _ask(self, token: str) -> Caller:
        form = {"token": token, "token_type_hint": "access_token"}
        answer = await call(self._session, "POST", self._url, data=form, headers=self._headers)
        if answer.status != 200 or not isinstance(answer.body, dict):
            raise IdentityUnavailable(f"the token issuer's introspection answered {answer.status}")
        claims = answer.body
        expires = claims.get("exp")
        has_expired = isinstance(expires, int | float) and expires <= self._now()
        # `active` is the only attribute that RFC 7662 requires; an issuer may still count an expired token as active.
        if claims.get("active") is not True or has_expired or not self._is_for_us(claims):
            raise Unauthenticated("the token is not valid here")
        ends = float(expires) if isinstance(expires, int | float) else None
        return caller_of(claims, self._roles_claim, self._role_by_name, expires=ends)

    def _is_for_us(self, claims: JsonMapping) -> bool:
        """Return whether the audience is ours; RFC 7662 leaves it out where the issuer serves one resource only."""
        audience = claims.get("aud", self._audience)
        return self._audience in (audience if isinstance(audience, list) else [audience])
