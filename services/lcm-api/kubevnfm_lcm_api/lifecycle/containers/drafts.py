"""The drafts of instantiate and terminate: their facts while they run, and their result for the instance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from kubevnfm_csar.vnfd.model import Flavour
from kubevnfm_events import CapiProviders
from kubevnfm_events.objects import LeftObject
from kubevnfm_kit.request_warnings import RequestWarning
from kubevnfm_secrets import SecretParams
from kubevnfm_sol.granting import Grant
from kubevnfm_sol.resources import ResourceChanges
from pydantic import Field

from kubevnfm_lcm_api.lifecycle.containers import inventory
from kubevnfm_lcm_api.lifecycle.containers.networks import link_infos, managed_link_infos
from kubevnfm_lcm_api.lifecycle.containers.order import ObjectsDraft
from kubevnfm_lcm_api.lifecycle.containers.releases import metadata_of_left, pods_without, with_management
from kubevnfm_lcm_api.lifecycle.core.dependencies import Provided, Withdrawn
from kubevnfm_lcm_api.lifecycle.core.granted_resources import Resources, removed_pods
from kubevnfm_lcm_api.lifecycle.core.granting import GrantUnusable
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord, Release, ReleaseDeployment
from kubevnfm_lcm_api.lifecycle.core.instantiation import InstantiateDraft, TerminateDraft
from kubevnfm_lcm_api.lifecycle.core.revision import Inputs


class InstantiateCnfDraft(InstantiateDraft, ObjectsDraft):
    """Instantiating a CNF on a Kubernetes VIM."""

    plan: ClassVar[str] = "instantiate_cnf"
    is_forceful: ClassVar[bool] = False

    adopt: bool = False
    phases: dict[str, str] = Field(default_factory=dict)
    """Management driver by phase, as far as mgmt-executor runs it."""
    ignored_artifacts: tuple[str, ...] = ()
    """The files of the package that its order artifact does not list."""
    managed_links: tuple[dict[str, Any], ...] = ()
    """ExtManagedVirtualLinkData of the request."""
    is_placed: bool = False
    """Whether a request of multi-cloud has named its cloud region."""
    digest: str = ""
    """That of the objects with their variables filled in; empty if they are not known."""
    left: tuple[LeftObject, ...] = ()
    """The objects that a rollback has left, because others need them."""
    unused_values: tuple[RequestWarning, ...] = ()
    """The warnings about values of the request that name no variable of the package."""

    @property
    def notes(self) -> tuple[RequestWarning, ...]:
        """The values that are not used."""
        return self.unused_values

    @property
    def inputs(self) -> Inputs:
        """Those of the request."""
        return Inputs.model_construct(**{name: getattr(self, name) for name in Inputs.model_fields})

    @property
    def begins_use(self) -> tuple[Provided, ...]:
        """The VIM, which another instance's cluster may be."""
        return (Provided("cluster", (self.vim.vim_id,)),) if self.vim.vim_id is not None else ()

    @property
    def providers(self) -> CapiProviders | None:
        """The providers of Cluster API that the CNF has installed."""
        return self.release.providers if self.release is not None else None

    @property
    def providers_before(self) -> None:
        """None: the CNF is new."""

    def granted(self, grant: Grant, request: Mapping[str, Any]) -> Self:
        """Links and regions of the grant would be others than those that were checked. Raises GrantUnusable."""
        draft = super().granted(grant, request)
        if draft.ext_virtual_links != self.ext_virtual_links:
            raise GrantUnusable("extVirtualLinks", "no other links than those of the request expected for a CNF")
        if draft.vim_id != self.vim_id and (self.is_placed or self.networks):
            reason = f"{self.vim_id} expected, which is the VNF's cloud region and has its virtual links"
            raise GrantUnusable("vimConnectionInfo", reason)
        return draft

    def with_release(self, release: Release | None) -> Self:
        """Return the draft with the applied objects; None: there are none."""
        return self.model_copy(update={"release": release})

    def without_objects(self, left: tuple[LeftObject, ...]) -> Self:
        """Return the draft once its objects are deleted, except those that are left, such as a namespace with objects of others."""
        return self.with_release(None).model_copy(update={"left": left})

    def changes(self) -> ResourceChanges:
        """Every pod was added; after a rollback, what it has left."""
        if self.release is None:
            return ResourceChanges(metadata=metadata_of_left(self.left))
        return inventory.changes_of_release(
            self.release, vnfd_id=self.package.vnfd_id, vim_key=self.vim_key, change="ADDED"
        )

    def completed(self, instance: InstanceRecord) -> InstanceRecord:
        """INSTANTIATED, one VNFC a pod."""
        assert self.release is not None
        info = inventory.info_of_release(
            self.release,
            vnfd_id=self.package.vnfd_id,
            vim_key=self.vim_key,
            flavour_id=self.flavour_id,
            scale_status=self.scale_status,
            max_scale_levels=self.max_scale_levels,
            def_files=self.def_files,
            ignored=self.ignored_artifacts,
        ).model_copy(
            update={
                "additional_params": self.parameters or None,
                "localization_language": self.localization_language,
                "ext_virtual_link_info": link_infos(self.ext_virtual_links, self.vim_key),
                "ext_managed_virtual_link_info": managed_link_infos(self.managed_links, self.vim_key),
            }
        )
        deployment = ReleaseDeployment(kind="release", vim_key=self.vim_key, release=self.release)
        done = self._instantiated(instance, info, deployment).with_internals(
            phases=self.phases, networks=self.networks, volumes=self.volumes, outputs=self.outputs
        )
        return with_management(done, self.release, self.vim_id)


