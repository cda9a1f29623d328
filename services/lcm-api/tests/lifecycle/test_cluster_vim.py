"""The entry of vimConnectionInfo for the cluster that an instance is."""

from __future__ import annotations

from kubevnfm_events.vim import VimRegistered
from kubevnfm_lcm_api.lifecycle.machines.cluster_drafts import cluster_connection
from kubevnfm_secrets import Secret
from worlds.lcm_builders import ACCESS

VIM = VimRegistered(vim_id="vim-2", name="cluster-1", vim_type="k", endpoint=ACCESS.server)


def test_the_entry_has_what_the_installation_captured_and_leaves_out_what_is_absent() -> None:
    """SEQ-028, SEQ-029."""
    entry = cluster_connection("inst-1", ACCESS.model_copy(update={"certificate_key": Secret("key-of-uploads")}), VIM)
    assert (entry.vim_id, entry.interface_info["endpoint"]) == ("vim-2", ACCESS.server)
    assert entry.interface_info["ssl_ca_cert"] == ACCESS.ssl_ca_cert
    assert entry.extra["ssl_ca_cert_hash"] == ACCESS.ssl_ca_cert_hash
    assert entry.access_info == {"bearer_token": ACCESS.bearer_token, "certificate_key": Secret("key-of-uploads")}
    assert set(cluster_connection("inst-1", ACCESS, VIM).access_info) == {"bearer_token"}
