"""VNF instances, their operations and requests (SOL003 V3.7.1 clause 5.5.2), in the v2 (map-shaped) form."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final, Literal, Self

from kubevnfm_secrets import SecretParams
from pydantic import AliasChoices, Field, model_validator

from kubevnfm_sol.base import WHOLE, SolPatch, SolRequest, SolType
from kubevnfm_sol.connectivity import ExtManagedVirtualLinkData, ExtVirtualLinkData
from kubevnfm_sol.problem import ProblemDetails
from kubevnfm_sol.resources import ExtVirtualLinkInfo, InstantiatedVnfInfo, ResourceChanges
from kubevnfm_sol.vim import VimConnectionInfo


class InstantiationState(StrEnum):
    """Whether the VNF exists in the infrastructure."""

    NOT_INSTANTIATED = "NOT_INSTANTIATED"
    INSTANTIATED = "INSTANTIATED"


class OperationType(StrEnum):
    """LcmOperationType (clause 5.5.4.2 ff.)."""

    INSTANTIATE = "INSTANTIATE"
    SCALE = "SCALE"
    SCALE_TO_LEVEL = "SCALE_TO_LEVEL"
    CHANGE_FLAVOUR = "CHANGE_FLAVOUR"
    TERMINATE = "TERMINATE"
    HEAL = "HEAL"
    OPERATE = "OPERATE"
    CHANGE_EXT_CONN = "CHANGE_EXT_CONN"
    MODIFY_INFO = "MODIFY_INFO"
    CHANGE_VNFPKG = "CHANGE_VNFPKG"
    CREATE_SNAPSHOT = "CREATE_SNAPSHOT"
    REVERT_TO_SNAPSHOT = "REVERT_TO_SNAPSHOT"


class OperationState(StrEnum):
    """LcmOperationStateType (clause 5.6.2.2)."""

    STARTING = "STARTING"
    """Stored and announced; waits for the grant."""
    PROCESSING = "PROCESSING"
    """Its steps run; waits for the services' answers."""
    COMPLETED = "COMPLETED"
    """Done."""
    FAILED_TEMP = "FAILED_TEMP"
    """Stopped by an error; waits for an operator: retry, rollback or fail."""
    FAILED = "FAILED"
    """Given up."""
    ROLLING_BACK = "ROLLING_BACK"
    """Its compensations run; waits for the services' answers."""
    ROLLED_BACK = "ROLLED_BACK"
    """As before the operation, as closely as possible."""


TERMINAL: Final = frozenset({OperationState.COMPLETED, OperationState.FAILED, OperationState.ROLLED_BACK})
"""States that an operation never leaves; the instance is free for the next operation."""


class CreateVnfRequest(SolRequest):
    """Clause 5.5.2.3."""

    vnfd_id: str = Field(min_length=1, max_length=255)
    vnf_instance_name: str | None = Field(default=None, max_length=255)
    vnf_instance_description: str | None = Field(default=None, max_length=1024)
    metadata: SecretParams | None = None


class InstantiateVnfRequest(SolRequest):
    """Clause 5.5.2.4."""

    flavour_id: str = Field(min_length=1, max_length=255)
    instantiation_level_id: str | None = Field(default=None, max_length=255)
    ext_virtual_links: tuple[ExtVirtualLinkData, ...] = ()
    ext_managed_virtual_links: tuple[ExtManagedVirtualLinkData, ...] = ()
    vim_connection_info: dict[str, VimConnectionInfo] = Field(default_factory=dict)
    localization_language: str | None = None
    additional_params: SecretParams = Field(default_factory=dict)
    extensions: SecretParams = Field(default_factory=dict)
    vnf_configurable_properties: SecretParams = Field(default_factory=dict)


