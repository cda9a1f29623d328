"""``/kubevnfm/v1/login/openid``: logging in to the web page at the issuer of tokens, and out of it.

The page asks for the address of the issuer, goes there, comes back with a code and posts it. So a login begins and ends with a
request of our own page, which its ``Origin`` proves. The verifier, the nonce and the state are in a cookie, encrypted: a login
needs no document, and callers without credentials fill no database. The state is in the page's own tab, too: a cookie that
another port or subdomain has planted is not enough to log someone in as another.
"""

from __future__ import annotations

import hmac
import json
from contextlib import suppress
from dataclasses import asdict
from datetime import timedelta
from typing import Annotated, Final
from urllib.parse import urlsplit

from aiohttp import web
from kubevnfm_access.caller import OPENID, PAGE, SESSION
from kubevnfm_access.credentials import Credentials
from kubevnfm_access.errors import Forbidden, IdentityUnavailable, LoginRefused, Unauthenticated
from kubevnfm_access.gate import Gate, check_right
from kubevnfm_access.middleware import CALLER, PROXIES
from kubevnfm_access.openid import Begun, Grant, OpenId
from kubevnfm_access.sessions import cookie_of, give, key_of, take_back
from kubevnfm_kit.clock import rfc3339
from kubevnfm_secrets.keyring import UnknownKey
from kubevnfm_sol.base import SolRequest
from pydantic import StringConstraints

from kubevnfm_lcm_api.http.context import api_root, context
from kubevnfm_lcm_api.http.models import Shown
from kubevnfm_lcm_api.page.sessions import StoredSessions

ANSWER: Final = f"{OPENID}/answer"
LOGOUT: Final = f"{OPENID}/logout"
_BEGUN, _LEAVING = "kubevnfm-login", "kubevnfm-logout"
_LASTS_S: Final = 600
"""How long a person may take at the issuer."""
_LEAVES_S: Final = 60
_LARGEST: Final = 3500
"""Characters of a cookie's value; browsers take 4096 bytes with its name and attributes."""

Code = Annotated[str, StringConstraints(min_length=1, max_length=8192)]
Short = Annotated[str, StringConstraints(min_length=1, max_length=500)]


class OpenIdLogin(Shown):
    """A login that has begun."""

    address: str
    """Where the browser logs in."""
    state: str
    """The answer must have it."""


class OpenIdAnswer(SolRequest):
    """The parameters with which the issuer has sent the browser back."""

    state: Short
    code: Code | None = None
    error: Short | None = None
    iss: Annotated[str, StringConstraints(max_length=2048)] | None = None


