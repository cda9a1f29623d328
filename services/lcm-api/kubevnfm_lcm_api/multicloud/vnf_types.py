"""The requests and answers of ``/multicloud/v1/vnf_instances`` (multicloud.md chapter 6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Annotated, Any, Final, Literal

from kubevnfm_clients.multicloud.compute_profiles import MOST_PROFILES, ComputeProfileRequest
from kubevnfm_clients.multicloud.networks import MOST_NETWORKS, NetworkRequest
from kubevnfm_clients.multicloud.suspension import Suspension
from kubevnfm_clients.multicloud.types import MultiCloudRequest, MultiCloudType, NamespaceName
from kubevnfm_clients.multicloud.volumes import MOST_VOLUMES, VolumeMountRequest
from kubevnfm_csar.manifest_values import VALUES, check_values, merged
from kubevnfm_csar.outputs import MOST_OUTPUTS, OutputName, OutputSpec
from kubevnfm_events.objects import LeftObject
from kubevnfm_kit.errors import Unprocessable
from kubevnfm_kit.json_types import JsonObject
from kubevnfm_kit.kubernetes_names import KUBERNETES_VERSION, LONGEST_RELEASE_NAME, RELEASE_NAME
from kubevnfm_secrets import SecretParams, hide
from pydantic import ConfigDict, Field, StrictInt, StringConstraints, WithJsonSchema

from kubevnfm_lcm_api.multicloud.group_schema import MOST_REGIONS, REGIONS_SCHEMA

VnfStatus = Literal["CREATING", "READY", "DEGRADED", "UPDATING", "DELETING", "FAILED"]
_PART: Final = "[A-Za-z0-9][A-Za-z0-9._-]*"
RegionId = Annotated[str, StringConstraints(max_length=129, pattern=rf"^{_PART}(/{_PART})?$")]
"""``<owner>/<region>``, or the name of the region alone."""
CsarId = Annotated[str, StringConstraints(min_length=1, max_length=128)]
OrderArtifact = Annotated[str, StringConstraints(min_length=1, max_length=1024)]
KubernetesVersion = Annotated[str, StringConstraints(pattern=KUBERNETES_VERSION)]
ReleaseName = Annotated[str, StringConstraints(max_length=LONGEST_RELEASE_NAME, pattern=RELEASE_NAME)]
VnfName = Annotated[str, StringConstraints(max_length=255)]
VnfDescription = Annotated[str, StringConstraints(max_length=1024)]

Networks = Annotated[tuple[NetworkRequest, ...], Field(max_length=MOST_NETWORKS)]
Volumes = Annotated[tuple[VolumeMountRequest, ...], Field(max_length=MOST_VOLUMES)]
Profiles = Annotated[tuple[ComputeProfileRequest, ...], Field(max_length=MOST_PROFILES)]


def _with_its_forms(schema: dict[str, Any]) -> None:
    """Describe which members a request must have: a clone takes the others from another VNF."""
    schema.pop("required")
    schema["anyOf"] = [
        {"required": ["cloud_region_id", "csar_id"]},
        {"required": ["cloud_region_id", "artifacts"]},
        {"required": ["regions", "csar_id"]},
        {"required": ["clone_of", "namespace"]},
    ]


class OamAddress(MultiCloudRequest):
    """The address of an interface among ``networks``."""

    workload_name: Annotated[str, StringConstraints(min_length=1, max_length=253)]
    """The ``vdu_id`` of the interface."""
    connection_point: Annotated[str, StringConstraints(min_length=1, max_length=255)]
    """The name of the interface: its ``interface``."""
    ip_address: Annotated[str, StringConstraints(min_length=1, max_length=255)]


class NetworkParameters(MultiCloudRequest):
    """The addresses that ONAP gives by workload and connection point."""

    oam_ip_address: OamAddress


class PackageSource(MultiCloudRequest):
    """A package by its content: in a registry, or at an address. Its ``csar_id`` is ``sha256-<hex>``, of the digest or checksum."""

    oci: Annotated[str, StringConstraints(max_length=512)] | None = None
    """``oci://<host>/<repository>``; the one layer of its manifest is the CSAR."""
    digest: Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")] | None = None
    """That of the manifest."""
    url: Annotated[str, StringConstraints(max_length=2048)] | None = None
    """The address of the CSAR: http or https."""
    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")] | None = None
    """The checksum of the CSAR."""