class TerminateVnfRequest(SolRequest):
    """Clause 5.5.2.8."""

    termination_type: Literal["FORCEFUL", "GRACEFUL"]
    graceful_termination_timeout: Annotated[int, Field(ge=0, le=86_400), WHOLE] | None = None
    """Seconds; ignored with FORCEFUL."""
    additional_params: SecretParams = Field(default_factory=dict)


class ScaleVnfRequest(SolRequest):
    """Clause 5.5.2.5."""

    type: Literal["SCALE_OUT", "SCALE_IN"]
    aspect_id: str = Field(min_length=1, max_length=255)
    number_of_steps: Annotated[int, Field(ge=1), WHOLE] = 1
    additional_params: SecretParams = Field(default_factory=dict)


class ScaleTarget(SolRequest):
    """ScaleInfo as a request has it (clause 4.4.1.9); the OpenAPI file misnames the level ``scaleToLevel``."""

    aspect_id: str = Field(min_length=1, max_length=255)
    # Both spellings: a client may be generated from the OpenAPI file or written from the specification.
    scale_level: Annotated[int, Field(ge=0), WHOLE] = Field(validation_alias=AliasChoices("scaleLevel", "scaleToLevel"))
    vnfd_id: str | None = None
    """The VNFD that declares the aspect, if that is not the instance's."""


class ScaleVnfToLevelRequest(SolRequest):
    """Clause 5.5.2.6: exactly one of the two gives the target."""

    instantiation_level_id: str | None = Field(default=None, max_length=255)
    scale_info: tuple[ScaleTarget, ...] | None = None
    additional_params: SecretParams = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.instantiation_level_id is None) == (not self.scale_info):
            raise ValueError("exactly one of instantiationLevelId and scaleInfo expected")
        return self


class HealVnfRequest(SolRequest):
    """Clause 5.5.2.9, with SOL002's ``vnfcInstanceId``."""

    cause: str | None = Field(default=None, max_length=255)
    vnfc_instance_id: tuple[str, ...] | None = None
    heal_script: str | None = Field(default=None, max_length=255)
    additional_params: SecretParams = Field(default_factory=dict)


class OperateVnfRequest(SolRequest):
    """Clause 5.5.2.10, with SOL002's ``vnfcInstanceId``."""

    change_state_to: Literal["STARTED", "STOPPED"]
    stop_type: Literal["FORCEFUL", "GRACEFUL"] | None = None
    """Without one a stop is FORCEFUL."""
    graceful_stop_timeout: Annotated[int, Field(ge=0, le=86_400), WHOLE] | None = None
    vnfc_instance_id: tuple[str, ...] | None = None
    additional_params: SecretParams = Field(default_factory=dict)

    @model_validator(mode="after")
    def _stops_only(self) -> Self:
        # SOL003 5.5.2.10 wants both attributes absent with STARTED.
        stops = (self.stop_type, self.graceful_stop_timeout)
        if self.change_state_to == "STARTED" and stops != (None, None):
            raise ValueError("stopType and gracefulStopTimeout are allowed with STOPPED only")
        return self


class ChangeExtVnfConnectivityRequest(SolRequest):
    """Clause 5.5.2.11."""

    ext_virtual_links: tuple[ExtVirtualLinkData, ...] = Field(min_length=1)
    vim_connection_info: dict[str, VimConnectionInfo] = Field(default_factory=dict)
    additional_params: SecretParams = Field(default_factory=dict)


class ChangeVnfFlavourRequest(SolRequest):
    """Clause 5.5.2.7."""

    new_flavour_id: str = Field(min_length=1, max_length=255)
    instantiation_level_id: str | None = Field(default=None, max_length=255)
    ext_virtual_links: tuple[ExtVirtualLinkData, ...] = ()
    ext_managed_virtual_links: tuple[ExtManagedVirtualLinkData, ...] = ()
    vim_connection_info: dict[str, VimConnectionInfo] = Field(default_factory=dict)
    additional_params: SecretParams = Field(default_factory=dict)
    extensions: SecretParams = Field(default_factory=dict)
    vnf_configurable_properties: SecretParams = Field(default_factory=dict)


