"""Steps of management clusters of Cluster API: what others need of them, and what their VIM shows (capi.md chapter 6)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kubevnfm_events import CapiProviders, Command
from kubevnfm_events.capi import CheckClusters, ClustersChecked
from kubevnfm_events.vim import CapiProvidersRecorded, RecordCapiProviders

from kubevnfm_lcm_api.lifecycle.containers.drafts import InstantiateCnfDraft, TerminateCnfDraft
from kubevnfm_lcm_api.lifecycle.containers.order import ChangedObjectsDraft
from kubevnfm_lcm_api.lifecycle.core.draft import Draft
from kubevnfm_lcm_api.lifecycle.core.step import Plan, Step
from kubevnfm_lcm_api.lifecycle.scripts.steps import last_phases

ProvidersDraft = InstantiateCnfDraft | ChangedObjectsDraft | TerminateCnfDraft
"""An operation that changes what a CNF has in its cluster."""


@dataclass(frozen=True)
class RecordProviders(Step[ProvidersDraft, CapiProvidersRecorded]):
    """Show the providers of Cluster API, with their versions, in ``extra.capi`` of the CNF's VIM (CR-045).

    Again: safe; the VIM shows the last ones.
    Fails: the VIM does not exist any more.
    """

    kind: ClassVar[str] = "record_capi_providers"
    command: ClassVar[type[Command]] = RecordCapiProviders
    label: ClassVar[str] = "Show the providers of Cluster API in the VIM"
    base_timeout_s: ClassVar[float] = 300.0

    def ask(self, draft: ProvidersDraft) -> RecordCapiProviders:
        return _record(draft, draft.providers)

    def undo(self, draft: ProvidersDraft) -> RecordCapiProviders:
        """Show the earlier ones, whose objects are applied again next."""
        return _record(draft, draft.providers_before)


def record_changed_providers(draft: ProvidersDraft, plan: Plan[ProvidersDraft]) -> None:
    """Add `RecordProviders` if the reply has changed them, before the scripts at the operation's end."""
    if draft.vim_id is not None and draft.providers != draft.providers_before:
        plan.add(RecordProviders(), before=last_phases(draft)[:1])


def _record(draft: ProvidersDraft, providers: CapiProviders | None) -> RecordCapiProviders:
    assert draft.vim_id is not None
    return RecordCapiProviders(vnf_instance_id=draft.vnf_instance_id, vim_id=draft.vim_id, providers=providers)


@dataclass(frozen=True)
class CheckManagedClusters(Step[TerminateCnfDraft, ClustersChecked]):
    """Ask whether the management cluster has Clusters, of kubevnfm or not, before anything is deleted (CR-043).

    Adds: the Clusters that a FORCEFUL termination orphans.
    Again: safe; it changes nothing.
    Fails: there are Clusters (409), unless the termination is FORCEFUL.
    """

    is_forced: bool = False

    kind: ClassVar[str] = "check_clusters"
    command: ClassVar[type[Command]] = CheckClusters
    label: ClassVar[str] = "Check that no cluster needs the providers of Cluster API"
    base_timeout_s: ClassVar[float] = 300.0

    def ask(self, draft: TerminateCnfDraft) -> CheckClusters:
        return CheckClusters(vnf_instance_id=draft.vnf_instance_id, vim=draft.vim, force=self.is_forced)

    def fold(self, draft: TerminateCnfDraft, reply: ClustersChecked) -> Draft:
        """Keep those that are orphaned."""
        return draft.with_orphans(reply.clusters)

    def undo(self, draft: TerminateCnfDraft) -> None:
        """Terminate has no rollback (api.md 4.3)."""
