"""VIMs as people ask for them: their state with its history, what they can do and how much is left there. vim-registry owns them."""

from __future__ import annotations

from kubevnfm_events.vim import VimStatus
from kubevnfm_kit.error_text import ErrorText

from kubevnfm_clients.multicloud.types import MultiCloudType


class VimQuota(MultiCloudType):
    """A quota of an OpenStack project."""

    name: str
    """``instances``, ``cores``, ``ram_mib``, ``volumes``, ``volume_gib``."""
    used: int
    limit: int | None = None
    """None: there is none."""


class VimNode(MultiCloudType):
    """A node of a cluster."""

    name: str
    ready: bool
    reason: ErrorText = ""
    """Why it is not ready, in the words of its kubelet or of the control plane."""
    since: str = ""
    """Since when it is, or is not."""
    addresses: tuple[str, ...] = ()
    version: str = ""
    """The version of its kubelet."""


class VimCapacity(MultiCloudType):
    """How much a VIM has, as it was read last."""

    as_of: str
    nodes: int | None = None
    nodes_ready: int | None = None
    cpu: float | None = None
    """The cores that pods can have on all nodes."""
    memory_bytes: int | None = None
    """The memory that pods can have on all nodes."""
    pods: int | None = None
    quotas: tuple[VimQuota, ...] = ()
    """Those of the project, if the VIM is an OpenStack."""


class VimView(MultiCloudType):
    """A VIM; no part of its access data is shown."""

    id: str
    name: str
    description: str
    type: str
    is_default: bool
    status: VimStatus
    status_reason: ErrorText
    status_since: str
    endpoint: str
    owner: str | None = None
    """The VNF instance that has built the cluster; None: an operator has registered the VIM."""
    region_id: str | None = None
    """``<owner>/<region>`` of a cloud region."""
    kubernetes_version: str = ""
    places: tuple[str, ...] = ()
    """The regions of an OpenStack; the namespaces of a cluster when it was registered."""
    features: tuple[str, ...] = ()
    missing_permissions: tuple[str, ...] = ()
    expires_at: str | None = None
    """When the first part of the access data expires; None: nothing says when."""
    expiring: str | None = None
    """This part: ``bearer_token``, ``client_certificate`` or ``ssl_ca_cert``."""
    days_left: int | None = None
    checked_at: str | None = None
    """When it was called last by the process that answers; None: not since it was started."""
    check_ms: float | None = None
    """How long that took."""
    error: ErrorText = ""
    """The last failure of such a call since the process was started, although it may answer again."""
    error_at: str | None = None
    capacity: VimCapacity | None = None
    """None: it was not read yet, or cannot be."""
    capacity_error: ErrorText = ""
    """Why it could not be read the last time."""
    cluster_nodes: tuple[VimNode, ...] | None = None
    """Only in the view of one VIM."""
    nodes_not_ready: tuple[VimNode, ...] = ()
    """Those of a cluster that are not, as they were read with the capacity: the first 100 by name."""
    created_at: str
    updated_at: str
