"""The reports of services about what is wrong, as they and the programs behind them word them, and the sentence for each.

A module for each module of rules.
"""

from __future__ import annotations

from typing import Final

from worlds.reported_causes.case import Case
from worlds.reported_causes.images import IMAGES
from worlds.reported_causes.kubernetes import KUBERNETES
from worlds.reported_causes.machines import MACHINES
from worlds.reported_causes.openstack import OPENSTACK
from worlds.reported_causes.pods import PODS
from worlds.reported_causes.scripts import SCRIPTS
from worlds.reported_causes.services import SERVICES
from worlds.reported_causes.volumes import VOLUMES
from worlds.reported_causes.workload_clusters import WORKLOAD_CLUSTERS

__all__ = ["CASES", "Case"]

CASES: Final = (
    *SCRIPTS,
    *IMAGES,
    *VOLUMES,
    *PODS,
    *KUBERNETES,
    *OPENSTACK,
    *MACHINES,
    *WORKLOAD_CLUSTERS,
    *SERVICES,
)
