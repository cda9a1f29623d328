"""VNF packages in their management interface (SOL005 V2.6.1 and V3.7.1 clause 9.5; api.md 7.3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from kubevnfm_kit.json_types import JsonObject
from kubevnfm_secrets import Secret
from pydantic import BeforeValidator, Field, model_validator

from kubevnfm_sol.base import SolPatch, SolRequest, SolType
from kubevnfm_sol.problem import ProblemDetails

OperationalState = Literal["ENABLED", "DISABLED"]
UsageState = Literal["IN_USE", "NOT_IN_USE"]


def _listed(given: Any) -> Any:
    return [given] if isinstance(given, Mapping) else given


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
    image_path: str | None = None
    """Empty in V2.6.1, absent in V3.7.1 for an image that is outside of the package and was not fetched."""
    image_uri: str | None = None
    """For an image outside of the package."""


class AdditionalArtifact(SolType):
    """VnfPackageArtifactInfo (clause 9.5.3.3)."""

    artifact_path: str
    checksum: Checksum
    is_encrypted: bool
    artifact_uri: tuple[str, ...] | None = Field(default=None, alias="artifactURI")
    """For an artifact outside of the package."""
    non_mano_artifact_set_id: str | None = None
    artifact_classification: Literal["HISTORY", "TESTING", "LICENSE"] | None = None
    metadata: JsonObject | None = None


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
    compatible_specification_versions: tuple[str, ...] | None = None
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


class BasicCredentials(SolRequest):
    """HTTP Basic towards a server."""

    user_name: str = Field(pattern="^[^:]*$")
    """A colon cannot be sent (RFC 7617)."""
    password: Secret


class ClientCredentials(SolRequest):
    """The credentials for a token (SOL005 9.5.2.4); as the attribute's name says credentials, all of it is secret."""

    client_id: Secret
    client_password: Secret
    token_endpoint: Secret


class ExternalArtifactAccess(SolRequest):
    """How one artifact outside of a package is fetched (clause 9.5.2.10)."""

    artifact_uri: str = Field(min_length=1, max_length=2048)
    """As the package lists it."""
    override_uri: str | None = Field(default=None, min_length=1, max_length=2048)
    """The address to fetch it from instead."""
    auth_type: Literal["BASIC", "OAUTH2_CLIENT_CREDENTIALS"] | None = None
    params_oauth2_client_credentials: ClientCredentials | None = None
    params_basic: BasicCredentials | None = None
    """V2.7.1 to V3.5.1."""

    @model_validator(mode="after")
    def _has_what_its_type_needs(self) -> Self:
        given = {
            "BASIC": self.params_basic is not None,
            "OAUTH2_CLIENT_CREDENTIALS": self.params_oauth2_client_credentials is not None,
        }
        if sum(given.values()) > 1:
            raise ValueError("paramsBasic cannot stand with paramsOauth2ClientCredentials")
        if self.auth_type is not None and not given[self.auth_type]:
            raise ValueError(f"authType {self.auth_type} needs its parameters")
        return self


class ExternalArtifactsAccessConfig(SolRequest):
    """Clause 9.5.2.10. ETSI's file has one artifact, the specification any number: both are taken."""

    artifact: Annotated[tuple[ExternalArtifactAccess, ...], BeforeValidator(_listed)] = Field(default=(), max_length=64)

    @model_validator(mode="after")
    def _names_each_once(self) -> Self:
        if len({one.artifact_uri for one in self.artifact}) < len(self.artifact):
            raise ValueError("artifact: each artifactUri once expected")
        return self


class VnfPkgInfoModificationRequest(SolPatch):
    """VnfPkgInfoModifications (clause 9.5.2.3) as a JSON Merge Patch: at least one of the two."""

    operational_state: OperationalState | None = None
    user_defined_data: JsonObject | None = None


class VnfPkgInfoModifications(SolType):
    """The answer to a change: only the changed attributes (clause 9.4.3.3.4)."""

    operational_state: OperationalState | None = None
    user_defined_data: JsonObject | None = None
