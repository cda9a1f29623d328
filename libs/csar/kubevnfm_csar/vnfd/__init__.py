"""VNF descriptors (SOL001): the models, and the reader that fills them."""

from __future__ import annotations

from kubevnfm_csar.vnfd.model import (
    MOST_VNFCS,
    AffinityRule,
    Checksum,
    ComputeDemand,
    Cp,
    Flavour,
    InitialValues,
    Level,
    PackageChange,
    PhaseDriver,
    ScalingAspect,
    SoftwareImage,
    Storage,
    Vdu,
    VirtualLink,
    Vnfd,
)
from kubevnfm_csar.vnfd.placement import PlacementGroup, placement_groups
from kubevnfm_csar.vnfd.read import flavour_template, read_vnfd

__all__ = [
    "MOST_VNFCS",
    "AffinityRule",
    "Checksum",
    "ComputeDemand",
    "Cp",
    "Flavour",
    "InitialValues",
    "Level",
    "PackageChange",
    "PhaseDriver",
    "PlacementGroup",
    "ScalingAspect",
    "SoftwareImage",
    "Storage",
    "Vdu",
    "VirtualLink",
    "Vnfd",
    "flavour_template",
    "placement_groups",
    "read_vnfd",
]
