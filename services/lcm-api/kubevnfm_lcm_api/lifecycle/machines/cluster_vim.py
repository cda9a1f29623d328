"""The entry of vimConnectionInfo for the cluster that an instance is."""

from __future__ import annotations

from typing import Any

from kubevnfm_events import ClusterAccess
from kubevnfm_events.vim import VimRegistered
from kubevnfm_sol.vim import CREATED_BY, KUBERNETES, VimConnectionInfo


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
