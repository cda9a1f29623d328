"""The common part of the operations on the Kubernetes objects of a CNF or a workload cluster: their order."""

from __future__ import annotations

from kubevnfm_events import CapiProviders, PackageRef
from kubevnfm_events.objects import ChartOrder
from kubevnfm_sol.resources import ResourceChanges

from kubevnfm_lcm_api.lifecycle.containers.releases import changes_between
from kubevnfm_lcm_api.lifecycle.core.instance import Release
from kubevnfm_lcm_api.lifecycle.core.scripted_draft import OnVimDraft


class ObjectsDraft(ChartOrder, OnVimDraft):
    """An operation that applies or changes objects; the attributes of its order are stored beside its own."""

    wait_timeout_s: float | None = None
    release: Release | None = None
    """The objects and pods that exist now; None until they are reported."""

    @property
    def order(self) -> ChartOrder:
        """The objects that are wanted."""
        return ChartOrder.model_construct(**{name: getattr(self, name) for name in ChartOrder.model_fields})


class ChangedObjectsDraft(ObjectsDraft):
    """An operation that changes objects which exist."""

    before: Release

    @property
    def order(self) -> ChartOrder:
        """The objects that are wanted, in the namespace that the CNF has."""
        return super().order.model_copy(update={"namespace": self.before.namespace})

    @property
    def providers(self) -> CapiProviders | None:
        """The providers of Cluster API that the CNF has now."""
        return (self.release or self.before).providers

    @property
    def providers_before(self) -> CapiProviders | None:
        """Those that it had before."""
        return self.before.providers

    def changes(self) -> ResourceChanges:
        """Pods that were started again are other VNFCs: the earlier ones are removed, the present ones added."""
        return changes_between(self.before, self.release, vnfd_id=self.wanted_package.vnfd_id, vim_key=self.vim_key)

    @property
    def wanted_package(self) -> PackageRef:
        """The package that is valid from now on."""
        return self.new_package or self.package
