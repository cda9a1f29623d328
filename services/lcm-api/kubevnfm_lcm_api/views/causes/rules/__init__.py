"""The table of causes: the first row that fits a report is its cause, so the more particular rows come first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kubevnfm_lcm_api.views.causes.rule import Rule
from kubevnfm_lcm_api.views.causes.rules.images import IMAGES
from kubevnfm_lcm_api.views.causes.rules.kubernetes import KUBERNETES
from kubevnfm_lcm_api.views.causes.rules.machines import MACHINES
from kubevnfm_lcm_api.views.causes.rules.openstack import OPENSTACK
from kubevnfm_lcm_api.views.causes.rules.pods import PODS
from kubevnfm_lcm_api.views.causes.rules.scripts import SCRIPTS
from kubevnfm_lcm_api.views.causes.rules.services import OUTSIDE, SERVICES
from kubevnfm_lcm_api.views.causes.rules.volumes import VOLUMES
from kubevnfm_lcm_api.views.causes.rules.workload_clusters import WORKLOAD_CLUSTERS

TABLE: Final[Sequence[Rule]] = (
    *OUTSIDE,
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
