"""Logging in at the issuer of tokens: OpenID Connect Core 1.0 with PKCE (RFC 7636), whose client is the gateway.

The rule: the browser carries one code through, which is worth nothing without the verifier that only the gateway has; tokens go
from the issuer to the gateway alone. Which caller a token makes is decided where every token is judged (`JwtTokens`).
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote_plus, urlencode, urlsplit

import aiohttp
import jwt
import structlog
from kubevnfm_kit.clock import Clock
from kubevnfm_kit.json_types import JsonMapping

from kubevnfm_access.discovery import Discovery
from kubevnfm_access.errors import IdentityUnavailable, LoginRefused, Unauthenticated
from kubevnfm_access.identity_http import IdentityAnswer, call
from kubevnfm_access.tokens_jwt import IssuerKeys, claims_of

log = structlog.get_logger()

_CODE: Final = re.compile(r"[a-z0-9_.-]{1,64}")
"""Codes of errors (RFC 6749 4.1.2.1 and its extensions), as they are repeated."""
_LONGEST_TOKEN: Final = 64 * 1024
_SENTENCES: Final[Mapping[str, str]] = {
    "access_denied": "the identity server has denied the access, or the login was given up there",
    "temporarily_unavailable": "the identity server is overloaded or in maintenance: try again later",
    "server_error": "the identity server has failed: try again later",
    "login_required": "the identity server asks for a login: try again",
    "interaction_required": "the identity server asks for more than it could show: try again",
    "consent_required": "the identity server needs a consent that was not given",
}
"""The reasons that concern the person; every other one concerns the operator of the gateway."""
_LATER: Final = ("temporarily_unavailable", "server_error", "slow_down")
"""Codes that are no verdict about a login or a refresh token."""


@dataclass(frozen=True)
class LoginClient:
    """The client as which the gateway is registered at the issuer."""

    id: str
    secret: str | None = field(default=None, repr=False)
    """None: a public client, which PKCE protects alone."""
    scopes: tuple[str, ...] = ("openid", "profile")
    is_id_token_judged: bool = False
    """Whether the ID token says who the caller is, where the issuer's access tokens are no JWTs; otherwise the access token."""


@dataclass(frozen=True, repr=False)
class Begun:
    """A login that has begun: what its answer must fit."""

    state: str
    nonce: str
    verifier: str
    redirect_uri: str


@dataclass(frozen=True, repr=False)
class Grant:
    """The tokens that the issuer has given for a login; the repr shows no token."""

    token: str
    """The token that is judged with each request."""
    id_token: str
    refresh_token: str | None
    subject: str
    """The person, as the ID token names it."""
    lasts_s: float | None
    """How long the token lasts from now on; None: unknown."""


