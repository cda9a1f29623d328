"""VIMs: registration, monitoring, removal (vim-registry)."""

from __future__ import annotations

from typing import Literal

from kubevnfm_kit.error_text import ErrorText
from kubevnfm_secrets import SecretParams
from pydantic import Field

from kubevnfm_events.base import Command, Event
from kubevnfm_events.common import CancelStep, CapiProviders, VimConnection

VimStatus = Literal["PENDING", "ACTIVE", "UNREACHABLE", "ERROR"]


class VimRegistered(Event, kind="vim.registered"):
    """The VIM is registered and answers."""

    vim_id: str
    name: str
    vim_type: str
    endpoint: str
    kubernetes_version: str = ""


class RegisterVim(Command, kind="vim.register", service="vim-registry", reply=VimRegistered):
    """Register a cluster that an operation built, verified by connecting; upsert by (owner instance, name)."""

    vnf_instance_id: str
    """The owner."""
    name: str
    connection: VimConnection
    is_default: bool = False
    extra: SecretParams = Field(default_factory=dict)
    vim_id: str | None = None
    """The id of a VIM that is new; None, or if another VIM has it: vim-registry makes one."""


class RegisterReceived(Command, kind="vim.register_received", service="vim-registry", reply=VimRegistered):
    """Register the workload cluster whose credentials credentials-receiver has stored (capi.md chapter 11).

    The event ``credentials.received`` registers nothing: a package signs call-backs, and an operation decides what becomes a VIM. The VIM is
    found by instance and uid of the cluster, so a repeat makes no second one.
    """

    vnf_instance_id: str
    """The owner."""
    cluster_name: str
    cluster_uid: str
    vim_name: str | None = None
    """None: the name of the cluster."""
    vim_default: bool = False
    management_vim_id: str | None = None


class VimDeregistered(Event, kind="vim.deregistered"):
    """The VIMs are removed."""

    vim_ids: tuple[str, ...] = ()


class DeregisterVim(Command, kind="vim.deregister", service="vim-registry", reply=VimDeregistered):
    """Remove the VIMs that belong to the instance, with their access data; refused while others use them."""

    vnf_instance_id: str
    """The owner; its own use of the VIMs does not count."""
    name: str | None = None
    """None: every VIM of the owner."""
    force: bool = False


class CapiProvidersRecorded(Event, kind="vim.capi_providers.recorded"):
    """The VIM shows the providers of Cluster API that a VNF has in its cluster, or no more."""

    vim_id: str


class RecordCapiProviders(
    Command, kind="vim.record_capi_providers", service="vim-registry", reply=CapiProvidersRecorded
):
    """Show in ``extra.capi`` of a VIM which providers of Cluster API a VNF has installed in its cluster (capi.md CR-045)."""

    vnf_instance_id: str
    """The VNF; others may have installed further providers in the same cluster."""
    vim_id: str
    providers: CapiProviders | None = None
    """None: no more, as after a termination."""


class VimReleased(Event, kind="vim.released"):
    """The VIMs stay registered under their ids, and wait for the clusters that take the place of theirs."""

    vim_ids: tuple[str, ...] = ()


class ReleaseVim(Command, kind="vim.release", service="vim-registry", reply=VimReleased):
    """Separate the VIM of a workload cluster from the cluster, which is built again; refused while other instances use it.

    The deletion of the earlier credentials does not remove the VIM then. The next registration of a cluster of this name
    (RegisterReceived) gives it the new access data.
    """

    vnf_instance_id: str
    """The owner; its own use of the VIM does not count."""
    cluster_name: str


class VimStatusChanged(Event, kind="vim.status.changed", by="vim-registry"):
    """A VIM has become reachable or unreachable."""

    vim_id: str
    name: str
    old_status: VimStatus
    status: VimStatus
    reason: ErrorText = ""


class VimWentUnreachable(Event, kind="vim.unreachable", by="vim-registry"):
    """A cloud region has not answered three probes in a row; other VIMs have ``vim.status.changed`` alone."""

    vim_id: str
    region: str
    """``<owner>/<region>``."""
    reason: ErrorText = ""


class VimBecameReachable(Event, kind="vim.reachable", by="vim-registry"):
    """A cloud region answers again."""

    vim_id: str
    region: str
    """``<owner>/<region>``."""


class VimInventoryLost(Event, kind="vim.inventory.lost", by="vim-registry"):
    """The inventory that the kubeconfig of a cloud region is read from has the region no more; the last copy stays in use."""

    vim_id: str
    region: str
    """``<owner>/<region>``."""
    reason: ErrorText


class VimFeaturesChanged(Event, kind="vim.features.changed", by="infra-k8s"):
    """Labels, capacity or allocatable resources of nodes, or devices, of a VIM in which VNFs have objects are others than before.

    At most once in 10 s for a VIM. The features themselves are read (multicloud.md MC-118).
    """

    vim_id: str


class VimCredentialsExpiring(Event, kind="vim.credentials.expiring", by="vim-registry"):
    """Access data of a VIM expire soon, or have expired.

    Published once for each of 30, 14, 7, 3, 1 and 0 days; of a cloud region once a day in the last 14.
    """

    vim_id: str
    name: str
    part: Literal["bearer_token", "client_certificate", "ssl_ca_cert"]
    """The attribute that expires first."""
    expires_at: str
    """RFC 3339."""
    days_left: int
    """Whole days; 0: less than one, or expired."""


class VimRegistrationFailed(Event, kind="vim.registration.failed", by="vim-registry"):
    """Credentials of a cluster were received or deleted, and its VIM could not be updated or removed."""

    credentials_id: str
    reason: ErrorText


class CancelVimStep(CancelStep, kind="vim.cancel_step", service="vim-registry"):
    """Stop working on a command of vim-registry."""
