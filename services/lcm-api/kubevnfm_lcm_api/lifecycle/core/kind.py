"""A kind of VNF: says which requests and instances are its own, and makes the draft of each operation that it has."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Generic, TypeVar

from kubevnfm_clients.multicloud.networks import NetworkRequest
from kubevnfm_clients.multicloud.volumes import VolumeMountRequest
from kubevnfm_csar.vnfd.model import Flavour, Vnfd
from kubevnfm_events import ApiVersion, PackageRef
from kubevnfm_kit.errors import Unprocessable, VnfmError
from kubevnfm_sol.base import SolType
from kubevnfm_sol.lcm import (
    ChangeCurrentVnfPkgRequest,
    ChangeExtVnfConnectivityRequest,
    ChangeVnfFlavourRequest,
    HealVnfRequest,
    InstantiateVnfRequest,
    OperateVnfRequest,
    OperationType,
    ScaleVnfRequest,
    ScaleVnfToLevelRequest,
    TerminateVnfRequest,
    VnfInfoModificationRequest,
)
from kubevnfm_sol.resources import InstantiatedVnfInfo
from kubevnfm_sol.snapshots import CreateVnfSnapshotRequest, RevertToVnfSnapshotRequest
from kubevnfm_store.query import Stored

from kubevnfm_lcm_api.lifecycle.core.draft import Draft
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord
from kubevnfm_lcm_api.lifecycle.core.instantiation import InstantiateDraft, TerminateDraft
from kubevnfm_lcm_api.lifecycle.core.modifying import CarriedStack, ModifyDraft, ModifyScriptedDraft
from kubevnfm_lcm_api.lifecycle.core.revision import SOL003, Origin
from kubevnfm_lcm_api.lifecycle.core.scale_levels import levels_of
from kubevnfm_lcm_api.lifecycle.core.snapshot import SnapshotRecord

SCALE: Final = "scale"
SCALE_TO_LEVEL: Final = "scale_to_level"
CHANGE_FLAVOUR: Final = "change_flavour"
HEAL: Final = "heal"
OPERATE: Final = "operate"
CHANGE_EXT_CONN: Final = "change_ext_conn"
CHANGE_VNFPKG: Final = "change_vnfpkg"
CREATE_SNAPSHOT: Final = "create_snapshot"
REVERT_TO_SNAPSHOT: Final = "revert_to_snapshot"


class TaskUnsupported(VnfmError, code="task-unsupported", title="Operation not supported", status=404):
    """The VNF does not support the operation (SOL003 5.4.5.3.1 ff.: 404)."""

    def __init__(self, task: str, reason: str) -> None:
        super().__init__(f"{task} is not supported by this VNF: {reason}")


@dataclass(frozen=True)
class UnderChange:
    """A VNF that is INSTANTIATED and free."""

    stored: Stored
    record: InstanceRecord
    package: PackageRef
    vnfd: Vnfd
    flavour: Flavour
    info: InstantiatedVnfInfo

    @property
    def scale_levels(self) -> dict[str, int]:
        """Scale level by aspect."""
        return levels_of(self.info)


R_co = TypeVar("R_co", bound=SolType, covariant=True)


@dataclass(frozen=True)
class Asked(Generic[R_co]):
    """A request for an operation on an instance."""

    request: R_co
    original: Mapping[str, Any]
    """The body in the form of its API version."""
    version: ApiVersion
    networks: tuple[NetworkRequest, ...] | None = None
    """The interfaces on virtual links that a request of multi-cloud asks for; SOL003 names links instead. None: as they are."""
    volumes: tuple[VolumeMountRequest, ...] | None = None
    """The persistent volumes that a request of multi-cloud names; SOL003 has no member for them. None: as they are."""
    origin: Origin = SOL003
    is_whole: bool = False
    """Whether additionalParams of a change take the place of all earlier ones, rather than of those with the same names."""
    is_merge_patch: bool = False
    """Whether null among the values of a change removes one (RFC 7396); otherwise it is a value."""
    given_values: Mapping[str, Any] | None = None
    """The values that are compared with the variables of the package; None: those of additionalParams."""


@dataclass(frozen=True)
class Levels:
    """The scale levels that a request leads to."""

    operation: OperationType
    by_aspect: Mapping[str, int]
    counts: Mapping[str, int] | None
    """VNFCs by VDU of an instantiation level; None: the present ones and what the levels add."""
    place: str
    """The attribute of the request that chooses the VNFCs."""


@dataclass(frozen=True)
class Replacement:
    """The result of a request for a VNF: an instantiation, a change to another flavour or package, a roll-out of the same one."""

    draft: Draft
    flavour: Flavour
    """The one after the operation."""
    secret_names: tuple[str, ...] = ()
    """The attributes that its package marks as secret."""


class VnfKind(ABC):
    """A kind of VNF. An operation that it does not override is not supported, whatever an instance's tasks say.

    Operations raise InvalidInput and Unprocessable naming the attribute, Conflict, and Drifted for what was found deleted.
    """

    vim_type: ClassVar[str]
    """The type of VIM that its resources are on."""

    def sign(self, parameters: Mapping[str, Any]) -> str | None:
        """Return the attribute of additionalParams by which a request can be only for this type of VIM; None: any."""
        return None

    @abstractmethod
    def is_asked_for(self, parameters: Mapping[str, Any]) -> bool:
        """Return whether an InstantiateVnfRequest for the type of VIM is for this kind."""

    @abstractmethod
    def includes(self, record: InstanceRecord) -> bool:
        """Return whether an INSTANTIATED instance is of this kind."""

    @abstractmethod
    def tasks(self, vnfd: Vnfd, flavour: Flavour) -> tuple[str, ...]:
        """Return the operations that an instance of the flavour supports, without terminate."""

    @abstractmethod
    def why_unsupported(self, record: InstanceRecord, task: str) -> str:
        """Return why the instance does not support the operation."""

    @abstractmethod
    async def instantiate(
        self,
        common: InstantiateDraft,
        record: InstanceRecord,
        flavour: Flavour,
        asked: Asked[InstantiateVnfRequest],
    ) -> InstantiateDraft:
        """Return the draft of an instantiation; ``common``: what all kinds have in common."""

    @abstractmethod
    async def terminate(
        self, common: TerminateDraft, record: InstanceRecord, request: TerminateVnfRequest
    ) -> TerminateDraft:
        """Return the draft of a termination; ``common``: what all kinds have in common."""

    async def scale(
        self, vnf: UnderChange, levels: Levels, asked: Asked[ScaleVnfRequest | ScaleVnfToLevelRequest]
    ) -> Draft:
        """Return the draft of a scaling to these levels."""
        raise self._unsupported(vnf, SCALE if levels.operation is OperationType.SCALE else SCALE_TO_LEVEL)

    async def heal(self, vnf: UnderChange, asked: Asked[HealVnfRequest]) -> Draft:
        """Return the draft of a heal."""
        raise self._unsupported(vnf, HEAL)

    async def operate(self, vnf: UnderChange, asked: Asked[OperateVnfRequest]) -> Draft:
        """Return the draft of a start or stop."""
        raise self._unsupported(vnf, OPERATE)

    async def connect(self, vnf: UnderChange, asked: Asked[ChangeExtVnfConnectivityRequest]) -> Draft:
        """Return the draft of a change of the external connectivity."""
        raise self._unsupported(vnf, CHANGE_EXT_CONN)

    async def change_flavour(self, vnf: UnderChange, asked: Asked[ChangeVnfFlavourRequest]) -> Replacement:
        """Return the change to another flavour."""
        raise self._unsupported(vnf, CHANGE_FLAVOUR)

    async def change_package(self, vnf: UnderChange, asked: Asked[ChangeCurrentVnfPkgRequest]) -> Replacement:
        """Return the change to another package."""
        raise self._unsupported(vnf, CHANGE_VNFPKG)

    async def carried(self, vnf: UnderChange, package: PackageRef, vnfd: Vnfd) -> CarriedStack | None:
        """Return what a modification to another package changes for resources that stay; None: nothing.

        Raises Unprocessable if they are not what the new package describes.
        """
        if _shape(vnfd) != _shape(vnf.vnfd):
            # A modification sends no command, so the resources stay as they are.
            why = "the package differs in more than its software images; use change_vnfpkg for this package"
            raise Unprocessable("vnfdId", why)
        return None

    async def create_snapshot(
        self, vnf: UnderChange, asked: Asked[CreateVnfSnapshotRequest], occurrence_id: str
    ) -> Draft:
        """Return the draft of a snapshot; ``occurrence_id``: of its operation."""
        raise self._unsupported(vnf, CREATE_SNAPSHOT)

    async def revert_to_snapshot(
        self, vnf: UnderChange, asked: Asked[RevertToVnfSnapshotRequest], found: SnapshotRecord
    ) -> Draft:
        """Return the draft of a reversal to a snapshot of the same VNF."""
        raise self._unsupported(vnf, REVERT_TO_SNAPSHOT)

    async def modify(
        self, vnf: UnderChange, common: ModifyScriptedDraft, request: VnfInfoModificationRequest
    ) -> ModifyDraft | None:
        """Return the draft of a modification that changes resources; None if the request changes none.

        ``vnf``: with the VIMs and the descriptor that are valid from now on; ``common``: what all kinds have in common.
        """
        return None

    def _unsupported(self, vnf: UnderChange, task: str) -> TaskUnsupported:
        return TaskUnsupported(task, self.why_unsupported(vnf.record, task))


def _shape(vnfd: Vnfd) -> Any:
    """Return the part of a descriptor that a modification must not change: all but images, files and digests."""
    flavours = vnfd.model_dump(mode="json")["flavours"]
    for flavour in flavours.values():
        for part in (*flavour["vdus"].values(), *flavour["storages"].values()):
            part.pop("image", None)
        for name in ("file", "description", "package_changes", "initial_values"):
            flavour.pop(name, None)
        for driver in flavour["phases"].values():
            driver.pop("sha256", None)
    return flavours
