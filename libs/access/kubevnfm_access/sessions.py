"""Sessions of the web page: a cookie in place of the headers with which a user has logged in.

The rule: a session stands for the credentials of its login, which `Gate` checks again with each request, so it ends when
they are withdrawn. It counts where a request has no credentials in its headers. A request that it carries and that changes
something must come from a page of this gateway, by its ``Origin``: without that header it is refused, too. The cookie is a
random key, new at each login; scripts cannot read it, and browsers send it with no request of another site (RFC 6265).
"""

from __future__ import annotations

import re
from typing import Final, Protocol

from aiohttp import web

from kubevnfm_access.credentials import Credentials

PAGE_HEADER: Final = "Kubevnfm-Page"
"""Requests of the page have it. Their refusals do not name the schemes, as browsers would ask for a password themselves."""
CHALLENGE: Final = 'Session realm="kubevnfm"'
COOKIE: Final = "kubevnfm-session"
_SAFE: Final = "__Host-"
"""Browsers take a cookie of such a name from this very host and by TLS only (RFC 6265bis 4.1.3.2)."""
_KEY: Final = re.compile(r"[A-Za-z0-9_-]{43}")
"""256 bits as `secrets.token_urlsafe` writes them."""


class Sessions(Protocol):
    """The sessions, by the keys in their cookies."""

    async def credentials(self, key: str) -> Credentials | None:
        """Return what its user has logged in with; None if there is no such session, or it has expired."""
        ...

    async def end(self, key: str) -> None:
        """End the session, if there is one."""
        ...


def key_of(request: web.Request, *, is_tls: bool) -> str | None:
    """Return the key in the cookie; None without one. ``is_tls``: whether the caller uses TLS, at a proxy or here."""
    key = cookie_of(request, COOKIE, is_tls=is_tls)
    return key if key is not None and _KEY.fullmatch(key) else None


def cookie_of(request: web.Request, name: str, *, is_tls: bool) -> str | None:
    """Return the value of a cookie that `give` has given."""
    return request.cookies.get(_named(name, is_tls=is_tls))


def give(response: web.StreamResponse, value: str, *, for_s: int, is_tls: bool, name: str = COOKIE) -> None:
    """Give the caller a cookie, that of a session by default."""
    response.set_cookie(
        _named(name, is_tls=is_tls),
        value,
        max_age=for_s,
        path="/",
        secure=is_tls,
        httponly=True,
        samesite="Strict",
    )


def take_back(response: web.StreamResponse, *, is_tls: bool, name: str = COOKIE) -> None:
    """Remove a cookie from the caller's browser."""
    response.del_cookie(_named(name, is_tls=is_tls), path="/", secure=is_tls, httponly=True, samesite="Strict")


def _named(name: str, *, is_tls: bool) -> str:
    return f"{_SAFE}{name}" if is_tls else name
