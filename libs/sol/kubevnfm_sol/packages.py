"""VNF packages in their management interface (SOL005 V2.6.1 and V3.7.1 clause 9.5; api.md 7.3)."""

from __future__ import annotations

from typing import Literal

from kubevnfm_kit.json_types import JsonObject
from pydantic import Field

from kubevnfm_sol.base import SolPatch, SolRequest, SolType
from kubevnfm_sol.problem import ProblemDetails

OperationalState = Literal["ENABLED", "DISABLED"]
UsageState = Literal["IN_USE", "NOT_IN_USE"]


class Checksum(SolType):
    """Clause 9.5.3.3; an object, as the specification has it and V2.6.1's file."""

    algorithm: str
    hash: str


class SoftwareImage(SolType):
    """VnfPackageSoftwareImageInfo (clause 9.5.3.2)."""

    id: str
    name: str
    provider: str
    version: str
    checksum: Checksum | None = None
    """Absent for an image outside of the package whose checksum the VNFD does not give."""
    is_encrypted: bool
    container_format: str
    disk_format: str
    created_at: str
    min_disk: int
    """Bytes."""
    min_ram: int
    """Bytes."""
    size: int
    """Bytes."""
    image_path: str


class AdditionalArtifact(SolType):
    """VnfPackageArtifactInfo (clause 9.5.3.3)."""

    artifact_path: str
    checksum: Checksum
    is_encrypted: bool
    non_mano_artifact_set_id: str | None = None


class VnfPkgInfo(SolType):
    """Clause 9.5.2.5, without ``_links``, which depend on the caller."""

    id: str
    onboarding_state: Literal["CREATED", "UPLOADING", "PROCESSING", "ONBOARDED", "ERROR"]
    operational_state: OperationalState
    usage_state: UsageState
    """IN_USE while VNF instances of it exist."""
    vnfd_id: str | None = None
    """This and the following attributes: once ONBOARDED."""
    vnf_provider: str | None = None
    vnf_product_name: str | None = None
    vnf_software_version: str | None = None
    vnfd_version: str | None = None
    checksum: Checksum | None = None
    software_images: tuple[SoftwareImage, ...] | None = None
    additional_artifacts: tuple[AdditionalArtifact, ...] | None = None
    vnfm_info: tuple[str, ...] | None = None
    package_security_option: str | None = None
    signing_certificate: str | None = None
    user_defined_data: JsonObject | None = None
    onboarding_failure_details: ProblemDetails | None = None
    """With ERROR: the file and the rule that it breaks."""
    warnings: tuple[str, ...] | None = None
    """Once ONBOARDED; not in SOL005: faults that do not prevent the use of the package, and why instantiate will be refused."""
    onboardingfailuredetails: ProblemDetails | None = None
    """This and the following attributes are not of SOL005. One package, not a list, repeats attributes under their names in
    lower case, because existing clients print no others.
    """
    packagesecurityoption: str | None = None
    vnfminfo: tuple[str, ...] | None = None


class CreateVnfPkgInfoRequest(SolRequest):
    """Clause 9.5.2.2."""

    user_defined_data: JsonObject = Field(default_factory=dict)


class VnfPkgInfoModificationRequest(SolPatch):
    """VnfPkgInfoModifications (clause 9.5.2.3) as a JSON Merge Patch: at least one of the two."""

    operational_state: OperationalState | None = None
    user_defined_data: JsonObject | None = None


class VnfPkgInfoModifications(SolType):
    """The answer to a change: only the changed attributes (clause 9.4.3.3.4)."""

    operational_state: OperationalState | None = None
    user_defined_data: JsonObject | None = None
