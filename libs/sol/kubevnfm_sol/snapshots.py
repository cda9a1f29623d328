"""VNF snapshots and their requests (SOL003 V3.7.1 clauses 5.5.2.20 to 5.5.2.26 and 5.5.3.18 to 5.5.3.20)."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from kubevnfm_secrets import SecretParams
from pydantic import AfterValidator, Field

from kubevnfm_sol.base import SolPatch, SolRequest, SolType


def _moment(given: str) -> str:
    try:
        has_zone = datetime.fromisoformat(given).tzinfo is not None
    except ValueError:
        has_zone = False
    if not has_zone:
        raise ValueError("a date-time with a time zone expected (RFC 3339)")
    return given


Moment = Annotated[str, AfterValidator(_moment)]


class GivenHandle(SolRequest):
    """ResourceHandle (clause 4.4.1.7) in a request."""

    vim_connection_id: str | None = None
    resource_provider_id: str | None = None
    resource_id: str
    vim_level_resource_type: str | None = None


class StorageSnapshot(SolRequest):
    """An entry of ``storageSnapshotResources``: the snapshot of one storage of a VNFC."""

    storage_resource_id: str
    storage_snapshot_resource: GivenHandle | None = None


class VnfcSnapshotInfo(SolRequest):
    """Clause 5.5.3.19."""

    id: str
    vnfc_instance_id: str
    creation_started_at: Moment | None = None
    creation_finished_at: Moment | None = None
    vnfc_resource_info_id: str | None = None
    compute_snapshot_resource: GivenHandle | None = None
    storage_snapshot_resources: tuple[StorageSnapshot, ...] | None = None
    user_defined_data: SecretParams | None = None


class SnapshotChecksum(SolRequest):
    """Checksum."""

    algorithm: str
    hash: str


class VnfStateSnapshotInfo(SolRequest):
    """Clause 5.5.3.20."""

    checksum: SnapshotChecksum
    is_encrypted: bool
    metadata: SecretParams | None = None


class VnfSnapshot(SolRequest):
    """Clause 5.5.2.23, without ``_links``."""

    id: str
    vnf_instance_id: str
    creation_started_at: Moment | None = None
    creation_finished_at: Moment | None = None
    vnfd_id: str
    vnf_instance: SecretParams | None = None
    """The VnfInstance as it was shown when the snapshot was taken."""
    vnfc_snapshots: tuple[VnfcSnapshotInfo, ...] | None = None
    """Required; absent in lists alone, which leave it out unless it is asked for."""
    vnf_state_snapshot_info: VnfStateSnapshotInfo | None = None
    user_defined_data: SecretParams | None = None


class GivenSnapshot(VnfSnapshot):
    """The same in a request."""

    vnfc_snapshots: tuple[VnfcSnapshotInfo, ...]


class VnfSnapshotInfo(SolType):
    """Clause 5.5.2.22, without ``_links``."""

    id: str
    vnf_snapshot_pkg_id: str | None = None
    vnf_snapshot: VnfSnapshot | None = None


class CreateVnfSnapshotInfoRequest(SolRequest):
    """Clause 5.5.2.20."""

    vnf_snapshot_pkg_id: str | None = Field(default=None, min_length=1, max_length=255)
    vnf_snapshot: GivenSnapshot | None = None


class VnfSnapshotInfoModificationRequest(SolPatch):
    """Clause 5.5.2.24: null is not permitted."""

    vnf_snapshot_pkg_id: str = Field(default="", min_length=1, max_length=255)
    vnf_snapshot: GivenSnapshot | None = None


class VnfSnapshotInfoModifications(SolType):
    """Clause 5.5.2.25."""

    vnf_snapshot_pkg_id: str | None = None
    vnf_snapshot: VnfSnapshot | None = None


class CreateVnfSnapshotRequest(SolRequest):
    """Clause 5.5.2.21."""

    vnf_snapshot_info_id: str
    additional_params: SecretParams = Field(default_factory=dict)
    user_defined_data: SecretParams = Field(default_factory=dict)


class RevertToVnfSnapshotRequest(SolRequest):
    """Clause 5.5.2.26."""

    vnf_snapshot_info_id: str
    additional_params: SecretParams = Field(default_factory=dict)
