"""``/kubevnfm/v1/session``: logging in to the web page, and out; ``/kubevnfm/v1/login``: how one can.

One logs in with the credentials that any other request has in its headers, so they are read and checked in one place
(`kubevnfm_access`). The session then stands for them; its rule is that of `kubevnfm_access.sessions`.
"""

from __future__ import annotations

from collections.abc import Sequence

from aiohttp import web
from kubevnfm_access.caller import LOGIN, OPENID, SESSION
from kubevnfm_access.middleware import ADMISSION, CALLER, PROXIES, session_key
from kubevnfm_access.sessions import give, key_of, take_back
from kubevnfm_kit.errors import InvalidInput, NotFound

from kubevnfm_lcm_api.http.bodies import parse_body, read_json
from kubevnfm_lcm_api.http.models import Shown
from kubevnfm_lcm_api.http.routes import DELETED, Answer, Route
from kubevnfm_lcm_api.page.openid import ANSWER, LOGOUT, OpenIdAnswer, OpenIdLogin, OpenIdLogins
from kubevnfm_lcm_api.page.sessions import StoredSessions

TAG = "Web page"


class LoginView(Shown):
    """How one can log in."""

    ways: list[str]
    """``basic`` (name and password), ``bearer`` and ``keystone`` (a token), ``certificate``; none where authentication is off."""
    openIdHost: str | None = None  # noqa: N815  # as it is on the wire
    """The host of the identity server at which one can log in (OpenID Connect); missing without one."""


class CallerView(Shown):
    """The caller, as the gateway knows it."""

    subject: str
    name: str | None = None
    """The name that people know it by; others may have the same."""
    mode: str
    """The way by which it was authenticated; ``none`` where authentication is off."""
    roles: list[str]
    """Some of ``reader``, ``operator`` and ``admin``, each of which includes those before it."""
    isSession: bool  # noqa: N815  # as it is on the wire
    """Whether a session carries the request, which a logout would end."""


class LogoutView(Shown):
    """A logout that goes on at the identity server."""

    next: str
    """Where the browser goes then, a path of the gateway."""


class Login:
    """The handlers. ``openid``: logging in at the identity server, where the gateway is a client of one."""

    def __init__(self, sessions: StoredSessions, ways: Sequence[str], openid: OpenIdLogins | None) -> None:
        self._sessions, self._ways, self._openid = sessions, [way for way in ways if way != "none"], openid

    async def ways(self, request: web.Request) -> web.Response:
        """GET login: the ways of authentication that are on."""
        more = {} if self._openid is None else {"openIdHost": self._openid.host}
        return web.json_response({"ways": self._ways, **more})

    async def show(self, request: web.Request) -> web.Response:
        """GET session: the caller."""
        return web.json_response(_view(request, is_session=request[ADMISSION].session is not None))

    async def begin(self, request: web.Request) -> web.Response:
        """POST session: begin a session with the credentials in the headers. Raises InvalidInput, Forbidden.

        The session that the caller has had ends: no one can have planted it, and its key is worth nothing any more.
        """
        proxies, admission = request.app[PROXIES], request[ADMISSION]
        # Otherwise a foreign page could log its visitor in as someone else.
        proxies.check_own_page(request)
        given = admission.credentials
        if not self._ways or admission.session is not None or not (given.authorization or given.auth_token):
            raise InvalidInput(
                "Authorization", "credentials in Authorization or X-Auth-Token expected, and authentication on"
            )
        is_tls = proxies.is_tls(request)
        if (earlier := key_of(request, is_tls=is_tls)) is not None:
            await self._sessions.end(earlier)
        key = await self._sessions.begin(request[CALLER], given)
        response = web.json_response(_view(request, is_session=True), status=201)
        give(response, key, for_s=self._sessions.lasts_s, is_tls=is_tls)
        return response

    async def lead(self, request: web.Request) -> web.Response:
        """POST login/openid: begin a login at the identity server. Raises NotFound, and what `begin` does."""
        return await self._there().begin(request)

    async def logout(self, request: web.Request) -> web.Response:
        """GET login/openid/logout: lead to its logout. Raises NotFound."""
        return await self._there().logout(request)

    async def answer(self, request: web.Request) -> web.Response:
        """POST login/openid/answer: begin a session with the answer of the identity server. Raises InvalidInput, NotFound, and what `finish` does."""
        given = await parse_body(request, OpenIdAnswer, await read_json(request))
        openid = self._there()
        key = await openid.finish(request, given)
        response = web.json_response(_view(request, is_session=True), status=201)
        openid.forget(request, response)
        give(response, key, for_s=self._sessions.lasts_s, is_tls=request.app[PROXIES].is_tls(request))
        return response

    async def end(self, request: web.Request) -> web.Response:
        """DELETE session: end the session of the cookie; one of the identity server ends there, too. Raises Forbidden.

        Nothing but the cookie is judged, so that one can log out without a role, and while the identity server is away.
        """
        proxies, further = request.app[PROXIES], None
        key = session_key(request, proxies)
        if key is not None:
            proxies.check_own_page(request)
            ended = await self._sessions.end_known(key)
            if ended is not None:
                request[CALLER] = ended.caller  # for the audit log
                if ended.grant is not None and self._openid is not None:
                    further = await self._openid.leave(request, ended.grant)
        response = further or web.Response(status=204)
        take_back(response, is_tls=proxies.is_tls(request))
        return response

    def _there(self) -> OpenIdLogins:
        if self._openid is None:
            raise NotFound("this gateway has no login at an identity server")
        return self._openid


def _view(request: web.Request, *, is_session: bool) -> dict[str, object]:
    caller = request[CALLER]
    roles = sorted(str(role) for role in caller.roles)
    name = {} if caller.name is None else {"name": caller.name}
    return {"subject": caller.subject, **name, "mode": caller.mode, "roles": roles, "isSession": is_session}


def routes(login: Login) -> list[Route]:
    """Return the routes of logging in and out."""
    known, begun = (
        Answer("The caller", CallerView),
        Answer("The session has begun; the cookie stands for it", CallerView),
    )
    ended = {**DELETED, 200: Answer("The session has ended here; the identity server is next", LogoutView)}
    led = Answer("The login, which goes on at the identity server", OpenIdLogin)
    left = Answer("The way to its logout, or to the page")
    refusals = {
        403: "the login was refused, or is of another page",
        404: "the gateway has no login at an identity server",
        503: "the identity server does not answer",
    }
    return [
        Route(TAG, "GET", LOGIN, login.ways, "Show how one can log in", {200: Answer("The ways", LoginView)}),
        Route(TAG, "GET", SESSION, login.show, "Show the caller and its roles", {200: known}),
        Route(TAG, "POST", SESSION, login.begin, "Log in to the web page", {201: begun}),
        Route(TAG, "DELETE", SESSION, login.end, "Log out of the web page", ended),
        Route(TAG, "POST", OPENID, login.lead, "Begin a login at the identity server", {200: led}, refusals=refusals),
        Route(
            TAG, "POST", ANSWER, login.answer, "Log in with the answer of the identity server", {201: begun},
            body=OpenIdAnswer, refusals=refusals,
        ),
        Route(
            TAG, "GET", LOGOUT, login.logout, "Log out of the identity server", {303: left},
            refusals={404: refusals[404]}, checks_accept=False,
        ),
    ]  # fmt: skip
