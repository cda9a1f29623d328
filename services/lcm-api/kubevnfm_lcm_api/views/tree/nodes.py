"""The machines of a cluster as its nodes. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from kubevnfm_clients.multicloud.object_health import Health
from kubevnfm_clients.vim_views import VimNode

from kubevnfm_lcm_api.views.causes.wording import line
from kubevnfm_lcm_api.views.tree.facts import Away, Gone, Known


class ClusterNodes:
    """The nodes of a cluster; none if they could not be read."""

    def __init__(self, known: Known[Sequence[VimNode]]) -> None:
        nodes = () if isinstance(known, Away | Gone) else known
        self._by_name = {each.name: each for each in nodes}
        self._by_address = {address: each for each in nodes for address in each.addresses}

    def find(self, name: str | None, addresses: Iterable[str]) -> VimNode | None:
        """Return the node that a machine is: by name, or by one of its addresses."""
        if name in self._by_name:
            return self._by_name[name]
        return next((self._by_address[each] for each in addresses if each in self._by_address), None)


def state_of(node: VimNode | None) -> Literal["Ready", "NotReady"] | None:
    """Return the state of a node in the words of Kubernetes; None if there is no such node."""
    return None if node is None else "Ready" if node.ready else "NotReady"


def of_node(node: VimNode) -> tuple[Health, str | None, str | None]:
    """Return what a node that is not ready says of its machine."""
    return "problem", line(f"the node is not ready: {node.reason}"), node.since or None
