"""The kinds of VNFs. Importing this module makes their sequences and steps known, and the roles of machines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from kubevnfm_clients.charts import ChartPrograms, ChartRepositories
from kubevnfm_clients.multicloud.links import VirtualLinks
from kubevnfm_clients.multicloud.volumes import PersistentVolumes
from kubevnfm_clients.playbooks import PlaybookPrograms
from kubevnfm_clients.ports import Vims
from kubevnfm_kit.clock import Clock
from kubevnfm_secrets import KeyRing

from kubevnfm_lcm_api.lifecycle.clusters import plans as clusters
from kubevnfm_lcm_api.lifecycle.clusters import roles
from kubevnfm_lcm_api.lifecycle.containers import awaiting
from kubevnfm_lcm_api.lifecycle.containers import plans as containers
from kubevnfm_lcm_api.lifecycle.containers.kind import Containers
from kubevnfm_lcm_api.lifecycle.core.kind import VnfKind
from kubevnfm_lcm_api.lifecycle.core.ports import PackageCatalogue
from kubevnfm_lcm_api.lifecycle.core.protected_namespaces import ProtectedNamespaces
from kubevnfm_lcm_api.lifecycle.machines import plans as machines
from kubevnfm_lcm_api.lifecycle.machines.kind import Machines
from kubevnfm_lcm_api.lifecycle.scripts import plans as scripts
from kubevnfm_lcm_api.lifecycle.workloads import plans as workloads
from kubevnfm_lcm_api.lifecycle.workloads.kind import Workloads

REGISTERED: Final = (scripts, machines, clusters, roles, containers, awaiting, workloads)
"""Modules whose import fills `SEQUENCES` and `ROLES`."""


@dataclass(frozen=True)
class KindServices:
    """The services that kinds are made on."""

    packages: PackageCatalogue
    vims: Vims
    links: VirtualLinks
    volumes: PersistentVolumes
    charts: ChartPrograms
    repositories: ChartRepositories
    playbooks: PlaybookPrograms
    namespaces: ProtectedNamespaces
    ring: KeyRing
    clock: Clock
    is_granted_outside: bool
    """Whether an NFVO grants the operations."""


KINDS: Final[list[Callable[[KindServices], VnfKind]]] = [
    lambda given: Workloads(
        packages=given.packages,
        vims=given.vims,
        links=given.links,
        volumes=given.volumes,
        charts=given.charts,
        repositories=given.repositories,
        namespaces=given.namespaces,
        ring=given.ring,
        clock=given.clock,
    ),
    lambda given: Containers(
        packages=given.packages,
        vims=given.vims,
        links=given.links,
        volumes=given.volumes,
        charts=given.charts,
        repositories=given.repositories,
        namespaces=given.namespaces,
        ring=given.ring,
    ),
    lambda given: Machines(
        packages=given.packages,
        vims=given.vims,
        playbooks=given.playbooks,
        is_granted_outside=given.is_granted_outside,
    ),
]
"""The first one that says that a request or an instance is its own has it."""


def kinds_on(given: KindServices) -> tuple[VnfKind, ...]:
    """Return the kinds, in the order in which they are asked."""
    return tuple(make(given) for make in KINDS)
