"""Reads VNF packages: CSAR archives and SOL001 VNF descriptors.

It only reads: it uses no network and runs no code of the package. Everything blocks; callers run it in a thread.
"""

from __future__ import annotations

from kubevnfm_csar.archive import Csar, extract, file_digest, open_csar
from kubevnfm_csar.encryption import encrypted_files
from kubevnfm_csar.errors import PackageRefused, PlacementUnsupported, UnknownFlavour, UnknownLevel
from kubevnfm_csar.files import FolderFiles, PackageFiles, inside, read_text
from kubevnfm_csar.hot import BaseHot, Template, read_base_hot
from kubevnfm_csar.limits import Limits
from kubevnfm_csar.manifest import split_signature
from kubevnfm_csar.package import Artifact, Package, describe, read_package
from kubevnfm_csar.signed import SignedArchive, signed_archive, uncovered
from kubevnfm_csar.vnfd import (
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
    PlacementGroup,
    ScalingAspect,
    SoftwareImage,
    Storage,
    Vdu,
    VirtualLink,
    Vnfd,
    flavour_template,
    placement_groups,
    read_vnfd,
)

__all__ = [
    "MOST_VNFCS",
    "AffinityRule",
    "Artifact",
    "BaseHot",
    "Checksum",
    "ComputeDemand",
    "Cp",
    "Csar",
    "Flavour",
    "FolderFiles",
    "InitialValues",
    "Level",
    "Limits",
    "Package",
    "PackageChange",
    "PackageFiles",
    "PackageRefused",
    "PhaseDriver",
    "PlacementGroup",
    "PlacementUnsupported",
    "ScalingAspect",
    "SignedArchive",
    "SoftwareImage",
    "Storage",
    "Template",
    "UnknownFlavour",
    "UnknownLevel",
    "Vdu",
    "VirtualLink",
    "Vnfd",
    "describe",
    "encrypted_files",
    "extract",
    "file_digest",
    "flavour_template",
    "inside",
    "open_csar",
    "placement_groups",
    "read_base_hot",
    "read_package",
    "read_text",
    "read_vnfd",
    "signed_archive",
    "split_signature",
    "uncovered",
]
