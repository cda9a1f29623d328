"""A stand-in for infra-k8s as it reads what pods use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kubevnfm_clients.multicloud.errors import ResourceMetricsUnavailable
from kubevnfm_clients.pod_usages import PodsInUse, PodUsage
from kubevnfm_kit.errors import VnfmError


@dataclass
class GivenUsages:
    """Answers with what is given; clusters have no metrics-server before anything is."""

    given: dict[str, PodUsage] = field(default_factory=dict)
    """By the name of the pod."""
    failure: VnfmError | None = field(
        default_factory=lambda: ResourceMetricsUnavailable("the cluster has no metrics.k8s.io (metrics-server)")
    )
    asked: list[PodsInUse] = field(default_factory=list)

    async def read(self, wanted: PodsInUse) -> Sequence[PodUsage]:
        self.asked.append(wanted)
        if self.failure is not None:
            raise self.failure
        return [self.given[each] for each in wanted.pods if each in self.given]
