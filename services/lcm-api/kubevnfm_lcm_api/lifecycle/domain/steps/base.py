"""A step of a sequence: one command and the event that answers it, as pure functions. The engine does all I/O."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Generic, TypeVar

from kubevnfm_events import Command, Event, VimConnection
from kubevnfm_sol.resources import ExtVirtualLinkInfo, ResourceChanges
from pydantic import BaseModel, ConfigDict

from kubevnfm_lcm_api.lifecycle.domain.instance import InstanceRecord


class Draft(BaseModel):
    """All that is known so far of an operation; grows as replies are folded in; stored with the occurrence."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    plan: ClassVar[str] = ""
    """The name of its sequence in `plans.PLANS`."""

    vnf_instance_id: str

    @property
    def has_way_back(self) -> bool:
        """Whether the operation can be rolled back, of those kinds that depend on what was asked (api.md 4.3)."""
        return True

    @property
    def vim_id(self) -> str | None:
        """The registered VIM that the resources are on, or go to; None when there is none, or it is not registered."""
        vim: VimConnection | None = getattr(self, "vim", None)
        return vim.vim_id if vim is not None else None

    def changes(self) -> ResourceChanges:
        """Return what the operation has added or removed so far, for ``resourceChanges``."""
        return ResourceChanges()

    def changed_connectivity(self) -> tuple[ExtVirtualLinkInfo, ...]:
        """Return the external links that the operation has added or changed so far."""
        return ()

    def told_at_end(self) -> dict[str, Any]:
        """Return further attributes of the occurrence that are true once the operation is COMPLETED."""
        return {}

    def completed(self, instance: InstanceRecord) -> InstanceRecord:
        """Return the instance as it is when the operation is COMPLETED."""
        return instance

    def rolled_back(self, instance: InstanceRecord) -> InstanceRecord:
        """Return the instance as it is when the operation is ROLLED_BACK."""
        return instance

    def given_up(self, instance: InstanceRecord, occurrence_id: str) -> InstanceRecord:
        """Return the instance as it is when the operation is FAILED: the truth about what exists."""
        return instance


D = TypeVar("D", bound=Draft)
R = TypeVar("R", bound=Event)


class Step(ABC, Generic[D, R]):
    """One step; a subclass says what it needs, adds, whether it may be repeated, and how it fails."""

    name: ClassVar[str]
    """Stored with operations: rename the class, never the name."""
    title: ClassVar[str]
    """For people who watch: "Create the virtual resources"."""
    timeout_s: ClassVar[float]
    """How long the step may take, from the moment it is asked."""
    reply: ClassVar[type[Event]]

    @abstractmethod
    def ask(self, draft: D) -> Command:
        """Return the command that does it."""

    @abstractmethod
    def fold(self, draft: D, reply: R) -> D:
        """Return the draft with what the reply told."""

    def keep_remains(self, draft: D, remains: Mapping[str, object]) -> D:
        """Return the draft with what the failed command left behind (``CommandFailed.remains``)."""
        return draft

    def forget(self, draft: D) -> D:
        """Return the draft once the step was taken back: without what no longer exists."""
        return draft

    def undone(self, draft: D, reply: Event) -> D:
        """Return the draft with what the answer to the compensation told."""
        return self.forget(draft)

    @abstractmethod
    def undo(self, draft: D) -> Command | None:
        """Return the command that takes back whatever of it was done, or None with the reason in a comment."""
