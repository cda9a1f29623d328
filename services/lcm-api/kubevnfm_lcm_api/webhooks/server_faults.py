"""Faults of servers that an operator's notifier reports: the VNFC on the server is healed.

The VNF instance says which faults are meant (`lifecycle.core.server_notifier`).
"""

from __future__ import annotations

from dataclasses import dataclass

from kubevnfm_kit.errors import Conflict, NotFound, Unprocessable
from kubevnfm_store.port import DocumentStore

from kubevnfm_lcm_api.automation.domain.trigger import Trigger
from kubevnfm_lcm_api.lifecycle.core import instance
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord
from kubevnfm_lcm_api.lifecycle.core.server_notifier import FAULT_IDS, fault_ids
from kubevnfm_lcm_api.webhooks.domain.ports import Automatic


@dataclass(frozen=True)
class ServerFaults:
    """``/server_notification/vnf_instances/{id}/servers/{serverId}/notify``."""

    store: DocumentStore
    automatic: Automatic

    async def heal(self, instance_id: str, server_id: str, *, alarm_id: str, fault_id: str) -> None:
        """Have the VNFC on a server healed.

        Raises NotFound, Conflict (not instantiated, or not to be healed automatically), Unprocessable, StoreUnavailable.
        """
        stored = await self.store.get(instance.COLLECTION, instance_id)
        if stored is None:
            raise NotFound(f"VNF instance {instance_id} does not exist")
        record = InstanceRecord.from_document(stored.body)
        info = record.vnf.instantiated_vnf_info
        if info is None:
            raise Conflict(f"VNF instance {instance_id} is NOT_INSTANTIATED")
        if fault_id not in fault_ids(record):
            raise Unprocessable("notification/fault_id", f"one of {FAULT_IDS} of the VNF instance expected")
        resources = {each.id for each in info.vnfc_resource_info if each.compute_resource.resource_id == server_id}
        vnfcs = [each.id for each in info.vnfc_info if each.vnfc_resource_info_id in resources]
        if not vnfcs:
            raise NotFound(f"no VNFC of VNF instance {instance_id} is on server {server_id}")
        text = f"The server notifier reports fault {fault_id} of server {server_id}."
        # The notifier has one alarm for each server, and a healed VNFC is on another one.
        await self.automatic.heal(instance_id, vnfcs, Trigger("server-notification", f"{server_id}/{alarm_id}", text))
