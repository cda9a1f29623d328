"""Identity servers for tests over real HTTP: an issuer of tokens (JWKS, introspection), and Keystone."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from base64 import b64decode, b64encode, urlsafe_b64encode
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from typing import Any
from urllib.parse import urlencode

import jwt
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm
from kubevnfm_kit.http import serving

AUDIENCE = "kubevnfm"
CLIENT = ("gateway", "gateway-s3cret")
PAGE_CLIENT = "kubevnfm-page"
"""The client as which people log in."""


class SigningKey:
    """A key pair of an issuer."""

    def __init__(self, kid: str, *, algorithm: str = "RS256") -> None:
        self.kid, self.algorithm = kid, algorithm
        self.private: Any = (
            rsa.generate_private_key(public_exponent=65537, key_size=2048)
            if algorithm.startswith(("RS", "PS"))
            else ec.generate_private_key(ec.SECP256R1())
        )

    def jwk(self) -> dict[str, Any]:
        form = RSAAlgorithm if self.algorithm.startswith(("RS", "PS")) else ECAlgorithm
        return {**json.loads(form.to_jwk(self.private.public_key())), "kid": self.kid, "use": "sig"}


def _set_event() -> asyncio.Event:
    event = asyncio.Event()
    event.set()
    return event


@dataclass
class Issuer:
    """An OAuth 2.0 and OpenID Connect server: it issues tokens, publishes its keys, and logs people in."""

    keys: list[SigningKey] = field(default_factory=lambda: [SigningKey("k1")])
    url: str = ""
    is_down: bool = False
    asked: list[str] = field(default_factory=list)
    """Paths of the requests so far."""
    opaque: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The answer of introspection for each token."""
    more_keys: list[Any] = field(default_factory=list)
    """Other entries of the published key set."""
    person: str = "anna"
    """The one that logs in."""
    refusal: str | None = None
    """The error with which a login ends."""
    has_logout: bool = True
    configuration: dict[str, Any] = field(default_factory=dict)
    """Changes of what it publishes about itself."""
    claims: dict[str, Any] = field(default_factory=dict)
    """Changes of the ID token."""
    granted: dict[str, Any] = field(default_factory=dict)
    """Changes of the answers at the token endpoint."""
    instead: tuple[int, str] | None = None
    """The status and body of other answers there."""
    forms: list[dict[str, str]] = field(default_factory=list)
    """The requests to the token endpoint."""
    revoked: list[str] = field(default_factory=list)
    refresh_tokens: dict[str, str] = field(default_factory=dict)
    """The person of each refresh token that was not used yet; an old one ends the login."""
    is_free: asyncio.Event = field(default_factory=_set_event)
    """Whether it answers at the token endpoint already."""
    is_asked: asyncio.Event = field(default_factory=asyncio.Event)
    """Whether it was asked there."""
    _codes: dict[str, dict[str, str]] = field(default_factory=dict)

    def token(
        self, scope: str = "operator", *, key: SigningKey | None = None, header: Any = None, **changes: Any
    ) -> str:
        """Return a JWT for a client; ``changes`` are claims, None leaves one out."""
        signing = key or self.keys[0]
        now = int(time.time())
        claims = {
            "iss": self.url,
            "aud": AUDIENCE,
            "sub": "nfvo-1",
            "client_id": "nfvo-1",
            "iat": now,
            "exp": now + 600,
        }
        claims = {name: value for name, value in {**claims, "scope": scope, **changes}.items() if value is not None}
        return jwt.encode(
            claims, signing.private, algorithm=signing.algorithm, headers={"kid": signing.kid, **(header or {})}
        )

    def app(self) -> web.Application:
        app = web.Application(middlewares=[self._counted])
        app.add_routes(
            [
                web.get("/.well-known/openid-configuration", self._configuration),
                web.get("/jwks", self._jwks),
                web.post("/introspect", self._introspect),
                web.get("/authorize", self._authorize),
                web.post("/token", self._token),
                web.post("/revoke", self._revoke),
                web.get("/logout", self._logout),
            ]
        )
        return app

    @web.middleware
    async def _counted(self, request: web.Request, handler: Any) -> web.StreamResponse:
        self.asked.append(request.path)
        if self.is_down:
            return web.Response(status=503)
        answer: web.StreamResponse = await handler(request)
        return answer

    async def _configuration(self, _: web.Request) -> web.Response:
        found = {
            "issuer": self.url,
            "jwks_uri": f"{self.url}/jwks",
            "authorization_endpoint": f"{self.url}/authorize?tenant=nfv",
            "token_endpoint": f"{self.url}/token",
            "revocation_endpoint": f"{self.url}/revoke",
            "end_session_endpoint": f"{self.url}/logout" if self.has_logout else None,
            "authorization_response_iss_parameter_supported": True,
        }
        found |= self.configuration
        return web.json_response({name: value for name, value in found.items() if value is not None})

    async def _authorize(self, request: web.Request) -> web.Response:
        """Log the person in; as a browser would be, the client is sent back."""
        query = request.query
        assert (query["response_type"], query["code_challenge_method"], query["tenant"]) == ("code", "S256", "nfv")
        assert "openid" in query["scope"].split()
        back = {"state": query["state"], "iss": self.url}
        if self.refusal is not None:
            back["error"] = self.refusal
        else:
            back["code"] = f"code-{len(self._codes)}"
            self._codes[back["code"]] = {**query, "person": self.person}
        return web.Response(status=302, headers={"Location": f"{query['redirect_uri']}?{urlencode(back)}"})

    async def _token(self, request: web.Request) -> web.Response:
        self.is_asked.set()
        await self.is_free.wait()
        if self.instead is not None:
            status, body = self.instead
            return web.Response(status=status, text=body)
        form = {name: str(value) for name, value in (await request.post()).items()}
        client = form.get("client_id", "")
        if (basic := request.headers.get("Authorization")) is not None:
            client = b64decode(basic.removeprefix("Basic ")).decode()
        self.forms.append({**form, "client": client})
        if form["grant_type"] == "refresh_token":
            person, nonce = self.refresh_tokens.pop(form["refresh_token"], None), None
        else:
            login = self._codes.pop(form["code"], {})
            digest = hashlib.sha256(form["code_verifier"].encode()).digest()
            is_right = urlsafe_b64encode(digest).decode().rstrip("=") == login.get("code_challenge")
            fits = is_right and login.get("redirect_uri") == form["redirect_uri"]
            person, nonce = (login["person"], login["nonce"]) if fits else (None, None)
        if person is None:
            return web.json_response({"error": "invalid_grant", "error_description": "s3cret detail"}, status=400)
        refresh = f"refresh-{len(self.forms)}"
        self.refresh_tokens[refresh] = person
        about: dict[str, Any] = {
            "sub": f"id-{person}",
            "preferred_username": person,
            "azp": PAGE_CLIENT,
            "client_id": None,
        }
        id_claims = {**about, "aud": PAGE_CLIENT, "nonce": nonce, "scope": None, **self.claims}
        found = {
            "access_token": self.token("admin" if person == "anna" else person, **about),
            "id_token": self.token(**id_claims),
            "refresh_token": refresh,
            "token_type": "Bearer",
            "expires_in": 300,
        }
        found |= self.granted
        return web.json_response({name: value for name, value in found.items() if value is not None})

    async def _logout(self, request: web.Request) -> web.Response:
        assert request.query["id_token_hint"].startswith("eyJ")
        return web.Response(status=302, headers={"Location": request.query["post_logout_redirect_uri"]})

    async def _revoke(self, request: web.Request) -> web.Response:
        self.revoked.append(str((await request.post())["token"]))
        return web.Response()

    async def _jwks(self, _: web.Request) -> web.Response:
        return web.json_response({"keys": [*self.more_keys, *(key.jwk() for key in self.keys)]})

    async def _introspect(self, request: web.Request) -> web.Response:
        if request.headers.get("Authorization") != f"Basic {b64encode(':'.join(CLIENT).encode()).decode()}":
            return web.Response(status=401)
        form = await request.post()
        return web.json_response(self.opaque.get(str(form["token"]), {"active": False}))


