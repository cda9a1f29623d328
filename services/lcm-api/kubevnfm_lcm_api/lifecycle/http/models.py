"""The answers about the life cycle that are no SOL types; only the document uses them."""

from __future__ import annotations

from kubevnfm_clients.awaited import AwaitedCallback

from kubevnfm_lcm_api.http.models import Shown


class VimUsers(Shown):
    """The VNF instances that have resources on a VIM."""

    users: list[str]


class InstanceExists(Shown):
    """A VNF instance that exists."""

    id: str


class AwaitedCallbacks(Shown):
    """The call-back of a workload cluster that an instance awaits now."""

    awaited: list[AwaitedCallback]
