"""The role that the machines of a VNF have: a cluster, one with Kuryr, a private registry, or none.

A role says what a request for such a VNF must have, and which steps it adds to the sequences of machines. Roles stand above
the machines that they are made of, and register themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypedDict

from kubevnfm_clients.ports import Vims
from kubevnfm_cluster.parameters import ClusterParameters
from kubevnfm_csar.hot import BaseHot
from kubevnfm_csar.vnfd.model import Flavour
from kubevnfm_secrets import SecretParams
from kubevnfm_sol.lcm import InstantiateVnfRequest

from kubevnfm_lcm_api.lifecycle.core.instantiation import InstantiateDraft
from kubevnfm_lcm_api.lifecycle.core.ports import PackageCatalogue
from kubevnfm_lcm_api.lifecycle.core.step import Plan
from kubevnfm_lcm_api.lifecycle.machines.drafts import InstantiateVmDraft, TerminateVmDraft
from kubevnfm_lcm_api.lifecycle.machines.drivers import RoleName
from kubevnfm_lcm_api.lifecycle.machines.healing import HealVmDraft
from kubevnfm_lcm_api.lifecycle.machines.scaling import ScaleVmDraft
from kubevnfm_lcm_api.lifecycle.machines.under_change import VnfUnderChange


@dataclass(frozen=True)
class RequestedMachines:
    """An instantiation of machines that is checked."""

    packages: PackageCatalogue
    vims: Vims
    common: InstantiateDraft
    request: InstantiateVnfRequest
    flavour: Flavour
    base_hot: BaseHot | None
    phases: Mapping[str, str]
    file_names: frozenset[str]
    has_user_data: bool


class NewClusterFields(TypedDict, total=False):
    """The fields of `InstantiateVmDraft` that a VNF of plain machines does not have."""

    cluster_vim_name: str
    cluster_parameters: ClusterParameters
    max_nodes: int
    masters: int


class ClusterFields(TypedDict, total=False):
    """The fields of `ClusterChangeDraft` that a VNF of plain machines does not have."""

    driver: str
    parameters: SecretParams
    cluster_parameters: ClusterParameters
    node_names: dict[str, str]


class HealFields(ClusterFields, total=False):
    """The fields of `HealVmDraft` that a VNF of plain machines does not have."""

    is_whole: bool
    masters: tuple[str, ...]
    storage: str | None
    cluster_vim_id: str | None
    cluster_vim_name: str | None
    max_nodes: int | None
    has_old_nodes: bool


class Role:
    """None: plain machines, which need nothing more."""

    async def instantiated(self, asked: RequestedMachines) -> NewClusterFields:
        """Return the role's fields of the draft. Raises InvalidInput and Unprocessable naming the parameter, Conflict."""
        return {}

    def scaled(
        self, vnf: VnfUnderChange, wanted: Mapping[str, int], given: Mapping[str, Any], field: str
    ) -> ClusterFields:
        """Return the role's fields of the draft.

        ``wanted``: machines by VDU; ``given``: additionalParams of the request; ``field``: what the request chose the machines
        by. Raises InvalidInput, Unprocessable.
        """
        return {}

    def healed(
        self,
        vnf: VnfUnderChange,
        chosen: Collection[str] | None,
        given: Mapping[str, Any],
        *,
        base_hot: BaseHot | None,
    ) -> HealFields:
        """Return the role's fields of the draft.

        ``chosen``: Nova ids of the machines that the request names, None: it names none; ``given``: its additionalParams;
        ``base_hot``: that of its flavour. Raises InvalidInput, Unprocessable.
        """
        return {}

    def before_creation(self, plan: Plan[InstantiateVmDraft], draft: InstantiateVmDraft) -> None:
        """Add the steps before the stack is created."""

    def after_creation(self, plan: Plan[InstantiateVmDraft], draft: InstantiateVmDraft) -> None:
        """Add the steps that make the machines what they are to be."""

    def before_deletion(self, plan: Plan[TerminateVmDraft], draft: TerminateVmDraft) -> None:
        """Add the steps before the stack is deleted."""

    def before_scaling(self, plan: Plan[ScaleVmDraft], draft: ScaleVmDraft) -> None:
        """Add the steps before machines come or go."""

    def after_scaling(self, plan: Plan[ScaleVmDraft], draft: ScaleVmDraft) -> None:
        """Add the steps after machines have come or gone."""

    def before_healing(self, plan: Plan[HealVmDraft], draft: HealVmDraft) -> None:
        """Add the steps before machines are replaced, and those that replace masters one after another."""

    def after_healing(self, plan: Plan[HealVmDraft], draft: HealVmDraft) -> None:
        """Add the steps that make new machines what the old ones were."""


ROLES: Final[dict[RoleName | None, Role]] = {None: Role()}
"""By name; `role` adds the others."""


def role(*names: RoleName) -> Callable[[type[Role]], type[Role]]:
    """Return the decorator of the class of these roles."""

    def register(kind: type[Role]) -> type[Role]:
        ROLES.update(dict.fromkeys(names, kind()))
        return kind

    return register
