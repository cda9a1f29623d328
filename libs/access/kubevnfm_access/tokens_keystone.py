"""Keystone tokens (X-Auth-Token), validated at Keystone by a user of ours (Identity API v3, GET /v3/auth/tokens)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from typing import Final

import aiohttp
from kubevnfm_kit.json_types import JsonMapping

from kubevnfm_access.caller import Caller, Role, roles_of
from kubevnfm_access.credentials import Credentials
from kubevnfm_access.errors import Forbidden, IdentityUnavailable, Unauthenticated
from kubevnfm_access.identity_http import IdentityAnswer, call
from kubevnfm_access.memory import VerdictMemory

_LONGEST: Final = 8192
_SPARE_S: Final = 60.0
"""Our own token is renewed this long before it expires."""
ANY_PROJECT: Final = "*"


class KeystoneUser:
    """The user that validates tokens: its own token, cached until shortly before it expires."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        url: str,
        *,
        name: str,
        password: str,
        user_domain: str,
        project: str,
        project_domain: str,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._session, self._url, self._now = session, url, now
        user = {"name": name, "domain": {"name": user_domain}, "password": password}
        self._body = {
            "auth": {
                "identity": {"methods": ["password"], "password": {"user": user}},
                "scope": {"project": {"name": project, "domain": {"name": project_domain}}},
            }
        }
        self._token: tuple[str, float] | None = None
        self._asking = asyncio.Lock()

    async def token(self, *, than: str | None = None) -> str:
        """Return a token other ``than`` one that Keystone rejected. Raises IdentityUnavailable."""
        async with self._asking:
            known = self._token
            if known is None or known[0] == than or known[1] - _SPARE_S <= self._now():
                known = self._token = await self._log_in()
            return known[0]

    async def _log_in(self) -> tuple[str, float]:
        answer = await call(self._session, "POST", f"{self._url}/auth/tokens", json=self._body)
        token = answer.headers.get("X-Subject-Token")
        if answer.status != 201 or token is None:
            raise IdentityUnavailable(f"Keystone rejected our own user: it answered {answer.status}")
        return token, _expires(_token_of(answer))


class KeystoneTokens:
    """`Authenticator` by Keystone token. A revoked token is refused once its cached answer has expired."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        user: KeystoneUser,
        url: str,
        *,
        projects: Collection[str],
        role_by_name: Mapping[str, Role],
        keep_s: float,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._session, self._user, self._url = session, user, url
        self._projects, self._role_by_name, self._now = frozenset(projects), role_by_name, now
        self._memory = VerdictMemory(keep_s=keep_s, now=now)
        self.challenge = f'Keystone uri="{url}"'

    async def caller(self, credentials: Credentials) -> Caller | None:
        """Also raises Forbidden for a project that is not admitted."""
        token = credentials.auth_token
        if token is None:
            return None
        # Before it is sent on: it becomes a header of our own request.
        if not token or len(token) > _LONGEST or not (token.isascii() and token.isprintable()):
            raise Unauthenticated("X-Auth-Token: not a token of Keystone")
        return await self._memory.caller(token, lambda: self._ask(token))

    async def _ask(self, token: str) -> Caller:
        own = await self._user.token()
        answer = await self._validate(token, own)
        if answer.status == 401:  # our token was revoked, or Keystone lost its state
            answer = await self._validate(token, await self._user.token(than=own))
        # 404 is Keystone's answer to an invalid X-Subject-Token, 401 the one to our own X-Auth-Token.
        if answer.status == 404:
            raise Unauthenticated("the token is not valid")
        if answer.status != 200:
            raise IdentityUnavailable(f"Keystone answered {answer.status}")
        body = _token_of(answer)
        expires = _expires(body)
        if expires <= self._now():
            raise Unauthenticated("the token has expired")
        return self._caller(body, expires)

    async def _validate(self, token: str, own: str) -> IdentityAnswer:
        headers = {"X-Auth-Token": own, "X-Subject-Token": token}
        # The catalog, which is most of the answer in a large cloud, is not needed here.
        return await call(self._session, "GET", f"{self._url}/auth/tokens?nocatalog", headers=headers)

    def _caller(self, body: JsonMapping, expires: float) -> Caller:
        user, project = body.get("user") or {}, body.get("project") or {}
        subject = f"{(user.get('domain') or {}).get('name', '')}/{user.get('name', '')}"
        if ANY_PROJECT not in self._projects and not {project.get("id"), project.get("name")} & self._projects:
            raise Forbidden("the token is not of a project that is admitted here")
        names = [str(role.get("name")) for role in body.get("roles") or []]
        return Caller(subject, "keystone", roles_of(names, self._role_by_name), project.get("id"), expires)


def _token_of(answer: IdentityAnswer) -> JsonMapping:
    body = answer.body.get("token") if isinstance(answer.body, dict) else None
    if not isinstance(body, dict):
        raise IdentityUnavailable("Keystone's answer cannot be read")
    return body


def _expires(body: JsonMapping) -> float:
    try:
        return datetime.fromisoformat(str(body["expires_at"])).timestamp()
    except (KeyError, ValueError) as error:
        raise IdentityUnavailable("Keystone's answer cannot be read") from error
