"""Bearer tokens that are JWTs (RFC 9068, RFC 8725), verified with the keys that their issuer publishes (JWKS)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import aiohttp
import jwt
import structlog
from kubevnfm_kit.json_types import JsonMapping

from kubevnfm_access.caller import Caller, Role, roles_of
from kubevnfm_access.credentials import Credentials
from kubevnfm_access.discovery import Discovery
from kubevnfm_access.errors import IdentityUnavailable, Unauthenticated
from kubevnfm_access.identity_http import call

log = structlog.get_logger()

ALGORITHMS: Final = (
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA",
)  # fmt: skip
"""Asymmetric signatures only: with a shared secret every verifier could issue tokens."""
_LEEWAY_S: Final = 30
"""Accepted difference between clocks."""
_FRESH_S: Final = 600.0
"""How long keys are cached: a withdrawn key may be accepted for so long."""
_ASK_EVERY_S: Final = 10.0
"""A token with an unknown key triggers a fetch, at most this often: otherwise any caller could flood the issuer."""
_LONGEST_NAME: Final = 100
_STALE_S: Final = 24 * 3600.0
"""How long keys are used while the issuer does not answer."""


class IssuerKeys:
    """The signing keys of an issuer by ``kid``; fetched, cached, and fetched again when a token names an unknown one."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        discovery: Discovery,
        *,
        jwks_url: str | None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._session, self._discovery, self._jwks_url, self._now = session, discovery, jwks_url, now
        self._keys: Mapping[str, jwt.PyJWK] = {}
        self._fetched: float | None = None
        self._asked: float | None = None
        self._asking = asyncio.Lock()

    async def key(self, kid: str | None) -> jwt.PyJWK | None:
        """Return the key, None when the issuer has none of that id. Raises IdentityUnavailable."""
        found = self._find(kid)
        # While a fetch is under way, the cached key is good enough.
        if found is not None and (self._age() < _FRESH_S or self._asking.locked()):
            return found
        async with self._asking:
            found = self._find(kid)
            if (found is None or self._age() >= _FRESH_S) and self._may_ask():
                await self._fetch()
                found = self._find(kid)
        if found is None and self._fetched is None:
            raise IdentityUnavailable("the token issuer's keys cannot be read")
        return found

    def _find(self, kid: str | None) -> jwt.PyJWK | None:
        if self._age() >= _STALE_S:
            return None
        if kid is None:  # allowed where there is no choice (RFC 7515 4.1.4)
            return next(iter(self._keys.values())) if len(self._keys) == 1 else None
        return self._keys.get(kid)

    def _age(self) -> float:
        return float("inf") if self._fetched is None else self._now() - self._fetched

    def _may_ask(self) -> bool:
        return self._asked is None or self._now() - self._asked >= _ASK_EVERY_S

    async def _fetch(self) -> None:
        """Replace the keys; if that fails the cached ones stay."""
        # Before the call: an issuer that fails is not asked more often than one that answers.
        self._asked = self._now()
        try:
            answer = await call(self._session, "GET", self._jwks_url or await self._discovered())
            if answer.status != 200 or not isinstance(answer.body, dict):
                raise IdentityUnavailable(f"the token issuer's keys cannot be read: it answered {answer.status}")
            self._keys = dict(_usable(answer.body.get("keys")))
            self._fetched = self._now()
        except IdentityUnavailable as error:
            log.warning("issuer_keys_unavailable", reason=str(error))

    async def _discovered(self) -> str:
        """Return the address of the keys that the issuer publishes."""
        found = await self._discovery.address("jwks_uri")
        if found is None:
            raise IdentityUnavailable("the token issuer's configuration cannot be used")
        return found


