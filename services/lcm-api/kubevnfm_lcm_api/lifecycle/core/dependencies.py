"""The things that VNF instances provide to one another, and the mark of an instance that loses one (sequences.md D0).

A cluster VNF provides the VIM that CNFs run on, a private registry the images of clusters, a management cluster the controllers of
workload clusters. An operation that takes such a
thing away says so by its draft's `withdrawn`, one that begins to use it by `begins_use`; `lifecycle.core.orphan_marks` decides
between the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from kubevnfm_kit.errors import Conflict
from kubevnfm_sol.lcm import OperationState, OperationType, VnfLcmOpOcc
from pydantic import BaseModel, ConfigDict

from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord

Kind = Literal["cluster", "registry", "management"]
WORDS: Final[Mapping[Kind, str]] = {
    "cluster": "cluster",
    "registry": "registry",
    "management": "management cluster",
}
"""The kinds, for people."""
KEY: Final = "kubevnfm_orphaned"
"""The key in the metadata of an instance; requests cannot set it."""
PATH: Final = f"metadata/{KEY}"


@dataclass(frozen=True)
class Paths:
    """Where the documents of instances have the id of a provided thing."""

    provider: str
    """One id, or a list."""
    users: str
    """A list of ids."""


PATHS: Final[Mapping[Kind, Paths]] = {
    "cluster": Paths("internal/clusterVimId", "internal/vimIds"),
    "registry": Paths("internal/ownRegistry", "internal/registries"),
    "management": Paths("internal/managementVimId", "internal/managementVimIds"),
}
"""The users' paths need an index (`lifecycle.wiring`); of the providers, only the few that withdraw are searched."""
HEAL_ADVICE: Final = "terminate those first (POST /vnf_instances/{id}/terminate of each), then repeat the heal"
"""The way out for the caller of a heal that takes something away: no form of it goes on although others use it."""
IS_WITHDRAWING: Final = "internal/isWithdrawing"


@dataclass(frozen=True)
class Provided:
    """One thing that an instance provides, or things of one kind that an operation begins to use."""

    kind: Kind
    ids: tuple[str, ...]
    """The id of a cluster's or management cluster's VIM; ``address:port`` of a registry, for each of its addresses."""


@dataclass(frozen=True)
class Withdrawn:
    """A thing that an operation takes away from the instances that use it."""

    provided: Provided
    is_forced: bool
    """Whether the operation goes on although others use it."""
    advice: str = "terminate those first, or terminate this one FORCEFUL"
    """The way out for the caller if others use it."""


class ProvidedInUse(Conflict, code="provided-in-use"):
    """Other instances use what the operation would take away."""

    def __init__(self, withdrawn: Withdrawn, users: tuple[str, ...], *, are_more: bool) -> None:
        """``users``: ids of instances; ``are_more``: whether there are others."""
        more = " and more" if are_more else ""
        super().__init__(
            f"the {WORDS[withdrawn.provided.kind]} of this VNF instance is used by VNF instances {', '.join(users)}{more}: "
            f"{withdrawn.advice}"
        )
        self.users = users


class ProviderWithdraws(Conflict, code="provider-withdraws"):
    """The provider of what the operation would use is being terminated, or healed as a whole."""

    def __init__(self, kind: Kind, provider_id: str) -> None:
        super().__init__(f"the {WORDS[kind]} of VNF instance {provider_id}, which this one would use, is being deleted")
        self.provider_id = provider_id


class Orphaned(BaseModel):
    """The value in the metadata."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    provided: Kind
    provider_id: str
    """The VNF instance that provided it."""
    since: str
    reason: str
    """One sentence for a person."""


def orphaned(record: InstanceRecord, mark: Orphaned) -> InstanceRecord:
    """Return the record with the mark."""
    return record.with_vnf(metadata={**record.vnf.metadata, KEY: mark.model_dump(mode="json")})


def is_marked(record: InstanceRecord, provider_id: str) -> bool:
    """Return whether the record says that it loses what this instance provided."""
    mark: Any = record.vnf.metadata.get(KEY)
    return isinstance(mark, Mapping) and mark.get("provider_id") == provider_id


def without_mark(record: InstanceRecord, occ: VnfLcmOpOcc) -> InstanceRecord:
    """Return the record at the end of an operation: terminated, or instantiated again, it is no orphan any more."""
    mark: Any = record.vnf.metadata.get(KEY)
    ends = {OperationType.TERMINATE, OperationType.INSTANTIATE}
    if mark is None or occ.operation_state is not OperationState.COMPLETED or occ.operation not in ends:
        return record
    # The provider may have gone while this one was being instantiated.
    if occ.operation is OperationType.INSTANTIATE and mark.get("since", "") >= occ.start_time:
        return record
    return record.with_vnf(metadata={name: value for name, value in record.vnf.metadata.items() if name != KEY})
