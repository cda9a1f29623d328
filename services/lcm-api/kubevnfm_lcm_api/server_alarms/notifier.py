"""An operator's notifier over HTTP: the calls by which Tacker's management driver registers servers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

import aiohttp
from kubevnfm_clients.bounded import json_in, read_body
from kubevnfm_clients.outbound import trouble
from kubevnfm_kit.errors import OutsideUnavailable
from yarl import URL

from kubevnfm_lcm_api.server_alarms.record import Registration

CALL_S: Final = 10.0
_LONGEST_ANSWER: Final = 64 * 1024
_LONGEST_ID: Final = 255
_GONE: Final = frozenset({404, 410})
_OVERLOADED: Final = frozenset({408, 425, 429, 502, 503, 504})


class NotifierTrouble(OutsideUnavailable):
    """The notifier may have carried out the call, but its answer cannot be used."""


class NotifierRefuses(NotifierTrouble):
    """The notifier has not carried out the call, and says so."""


class NotifierAway(NotifierTrouble):
    """The notifier may have carried out the call; it does not answer, or is overloaded: further calls wait."""


class NotifierNotReached(NotifierAway):
    """No connection to the notifier: it has not received the call."""


@dataclass(frozen=True)
class Notifier:
    """Calls notifiers."""

    session: aiohttp.ClientSession
    """Its connections follow the address rules."""

    async def register(self, wanted: Registration, fault_action: str) -> str:
        """Return the id of the alarm. Raises NotifierTrouble, as one of its kinds where that is known."""
        body = {"fault_action": fault_action, "fault_id": list(wanted.fault_ids)}
        # Tacker's API has no such key. A notifier that knows it does not register a server twice if the call is repeated.
        status, raw = await self._call("POST", _alarms(wanted), body, {"Idempotency-Key": f'"{wanted.key}"'})
        if not 200 <= status < 300:
            raise _failure(status)
        answer = json_in(raw)
        alarm_id = answer.get("alarm_id") if isinstance(answer, dict) else None
        if not isinstance(alarm_id, str) or not 0 < len(alarm_id) <= _LONGEST_ID or not alarm_id.isprintable():
            raise NotifierTrouble("the server notifier answered without an alarm_id that can be used")
        return alarm_id

    async def remove(self, registered: Registration) -> None:
        """Remove an alarm; one that does not exist is removed. Raises as ``register``."""
        status, _ = await self._call("DELETE", f"{_alarms(registered)}/{_segment(registered.alarm_id or '')}", None, {})
        if not 200 <= status < 300 and status not in _GONE:
            raise _failure(status)

    async def _call(self, method: str, url: str, body: Any, headers: dict[str, str]) -> tuple[int, bytes]:
        try:
            async with self.session.request(
                method,
                # Encoded here: otherwise dots in a segment could lead to another path.
                URL(url, encoded=True),
                json=body,
                headers={"Accept": "application/json", "Accept-Encoding": "identity", **headers},
                # A redirect would lead to an address that the instance does not name.
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=CALL_S),
            ) as response:
                return response.status, await read_body(response, limit_bytes=_LONGEST_ANSWER)
        except aiohttp.ClientConnectorError as error:
            raise NotifierNotReached(f"the server notifier: {trouble(error)}") from error
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise NotifierAway(f"the server notifier: {trouble(error)}") from error


def _failure(status: int) -> NotifierTrouble:
    text = f"the server notifier answered {status}"
    if status in _OVERLOADED:
        return NotifierAway(text)
    return NotifierRefuses(text) if 300 <= status < 500 else NotifierTrouble(text)


def _alarms(one: Registration) -> str:
    return f"{one.uri.rstrip('/')}/v2/{_segment(one.tenant)}/servers/{_segment(one.server_id)}/alarms"


def _segment(text: str) -> str:
    # Dots alone would be a step in the path; `quote` leaves them.
    return text.replace(".", "%2E") if set(text) <= {"."} else quote(text, safe="")
