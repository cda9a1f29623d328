"""The draft of a change of a workload cluster's package: its facts, and its result for the instance (capi.md chapter 13)."""

from __future__ import annotations

from typing import ClassVar, Self

from kubevnfm_lcm_api.lifecycle.containers.replacing import ReplaceCnfDraft
from kubevnfm_lcm_api.lifecycle.core.instance import Release
from kubevnfm_lcm_api.lifecycle.core.workload_cluster import WorkloadInternals
from kubevnfm_lcm_api.lifecycle.workloads.drafts import ChangeWorkloadDraft, cluster_in


class ReplaceWorkloadDraft(ChangeWorkloadDraft, ReplaceCnfDraft):
    """CHANGE_VNFPKG of a workload cluster: other manifests, which its Machines follow."""

    plan: ClassVar[str] = "change_package_workload"

    version_step: str | None = None
    """The Kubernetes version that the cluster is brought to; None if it keeps the one that it has."""
    addon_files: tuple[str, ...] | None = None
    """The manifests of the new package for the inside of the cluster; None: what was applied there stays."""

    @property
    def addon_files_before(self) -> tuple[str, ...]:
        """The same of the earlier package."""
        return self.workload.capi.addon_def_files

    @property
    def is_reversible(self) -> bool:
        """Kubernetes has no way down from a version (CR-102)."""
        return self.version_step is None

    def with_version_step(self, version: str | None) -> Self:
        """Return the draft with the Kubernetes version that the cluster is brought to."""
        return self.model_copy(update={"version_step": version})

    def replaced(self, release: Release, files: tuple[str, ...]) -> Self:
        """Return the draft with the objects that exist now; the Machines are those that were reported last."""
        shown = release.model_copy(update={"pods": (self.release or self.before).pods})
        # Another package may use another version of Cluster API's kinds (CR-037).
        cluster = cluster_in(release, self.workload.cluster.name) or self.workload.cluster
        known = super().replaced(shown, files)
        return known.model_copy(update={"workload": self.workload.model_copy(update={"cluster": cluster})})

    @property
    def workload_then(self) -> WorkloadInternals:
        """The cluster with the addons of the new package."""
        if self.addon_files is None:
            return self.workload
        capi = self.workload.capi.model_copy(update={"addon_def_files": self.addon_files})
        return self.workload.model_copy(update={"capi": capi})
