"""The table of node tasks. A new task is a function in one of these modules and a row here.

A task looks at its machine first and does only what is missing: it runs again after a crash, a retry, and when a
message is delivered twice. ``earlier`` is the journal's record of the try before, None when this try is the first.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from kubevnfm_events.mgmt import ManagedNode

from kubevnfm_mgmt_executor.domain.kubernetes.state import ClusterRun
from kubevnfm_mgmt_executor.domain.kubernetes.tasks import control_plane, machine, members
from kubevnfm_mgmt_executor.domain.ports import Earlier
from kubevnfm_mgmt_executor.domain.recorder import TaskResult

NodeWork = Callable[[ClusterRun, ManagedNode, Earlier | None], Awaitable[TaskResult]]

TASKS: Final[Mapping[str, NodeWork]] = {
    "reach": machine.reach,
    "copy": machine.copy,
    "prepare": machine.prepare,
    "init": control_plane.init,
    "network": control_plane.network,
    "admin": control_plane.admin,
    "join": members.join,
    "label": members.label,
    "verify": members.verify,
}
"""Task by the name that journal, progress and logs store: a function may be renamed, a name never."""
