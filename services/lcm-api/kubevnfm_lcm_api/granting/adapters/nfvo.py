"""An NFVO's granting interface over HTTP (SOL003 clause 9), with authentication."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote, unquote, urlsplit

import aiohttp
import structlog
from kubevnfm_clients.bounded import read_json
from kubevnfm_clients.client_tokens import Client, ClientTokens, NoToken
from kubevnfm_clients.outbound import trouble
from kubevnfm_sol.problem import ProblemDetails

from kubevnfm_lcm_api.lifecycle.core.granting import Answer, Granted, Refused, Unanswered, Undecided

log = structlog.get_logger()

_VERSION: Final = "1.4.0"
"""The version of the granting interface in SOL003 V3.3.1 (api.md 1.1)."""
_ANSWER_BYTES: Final = 4 * 1024 * 1024
"""A bound on what the NFVO can make this process hold in memory; a grant has some kilobytes."""
_TEMPORARY: Final = frozenset({401, 408, 425, 429})
"""Client errors that are retried: an operator may repair the credentials, or the NFVO's load may drop."""


@dataclass(frozen=True)
class NfvoCredentials:
    """The VNFM's credentials: none without a user, OAuth 2.0 with a token endpoint, else Basic."""

    user: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    token_url: str | None = None


@dataclass(frozen=True)
class _Response:
    status: int
    headers: Mapping[str, str]
    body: object


class HttpNfvo:
    """`lifecycle.core.granting.Nfvo`.

    Redirects are not followed, and a Location gives only the grant's id: the credentials go to the configured URL only.
    """

    def __init__(
        self, session: aiohttp.ClientSession, *, url: str, credentials: NfvoCredentials, call_timeout_s: float
    ) -> None:
        self._session, self._credentials = session, credentials
        self._grants = f"{url.rstrip('/')}/grant/v1/grants"
        self._timeout = aiohttp.ClientTimeout(total=call_timeout_s)
        self._tokens = ClientTokens()

    def link(self, grant_id: str) -> str:
        return f"{self._grants}/{quote(grant_id, safe='')}"

    async def request_grant(self, request: Mapping[str, object]) -> Answer:
        answer = await self._call("POST", self._grants, request)
        if isinstance(answer, Unanswered):
            return answer
        if answer.status == 202:
            grant_id = unquote(urlsplit(answer.headers.get("Location", "")).path.rstrip("/").rpartition("/")[2])
            if grant_id in {"", "grants", ".", ".."}:
                return _unusable("202 without a Location that names a grant")
            return Undecided(grant_id, _retry_after_s(answer))
        return _decision(answer, 201)

    async def poll(self, grant_id: str) -> Answer:
        answer = await self._call("GET", self.link(grant_id), None)
        if isinstance(answer, Unanswered):
            return answer
        return Undecided(grant_id, _retry_after_s(answer)) if answer.status == 202 else _decision(answer, 200)

    async def _call(self, method: str, url: str, body: Mapping[str, object] | None) -> _Response | Unanswered:
        """Send a request with the configured authentication. A token that is not accepted is replaced once."""
        headers = {"Version": _VERSION, "Accept": "application/json, application/problem+json"}
        credentials = self._credentials
        try:
            if credentials.token_url is None:
                if credentials.user:
                    headers["Authorization"] = aiohttp.encode_basic_auth(credentials.user, credentials.password)
                return await self._send(method, url, headers, body)
            client = Client(credentials.token_url, credentials.user, credentials.password)

            async def send(authorization: str) -> _Response:
                return await self._send(method, url, {**headers, "Authorization": authorization}, body)

            return await self._tokens.authorized(client, self._session, send)
        except NoToken as error:
            return Unanswered(str(error))
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            return Unanswered(trouble(error))
        except RuntimeError as error:
            if not self._session.closed:
                raise
            log.debug("nfvo_not_asked", reason=str(error))  # the process is ending; the message is delivered again
            return Unanswered("the process was stopped before the call")

    async def _send(
        self, method: str, url: str, headers: Mapping[str, str], body: Mapping[str, object] | None
    ) -> _Response:
        async with self._session.request(
            method, url, json=body, headers=headers, allow_redirects=False, timeout=self._timeout
        ) as response:
            answer = await read_json(response, limit_bytes=_ANSWER_BYTES)
            return _Response(response.status, response.headers, answer)


def _decision(answer: _Response, success: int) -> Answer:
    """Return the decision in a final answer; ``success``: the status that carries a grant."""
    status = answer.status
    if status == success and isinstance(answer.body, Mapping):
        return Granted(answer.body)
    if 200 <= status < 300:
        return _unusable(f"{status} without a grant")
    if status < 400 or status >= 500 or status in _TEMPORARY:
        return Unanswered(f"the NFVO answered {status}", _retry_after_s(answer))
    problem = answer.body if isinstance(answer.body, Mapping) else {}
    # Cut: the problem is stored with the operation and shown in its `error`.
    return Refused(
        ProblemDetails(
            type=str(problem.get("type") or "grant-refused")[:255],
            title=str(problem.get("title") or "Grant refused")[:255],
            status=status,
            detail=str(problem.get("detail") or f"the NFVO refused the operation with {status}")[:4096],
        )
    )


def _unusable(what: str) -> Refused:
    """Return a final refusal. Such a call is not repeated, as each repeat might create one more grant."""
    detail = f"the NFVO answered {what}"
    return Refused(ProblemDetails(type="grant-unusable", title="Grant cannot be used", status=422, detail=detail))


def _retry_after_s(answer: _Response) -> float | None:
    # Only the form in seconds; the date form would depend on the NFVO's clock.
    text = answer.headers.get("Retry-After", "").strip()
    return float(text[:9]) if text.isascii() and text.isdigit() else None
