"""The registrations that a VNF instance has at notifiers, and those that it should have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Final, Self

from kubevnfm_kit.json_types import JsonMapping, JsonObject
from kubevnfm_sol.lcm import InstantiationState

from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord
from kubevnfm_lcm_api.lifecycle.core.server_notifier import fault_ids, notifier_uri

COLLECTION: Final = "server_alarms"
"""One document for each VNF instance that has, or should have, registered servers; its id is that of the instance."""
METADATA: Final = "server_notification"
"""The attribute of ``vnfcResourceInfo.metadata``, as Tacker's management driver has it."""
ALARM_ID: Final = "alarmId"
SERVER_ID: Final = "serverId"
"""Only what kubevnfm writes has this: an entry without it is that of a script of the package, which is left alone."""


@dataclass(frozen=True)
class Registration:
    """A server at a notifier."""

    server_id: str
    uri: str
    fault_ids: tuple[str, ...]
    tenant: str = ""
    key: str = ""
    """The key of the call: the same one if the call is repeated."""
    alarm_id: str | None = None
    """None: the notifier is being asked, or its answer was not received."""

    @classmethod
    def from_stored(cls, given: JsonMapping) -> Self:
        """Read what ``stored`` returned."""
        return cls(**{**given, "fault_ids": tuple(given["fault_ids"])})

    def stored(self) -> JsonObject:
        """Return the form in the document."""
        return {**asdict(self), "fault_ids": list(self.fault_ids)}

    def is_of(self, wanted: Registration | None) -> bool:
        """Return whether this is what is wanted."""
        return wanted is not None and (self.uri, self.fault_ids) == (wanted.uri, wanted.fault_ids)


def wanted_of(record: InstanceRecord) -> Mapping[str, Registration]:
    """Return what should be registered, by server: each machine of an instance that names a notifier and faults."""
    uri, faults, info = notifier_uri(record), tuple(fault_ids(record)), record.vnf.instantiated_vnf_info
    is_instantiated = record.vnf.instantiation_state is InstantiationState.INSTANTIATED
    if uri is None or not faults or info is None or not is_instantiated or record.stack is None:
        return {}
    return {
        each.compute_resource.resource_id: Registration(each.compute_resource.resource_id, uri, faults)
        for each in info.vnfc_resource_info
        if each.compute_resource.resource_id and not _is_of_script((each.metadata or {}).get(METADATA))
    }


def with_shown(
    record: InstanceRecord, registered: Sequence[Registration], troubles: Mapping[str, str]
) -> InstanceRecord:
    """Return the instance with the alarm of each registered server, and why others are not registered yet."""
    info = record.vnf.instantiated_vnf_info
    if info is None:
        return record
    alarms = {each.server_id: each.alarm_id for each in registered if each.alarm_id is not None}
    shown = []
    for each in info.vnfc_resource_info:
        server, metadata = each.compute_resource.resource_id, dict(each.metadata or {})
        if not _is_of_script(metadata.get(METADATA)):
            metadata.pop(METADATA, None)
            if server in alarms:
                metadata[METADATA] = {ALARM_ID: alarms[server], SERVER_ID: server}
            elif server in troubles:
                metadata[METADATA] = {SERVER_ID: server, "trouble": troubles[server]}
        shown.append(each.model_copy(update={"metadata": metadata or None}))
    if [each.metadata or None for each in info.vnfc_resource_info] == [each.metadata for each in shown]:
        return record
    return record.with_vnf(instantiated_vnf_info=info.model_copy(update={"vnfc_resource_info": tuple(shown)}))


def _is_of_script(found: object) -> bool:
    return isinstance(found, Mapping) and ALARM_ID in found and SERVER_ID not in found