class ChangeCurrentVnfPkgRequest(SolRequest):
    """Clause 5.5.2.11a."""

    vnfd_id: str = Field(min_length=1, max_length=255)
    ext_virtual_links: tuple[ExtVirtualLinkData, ...] = ()
    ext_managed_virtual_links: tuple[ExtManagedVirtualLinkData, ...] = ()
    vim_connection_info: dict[str, VimConnectionInfo] = Field(default_factory=dict)
    additional_params: SecretParams = Field(default_factory=dict)
    extensions: SecretParams = Field(default_factory=dict)
    vnf_configurable_properties: SecretParams = Field(default_factory=dict)


class CancelMode(SolRequest):
    """Clause 5.5.2.14."""

    cancel_mode: Literal["GRACEFUL", "FORCEFUL"]


class VnfcInfoModification(SolPatch):
    """Clause 5.5.3.24 (SOL002)."""

    id: str
    vnfc_configurable_properties: SecretParams


class VnfInfoModificationRequest(SolPatch):
    """Clause 5.5.2.12: a JSON Merge Patch, so absent attributes stay and null removes one."""

    vnf_instance_name: str | None = Field(default=None, max_length=255)
    vnf_instance_description: str | None = Field(default=None, max_length=1024)
    vnfd_id: str | None = Field(default=None, min_length=1, max_length=255)
    vnf_pkg_id: str | None = Field(default=None, min_length=1, max_length=255)
    """v1 only."""
    vnf_configurable_properties: SecretParams | None = None
    metadata: SecretParams | None = None
    extensions: SecretParams | None = None
    vim_connection_info: SecretParams | None = None
    """A merge patch of the map; each entry as it results is a VimConnectionInfo."""
    vnfc_info_modifications: tuple[VnfcInfoModification, ...] | None = None


class VnfInstance(SolType):
    """Clause 5.5.2.2, without ``_links``, which depend on the caller."""

    id: str
    vnf_instance_name: str | None = None
    vnf_instance_description: str | None = None
    vnfd_id: str
    vnf_provider: str
    vnf_product_name: str
    vnf_software_version: str
    vnfd_version: str
    vnf_pkg_id: str
    """v1 only on the wire."""
    vnf_configurable_properties: SecretParams = Field(default_factory=dict)
    vim_connection_info: dict[str, VimConnectionInfo] = Field(default_factory=dict)
    instantiation_state: InstantiationState = InstantiationState.NOT_INSTANTIATED
    instantiated_vnf_info: InstantiatedVnfInfo | None = None
    metadata: SecretParams = Field(default_factory=dict)
    extensions: SecretParams = Field(default_factory=dict)


class VnfLcmOpOcc(SolType):
    """Clause 5.5.2.13, without ``_links``."""

    id: str
    operation_state: OperationState
    state_entered_time: str
    start_time: str
    vnf_instance_id: str
    grant_id: str | None = None
    operation: OperationType
    is_automatic_invocation: bool = False
    operation_params: SecretParams = Field(default_factory=dict)
    is_cancel_pending: bool = False
    cancel_mode: Literal["GRACEFUL", "FORCEFUL"] | None = None
    error: ProblemDetails | None = None
    resource_changes: ResourceChanges | None = None
    changed_info: SecretParams | None = None
    """VnfInfoModifications; vimConnectionInfo may hold secrets."""
    changed_ext_connectivity: tuple[ExtVirtualLinkInfo, ...] | None = None
    modifications_triggered_by_vnf_pkg_change: SecretParams | None = None
    """CHANGE_VNFPKG alone; v2 only."""
    vnf_snapshot_info_id: str | None = None
    """CREATE_SNAPSHOT and REVERT_TO_SNAPSHOT alone; v2 only."""
    warnings: tuple[str, ...] | None = None
    """Parts of the request that are not used; v2 only."""
