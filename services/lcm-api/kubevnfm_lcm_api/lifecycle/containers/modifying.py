"""The drafts of the operations on an instantiated VNF: their facts, and their result for the instance."""

from __future__ import annotations

from typing import ClassVar, Self

from kubevnfm_events import PackageRef

from kubevnfm_lcm_api.lifecycle.containers.order import ChangedObjectsDraft
from kubevnfm_lcm_api.lifecycle.containers.releases import showing
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord, Release
from kubevnfm_lcm_api.lifecycle.core.modifying import ModifyScriptedDraft


class ModifyCnfDraft(ModifyScriptedDraft, ChangedObjectsDraft):
    """MODIFY_INFO of a CNF whose driver changes its configuration and images too."""

    plan: ClassVar[str] = "modify_cnf"

    config_files: tuple[str, ...] = ()
    """Files with changed ConfigMaps and Secrets."""

    files: tuple[str, ...] = ()
    """The files that describe ``release``."""

    def updated(self, release: Release, files: tuple[str, ...]) -> Self:
        """Return the draft with what runs now."""
        return self.model_copy(update={"release": release, "files": files})

    def completed(self, instance: InstanceRecord) -> InstanceRecord:
        """Return the instance with its information changed, and with the pods that run now."""
        return self._with_release(super().completed(instance), self.wanted_package)

    def rolled_back(self, instance: InstanceRecord) -> InstanceRecord:
        """Return the instance with the pods that run after the reversal."""
        return self._with_release(instance, self.package)

    def failed(self, instance: InstanceRecord, occurrence_id: str) -> InstanceRecord:
        """Return the instance with the pods that were reported last; its information is as before."""
        return self._with_release(instance, self.package)

    def _with_release(self, instance: InstanceRecord, package: PackageRef) -> InstanceRecord:
        return showing(instance, self.release, package, self.vim_key, self.files)
