"""Subscribers over HTTP (SOL003 clause 5.4.20): the callback test, and notifications, with what shows who we are."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import aiohttp
from kubevnfm_clients.client_tokens import Client, ClientTokens, NoToken
from kubevnfm_clients.outbound import AddressNotAllowed, AddressRules, trouble
from kubevnfm_secrets import KeyRing, Secret

from kubevnfm_lcm_api.notifications.domain.callback import (
    WITH_CERTIFICATE,
    Callback,
    Refused,
    Taken,
    Untaken,
    strongest,
)

_TEST_S: Final = 20.0
_NOTIFY_S: Final = 10.0
_WORTH_REPEATING: Final = frozenset({408, 429})


@dataclass(frozen=True)
class Certified:
    """What calls are made with that show our certificate."""

    session: aiohttp.ClientSession
    certificate: Path
    """PEM; its first certificate is the one that is shown."""


@dataclass(frozen=True)
class _Answer:
    status: int
    again_in_s: float | None


class HttpSubscriber:
    """`domain.callback_access.Subscriber` over sessions that judge the addresses they connect to."""

    def __init__(
        self, session: aiohttp.ClientSession, *, certified: Certified | None, rules: AddressRules, ring: KeyRing
    ) -> None:
        """``certified``: None when we have no certificate to show."""
        self._session, self._certified, self._rules, self._ring = session, certified, rules, ring
        self._tokens = ClientTokens()

    async def obstacle(self, callback: Callback) -> str | None:
        """See the port. Names are judged when they are connected to; addresses at once."""
        if not self._may_lead_to(callback.uri):
            return f"callbackUri: {AddressNotAllowed()}"
        asked = callback.authentication
        if asked is None:
            return None
        chosen = strongest(asked["authType"], has_certificate=self._certified is not None)
        if chosen is None:
            return "authentication: no client certificate is configured here, and authType names nothing else"
        params = _params(asked, chosen)
        if "tokenEndpoint" in params and not self._may_lead_to(self._plain(params["tokenEndpoint"])):
            return f"authentication: tokenEndpoint: {AddressNotAllowed()}"
        if chosen == "OAUTH2_CLIENT_CERT" and self._certified is not None:
            ours = await asyncio.to_thread(thumbprint, self._certified.certificate)
            if params["certificateRef"]["value"].rstrip("=") != ours:
                return "authentication: certificateRef names another certificate than the one that is configured here"
        return None

    async def test(self, callback: Callback) -> str | None:
        """See the port."""
        try:
            answer = await self._call("GET", callback, {}, None, _TEST_S)
        except NoToken as error:
            return str(error)
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            return trouble(error)
        return None if answer.status == 204 else f"it answered {answer.status}"

    async def notify(self, callback: Callback, body: Mapping[str, Any], version: str) -> Taken | Untaken | Refused:
        """See the port."""
        try:
            answer = await self._call("POST", callback, {"Version": version}, body, _NOTIFY_S)
        except NoToken as error:
            return Untaken(str(error))
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            return Untaken(trouble(error))
        if 200 <= answer.status < 300:
            return Taken()
        reason = f"it answered {answer.status}"
        if answer.status < 500 and answer.status not in _WORTH_REPEATING:
            return Refused(reason)
        return Untaken(reason, answer.again_in_s)

    # --- one call -----------------------------------------------------------------------------------------------------

    async def _call(
        self, method: str, callback: Callback, headers: Mapping[str, str], body: Any, timeout_s: float
    ) -> _Answer:
        """Call as the subscriber wants it. A token that is refused is fetched anew, once."""
        asked = callback.authentication
        chosen = strongest(asked["authType"], has_certificate=self._certified is not None) if asked else None
        if asked is not None and chosen is None:
            raise NoToken("the client certificate that it wants is not configured here any more")
        session = self._session
        if chosen in WITH_CERTIFICATE and self._certified is not None:
            session = self._certified.session
        sent = {"Accept": "application/json", "Accept-Encoding": "identity", **headers}
        params = _params(asked, chosen) if asked is not None and chosen is not None else {}
        if chosen == "BASIC":
            sent["Authorization"] = aiohttp.encode_basic_auth(params["userName"], self._plain(params["password"]))
        if chosen not in {"OAUTH2_CLIENT_CREDENTIALS", "OAUTH2_CLIENT_CERT"}:
            return await _sent(session, method, callback.uri, sent, body, timeout_s)
        password = self._plain(params["clientPassword"]) if "clientPassword" in params else None
        client = Client(self._plain(params["tokenEndpoint"]), self._plain(params["clientId"]), password)
        token = await self._tokens.token(client, session)
        sent["Authorization"] = f"Bearer {token}"
        answer = await _sent(session, method, callback.uri, sent, body, timeout_s)
        if answer.status == 401:
            token = await self._tokens.token(client, session, instead_of=token)
            sent["Authorization"] = f"Bearer {token}"
            answer = await _sent(session, method, callback.uri, sent, body, timeout_s)
        return answer

    def _may_lead_to(self, uri: str) -> bool:
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
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())


def _params(authentication: Mapping[str, Any], chosen: str) -> Mapping[str, Any]:
    name = {
        "BASIC": "paramsBasic",
        "OAUTH2_CLIENT_CREDENTIALS": "paramsOauth2ClientCredentials",
        "OAUTH2_CLIENT_CERT": "paramsOauth2ClientCert",
    }.get(chosen)
    found: Mapping[str, Any] = authentication[name] if name is not None else {}
    return found


def thumbprint(certificate: Path) -> str:
    """Return x5t#S256 (RFC 7515 4.1.8) of the first certificate in a PEM file."""
    pem = certificate.read_text(encoding="ascii", errors="replace")
    begin, end = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
    first = begin + pem.partition(begin)[2].partition(end)[0] + end
    digest = hashlib.sha256(ssl.PEM_cert_to_DER_cert(first)).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