class OpenId:
    """The gateway as a client of the issuer."""

    def __init__(
        self, session: aiohttp.ClientSession, discovery: Discovery, keys: IssuerKeys, client: LoginClient, clock: Clock
    ) -> None:
        self._session, self._discovery, self._keys, self._client, self._clock = session, discovery, keys, client, clock

    @property
    def host(self) -> str:
        """The host of the issuer, for people."""
        return urlsplit(self._discovery.issuer).netloc.rpartition("@")[2]

    async def begin(self, redirect_uri: str) -> tuple[Begun, str]:
        """Return a new login, and the address at the issuer to which it leads. Raises IdentityUnavailable."""
        page = await self._needed("authorization_endpoint")
        begun = Begun(_random(), _random(), _random(), redirect_uri)
        challenge = urlsafe_b64encode(hashlib.sha256(begun.verifier.encode()).digest()).decode().rstrip("=")
        query = {
            "response_type": "code",
            "client_id": self._client.id,
            "redirect_uri": redirect_uri,
            "scope": " ".join(self._client.scopes),
            "state": begun.state,
            "nonce": begun.nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        return begun, _with_query(page, query)

    async def redeem(self, begun: Begun, answer: Mapping[str, str]) -> Grant:
        """Return what the issuer gives for its answer to a login, whose state the caller has compared.

        Raises LoginRefused, IdentityUnavailable.
        """
        await self._check_sender(answer)
        if "error" in answer:
            raise self._refusal(answer["error"])
        if "code" not in answer:
            raise LoginRefused("the identity server has answered without a code and without an error")
        form = {
            "grant_type": "authorization_code",
            "code": answer["code"],
            "redirect_uri": begun.redirect_uri,
            "code_verifier": begun.verifier,
        }
        body = await self._asked(form)
        id_token = body.get("id_token")
        if not isinstance(id_token, str):
            raise LoginRefused("the identity server has sent no ID token: it needs the scope openid")
        subject = await self._subject(id_token, nonce=begun.nonce)
        return self._grant(body, id_token, subject, None)

    async def renew(self, grant: Grant) -> Grant:
        """Return the grant with new tokens. Raises LoginRefused if the issuer gives none any more, IdentityUnavailable."""
        assert grant.refresh_token is not None
        body = await self._asked({"grant_type": "refresh_token", "refresh_token": grant.refresh_token})
        id_token = body.get("id_token", grant.id_token)
        if not isinstance(id_token, str):
            raise LoginRefused("the identity server has sent an ID token that is none")
        if id_token != grant.id_token and await self._subject(id_token, nonce=None) != grant.subject:
            # OpenID Connect Core 1.0, 12.2.
            raise LoginRefused("the identity server has sent tokens of another person")
        return self._grant(body, id_token, grant.subject, grant.refresh_token)

    async def logout_address(self, id_token: str | None, return_to: str) -> str | None:
        """Return where a browser logs out of the issuer (OpenID Connect RP-Initiated Logout 1.0); None if it cannot.

        Raises IdentityUnavailable.
        """
        page = await self._discovery.address("end_session_endpoint")
        if page is None:
            return None
        query = {"client_id": self._client.id, "post_logout_redirect_uri": return_to}
        # Without it the issuer asks the person.
        return _with_query(page, query if id_token is None else {**query, "id_token_hint": id_token})

    async def revoke(self, grant: Grant) -> None:
        """Make the refresh token worthless (RFC 7009), if the issuer can; its failures change nothing for the caller."""
        try:
            address = await self._discovery.address("revocation_endpoint")
            if address is not None and grant.refresh_token is not None:
                form = {"token": grant.refresh_token, "token_type_hint": "refresh_token"}
                await self._post(address, form)
        except IdentityUnavailable as error:
            log.warning("refresh_token_not_revoked", reason=str(error))

    async def _check_sender(self, answer: Mapping[str, str]) -> None:
        """Raise LoginRefused for the answer of another issuer (mix-up, RFC 9207)."""
        is_promised = (await self._discovery.known()).get("authorization_response_iss_parameter_supported") is True
        if answer.get("iss", None if is_promised else self._discovery.issuer) != self._discovery.issuer:
            raise LoginRefused("the answer is not from the identity server of this gateway (iss)")

    async def _asked(self, form: Mapping[str, str]) -> JsonMapping:
        answer = await self._post(await self._needed("token_endpoint"), form)
        body: JsonMapping = answer.body if isinstance(answer.body, dict) else {}
        code = body.get("error")
        if answer.status == 200 and body:
            return body
        # Its verdicts have a code (RFC 6749 5.2). Other answers are of a proxy before it, or ask to come again later.
        if not isinstance(code, str) or code in _LATER or answer.status in {200, 429}:
            raise IdentityUnavailable(
                f"the identity server has answered {answer.status} without tokens: try again later"
            )
        raise self._refusal(code, body.get("error_description"))

    async def _post(self, address: str, form: Mapping[str, str]) -> IdentityAnswer:
        sent, headers = {**form}, {}
        if self._client.secret is None:
            sent["client_id"] = self._client.id
        else:
            ways = (await self._discovery.known()).get("token_endpoint_auth_methods_supported")
            if isinstance(ways, list) and "client_secret_basic" not in ways and "client_secret_post" in ways:
                sent |= {"client_id": self._client.id, "client_secret": self._client.secret}
            else:  # RFC 6749 2.3.1
                pair = f"{quote_plus(self._client.id)}:{quote_plus(self._client.secret)}"
                headers["Authorization"] = f"Basic {b64encode(pair.encode()).decode()}"
        return await call(self._session, "POST", address, data=sent, headers=headers)

    def _refusal(self, code: object, text: object = None) -> LoginRefused:
        """Return the error for an error of the issuer, whose text is for the operator alone: it goes to the log."""
        known = code if isinstance(code, str) and _CODE.fullmatch(code) else "an error without a code"
        log.warning("login_refused", code=known, text=str(text)[:500] if text is not None else None)
        if known in _SENTENCES:
            return LoginRefused(_SENTENCES[known])
        if known == "invalid_grant":
            return LoginRefused("the identity server does not accept this login any more: log in again")
        settings = {
            "invalid_client": "page_login_client_id and page_login_client_secret",
            "unauthorized_client": "page_login_client_id, page_login_client_secret and what this client may do there",
            "invalid_scope": "page_login_scopes",
        }.get(known, "the client's registration there")
        return LoginRefused(
            f"the identity server refuses the requests of this gateway ({known}): its operator must check {settings}"
        )

    async def _subject(self, id_token: str, *, nonce: str | None) -> str:
        """Return the person that an ID token names (OpenID Connect Core 1.0, 3.1.3.7). Raises LoginRefused."""
        try:
            claims = await claims_of(id_token, self._keys, issuer=self._discovery.issuer, audience=self._client.id)
        except Unauthenticated as error:
            raise LoginRefused(f"the identity server's ID token cannot be used: {error}") from error
        if nonce is not None and not _is_same(claims.get("nonce"), nonce):
            raise LoginRefused("the identity server's ID token is of another login (nonce)")
        if claims.get("azp", self._client.id) != self._client.id:
            raise LoginRefused("the identity server's ID token is for another client (azp)")
        subject = claims.get("sub")
        if not isinstance(subject, str) or not subject:
            raise LoginRefused("the identity server's ID token names no one (sub)")
        return subject

    def _grant(self, body: JsonMapping, id_token: str, subject: str, refresh_token: str | None) -> Grant:
        token = id_token if self._client.is_id_token_judged else body.get("access_token")
        refresh = body.get("refresh_token", refresh_token)
        if not isinstance(token, str) or str(body.get("token_type", "")).lower() != "bearer":
            raise LoginRefused("the identity server has sent no access token of the type Bearer")
        if sum(len(each) for each in (token, id_token, refresh or "") if isinstance(each, str)) > _LONGEST_TOKEN:
            raise LoginRefused("the identity server has sent tokens that are too large")
        lasts_s = None if self._client.is_id_token_judged else _seconds(body.get("expires_in"))
        if lasts_s is None and (ends := _end_of(token)) is not None:
            lasts_s = ends - self._clock.now().timestamp()
        return Grant(token, id_token, refresh if isinstance(refresh, str) else None, subject, lasts_s)

    async def _needed(self, name: str) -> str:
        found = await self._discovery.address(name)
        if found is None:
            raise IdentityUnavailable(f"the token issuer's configuration has no {name}")
        return found


def _random() -> str:
    return secrets.token_urlsafe(32)


def _seconds(given: object) -> float | None:
    """Return a number of seconds; some issuers write it as a text."""
    if isinstance(given, str) and given.isascii() and given.isdigit() and len(given) < 10:
        given = int(given)
    if isinstance(given, bool) or not isinstance(given, int | float):
        return None
    # Some issuers write 0 for "it does not say".
    return float(given) if 0 < given <= 10**10 else None


def _end_of(token: str) -> float | None:
    """Return when a JWT ends by its own word; it is judged elsewhere."""
    try:
        return _seconds(jwt.decode(token, options={"verify_signature": False}).get("exp"))
    except (jwt.PyJWTError, ValueError, TypeError):
        return None


def _is_same(given: object, expected: str) -> bool:
    return isinstance(given, str) and hmac.compare_digest(given.encode(errors="replace"), expected.encode())


def _with_query(address: str, query: Mapping[str, str]) -> str:
    """Return the address with these parameters; its own stay (RFC 6749 3.1)."""
    return f"{address}{'&' if urlsplit(address).query else '?'}{urlencode(query)}"
