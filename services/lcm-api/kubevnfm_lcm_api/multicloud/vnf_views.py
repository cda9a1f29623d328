"""How a VNF is shown: its status from its document and its operation, its objects as they were reported last."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Final

from kubevnfm_clients.multicloud.suspension import Suspension
from kubevnfm_kit.json_types import JsonObject
from kubevnfm_sol.lcm import InstantiationState, OperationState, OperationType
from kubevnfm_store.port import DocumentStore
from kubevnfm_store.query import Stored

from kubevnfm_lcm_api.http.conditions import entity_tag
from kubevnfm_lcm_api.lifecycle.containers.inventory import IGNORED
from kubevnfm_lcm_api.lifecycle.core import occurrence as occurrences
from kubevnfm_lcm_api.lifecycle.core.drift import drift_of
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord
from kubevnfm_lcm_api.lifecycle.core.occurrence import OccurrenceRecord
from kubevnfm_lcm_api.lifecycle.core.outputs import outputs_of
from kubevnfm_lcm_api.lifecycle.core.suspension import suspension_of
from kubevnfm_lcm_api.multicloud.vnf_holds import shown_networks, shown_volumes
from kubevnfm_lcm_api.multicloud.vnf_types import VnfInstance, VnfResource, VnfStatus

_VARIANT: Final = "multicloud-vnf"
_PARAMETERS: Final = "additionalParams/"
"""Where SOL003 has the members of a request."""
_NOT_BROUGHT_UP: Final = "it was not brought up, and nothing runs for it: delete it"


@dataclass(frozen=True)
class Vnf:
    """The instance, and the operation that has claimed it."""

    stored: Stored
    record: InstanceRecord
    operation: OccurrenceRecord | None
    tag: str

    @property
    def status(self) -> VnfStatus:
        """CREATING ... (MC-038)."""
        if self.record.internals.current_operation is None:
            if self.record.vnf.instantiation_state is InstantiationState.NOT_INSTANTIATED:
                return "FAILED"
            return "READY" if drift_of(self.record.vnf.metadata) is None else "DEGRADED"
        # Without an occurrence, the process that has accepted it has died before the second write: it will be stored.
        if self.operation is None:
            is_new = self.record.vnf.instantiation_state is InstantiationState.NOT_INSTANTIATED
            return "CREATING" if is_new else "UPDATING"
        occ = self.operation.occ
        if occ.operation_state is OperationState.FAILED_TEMP:
            return "FAILED"
        if occ.operation is OperationType.TERMINATE:
            return "DELETING"
        if occ.operation is OperationType.INSTANTIATE:
            return "DELETING" if occ.operation_state is OperationState.ROLLING_BACK else "CREATING"
        return "UPDATING"

    @property
    def detail(self) -> str:
        """Why the status is as it is; empty if nothing is to be said."""
        status = self.status
        if self.operation is not None and status == "FAILED":
            error = self.operation.occ.error
            return error.detail if error is not None else ""
        if status == "FAILED":
            return _NOT_BROUGHT_UP
        drift = drift_of(self.record.vnf.metadata)
        return drift.reason if status == "DEGRADED" and drift is not None else ""

    @property
    def resources(self) -> tuple[VnfResource, ...]:
        """The objects."""
        deployment = self.record.release
        release = deployment.release if deployment is not None else None
        if release is None:
            return ()
        drift = drift_of(self.record.vnf.metadata)
        gone = {(o.kind, o.namespace, o.name) for o in drift.objects if o.what != "changed"} if drift else set()
        objects = tuple(
            VnfResource(
                api_version=each.api_version,
                kind=each.kind,
                namespace=each.namespace,
                name=each.name,
                uid=each.uid,
                vdu_id=each.vdu_id,
                ready=(each.kind, each.namespace, each.name) not in gone,
                restart_required=each.restart_required or None,
            )
            for each in release.objects
        )
        hooks = (
            VnfResource(
                api_version=each.api_version,
                kind=each.kind,
                namespace=each.namespace,
                name=each.name,
                uid=each.uid,
                ready=each.has_succeeded,
                hook=each.hook,
            )
            for each in release.hooks
        )
        return (*objects, *hooks)

    def view(self, root: str, operation_id: str | None = None, *, suspended: Suspension | None = None) -> JsonObject:
        """Return the body; ``operation_id``: of the operation that the caller has asked for; ``suspended``: if not itself."""
        vnf, place, resources = self.record.vnf, self.record.internals.multicloud, self.resources
        release = self.record.release.release if self.record.release is not None else None
        assert place is not None
        components = defaultdict[str, list[str]](list)
        for each in (one for one in resources if one.hook is None):
            components[each.kind.lower()].append(each.name)
        info = vnf.instantiated_vnf_info
        operation = operation_id or self.record.internals.current_operation
        shown = VnfInstance(
            vnf_id=vnf.id,
            cloud_region_id=place.cloud_region_id,
            namespace=place.namespace,
            csar_id=vnf.vnf_pkg_id,
            vnf_instance_name=vnf.vnf_instance_name,
            vnf_instance_description=vnf.vnf_instance_description,
            status=self.status,
            status_detail=self.detail,
            revision=self.record.internals.revision or None,
            vnf_components={kind: tuple(names) for kind, names in sorted(components.items())},
            resources=resources,
            networks=shown_networks(self.record.internals.networks),
            volumes=shown_volumes(self.record.internals.volumes),
            outputs=dict(outputs_of(vnf.metadata)),
            kept_objects=release.kept_objects if release is not None else (),
            ignored_artifacts=tuple((info.metadata or {}).get(IGNORED) or ()) if info is not None else (),
            warnings=tuple(each.removeprefix(_PARAMETERS) for each in self.record.internals.warnings) or None,
            suspended=suspension_of(vnf.metadata) or suspended,
            group_operation=place.group_operation,
            operation=f"{root}/vnflcm/v2/vnf_lcm_op_occs/{operation}" if operation is not None else None,
            created_at=self.record.created_at,
            updated_at=self.record.updated_at,
        )
        return shown.model_dump(mode="json", exclude_none=True)


async def with_operation(store: DocumentStore, stored: Stored) -> Vnf:
    """Return the instance with the operation that has claimed it."""
    record = InstanceRecord.from_document(stored.body)
    current = record.internals.current_operation
    operation = await store.get(occurrences.COLLECTION, current) if current is not None else None
    return vnf_of(stored, record, operation)


def vnf_of(stored: Stored, record: InstanceRecord, operation: Stored | None) -> Vnf:
    """Return the instance with an operation; the status follows both, and so does the tag."""
    tag = entity_tag(_VARIANT, stored, "" if operation is None else str(operation.revision))
    found = OccurrenceRecord.from_document(operation.body) if operation is not None else None
    return Vnf(stored, record, found, tag)
