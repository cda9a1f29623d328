"""Instantiating a CNF whose package is fetched first (multicloud.md MC-122): one step, until the package says which others there are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kubevnfm_events import Command
from kubevnfm_events.lcm import AwaitPackage as AwaitPackageCommand
from kubevnfm_events.lcm import PackageAwaited
from kubevnfm_secrets import Secret, SecretParams
from kubevnfm_sol.lcm import OperationState
from pydantic import Field

from kubevnfm_lcm_api.lifecycle.core.dependencies import Provided
from kubevnfm_lcm_api.lifecycle.core.draft import Draft
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord
from kubevnfm_lcm_api.lifecycle.core.sequences import SEQUENCES
from kubevnfm_lcm_api.lifecycle.core.step import Plan, Step


class AwaitPackageDraft(Draft):
    """An instantiate whose package is not known yet. The draft of the instantiate takes its place once it is."""

    plan: ClassVar[str] = "instantiate_awaited_cnf"

    csar_id: str
    source: SecretParams = Field(default_factory=dict)
    """Where the package is; empty: in the operator's catalogue."""
    place: str
    """The member of the request that names the package."""
    body: Secret
    """The request of multi-cloud, as JSON: before the package is there, it is not known which of its values are secret."""
    by: str = ""
    """The caller."""
    region_vim_id: str
    limit_s: float
    """How long fetching may take."""
    is_removal: bool = False
    """Whether it is rolled back because the instance is to be deleted."""

    @property
    def vim_id(self) -> str:
        """The VIM that is the cloud region."""
        return self.region_vim_id

    @property
    def begins_use(self) -> tuple[Provided, ...]:
        """The VIM, which another instance's cluster may be."""
        return (Provided("cluster", (self.region_vim_id,)),)

    def removes_instance(self, state: OperationState) -> bool:
        """After the rollback."""
        return self.is_removal and state is OperationState.ROLLED_BACK

    def rolled_back(self, instance: InstanceRecord) -> InstanceRecord:
        """NOT_INSTANTIATED as before: nothing was made."""
        return instance.with_internals(vim_ids=())

    def failed(self, instance: InstanceRecord, occurrence_id: str) -> InstanceRecord:
        """NOT_INSTANTIATED, without remains."""
        return self.rolled_back(instance)


@dataclass(frozen=True)
class AwaitPackage(Step[Draft, PackageAwaited]):
    """Have the package fetched, then plan the operation: the handler puts the draft of the instantiate in the place of this one.

    Again: safe; one fetch of a package runs at a time, and a planned operation is left as it is.
    Fails: the package cannot be fetched, is refused, or does not fit the request.
    """

    limit_s: float

    kind: ClassVar[str] = "await_package"
    command: ClassVar[type[Command]] = AwaitPackageCommand
    label: ClassVar[str] = "Fetch the VNF package"
    base_timeout_s: ClassVar[float] = 600.0
    """For its check, beside the time limit of the fetch."""

    @property
    def timeout_s(self) -> float:
        return self.base_timeout_s + self.limit_s

    def ask(self, draft: Draft) -> AwaitPackageCommand:
        return AwaitPackageCommand(vnf_instance_id=draft.vnf_instance_id)

    def undo(self, draft: Draft) -> None:
        """A fetched package stays: others may use it."""


@SEQUENCES.sequence(AwaitPackageDraft)
def instantiate_awaited_cnf(draft: AwaitPackageDraft) -> Plan[AwaitPackageDraft]:
    """Fetch the package of a CNF; the other steps follow when it is there."""
    plan = Plan[AwaitPackageDraft]()
    plan.then(AwaitPackage(draft.limit_s))
    return plan
