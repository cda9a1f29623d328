"""The work of each path with an alert."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kubevnfm_kit.error_text import bounded
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_kit.printable import printable

from kubevnfm_lcm_api.faults.domain.external import ExternalAlert
from kubevnfm_lcm_api.webhooks.domain.alerts import FaultAlert
from kubevnfm_lcm_api.webhooks.domain.ports import Alarms
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


def _text(text: str | None, most: int) -> str:
    """Return a text of a monitoring system, bounded and safe to print."""
    return printable(bounded(text or "", most)).strip()
