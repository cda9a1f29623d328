"""Whether an alarm is a reason to heal its VNF instance now."""

from __future__ import annotations

from kubevnfm_kit.errors import OutsideUnavailable
from kubevnfm_store.port import DocumentStore

from kubevnfm_lcm_api.faults.alarms import COLLECTION


class HealedAlarms:
    """Reads the list of alarms."""

    def __init__(self, store: DocumentStore) -> None:
        self._store = store

    async def is_own(self, alarm_id: str) -> bool:
        """Return whether kubevnfm itself has raised the alarm, and has not cleared it. Raises StoreUnavailable."""
        stored = await self._store.get(COLLECTION, alarm_id)
        return stored is not None and "open" in stored.body["internal"] and "external" not in stored.body["internal"]

    async def why_not(self, alarm_id: str) -> str | None:
        """Return why an alarm is no reason for a heal any more, in one sentence; None if it is one.

        Raises OutsideUnavailable while the VIM cannot be used that is the root cause: a heal cannot help then.
        """
        stored = await self._store.get(COLLECTION, alarm_id)
        if stored is None or "open" not in stored.body["internal"]:
            return f"alarm {alarm_id} was cleared"
        root_id = stored.body["internal"].get("root")
        root = None if root_id is None else await self._store.get(COLLECTION, root_id)
        if root is not None and "open" in root.body["internal"]:
            details = root.body.get("faultDetails") or [root.body["faultType"]]
            raise OutsideUnavailable(f"a heal cannot help while {root.body['faultType']} lasts: {details[0]}")
        return None