class VnfInstanceRequest(MultiCloudRequest):
    """A VNF to bring up."""

    model_config = ConfigDict(json_schema_extra=_with_its_forms)

    cloud_region_id: RegionId
    csar_id: CsarId | None = None
    """The id of an onboarded package, or of one in the catalogue, which is fetched."""
    artifacts: PackageSource | None = None
    """In place of ``csar_id``: where the package is."""
    namespace: NamespaceName | None = None
    """None: that of ``values``, else ``vnf-`` and the first eight characters of the id."""
    vnf_instance_name: VnfName | None = None
    vnf_instance_description: VnfDescription | None = None
    values: Annotated[SecretParams, Field(default_factory=dict)]
    """Values of the variables in the artifacts."""
    oof_parameters: Annotated[tuple[SecretParams, ...], Field(max_length=100)] = ()
    """Values that ``values`` count above, and of these a later one above an earlier one."""
    order_artifact: OrderArtifact | None = None
    """The path of the order artifact in the package; None: the one that the package has."""
    networks: Networks = ()
    """The interfaces of workloads on virtual links, in their order."""
    network_parameters: NetworkParameters | None = None
    """Completes ``networks``."""
    volumes: Volumes = ()
    """The persistent volumes that workloads mount by the names of their claims; they outlive the VNF."""
    compute_profiles: Profiles = ()
    """Resources and placement of workloads."""
    release_name: ReleaseName | None = None
    """The name of the release of its charts, which stays; None: ``vnf`` and the id without its dashes."""
    kubernetes_version: KubernetesVersion | None = None
    """The version that the templates of its charts see; None: that of the region."""
    outputs: Annotated[dict[OutputName, OutputSpec], Field(max_length=MOST_OUTPUTS)] = Field(default_factory=dict)
    """Values of objects that the VNF shows, over those of the same names in the order artifact."""
    clone_of: str | None = None
    """Another VNF, from which this one has what the request does not give; ``values`` are merged."""
    regions: Annotated[Any, WithJsonSchema(REGIONS_SCHEMA)] = None
    """In place of ``cloud_region_id``: a VNF in each of them, by a group operation."""
    values_by_region: Annotated[dict[str, Any], Field(max_length=MOST_REGIONS)] | None = None
    """Over ``values``, by the id of the region; no ``$secret`` there."""
    parallel: Annotated[StrictInt, Field(ge=1)] | None = None
    """The number of regions in which VNFs are brought up at a time."""
    stop_after_failures: Annotated[StrictInt, Field(ge=0, le=MOST_REGIONS)] | None = None
    """After so many failed regions no further one is started; 0: never."""


class VnfInstancePatch(MultiCloudRequest):
    """A JSON Merge Patch of a VNF: its names, or what its objects are made from."""

    vnf_instance_name: VnfName | None = None
    """null removes it."""
    vnf_instance_description: VnfDescription | None = None
    """null removes it."""
    csar_id: CsarId | None = None
    """Another package."""
    values: SecretParams | None = None
    """Merged with those that it has."""
    order_artifact: OrderArtifact | None = None
    compute_profiles: Profiles | None = None
    networks: Networks | None = None
    volumes: Volumes | None = None
    """Each in place of those that it has; null: none."""


