"""Takes the alerts of a message one by one: a wrong one is refused by its place, and keeps no other one from being stored."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, Generic

import structlog
from kubevnfm_kit.errors import InvalidInput, OutsideUnavailable, Unprocessable, VnfmError

from kubevnfm_lcm_api.webhooks.domain.alerts import MOST_ALERTS, A, WrongAlert, read_alert
from kubevnfm_lcm_api.webhooks.domain.ports import Count

log = structlog.get_logger()

_MOST_LOGGED: Final = 20
"""Refused alerts of one message that have a line each in the log."""
_LONGEST_RULE: Final = 255
"""Characters of the name of a rule in an error."""


@dataclass(frozen=True)
class Webhook(Generic[A]):
    """One path."""

    path: str
    alert: type[A]
    """Its alerts have this form."""
    act: Callable[[A], Awaitable[None]]
    places: Mapping[str, str] = field(default_factory=dict)
    """The place in an alert of what ``act`` refuses, by the name that its error has for it; of others: the subject's label."""

    async def receive(self, alerts: Sequence[object], count: Count) -> None:
        """Act on each alert of a message.

        Raises InvalidInput or Unprocessable that names the alerts which are wrong, after the others are stored;
        OutsideUnavailable if they cannot be stored now: the sender repeats the message, and what is stored is not stored twice.
        """
        wrong: list[tuple[str, str]] = []
        refused, is_malformed = 0, False
        for index, given in enumerate(alerts[:MOST_ALERTS]):
            place, rule = f"alerts[{index}]", _rule_of(given)
            try:
                await self.act(read_alert(self.alert, given, place))
            except WrongAlert as error:
                is_malformed, places = True, error.places
            except VnfmError as error:
                if error.status >= 500:
                    count(self.path, "failed", len(alerts) - index)
                    log.error("alerts_not_stored", path=self.path, alerts=len(alerts) - index, reason=str(error))
                    raise OutsideUnavailable(f"{place} and those after it are not stored: {error}") from error
                places = self._refused(error, place)
            else:
                count(self.path, "accepted", 1)
                continue
            refused += 1
            wrong += places if rule is None else [(where, f"{why} (alert {rule})") for where, why in places]
            count(self.path, "refused", 1)
            if refused <= _MOST_LOGGED:
                reasons = [f"{where}: {why}" for where, why in places[:5]]
                log.warning("alert_refused", path=self.path, alert=rule, reasons=reasons)
        if (more := len(alerts) - MOST_ALERTS) > 0:
            refused, is_malformed = refused + more, True
            wrong.append(("alerts", f"at most {MOST_ALERTS} expected, those after them are not stored; set max_alerts"))
            count(self.path, "refused", more)
        if refused > _MOST_LOGGED:
            log.warning("alerts_refused", path=self.path, alerts=refused)
        if wrong:
            raise (InvalidInput if is_malformed else Unprocessable)(*wrong[0], *wrong[1:])

    def _refused(self, error: VnfmError, place: str) -> tuple[tuple[str, str], ...]:
        subject = f"labels/{self.alert.subject}"
        if isinstance(error, InvalidInput):
            return tuple(
                (f"{place}/{self.places.get(name.partition('[')[0], subject)}", reason) for name, reason in error.places
            )
        return ((f"{place}/{subject}", str(error)),)


def _rule_of(given: object) -> str | None:
    """Return the name of the rule of an alert that may be malformed: its place says nothing to those who write rules."""
    labels = given.get("labels") if isinstance(given, dict) else None
    name = labels.get("alertname") if isinstance(labels, dict) else None
    return name if isinstance(name, str) and 0 < len(name) <= _LONGEST_RULE else None


@contextmanager
def counted(path: str, count: Count) -> Iterator[None]:
    """Count a message that is refused as a whole, and have a line about it in the log."""
    try:
        yield
    except VnfmError as error:
        count(path, "failed" if error.status >= 500 else "refused", 1)
        log.warning("alert_message_refused", path=path, reason=str(error))
        raise


def alerts_of(body: object) -> Sequence[object]:
    """Return the alerts of a message, unread. Raises InvalidInput."""
    if not isinstance(body, dict):
        raise InvalidInput("", "a JSON object expected")
    alerts = body.get("alerts")
    if not isinstance(alerts, list):
        raise InvalidInput("alerts", "a list of alerts expected")
    return alerts