class OpenIdLogins:
    """Logging in and out at the issuer; the caller makes the session's answer of it."""

    def __init__(self, client: OpenId, gate: Gate, sessions: StoredSessions) -> None:
        self._client, self._gate, self._sessions = client, gate, sessions

    @property
    def host(self) -> str:
        """The host of the issuer, for people."""
        return self._client.host

    async def begin(self, request: web.Request) -> web.Response:
        """POST login/openid: the address at the issuer. Raises Forbidden, LoginRefused, IdentityUnavailable."""
        proxies = request.app[PROXIES]
        proxies.check_own_page(request)
        self._gate.check_address(proxies.address(request))
        root = _root(request)
        if request.headers["Origin"].lower() != root:
            raise LoginRefused(
                f"the identity server leads back to {root}{PAGE}/: open the page there, or set public_url or allowed_hosts"
            )
        begun, address = await self._client.begin(f"{root}{PAGE}/login")
        response = web.json_response({"address": address, "state": begun.state})
        ends = rfc3339(context(request).clock.now() + timedelta(seconds=_LASTS_S))
        self._give(request, response, _BEGUN, json.dumps([asdict(begun), ends]), for_s=_LASTS_S)
        return response

    async def finish(self, request: web.Request, answer: OpenIdAnswer) -> str:
        """Begin the session of the person that the issuer has logged in; return its key.

        Raises Forbidden, LoginRefused, TooManyRequests, IdentityUnavailable.
        """
        proxies = request.app[PROXIES]
        proxies.check_own_page(request)
        address = proxies.address(request)
        self._gate.check_address(address)
        begun = self._begun(request)
        if begun is None or not hmac.compare_digest(begun.state.encode(), answer.state.encode()):
            self._gate.note_wrong(address)
            raise LoginRefused(
                "this login was not begun in this browser, took too long, or another was begun since: log in again"
            )
        try:
            grant = await self._client.redeem(begun, answer.model_dump(exclude_none=True))
            credentials = Credentials(authorization=[f"Bearer {grant.token}"])
            caller = await self._gate.admit(credentials, address=address)
            check_right(caller, "GET", SESSION)
        except LoginRefused:
            self._gate.note_wrong(address)
            raise
        except Forbidden as error:
            raise LoginRefused("the identity server knows you, but gives you no role of this gateway") from error
        except Unauthenticated as error:
            raise LoginRefused(
                f"the identity server's token is not accepted here: {error}; its operator gives it the audience of this gateway"
            ) from error
        if (earlier := key_of(request, is_tls=proxies.is_tls(request))) is not None:
            await self._sessions.end(earlier)
        request[CALLER] = caller
        return await self._sessions.begin_granted(caller, grant)

    def forget(self, request: web.Request, response: web.StreamResponse) -> None:
        """Remove the cookie of a login that has ended."""
        take_back(response, is_tls=request.app[PROXIES].is_tls(request), name=_BEGUN)

    async def leave(self, request: web.Request, grant: Grant) -> web.Response | None:
        """Return the answer that leads to the logout at the issuer; None if there is none, and the grant is revoked."""
        try:
            if await self._client.logout_address(None, "") is None:
                await self._client.revoke(grant)
                return None
        except IdentityUnavailable:
            return None
        response = web.json_response({"next": LOGOUT})
        self._give(request, response, _LEAVING, json.dumps(grant.id_token), for_s=_LEAVES_S)
        return response

    async def logout(self, request: web.Request) -> web.Response:
        """GET login/openid/logout: leads to the logout at the issuer, after one here, and otherwise to the page.

        The ID token is in the address of the issuer: the page's script does not see it.
        """
        plain, target = self._taken(request, _LEAVING), f"{PAGE}/"
        if plain is not None:
            with suppress(IdentityUnavailable):  # the session here has ended before
                back = f"{_root(request)}{PAGE}/"
                target = await self._client.logout_address(json.loads(plain), back) or target
        response = web.Response(status=303, headers={"Location": target, "Referrer-Policy": "no-referrer"})
        take_back(response, is_tls=request.app[PROXIES].is_tls(request), name=_LEAVING)
        return response

    def _begun(self, request: web.Request) -> Begun | None:
        plain = self._taken(request, _BEGUN)
        if plain is None:
            return None
        begun, ends = json.loads(plain)
        return Begun(**begun) if ends > rfc3339(context(request).clock.now()) else None

    def _give(self, request: web.Request, response: web.StreamResponse, name: str, plain: str, *, for_s: int) -> None:
        ring, is_tls = context(request).ring, request.app[PROXIES].is_tls(request)
        # `=` is no character of a cookie's value without quotes (RFC 6265 4.1.1 has it, Python's module quotes it).
        sealed = ring.seal(plain, bound_to=name).rstrip("=")
        if len(sealed) > _LARGEST:  # a large ID token: the issuer asks the person then
            sealed = ring.seal("null", bound_to=name).rstrip("=")
        give(response, sealed, for_s=for_s, is_tls=is_tls, name=name)

    @staticmethod
    def _taken(request: web.Request, name: str) -> str | None:
        """Return what a cookie of ours says; None without one."""
        sealed = cookie_of(request, name, is_tls=request.app[PROXIES].is_tls(request))
        if sealed is None:
            return None
        payload = sealed.rpartition(".")[2]
        try:
            return context(request).ring.open(sealed + "=" * (-len(payload) % 4), bound_to=name)
        except UnknownKey:
            return None


def _root(request: web.Request) -> str:
    """Return the origin at which callers use the page, as a browser writes it: without a default port."""
    parts = urlsplit(api_root(request).lower())
    default = {"https": ":443", "http": ":80"}.get(parts.scheme, "")
    return f"{parts.scheme}://{parts.netloc.removesuffix(default)}"
