"""Subscribers over HTTP (SOL003 clause 5.4.20): the callback test and the notifications, with authentication."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import aiohttp
from kubevnfm_clients.client_tokens import Client, ClientTokens, NoToken
from kubevnfm_clients.outbound import AddressNotAllowed, AddressRules, trouble
from kubevnfm_kit.http_dates import read_http_date
from kubevnfm_kit.json_types import JsonMapping
from kubevnfm_secrets import KeyRing, Secret

from kubevnfm_lcm_api.notifications.domain.callback import (
    WITH_CERTIFICATE,
    Callback,
    Notice,
    Refused,
    Taken,
    Untaken,
    strongest,
)

_TEST_S: Final = 20.0
_NOTIFY_S: Final = 10.0
# Timeout (RFC 9110 15.5.9) and rate limit (RFC 6585 4): the same request may succeed later, unlike with other 4xx.
_WORTH_REPEATING: Final = frozenset({408, 429})


@dataclass(frozen=True)
class Certified:
    """The session for calls with a client certificate."""

    session: aiohttp.ClientSession
    certificate: Path
    """PEM; its first certificate is the client certificate."""


@dataclass(frozen=True)
class _Answer:
    status: int
    again_in_s: float | None


class HttpSubscriber:
    """`domain.callback.Subscriber` over sessions that check the addresses they connect to."""

    def __init__(
        self, session: aiohttp.ClientSession, *, certified: Certified | None, rules: AddressRules, ring: KeyRing
    ) -> None:
        """``certified``: None if no client certificate is configured."""
        self._session, self._certified, self._rules, self._ring = session, certified, rules, ring
        self._tokens = ClientTokens()

    async def obstacle(self, callback: Callback) -> str | None:
        """An address is checked now; a host name is checked when it is connected to."""
        if not self._is_allowed(self._plain(callback.uri)):
            return f"callbackUri: {AddressNotAllowed()}"
        asked = callback.authentication
        if asked is None:
            return None
        chosen = strongest(asked["authType"], has_certificate=self._certified is not None)
        if chosen is None:
            return "authentication: authType contains only types that need a client certificate, and none is configured here"
        params = _params(asked, chosen)
        if "tokenEndpoint" in params and not self._is_allowed(self._plain(params["tokenEndpoint"])):
            return f"authentication: tokenEndpoint: {AddressNotAllowed()}"
        if chosen == "OAUTH2_CLIENT_CERT" and self._certified is not None:
            ours = await asyncio.to_thread(thumbprint, self._certified.certificate)
            if params["certificateRef"]["value"].rstrip("=") != ours:
                return "authentication: certificateRef does not match the client certificate that is configured here"
        return None

    async def test(self, callback: Callback) -> str | None:
        try:
            answer = await self._call("GET", callback, {}, None, _TEST_S)
        except NoToken as error:
            return str(error)
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            return trouble(error)
        return None if answer.status == 204 else f"it answered {answer.status}"

    async def notify(self, callback: Callback, notice: Notice) -> Taken | Untaken | Refused:
        try:
            answer = await self._call("POST", callback, notice.headers, notice.body, _NOTIFY_S)
        except NoToken as error:
            # The token endpoint has failed, not the subscriber: it may accept the notification later.
            return Untaken(str(error))
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            return Untaken(trouble(error))
        if 200 <= answer.status < 300:
            return Taken(answer.status)
        reason = f"it answered {answer.status}"
        if answer.status < 500 and answer.status not in _WORTH_REPEATING:
            return Refused(reason, answer.status)
        return Untaken(reason, answer.again_in_s, answer.status)

    # --- one call -----------------------------------------------------------------------------------------------------

    async def _call(
        self, method: str, callback: Callback, headers: Mapping[str, str], body: Any, timeout_s: float
    ) -> _Answer:
        """Call with the strongest authentication that both sides support. A rejected token is replaced once."""
        asked = callback.authentication
        chosen = strongest(asked["authType"], has_certificate=self._certified is not None) if asked else None
        if asked is not None and chosen is None:
            raise NoToken("it requires a client certificate, and none is configured here any more")
        session, uri = self._session, self._plain(callback.uri)
        if chosen in WITH_CERTIFICATE and self._certified is not None:
            session = self._certified.session
        sent = {"Accept": "application/json", "Accept-Encoding": "identity", **headers}
        params = _params(asked, chosen) if asked is not None and chosen is not None else {}
        if chosen == "BASIC":
            sent["Authorization"] = aiohttp.encode_basic_auth(params["userName"], self._plain(params["password"]))
        if chosen not in {"OAUTH2_CLIENT_CREDENTIALS", "OAUTH2_CLIENT_CERT"}:
            return await _sent(session, method, uri, sent, body, timeout_s)
        password = self._plain(params["clientPassword"]) if "clientPassword" in params else None
        client = Client(self._plain(params["tokenEndpoint"]), self._plain(params["clientId"]), password)

        async def send(authorization: str) -> _Answer:
            return await _sent(session, method, uri, {**sent, "Authorization": authorization}, body, timeout_s)

        return await self._tokens.authorized(client, session, send)

    def _is_allowed(self, uri: str) -> bool:
        host = urlsplit(uri).hostname or ""
        is_address = ":" in host or host.replace(".", "").isdigit()
        return not is_address or self._rules.admits(host)

    def _plain(self, value: Secret | str) -> str:
        return value.reveal(self._ring) if isinstance(value, Secret) else value


async def _sent(
    session: aiohttp.ClientSession, method: str, uri: str, headers: Mapping[str, str], body: Any, timeout_s: float
) -> _Answer:
    async with session.request(
        method,
        uri,
        json=body,
        headers=headers,
        # A redirect would take the notification to an address that the callback test has not seen.
        allow_redirects=False,
        timeout=aiohttp.ClientTimeout(total=timeout_s),
    ) as response:
        return _Answer(response.status, _seconds(response.headers.get("Retry-After")))


def _seconds(retry_after: str | None) -> float | None:
    """Return the seconds of a Retry-After header (RFC 9110 10.2.3: a number of them, or a date)."""
    if retry_after is None:
        return None
    text = retry_after.strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    moment = read_http_date(text)
    return None if moment is None else max(0.0, (moment - datetime.now(UTC)).total_seconds())


def _params(authentication: JsonMapping, chosen: str) -> JsonMapping:
    name = {
        "BASIC": "paramsBasic",
        "OAUTH2_CLIENT_CREDENTIALS": "paramsOauth2ClientCredentials",
        "OAUTH2_CLIENT_CERT": "paramsOauth2ClientCert",
    }.get(chosen)
    found: JsonMapping = authentication[name] if name is not None else {}
    return found


def thumbprint(certificate: Path) -> str:
    """Return x5t#S256 (RFC 7515 4.1.8) of the first certificate in a PEM file."""
    pem = certificate.read_text(encoding="ascii", errors="replace")
    begin, end = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
    first = begin + pem.partition(begin)[2].partition(end)[0] + end
    digest = hashlib.sha256(ssl.PEM_cert_to_DER_cert(first)).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