class TerminateCnfDraft(TerminateDraft):
    """Terminating a CNF."""

    plan: ClassVar[str] = "terminate_cnf"

    release: Release | None = None
    holds_links: bool = False
    """Whether it has networks on virtual links."""
    holds_volumes: bool = False
    """Whether it uses persistent volumes."""
    phases: dict[str, str] = Field(default_factory=dict)
    parameters: SecretParams = Field(default_factory=dict)
    left: tuple[LeftObject, ...] = ()
    """The objects that may still exist, because the termination gave up on their cluster or removed their finalizers."""
    force_remove_finalizers: bool = False
    """Whether finalizers that hold the deletion are removed (capi.md CR-109)."""
    is_management: bool = False
    """Whether its objects are providers of Cluster API."""
    end_hooks_s: float = 0.0
    """The time that the hooks of its deletion may take."""
    orphans: tuple[LeftObject, ...] = ()
    """The Clusters that lose their controllers, with what belongs to them."""

    @property
    def withdrawn(self) -> Withdrawn | None:
        """The management cluster, which workload clusters of other instances need (capi.md CR-043)."""
        if not self.is_management or self.vim_id is None:
            return None
        return Withdrawn(Provided("management", (self.vim_id,)), is_forced=self.is_forceful)

    @property
    def providers(self) -> None:
        """None are left at the end."""

    @property
    def providers_before(self) -> CapiProviders | None:
        """The providers of Cluster API that the CNF has installed."""
        return self.release.providers if self.release is not None else None

    def grant_resources(self, flavour: Flavour | None) -> Resources:
        """Every pod."""
        return Resources(remove=list(removed_pods(self.release.pods if self.release else (), self.vim_key)))

    def with_orphans(self, orphans: tuple[LeftObject, ...]) -> Self:
        """Return the draft with the Clusters that lose their controllers."""
        return self.model_copy(update={"orphans": orphans})

    def without_release(self, left: tuple[LeftObject, ...]) -> Self:
        """Return the draft once the release is deleted, except what is left."""
        return self.model_copy(update={"is_gone": True, "left": left})

    def changes(self) -> ResourceChanges:
        """All VNFCs are removed once the objects are deleted; those that may still run are not."""
        if not self.is_gone:
            return ResourceChanges()
        pods = pods_without(self.left, self.release)
        removed = inventory.changes_of_pods({"REMOVED": pods}, vnfd_id=self.vnfd_id, vim_key=self.vim_key)
        return removed.model_copy(update={"metadata": metadata_of_left((*self.orphans, *self.left))})
