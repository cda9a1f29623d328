"""Steps that infra-k8s does to bring a workload cluster to another package (capi.md chapter 13)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol

from kubevnfm_events import Command, Event, PackageRef
from kubevnfm_events.capi import AddonsApplied, AddonsPart, ApplyAddons, ClusterUpdated, UpdateCluster, UpdatePart

from kubevnfm_lcm_api.lifecycle.containers.replace_steps import NeedsReplacement
from kubevnfm_lcm_api.lifecycle.core.draft import Draft
from kubevnfm_lcm_api.lifecycle.core.instance import Release
from kubevnfm_lcm_api.lifecycle.core.step import Step
from kubevnfm_lcm_api.lifecycle.workloads.cluster_steps import NeedsCluster


class NeedsClusterUpdate(NeedsReplacement, NeedsCluster, Protocol):
    """An operation that brings its workload cluster to another package."""

    def with_version_step(self, version: str | None) -> Draft:
        """Return the draft with the Kubernetes version that the cluster is brought to."""
        ...


@dataclass(frozen=True)
class UpdateClusterObjects(Step[NeedsClusterUpdate, ClusterUpdated]):
    """Do one part of the update: check it, apply without or with the workers, or prune (CR-094 to CR-099).

    Adds: the objects that exist now; ``check`` adds the version step.
    Again: safe; what is applied and deleted already is left alone.
    Fails: a change that is not possible names the field; unknown kinds, foreign objects and refusals name the object.
    """

    part: UpdatePart

    kind: ClassVar[str] = "update_cluster"
    command: ClassVar[type[Command]] = UpdateCluster
    label: ClassVar[str] = "Update the objects of the workload cluster: {part}"
    base_timeout_s: ClassVar[float] = 1200.0

    def ask(self, draft: NeedsClusterUpdate) -> UpdateCluster:
        """Ask for this part, with the manifests of the new package."""
        return self._command(draft, self.part)

    def fold(self, draft: NeedsClusterUpdate, reply: ClusterUpdated) -> Draft:
        """Keep what exists now."""
        if self.part == "check":
            return draft.with_version_step(reply.version_step)
        return draft.replaced(Release.from_applied(reply), draft.new_files)

    def fold_remains(self, draft: NeedsClusterUpdate, remains: Mapping[str, object]) -> Draft | None:
        """Keep what exists after the failure."""
        return None if self.part == "check" else self.fold(draft, ClusterUpdated.model_validate(remains))

    def undone(self, draft: NeedsClusterUpdate, reply: Event) -> Draft:
        """Keep what exists after the reversal."""
        assert isinstance(reply, ClusterUpdated)
        return draft.replaced(Release.from_applied(reply), draft.def_files)

    def undo(self, draft: NeedsClusterUpdate) -> UpdateCluster | None:
        """Ask for the objects of the earlier package; what the new one brought is deleted last (CR-102)."""
        if self.part == "prune":
            return None  # what was deleted comes back with the other objects
        return self._command(draft, "prune" if self.part == "check" else "all", is_back=True)

    def _command(self, draft: NeedsClusterUpdate, part: UpdatePart, *, is_back: bool = False) -> UpdateCluster:
        assert draft.workload_cluster is not None
        package: PackageRef = draft.before_package if is_back else draft.package
        return UpdateCluster(
            vnf_instance_id=draft.vnf_instance_id,
            package=package,
            vim=draft.vim,
            cluster=draft.workload_cluster,
            def_files=draft.def_files if is_back else draft.new_files,
            namespace=draft.namespace,
            multi_namespace=draft.multi_namespace,
            vdus=draft.vdus_before if is_back else draft.vdus,
            variables=draft.variables_before if is_back else draft.variables,
            part=part,
        )


class NeedsAddonsUpdate(NeedsClusterUpdate, Protocol):
    """An operation that brings the addons inside its workload cluster to another package."""

    @property
    def addon_files(self) -> tuple[str, ...] | None:
        """The addons of the new package; None: the present ones stay."""
        ...

    @property
    def addon_files_before(self) -> tuple[str, ...]: ...


@dataclass(frozen=True)
class UpdateClusterAddons(Step[NeedsAddonsUpdate, AddonsApplied]):
    """Apply the addons of the new package inside the workload cluster, or delete those that it lacks (CR-048, CR-094).

    Again: safe; what is applied and deleted already is left alone.
    Fails: as `ApplyClusterAddons`.
    """

    part: AddonsPart

    kind: ClassVar[str] = "update_addons"
    command: ClassVar[type[Command]] = ApplyAddons
    label: ClassVar[str] = "Update the addons inside the workload cluster: {part}"
    base_timeout_s: ClassVar[float] = 1200.0

    def ask(self, draft: NeedsAddonsUpdate) -> ApplyAddons:
        """Ask for this part, with the addons of the new package."""
        return self._command(draft, self.part)

    def fold(self, draft: NeedsAddonsUpdate, reply: AddonsApplied) -> None:
        """Nothing to keep."""

    def undo(self, draft: NeedsAddonsUpdate) -> ApplyAddons | None:
        """Ask for the addons of the earlier package, and for the deletion of those that it lacks (CR-102)."""
        if self.part == "prune":
            return None  # what was deleted comes back with the others
        return self._command(draft, "replace", is_back=True)

    def _command(self, draft: NeedsAddonsUpdate, part: AddonsPart, *, is_back: bool = False) -> ApplyAddons:
        assert draft.workload_cluster is not None
        return ApplyAddons(
            vnf_instance_id=draft.vnf_instance_id,
            vim=draft.vim,
            cluster=draft.workload_cluster,
            package=draft.before_package if is_back else draft.package,
            def_files=draft.addon_files_before if is_back else draft.addon_files or (),
            variables=draft.variables_before if is_back else draft.variables,
            part=part,
        )
