"""The role that the machines of a VNF have: a cluster, one with Kuryr, a private registry, or none.

A role says what a request for such a VNF must have, and which steps it adds to the sequences of machines. Roles stand above
the machines that they are made of, and register themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kubevnfm_clients.ports import Vims
from kubevnfm_csar.hot import BaseHot
from kubevnfm_csar.vnfd.model import Flavour

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
    flavour: Flavour
    base_hot: BaseHot | None
    file_names: frozenset[str]


@dataclass(frozen=True)
class RequestedHeal:
    """A heal of machines, and what their role may need to know about it."""

    vnf: VnfUnderChange
    plain: HealVmDraft
    """The draft of a VNF of plain machines."""
    chosen: Collection[str] | None
    """Nova ids of the machines that the request names; None: it names none."""
    given: Mapping[str, Any]
    """additionalParams of the request."""
    base_hot: BaseHot | None
    """That of the flavour."""


class Role:
    """None: plain machines, which need nothing more.

    Operations raise InvalidInput and Unprocessable naming the parameter, Conflict.
    """

    async def instantiated(self, draft: InstantiateVmDraft, asked: RequestedMachines) -> InstantiateVmDraft:
        """Return the draft with what machines of the role are to be."""
        return draft

    def scaled(self, vnf: VnfUnderChange, plain: ScaleVmDraft, given: Mapping[str, Any], field: str) -> ScaleVmDraft:
        """Return the draft of the scaling of machines of the role; ``plain``: that of their machines.

        ``given``: additionalParams of the request; ``field``: what the request chose the machines by.
        """
        return plain

    def healed(self, asked: RequestedHeal) -> HealVmDraft:
        """Return the draft of the heal of machines of the role."""
        return asked.plain

    def before_creation(self, plan: Plan[InstantiateVmDraft], draft: InstantiateVmDraft) -> None:
        """Add the steps before the stack is created."""

    def after_creation(self, plan: Plan[InstantiateVmDraft], draft: InstantiateVmDraft) -> None:
        """Add the steps that make the machines what they are to be."""

    def before_deletion(self, plan: Plan[TerminateVmDraft], draft: TerminateVmDraft) -> None:
        """Add the steps before the stack is deleted."""


ROLES: Final[dict[RoleName | None, Role]] = {None: Role()}
"""By name; `role` adds the others."""


def role(*names: RoleName) -> Callable[[type[Role]], type[Role]]:
    """Return the decorator of the class of these roles."""

    def register(kind: type[Role]) -> type[Role]:
        ROLES.update(dict.fromkeys(names, kind()))
        return kind

    return register
