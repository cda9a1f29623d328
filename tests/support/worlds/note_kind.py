"""A kind of VNF that is one note: all that a new kind needs, outside of the product."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar
from unittest.mock import patch

from kubevnfm_csar.vnfd.model import Flavour, Vnfd
from kubevnfm_events import Command
from kubevnfm_events.mgmt import ForgetInstance, InstanceForgotten
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord, ReleaseDeployment
from kubevnfm_lcm_api.lifecycle.core.instantiation import (
    InstantiateDraft,
    TerminateDraft,
)
from kubevnfm_lcm_api.lifecycle.core.kind import Asked, VnfKind
from kubevnfm_lcm_api.lifecycle.core.sequences import SEQUENCES
from kubevnfm_lcm_api.lifecycle.core.step import STEP_KINDS, Plan, Step
from kubevnfm_lcm_api.lifecycle.kinds import KINDS
from kubevnfm_sol.lcm import InstantiateVnfRequest, TerminateVnfRequest
from kubevnfm_sol.resources import InstantiatedVnfInfo
from kubevnfm_sol.vim import OPENSTACK

NOTE = "x_note"
TASKS = ("scale", "scale_to_level", "operate", "change_ext_conn", "change_flavour", "change_vnfpkg")
"""Tasks that its instances list as supported, although the kind has none of them."""
OWN_STEPS: dict[str, type[Step[Any, Any]]] = {}


class InstantiateNoteDraft(InstantiateDraft):
    """Writing the note."""

    plan: ClassVar[str] = "instantiate_note"

    is_written: bool = False

    def completed(self, instance: InstanceRecord) -> InstanceRecord:
        """Return the instance with its note."""
        info = InstantiatedVnfInfo(flavour_id=self.flavour_id, vnf_state="STARTED", metadata={NOTE: self.is_written})
        return self._instantiated(instance, info, ReleaseDeployment(kind="release", vim_key=self.vim_key))


class TerminateNoteDraft(TerminateDraft):
    """Deleting the note."""

    plan: ClassVar[str] = "terminate_note"


@dataclass(frozen=True)
class WriteNote(Step[InstantiateNoteDraft, InstanceForgotten], registry=OWN_STEPS):
    """Have another service do something for the note.

    Again: safe.
    """

    kind: ClassVar[str] = "write_note"
    command: ClassVar[type[Command]] = ForgetInstance
    label: ClassVar[str] = "Write the note"
    base_timeout_s: ClassVar[float] = 60.0

    def ask(self, draft: InstantiateNoteDraft) -> ForgetInstance:
        """Ask for it."""
        return ForgetInstance(vnf_instance_id=draft.vnf_instance_id)

    def fold(self, draft: InstantiateNoteDraft, reply: InstanceForgotten) -> InstantiateNoteDraft:
        """Keep that it was done."""
        return draft.model_copy(update={"is_written": True})

    def undo(self, draft: InstantiateNoteDraft) -> None:
        """Nothing remains."""


def instantiate_note(_: InstantiateNoteDraft) -> Plan[InstantiateNoteDraft]:
    """Write the note."""
    plan = Plan[InstantiateNoteDraft]()
    plan.then(WriteNote())
    return plan


def terminate_note(_: TerminateNoteDraft) -> Plan[TerminateNoteDraft]:
    """Forget the note with the instance's other facts."""
    return Plan[TerminateNoteDraft]()


class Notes(VnfKind):
    """VNFs that are a note."""

    vim_type: ClassVar[str] = OPENSTACK

    def is_asked_for(self, parameters: Mapping[str, Any]) -> bool:
        return NOTE in parameters

    def includes(self, record: InstanceRecord) -> bool:
        return NOTE in record.internals.parameters

    def tasks(self, vnfd: Vnfd, flavour: Flavour) -> tuple[str, ...]:
        return TASKS

    def why_unsupported(self, record: InstanceRecord, task: str) -> str:
        return "it is a note"

    async def instantiate(
        self,
        common: InstantiateDraft,
        record: InstanceRecord,
        flavour: Flavour,
        asked: Asked[InstantiateVnfRequest],
    ) -> InstantiateNoteDraft:
        return InstantiateNoteDraft(**vars(common))

    async def terminate(
        self, common: TerminateDraft, record: InstanceRecord, request: TerminateVnfRequest
    ) -> TerminateNoteDraft:
        return TerminateNoteDraft(**vars(common))


@contextmanager
def notes_registered() -> Iterator[None]:
    """Register the kind for the services that start inside; other tests count the kinds, plans and steps of the product."""
    with patch.dict(STEP_KINDS, OWN_STEPS), patch.dict(SEQUENCES._by_draft):
        SEQUENCES.sequence(InstantiateNoteDraft)(instantiate_note)
        SEQUENCES.sequence(TerminateNoteDraft)(terminate_note)
        KINDS.insert(0, lambda _: Notes())
        try:
            yield
        finally:
            del KINDS[0]
