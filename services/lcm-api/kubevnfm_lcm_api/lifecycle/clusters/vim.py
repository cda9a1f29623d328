"""The entry of vimConnectionInfo for the cluster that an instance is."""

from __future__ import annotations

from typing import Any, Final

from kubevnfm_events import ClusterAccess
from kubevnfm_events.vim import VimRegistered
from kubevnfm_sol.vim import CREATED_BY, KUBERNETES, VimConnectionInfo

WORKLOAD: Final = "workload"
"""The key of a workload cluster's VIM in ``vimConnectionInfo`` of the instance that has built it (capi.md CR-083)."""
WORKLOAD_VIM_ID: Final = "workloadVimId"
"""The entry of the instance's ``metadata`` with the id of that VIM."""


def workload_connection(vim: VimRegistered) -> VimConnectionInfo:
    """Return the entry for the VIM of a workload cluster: reference and endpoint, without access data (CR-083)."""
    return VimConnectionInfo(vim_id=vim.vim_id, vim_type=KUBERNETES, interface_info={"endpoint": vim.endpoint})


def cluster_connection(instance_id: str, cluster: ClusterAccess, vim: VimRegistered) -> VimConnectionInfo:
    """Return the entry of sequences.md 4.3: enough to register the VIM by hand (SEQ-038)."""
    extra: dict[str, Any] = {"ssl_ca_cert_hash": cluster.ssl_ca_cert_hash, CREATED_BY: instance_id}
    access: dict[str, Any] = {"bearer_token": cluster.bearer_token}
    if cluster.certificate_key is not None:
        access["certificate_key"] = cluster.certificate_key
    return VimConnectionInfo(
        vim_id=vim.vim_id,
        vim_type=KUBERNETES,
        interface_info={"endpoint": cluster.server, "ssl_ca_cert": cluster.ssl_ca_cert},
        access_info=access,
        extra=extra,
    )
