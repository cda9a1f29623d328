"""The common part of the operations on a VNF's stack: their order."""

from __future__ import annotations

from kubevnfm_events.stacks import StackOrder, StackResources

from kubevnfm_lcm_api.lifecycle.core.scripted_draft import OnVimDraft


class StackDraft(StackOrder, OnVimDraft):
    """An operation that makes or changes a stack; the attributes of its order are stored beside its own."""

    resources: StackResources | None = None
    """The stack's resources now; None until they are reported."""

    @property
    def order(self) -> StackOrder:
        """The stack that is wanted."""
        return StackOrder.model_construct(**{name: getattr(self, name) for name in StackOrder.model_fields})
