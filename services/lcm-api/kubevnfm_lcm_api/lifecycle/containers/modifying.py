"""The drafts of the operations on an instantiated VNF: their facts, and their result for the instance."""

from __future__ import annotations

from typing import ClassVar, Self

from kubevnfm_events import CapiProviders, PackageRef, VimConnection
from kubevnfm_events.infra import Variables, VduTarget
from kubevnfm_sol.resources import (
    ResourceChanges,
)

from kubevnfm_lcm_api.lifecycle.containers.releases import changes_between, showing
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord, Release
from kubevnfm_lcm_api.lifecycle.core.modifying import ModifyDraft
from kubevnfm_lcm_api.lifecycle.core.scripted_draft import ScriptedDraft


class ModifyCnfDraft(ModifyDraft, ScriptedDraft):
    """MODIFY_INFO of a CNF whose driver changes its configuration and images too."""

    plan: ClassVar[str] = "modify_cnf"

    package: PackageRef
    """The package before the modification."""
    vim_key: str
    vim: VimConnection
    def_files: tuple[str, ...]
    """The files that describe the CNF before the operation."""
    config_files: tuple[str, ...] = ()
    """Files with changed ConfigMaps and Secrets."""
    variables: Variables | None = None
    """The values of placeholders in the manifests; None: they have none."""
    multi_namespace: bool = False
    vdus: tuple[VduTarget, ...] = ()
    wait_timeout_s: float | None = None
    before: Release

    release: Release | None = None
    """The objects and pods that run now; None until the change, or its reversal, was reported."""
    files: tuple[str, ...] = ()
    """The files that describe ``release``."""

    @property
    def stacks(self) -> tuple[None, None]:
        """Containers have no stack."""
        return None, None

    @property
    def wanted_package(self) -> PackageRef:
        """The package that is valid from now on."""
        return self.new_package or self.package

    @property
    def providers(self) -> CapiProviders | None:
        """The providers of Cluster API that the CNF has now."""
        return (self.release or self.before).providers

    @property
    def providers_before(self) -> CapiProviders | None:
        """Those that it had before."""
        return self.before.providers

    def updated(self, release: Release, files: tuple[str, ...]) -> Self:
        """Return the draft with what runs now."""
        return self.model_copy(update={"release": release, "files": files})

    def changes(self) -> ResourceChanges:
        """Pods that were started again are other VNFCs: the earlier ones are removed, the present ones added."""
        return changes_between(self.before, self.release, vnfd_id=self.wanted_package.vnfd_id, vim_key=self.vim_key)

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
