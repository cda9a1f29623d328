"""An NFVO's granting interface over HTTP (SOL003 clause 9), with what shows who we are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote, unquote, urlsplit

import aiohttp
import structlog
from kubevnfm_clients.bounded import read_json
from kubevnfm_clients.client_tokens import Client, ClientTokens, NoToken
from kubevnfm_clients.outbound import trouble
from kubevnfm_sol.problem import ProblemDetails

from kubevnfm_lcm_api.lifecycle.domain.granting import Answer, Granted, Refused, Unanswered, Undecided

log = structlog.get_logger()

_VERSION: Final = "1.4.0"
"""Of the granting interface, as SOL003 V3.3.1 has it: api.md 1.1."""
_ANSWER_BYTES: Final = 4 * 1024 * 1024
_LATER: Final = frozenset({401, 408, 425, 429})
"""Refusals that may go away: an operator repairs the credentials, the NFVO has less to do."""


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
    body: Any


class HttpNfvo:
    """`domain.granting.Nfvo`. Redirects are not followed; polls go to our own address, whatever Location says."""

    def __init__(
        self, session: aiohttp.ClientSession, *, url: str, credentials: NfvoCredentials, call_timeout_s: float
    ) -> None:
        self._session, self._credentials = session, credentials
        self._grants = f"{url.rstrip('/')}/grant/v1/grants"
        self._timeout = aiohttp.ClientTimeout(total=call_timeout_s)
        self._tokens = ClientTokens()

    def link(self, grant_id: str) -> str:
        """See the port."""
        return f"{self._grants}/{quote(grant_id, safe='')}"

    async def request_grant(self, request: Mapping[str, Any]) -> Answer:
        """See the port."""
        answer = await self._call("POST", self._grants, request)
        if isinstance(answer, Unanswered):
            return answer
        if answer.status == 202:
            grant_id = unquote(urlsplit(answer.headers.get("Location", "")).path.rstrip("/").rpartition("/")[2])
            if grant_id in {"", "grants", ".", ".."}:
                return _nonsense("202 without a Location that names a grant")
            return Undecided(grant_id, _seconds(answer))
        return _judged(answer, 201)

    async def poll(self, grant_id: str) -> Answer:
        """See the port."""
        answer = await self._call("GET", self.link(grant_id), None)
        if isinstance(answer, Unanswered):
            return answer
        return Undecided(grant_id, _seconds(answer)) if answer.status == 202 else _judged(answer, 200)

    async def _call(self, method: str, url: str, body: Any) -> _Response | Unanswered:
        """Call as the NFVO wants it. A token that is not accepted is fetched anew, once."""
        headers = {"Version": _VERSION, "Accept": "application/json, application/problem+json"}
        credentials = self._credentials
        try:
            if credentials.token_url is None:
                if credentials.user:
                    headers["Authorization"] = aiohttp.encode_basic_auth(credentials.user, credentials.password)
                return await self._sent(method, url, headers, body)
            client = Client(credentials.token_url, credentials.user, credentials.password)
            token = await self._tokens.token(client, self._session)
            answer = await self._sent(method, url, {**headers, "Authorization": f"Bearer {token}"}, body)
            if answer.status == 401:
                token = await self._tokens.token(client, self._session, instead_of=token)
                answer = await self._sent(method, url, {**headers, "Authorization": f"Bearer {token}"}, body)
            return answer
        except NoToken as error:
            return Unanswered(str(error))
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            return Unanswered(trouble(error))
        except RuntimeError as error:
            if not self._session.closed:
                raise
            log.debug("nfvo_not_asked", reason=str(error))  # what is delivered while the process ends comes again
            return Unanswered("the process that asked has ended")

    async def _sent(self, method: str, url: str, headers: Mapping[str, str], body: Any) -> _Response:
        async with self._session.request(
            method, url, json=body, headers=headers, allow_redirects=False, timeout=self._timeout
        ) as response:
            answer = await read_json(response, limit_bytes=_ANSWER_BYTES)
            return _Response(response.status, response.headers, answer)


def _judged(answer: _Response, success: int) -> Answer:
    status = answer.status
    if status == success and isinstance(answer.body, Mapping):
        return Granted(answer.body)
    if 200 <= status < 300:
        return _nonsense(f"{status} without a grant")
    if status < 400 or status >= 500 or status in _LATER:
        return Unanswered(f"it answered {status}", _seconds(answer))
    told = answer.body if isinstance(answer.body, Mapping) else {}
    return Refused(
        ProblemDetails(
            type=str(told.get("type") or "grant-refused")[:255],
            title=str(told.get("title") or "Grant refused")[:255],
            status=status,
            detail=str(told.get("detail") or f"the NFVO refused the operation with {status}")[:4096],
        )
    )


def _nonsense(what: str) -> Refused:
    """No repeat: each might make one more grant."""
    detail = f"the NFVO answered {what}"
    return Refused(ProblemDetails(type="grant-unusable", title="Grant cannot be used", status=422, detail=detail))


def _seconds(answer: _Response) -> float | None:
    text = answer.headers.get("Retry-After", "").strip()
    return float(text[:9]) if text.isascii() and text.isdigit() else None