def _usable(keys: Any) -> Iterable[tuple[str, jwt.PyJWK]]:
    """Yield the keys that can verify; a set may hold keys of unknown kinds too."""
    for number, one in enumerate(keys if isinstance(keys, list) else []):
        # A published symmetric key (`oct`) would let any reader of the set issue tokens.
        if not isinstance(one, dict) or one.get("use", "sig") != "sig" or one.get("kty") == "oct":
            continue
        try:
            yield str(one.get("kid", f"#{number}")), jwt.PyJWK.from_dict(one)
        except (jwt.PyJWTError, ValueError):
            # One key of a kind that the library lacks must not disable the others.
            continue


async def claims_of(token: str, keys: IssuerKeys, *, issuer: str, audience: str) -> dict[str, Any]:
    """Return the claims of a token that the issuer has signed for the audience. Raises Unauthenticated, IdentityUnavailable."""
    try:
        header = jwt.get_unverified_header(token)
        # The header is the sender's claim: its algorithm is checked against the list before any key is used (RFC
        # 8725 3.1).
        algorithm = header.get("alg")
        key = await keys.key(header.get("kid")) if algorithm in ALGORITHMS else None
        if key is None or algorithm is None:
            raise Unauthenticated("the token is not signed by a known key of the issuer")
        return jwt.decode(
            token,
            key.key,
            algorithms=[algorithm],
            audience=audience,
            issuer=issuer,
            leeway=_LEEWAY_S,
            options={"require": ["exp", "iss", "aud"]},
        )
    except jwt.ExpiredSignatureError as error:
        raise Unauthenticated("the token has expired") from error
    except jwt.InvalidAudienceError as error:
        raise Unauthenticated("the token is for another audience (aud)") from error
    except jwt.MissingRequiredClaimError as error:
        raise Unauthenticated(f"the token has no `{error.claim}` claim") from error
    except (jwt.PyJWTError, ValueError, TypeError) as error:
        raise Unauthenticated("the token is not valid here") from error


class JwtTokens:
    """`Authenticator` by JWT."""

    challenge = 'Bearer realm="kubevnfm"'

    def __init__(
        self,
        keys: IssuerKeys,
        *,
        issuer: str,
        audience: str,
        roles_claim: str,
        role_by_name: Mapping[str, Role],
        login_client: str | None = None,
    ) -> None:
        self._keys, self._issuer, self._audience = keys, issuer, audience
        self._roles_claim, self._role_by_name, self._login_client = roles_claim, role_by_name, login_client

    async def caller(self, credentials: Credentials) -> Caller | None:
        token = credentials.bearer_token()
        if token is None:
            return None
        claims = await claims_of(token, self._keys, issuer=self._issuer, audience=self._audience)
        expires = float(claims["exp"]) + _LEEWAY_S
        return caller_of(
            claims, self._roles_claim, self._role_by_name, expires=expires, login_client=self._login_client
        )


def caller_of(
    claims: JsonMapping,
    roles_claim: str,
    role_by_name: Mapping[str, Role],
    *,
    expires: float | None,
    login_client: str | None = None,
) -> Caller:
    """Return the caller of a token's claims. Raises Unauthenticated if the subject is missing.

    A client is called by its id. With the client ``login_client`` people log in, so the holder of its tokens is their subject.
    """
    client = claims.get("client_id") or claims.get("azp")
    is_person = client is None or client == login_client
    subject = claims.get("sub") if is_person else client
    if not isinstance(subject, str) or not subject:
        raise Unauthenticated("the token has no `sub` claim")
    name = claims.get("preferred_username") if is_person else None
    return Caller(
        subject,
        "bearer",
        roles_of(_names(claims, roles_claim), role_by_name),
        expires=expires,
        name=name[:_LONGEST_NAME] if isinstance(name, str) else None,
    )


def _names(claims: JsonMapping, path: str) -> list[str]:
    """Return the role names of a claim: words of a text (``scope``), or a list; dots lead into objects."""
    found: Any = claims
    for part in [path] if path in claims else path.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    if isinstance(found, str):
        return found.split()
    return [name for name in found if isinstance(name, str)] if isinstance(found, list) else []
