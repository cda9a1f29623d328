"""Compares a call-back with what the operation awaits: it is evidence of its cluster's credentials, and of nothing else.

A package signs call-backs, so what a body says of the VIM, its default, the management cluster or another cluster decides nothing. Values
that equal the operation's are accepted, since every sender repeats them; others are refused with their field.
"""

from __future__ import annotations

from collections.abc import Iterator

from kubevnfm_clients.awaited import AwaitedCallback
from kubevnfm_kit.errors import Unprocessable

from kubevnfm_credentials_receiver.domain.callback_body import Callback
from kubevnfm_credentials_receiver.domain.errors import NotAwaited

_VIM_TYPE = "ETSINFV.KUBERNETES.V_1"


def check_awaited(callback: Callback, awaited: AwaitedCallback | None) -> AwaitedCallback:
    """Return what is awaited. Raises NotAwaited, and Unprocessable that names the first field which differs from it."""
    if awaited is None:
        raise NotAwaited("no operation of the VNF instance awaits credentials of a workload cluster now")
    for field, given, expected in _compared(callback, awaited):
        # A fact is not compared if the body leaves it out, or if an operation of an earlier version has not stored it.
        if given is not None and expected is not None and given != expected:
            shown = str(expected).lower() if isinstance(expected, bool) else expected
            raise Unprocessable(field, f"{shown} expected, as in the operation that awaits the call-back")
    return awaited


def _compared(callback: Callback, awaited: AwaitedCallback) -> Iterator[tuple[str, object, object]]:
    """Yield each field with its value and the expected one; None: not known."""
    cluster, vim = callback.cluster, callback.vim
    yield "event", callback.event, awaited.event
    yield "vnfLcmOpOccId", callback.vnf_lcm_op_occ_id or None, awaited.operation_id
    yield "vnfdId", callback.vnfd_id or None, awaited.vnfd_id or None
    yield "managementVimId", callback.management_vim_id, awaited.management_vim_id or ""
    yield "cluster.name", cluster.name, awaited.cluster_name
    yield "cluster.namespace", cluster.namespace or None, awaited.cluster_namespace
    yield "cluster.uid", cluster.uid, awaited.cluster_uid
    if callback.event == "DELETED":
        return  # nothing is registered, so `vim` has no meaning
    yield "vim.register", vim.register_vim, awaited.register_vim
    yield "vim.name", vim.name, awaited.vim_name or awaited.cluster_name
    yield "vim.type", vim.type, _VIM_TYPE
    yield "vim.isDefault", vim.is_default, awaited.vim_default
    yield "vim.extra", vim.extra, {}
