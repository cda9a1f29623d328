"""Alarms that monitoring systems report, beside our own ones in the same list.

The state of a VNF instance says nothing of them: looks leave them alone (`Alarms`), until the instance is deleted. An alert that
fires raises one alarm for its fingerprint, however often it is repeated; it is cleared when the alert is resolved, or, by a
setting, when it has not been repeated for long.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import structlog
from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_kit.errors import Conflict, NotFound
from kubevnfm_sol.faults import FaultyResourceInfo
from kubevnfm_store.port import DocumentStore, RevisionConflict
from kubevnfm_store.query import Compare, Op, Query, Stored, by

from kubevnfm_lcm_api.faults.alarms import COLLECTION, HEARD, OPEN, STATE, Alarms
from kubevnfm_lcm_api.faults.domain.external import ExternalAlert
from kubevnfm_lcm_api.faults.domain.fault import Fault, ManagedObject, external_key
from kubevnfm_lcm_api.lifecycle.core import instance
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord

log = structlog.get_logger()

_PAGE: Final = 500
_MOST_OPEN: Final = 1000
"""Alarms of one VNF instance that are not cleared: each look at it reads them all."""
_MOST_VNFCS: Final = 100
"""VNFCs that an alarm names."""


class ExternalAlarms:
    """Raises and clears them."""

    def __init__(
        self, *, store: DocumentStore, alarms: Alarms, clock: Clock, lost_after: timedelta | None = None
    ) -> None:
        self._store, self._alarms, self._clock, self._lost_after = store, alarms, clock, lost_after

    async def follow(self, alert: ExternalAlert) -> None:
        """Have the list agree with an alert. Raises NotFound if the VNF instance does not exist, Conflict if it has too many alarms, StoreUnavailable."""
        key = external_key(alert.instance_id, alert.fingerprint)
        while True:
            known = await self._open(key)
            if known is None:
                # Without an alarm there is nothing to clear: it was cleared, for example with its instance.
                if not alert.is_firing or await self._raise(alert):
                    return
            elif alert.is_firing:
                await self._note_heard(known)
                return
            elif _is_late(alert, known) or await self._alarms.clear(known, _end(alert, known, self._clock.now())):
                return

    async def clear_lost(self) -> None:
        """Clear the alarms that no monitoring system has repeated for long. Raises StoreUnavailable."""
        if self._lost_after is None:
            return
        silent = Compare(HEARD, Op.LT, [rfc3339(self._clock.now() - self._lost_after)])
        while True:
            found = await self._store.find(COLLECTION, Query(silent, limit=_PAGE))
            for each in found:
                if await self._alarms.clear(each):
                    log.warning("external_alarm_lost", alarm_id=each.id, object_id=each.body["managedObjectId"])
            if len(found) < _PAGE:
                return

    async def _open(self, key: str) -> Stored | None:
        found = await self._store.find(COLLECTION, Query(Compare(OPEN, Op.EQ, [key]), limit=1))
        return found[0] if found else None

    async def _raise(self, alert: ExternalAlert) -> bool:
        stored = await self._store.get(instance.COLLECTION, alert.instance_id)
        if stored is None:
            raise NotFound(f"VNF instance {alert.instance_id} does not exist")
        of_it = by(managedObjectId=stored.id, **{STATE: "OPEN"})
        if await self._store.count(COLLECTION, of_it, limit=_MOST_OPEN) >= _MOST_OPEN:
            raise Conflict(f"VNF instance {stored.id} has {_MOST_OPEN} alarms that are not cleared")
        record = InstanceRecord.from_document(stored.body)
        return await self._alarms.raise_one(ManagedObject("vnf", stored.id, record.facts), _fault(alert, record))

    async def _note_heard(self, known: Stored) -> None:
        """Note that the fault lasts. No caller sees that, and no subscriber is notified."""
        if self._lost_after is None:
            return
        try:
            now = rfc3339(self._clock.now())
            await self._store.update(COLLECTION, known.id, {HEARD: now}, if_revision=known.revision)
        except RevisionConflict:
            return  # it was repeated by another process, acknowledged or cleared at this moment


def _fault(alert: ExternalAlert, record: InstanceRecord) -> Fault:
    info, concerns = record.vnf.instantiated_vnf_info, alert.concerns
    found = []
    if info is not None and concerns is not None:
        found = [each for each in info.vnfc_resource_info if concerns(each.compute_resource.resource_id)]
    ids = {each.id for each in found}
    first = found[0].compute_resource if found else None
    resource = None if first is None else FaultyResourceInfo(faulty_resource=first, faulty_resource_type="COMPUTE")
    vnfcs = [] if info is None else [each.id for each in info.vnfc_info if each.vnfc_resource_info_id in ids]
    return Fault(
        alert.fault_type,
        alert.severity,
        alert.event_type,
        alert.cause,
        alert.details,
        rfc3339(alert.starts_at),
        resource=resource,
        vnfc_ids=tuple(vnfcs[:_MOST_VNFCS]),
        fingerprint=alert.fingerprint,
    )


def _is_late(alert: ExternalAlert, known: Stored) -> bool:
    """Return whether the end of an alert is that of an earlier fault."""
    # The beginning alone does not say it: Alertmanager joins what several Prometheus servers report, and names the earliest.
    since = datetime.fromisoformat(known.body["eventTime"])
    return alert.starts_at < since and (alert.ends_at is None or alert.ends_at <= since)


def _end(alert: ExternalAlert, known: Stored, now: datetime) -> str | None:
    """Return when the fault has ended, if that can be true: cleared alarms are removed by this time."""
    ends_at, raised = alert.ends_at, datetime.fromisoformat(known.body["alarmRaisedTime"])
    return None if ends_at is None or not raised <= ends_at <= now else rfc3339(ends_at)