class VnfResource(MultiCloudType):
    """One object of a VNF."""

    api_version: str
    kind: str
    namespace: str | None = None
    """Absent: the kind has none."""
    name: str
    uid: str
    vdu_id: str | None = None
    ready: bool
    """Whether it was ready when an operation ended, and nothing has found it deleted or replaced since."""
    restart_required: Literal[True] | None = None
    """A virtual machine of which a change waits for its next start, as the last operation has found it, or ``/status`` now."""
    hook: str | None = None
    """The point at which it ran last, if it is the object of a hook; ``ready``: it has succeeded."""
    live: Literal["present", "missing", "replaced"] | None = None
    """The state in the region, if the request asks for it; ``replaced``: another object has the name."""


class VnfNetwork(MultiCloudType):
    """An interface of a VNF on a virtual link."""

    vdu_id: str
    virtual_link_id: str
    interface: str
    ip_address: str | None = None
    mac_address: str | None = None
    default_gateway: bool
    binding: str | JsonObject | None = None
    """KubeVirt: ``bridge``, ``masquerade``, ``sriov`` or ``{"plugin": "<name>"}``."""


class VnfVolume(MultiCloudType):
    """A persistent volume that a VNF uses."""

    persistent_volume_id: str
    claim_name: str


class VnfInstance(MultiCloudType):
    """A VNF in a cloud region."""

    vnf_id: str
    cloud_region_id: str
    namespace: str
    csar_id: str
    vnf_instance_name: str | None = None
    vnf_instance_description: str | None = None
    status: VnfStatus
    status_detail: str
    revision: int | None = None
    """The newest one; absent if it was brought up by an earlier version and not changed since."""
    suspended: Suspension | None = None
    group_operation: str | None = None
    """The id of the group operation that has brought it up."""
    vnf_components: dict[str, tuple[str, ...]]
    """Names of the objects by their kind in small letters."""
    resources: tuple[VnfResource, ...]
    networks: tuple[VnfNetwork, ...]
    volumes: tuple[VnfVolume, ...]
    outputs: Annotated[SecretParams, Field(default_factory=dict)]
    """By name; null: the object has no such value, or one that is too large."""
    kept_objects: tuple[LeftObject, ...] = ()
    """The objects that changes have kept; they belong to no VNF any more."""
    ignored_artifacts: tuple[str, ...]
    warnings: tuple[str, ...] | None = None
    """Warnings about the request for its newest revision: values that name no variable of the package."""
    operation: str | None = None
    """The link of the operation that was asked for, that runs, or that has failed and waits."""
    created_at: str
    updated_at: str


class LeftBehind(MultiCloudType):
    """The objects that stay because others need them, or that may still exist in a region that does not answer."""

    vnf_id: str
    left: tuple[LeftObject, ...]


def additional_params(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the additionalParams of SOL003 that the members of a request stand for."""
    names = (
        "namespace",
        "values",
        "order_artifact",
        "compute_profiles",
        "outputs",
        "release_name",
        "kubernetes_version",
    )
    found = {name: given[name] for name in names if given.get(name) is not None}
    if given.get("oof_parameters"):
        # Each is hidden by itself: it may say itself which of its values are secret.
        every = [hide(each) for each in (*given["oof_parameters"], found.get("values") or {})]
        found["values"] = reduce(merged, every)
    return found


def check_single(wanted: VnfInstanceRequest) -> None:
    """Raise Unprocessable for members that only a request with regions has."""
    for name in ("values_by_region", "parallel", "stop_after_failures"):
        if getattr(wanted, name) is not None:
            raise Unprocessable(name, "not expected without regions")


def check_oof_parameters(given: Sequence[Mapping[str, Any]]) -> None:
    """Raise Unprocessable naming each name and value that cannot be one of a variable; never with a value."""
    wrong: list[tuple[str, str]] = []
    for index, values in enumerate(given):
        try:
            check_values(values)
        except Unprocessable as error:
            wrong += [(place.replace(VALUES, f"oof_parameters/{index}", 1), reason) for place, reason in error.places]
    if wrong:
        raise Unprocessable(*wrong[0], *wrong[1:])
