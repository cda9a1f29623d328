"""The attributes and the lists of VNF instances and operation occurrences, as each API version shows them."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from kubevnfm_sol.lcm import VnfInstance, VnfLcmOpOcc
from kubevnfm_sol.snapshots import VnfSnapshotInfo

from kubevnfm_lcm_api.http.listing import EVERYTHING, Listed
from kubevnfm_lcm_api.http.sol013.shapes import Attribute, Shape, attributes_of
from kubevnfm_lcm_api.lifecycle.core import occurrence as occurrences

_INSTANCE: Final = attributes_of(VnfInstance)
_INSTANCE_EXCLUDED: Final = frozenset(
    {"vnfConfigurableProperties", "vimConnectionInfo", "instantiatedVnfInfo", "metadata", "extensions"}
)
INSTANCE_V2: Final = Shape(
    {name: attribute for name, attribute in _INSTANCE.items() if name != "vnfPkgId"}, _INSTANCE_EXCLUDED
)
INSTANCE_V1: Final = Shape(
    {
        **_INSTANCE,
        "vimConnectionInfo": replace(
            _INSTANCE["vimConnectionInfo"],
            no_filter="a list here, but stored as a map; /vnflcm/v2 filters by vimConnectionInfo/<key>/...",
        ),
    },
    _INSTANCE_EXCLUDED,
)

_OCCURRENCE: Final = attributes_of(VnfLcmOpOcc)
_V2_OCCURRENCE: Final = frozenset({"modificationsTriggeredByVnfPkgChange", "warnings"})
_V2_ONLY: Final = _V2_OCCURRENCE | {"vnfSnapshotInfoId"}
OCCURRENCE_V2: Final = Shape(
    _OCCURRENCE,
    frozenset({"operationParams", "error", "resourceChanges", "changedInfo", "changedExtConnectivity"})
    | _V2_OCCURRENCE,
)
OCCURRENCE_V1: Final = Shape(
    {
        **{name: one for name, one in _OCCURRENCE.items() if name not in _V2_ONLY},
        "operationParams": Attribute("free", is_required=True),
    },
    frozenset({"error", "resourceChanges", "changedInfo", "changedExtConnectivity"}),
)

_OF_INSTANCES: Final = tuple(
    f"internal/{name}" for name in ("deployments", "resources", "release", "parameters", "request", "connections")
)
"""Attributes that are not read: a page would be large with them. Documents of 0.1.0 have `resources` and `release`."""
INSTANCES: Final = {
    "v1": Listed("instances-v1", INSTANCE_V1, "createdAt", EVERYTHING, _OF_INSTANCES),
    "v2": Listed("instances-v2", INSTANCE_V2, "createdAt", EVERYTHING, _OF_INSTANCES),
}
_OF_OCCURRENCES: Final = ("internal/draft", "internal/steps", "internal/facts")
OCCURRENCES: Final = {
    "v1": Listed("occurrences-v1", OCCURRENCE_V1, "startTime", occurrences.PUBLIC, _OF_OCCURRENCES),
    "v2": Listed("occurrences-v2", OCCURRENCE_V2, "startTime", occurrences.PUBLIC, _OF_OCCURRENCES),
}

SNAPSHOT: Final = Shape(
    attributes_of(VnfSnapshotInfo), frozenset({"vnfSnapshot/vnfInstance", "vnfSnapshot/vnfcSnapshots"})
)
SNAPSHOTS: Final = Listed("snapshots", SNAPSHOT, "createdAt", EVERYTHING, ("internal/stack", "internal/machines"))
