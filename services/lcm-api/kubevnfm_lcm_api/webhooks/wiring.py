"""The classes behind webhooks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from aiohttp import web
from kubevnfm_kit.metrics import Family, Metrics
from prometheus_client import Counter

from kubevnfm_lcm_api.webhooks.domain.alerts import FaultAlert
from kubevnfm_lcm_api.webhooks.domain.ports import Alarms, Count, Outcome
from kubevnfm_lcm_api.webhooks.http import routes
from kubevnfm_lcm_api.webhooks.receiving import Webhook
from kubevnfm_lcm_api.webhooks.reports import FaultReports

_OF_FAULTS: Final[Mapping[str, str]] = {"pod": "labels/pod"}


@dataclass(frozen=True)
class WebhookParts:
    """The part of lcm-api that monitoring systems report to."""

    webhooks: tuple[Webhook[Any], ...]
    count: Count

    def add_to(self, app: web.Application) -> None:
        """Add the paths to the gateway."""
        routes.add_to(app, self.webhooks, self.count)


def webhook_parts(*, alarms: Alarms, metrics: Metrics) -> WebhookParts:
    """Return the parts."""
    counter = metrics.counter(
        "kubevnfm_webhook_alerts",
        "Alerts of monitoring systems by what became of them; a message that cannot be read counts as one.",
        ["path", "outcome"],
    )
    return WebhookParts(webhooks(alarms), partial(_add, counter))


def webhooks(alarms: Alarms) -> tuple[Webhook[Any], ...]:
    """Return the paths for alerts."""
    return (Webhook("/alert", FaultAlert, FaultReports(alarms).act, _OF_FAULTS),)


def _add(counter: Family[Counter], path: str, outcome: Outcome, number: int) -> None:
    counter.series(path, outcome).inc(number)
