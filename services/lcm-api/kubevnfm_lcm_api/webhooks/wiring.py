"""The classes behind webhooks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from aiohttp import web
from kubevnfm_kit.clock import Clock
from kubevnfm_kit.metrics import Family
from kubevnfm_worker.backends import Backends
from prometheus_client import Counter

from kubevnfm_lcm_api.webhooks.domain.alerts import FaultAlert, HealAlert, PmEventAlert, PmThresholdAlert, ScaleAlert
from kubevnfm_lcm_api.webhooks.domain.ports import Alarms, Automatic, Count, Measured, Outcome
from kubevnfm_lcm_api.webhooks.http import routes
from kubevnfm_lcm_api.webhooks.receiving import Webhook
from kubevnfm_lcm_api.webhooks.reports import AutomaticReports, FaultReports, MeasuredReports
from kubevnfm_lcm_api.webhooks.server_faults import ServerFaults

_OF_FAULTS: Final[Mapping[str, str]] = {"pod": "labels/pod"}
_OF_VALUES: Final[Mapping[str, str]] = {
    "metric": "labels/metric",
    "object_instance_id": "labels/object_instance_id",
    "sub_object_instance_id": "labels/sub_object_instance_id",
    "value": "annotations/value",
}
_OF_HEALS: Final[Mapping[str, str]] = {"vnfcInstanceId": "labels/vnfc_info_id"}
_OF_SCALES: Final[Mapping[str, str]] = {"aspectId": "labels/aspect_id"}


@dataclass(frozen=True)
class WebhookParts:
    """The part of lcm-api that monitoring systems report to."""

    webhooks: tuple[Webhook[Any], ...]
    servers: ServerFaults
    count: Count

    def add_to(self, app: web.Application) -> None:
        """Add the paths to the gateway."""
        routes.add_to(app, self.webhooks, self.servers, self.count)


def webhook_parts(backends: Backends, *, alarms: Alarms, measured: Measured, automatic: Automatic) -> WebhookParts:
    """Return the parts."""
    counter = backends.metrics.counter(
        "kubevnfm_webhook_alerts",
        "Alerts of monitoring systems by what became of them; a message that cannot be read counts as one.",
        ["path", "outcome"],
    )
    servers = ServerFaults(backends.store, automatic)
    return WebhookParts(webhooks(alarms, measured, automatic, backends.clock), servers, partial(_add, counter))


def webhooks(alarms: Alarms, measured: Measured, automatic: Automatic, clock: Clock) -> tuple[Webhook[Any], ...]:
    """Return the paths for alerts."""
    values, asked = MeasuredReports(measured, clock), AutomaticReports(automatic)
    return (
        Webhook("/alert", FaultAlert, FaultReports(alarms).act, _OF_FAULTS),
        Webhook("/pm_event", PmEventAlert, values.report, _OF_VALUES),
        Webhook("/pm_threshold", PmThresholdAlert, values.compare, _OF_VALUES),
        Webhook("/alert/auto_healing", HealAlert, asked.heal, _OF_HEALS),
        Webhook("/alert/auto_scaling", ScaleAlert, asked.scale, _OF_SCALES),
    )


def _add(counter: Family[Counter], path: str, outcome: Outcome, number: int) -> None:
    counter.series(path, outcome).inc(number)
