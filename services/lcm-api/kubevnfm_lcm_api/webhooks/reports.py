"""The work of each path with an alert."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kubevnfm_kit.clock import Clock
from kubevnfm_kit.error_text import bounded
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_kit.printable import printable

from kubevnfm_lcm_api.automation.domain.trigger import Trigger
from kubevnfm_lcm_api.faults.domain.external import ExternalAlert
from kubevnfm_lcm_api.webhooks.domain.alerts import FaultAlert, HealAlert, PmEventAlert, PmThresholdAlert, ScaleAlert
from kubevnfm_lcm_api.webhooks.domain.ports import Alarms, Automatic, Measured
from kubevnfm_lcm_api.webhooks.patterns import beginning

_LONGEST_NAME: Final = 256
"""Bytes of the cause and the type of a fault."""
_LONGEST_DETAIL: Final = 2048


@dataclass(frozen=True)
class FaultReports:
    """``/alert``."""

    alarms: Alarms

    async def act(self, alert: FaultAlert) -> None:
        """Raise or clear an alarm."""
        labels, said = alert.labels, alert.annotations
        rule = labels.alertname or "alert"
        fault_type = _text(said.fault_type, _LONGEST_NAME) or rule
        details = [_text(said.fault_details, _LONGEST_DETAIL)]
        if labels.node is not None:
            details.append(f"Node {_text(labels.node, _LONGEST_NAME)}.")
        details.append(
            f"Reported by a monitoring system: {_text(rule, _LONGEST_NAME)}, fingerprint {alert.fingerprint}."
        )
        try:
            concerns = None if labels.pod is None else beginning(labels.pod)
        except ValueError as error:
            raise InvalidInput("pod", str(error)) from error
        await self.alarms.follow(
            ExternalAlert(
                fingerprint=alert.fingerprint,
                # X.733: CLEARED is the end of an alarm, and no severity of one that lasts.
                is_firing=alert.is_firing and labels.perceived_severity != "CLEARED",
                instance_id=labels.vnf_instance_id,
                severity=labels.perceived_severity,
                event_type=labels.event_type,
                fault_type=fault_type,
                cause=_text(said.probable_cause, _LONGEST_NAME) or fault_type,
                details=tuple(each for each in details if each),
                starts_at=alert.starts_at,
                ends_at=alert.ends_at,
                concerns=concerns,
            )
        )


@dataclass(frozen=True)
class MeasuredReports:
    """``/pm_event`` and ``/pm_threshold``.

    A value has the time of its receipt: Alertmanager's messages say only when an alert began to fire. An alert that is resolved
    has none: its series has ended.
    """

    measured: Measured
    clock: Clock

    async def report(self, alert: PmEventAlert) -> None:
        """Pass a value to its PM job."""
        labels = alert.labels
        if alert.is_firing:
            await self.measured.report(
                job_id=labels.job_id,
                metric=labels.metric,
                object_instance_id=labels.object_instance_id,
                sub_object_instance_id=labels.sub_object_instance_id,
                value=alert.annotations.value,
                at=self.clock.now(),
            )

    async def compare(self, alert: PmThresholdAlert) -> None:
        """Pass a value to its threshold."""
        labels = alert.labels
        if alert.is_firing:
            await self.measured.crossing(
                threshold_id=labels.threshold_id,
                metric=labels.metric,
                object_instance_id=labels.object_instance_id,
                sub_object_instance_id=labels.sub_object_instance_id,
                value=alert.annotations.value,
                at=self.clock.now(),
            )


@dataclass(frozen=True)
class AutomaticReports:
    """``/alert/auto_healing`` and ``/alert/auto_scaling``: the end of an alert asks for nothing."""

    automatic: Automatic

    async def heal(self, alert: HealAlert) -> None:
        """Have a VNFC healed."""
        if alert.is_firing:
            labels = alert.labels
            why = Trigger("auto-healing", alert.fact_id, _why(alert, f"to heal VNFC {labels.vnfc_info_id}"))
            await self.automatic.heal(labels.vnf_instance_id, [labels.vnfc_info_id], why)

    async def scale(self, alert: ScaleAlert) -> None:
        """Have an aspect scaled by one step."""
        if alert.is_firing:
            labels = alert.labels
            done = "out" if labels.auto_scale_type == "SCALE_OUT" else "in"
            wanted = f"to scale {done} aspect {_text(labels.aspect_id, _LONGEST_NAME)}"
            why = Trigger("auto-scaling", alert.fact_id, _why(alert, wanted))
            await self.automatic.scale(labels.vnf_instance_id, labels.aspect_id, labels.auto_scale_type, why)


def _why(alert: HealAlert | ScaleAlert, wanted: str) -> str:
    rule = _text(alert.labels.alertname or "an alert", _LONGEST_NAME)
    return f"The monitoring system asks {wanted}: {rule}, fingerprint {alert.fingerprint}."


def _text(text: str | None, most: int) -> str:
    """Return a text of a monitoring system, bounded and safe to print."""
    return printable(bounded(text or "", most)).strip()