@asynccontextmanager
async def an_issuer() -> AsyncIterator[Issuer]:
    """Yield a running issuer."""
    issuer = Issuer()
    async with serving(issuer.app(), host="127.0.0.1", port=0) as port:
        issuer.url = f"http://127.0.0.1:{port}"
        yield issuer


@dataclass
class KeystoneAccount:
    """A user of the stand-in, in one project."""

    password: str
    roles: tuple[str, ...]
    project: str = "nfv"


class Keystone:
    """A stand-in for Identity API v3: log-in by password and validation of tokens, which can be revoked."""

    def __init__(self, accounts: Mapping[str, KeystoneAccount]) -> None:
        self.accounts = dict(accounts)
        self.tokens: dict[str, tuple[str, float]] = {}
        """User and expiry time by token."""
        self.validations = 0
        self.log_ins: list[str] = []
        self.is_down = False
        self.url = ""
        self.gateway_url = "http://127.0.0.1:9"
        """The catalog's URL for the type nfv-orchestration."""
        self._numbers = count(1)

    def token(self, user: str, *, lives_s: float = 3600.0) -> str:
        """Return a new token of a user."""
        token = f"gAAAA-{user}-{next(self._numbers)}"
        self.tokens[token] = (user, time.time() + lives_s)
        return token

    def revoke(self, token: str) -> None:
        del self.tokens[token]

    def app(self) -> web.Application:
        app = web.Application()
        app.add_routes(
            [
                web.get("/v3", self._version),
                web.get("/v3/", self._version),
                web.post("/v3/auth/tokens", self._log_in),
                web.get("/v3/auth/tokens", self._validate),
            ]
        )
        return app

    async def _version(self, _: web.Request) -> web.Response:
        link = {"rel": "self", "href": f"{self.url}/"}
        return web.json_response({"version": {"id": "v3.14", "status": "stable", "links": [link], "media-types": []}})

    async def _log_in(self, request: web.Request) -> web.Response:
        user = (await request.json())["auth"]["identity"]["password"]["user"]
        account = self.accounts.get(user["name"])
        self.log_ins.append(user["name"])
        if self.is_down:
            return web.Response(status=503)
        if account is None or account.password != user["password"]:
            return web.json_response({"error": {"code": 401, "message": "no", "title": "Unauthorized"}}, status=401)
        token = self.token(user["name"])
        return web.json_response(self._body(token), status=201, headers={"X-Subject-Token": token})

    async def _validate(self, request: web.Request) -> web.Response:
        self.validations += 1
        if self.is_down:
            return web.Response(status=503)
        known = self.tokens.get(request.headers.get("X-Auth-Token", ""))
        if known is None or "service" not in self.accounts[known[0]].roles:
            return web.json_response({"error": {"code": 401, "message": "no", "title": "Unauthorized"}}, status=401)
        subject = request.headers.get("X-Subject-Token", "")
        if subject not in self.tokens or self.tokens[subject][1] <= time.time():
            return web.json_response({"error": {"code": 404, "message": "no", "title": "Not Found"}}, status=404)
        return web.json_response(self._body(subject), headers={"X-Subject-Token": subject})

    def _body(self, token: str) -> dict[str, Any]:
        name, ends = self.tokens[token]
        account = self.accounts[name]
        domain = {"id": "default", "name": "Default"}
        endpoint = {
            "id": "e", "interface": "public", "region": "RegionOne", "region_id": "RegionOne", "url": self.gateway_url,
        }  # fmt: skip
        return {
            "token": {
                "methods": ["password"],
                "user": {"id": f"id-{name}", "name": name, "domain": domain},
                "project": {"id": f"id-{account.project}", "name": account.project, "domain": domain},
                "roles": [{"id": role, "name": role} for role in account.roles],
                "expires_at": datetime.fromtimestamp(ends, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
                "issued_at": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
                "catalog": [
                    {"id": "c", "type": "nfv-orchestration", "name": "tacker", "endpoints": [endpoint]},
                ],
            }
        }


@asynccontextmanager
async def a_keystone(**accounts: KeystoneAccount) -> AsyncIterator[Keystone]:
    """Yield a running Keystone with these users, and the user ``gateway``, which may validate tokens."""
    keystone = Keystone({"gateway": KeystoneAccount("gateway-s3cret", ("service",), "service"), **accounts})
    async with serving(keystone.app(), host="127.0.0.1", port=0) as port:
        keystone.url = f"http://127.0.0.1:{port}/v3"
        yield keystone
