"""The drafts of the operations on an instantiated VNF: their facts, and their result for the instance."""

from __future__ import annotations

from typing import ClassVar

from kubevnfm_events import PackageRef
from kubevnfm_events.stacks import StackResources

from kubevnfm_lcm_api.lifecycle.core.modifying import ModifyDraft
from kubevnfm_lcm_api.lifecycle.core.scripted_draft import ScriptedDraft


class ModifyScriptedDraft(ModifyDraft, ScriptedDraft):
    """MODIFY_INFO of a VNF whose VNFD maps the modification to scripts."""

    plan: ClassVar[str] = "modify_scripted"

    package: PackageRef
    """The package before the modification, whose scripts run."""
    resources: StackResources | None = None
    """The stack, which stays; None: a CNF."""

    @property
    def stacks(self) -> tuple[StackResources | None, StackResources | None]:
        """The stack stays."""
        return self.resources, self.resources
