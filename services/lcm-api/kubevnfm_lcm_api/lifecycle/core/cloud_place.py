"""Where the multi-cloud API has brought a VNF up (multicloud.md chapter 6)."""

from __future__ import annotations

from typing import Final

from kubevnfm_sol.base import SolType

REGION: Final = "internal/multicloud/cloudRegionId"
NAMESPACE: Final = "internal/multicloud/namespace"
GROUP: Final = "internal/multicloud/groupOperation"
ONAP_NAME: Final = "internal/multicloud/onap/name"
"""Paths that the instances of the multi-cloud API alone have: sparse indexes lead to those."""


class OnapFacts(SolType):
    """The facts of an instance that a client of ONAP has brought up, which the instance has nowhere else."""

    name: str
    """Another name of its id, in the style of ONAP; no two instances have the same."""
    cloud_region: str
    """The region as it was named."""
    labels: dict[str, str]


class CloudPlace(SolType):
    """The cloud region and the namespace of an instance of the multi-cloud API; both stay for its life."""

    cloud_region_id: str
    """``<owner>/<region>``."""
    namespace: str
    vim_id: str | None = None
    """The VIM that is the region; None: not recorded."""
    group_operation: str | None = None
    """The group operation that has brought it up."""
    onap: OnapFacts | None = None

    @property
    def key(self) -> tuple[str, str]:
        """The owner of the region, and its name."""
        owner, _, region = self.cloud_region_id.partition("/")
        return owner, region
