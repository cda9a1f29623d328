"""The content of a VNFD as frozen models that are stored with the package.

Names follow SOL001; sizes are in bytes. No function here reads a file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from kubevnfm_kit.json_types import JsonObject
from pydantic import BaseModel, ConfigDict, Field, model_validator

from kubevnfm_csar.errors import UnknownFlavour, UnknownLevel

MOST_VNFCS: Final = 10_000
"""VNFCs of a VNF, and scale levels that are worked on: Heat takes stacks of 1,000 resources (max_resources_per_stack), and Kubernetes
clusters of 5,000 nodes. A VNFD may have an aspect with more levels, which no operation can reach."""


class Part(BaseModel):
    """A part of a VNFD."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Checksum(Part):
    """A digest of an image or artifact."""

    algorithm: str
    """As the package spells it: ``sha-512``, ``SHA-256``."""
    hash: str


class SoftwareImage(Part):
    """A disk or container image (SOL001 ``sw_image_data``)."""

    image_id: str
    """The node (VDU or storage) that it belongs to: SOL005's id of the software image."""
    name: str
    version: str = ""
    provider: str = ""
    checksum: Checksum | None = None
    container_format: str = "bare"
    disk_format: str = ""
    min_disk_bytes: int = 0
    min_ram_bytes: int = 0
    size_bytes: int = 0
    path: str | None = None
    """The image's file in the package; None: the VIM must already hold an image of this name."""
    uri: str | None = None
    """The image's location in the VNFD, if it is outside the package, fetched or not, or missing from it."""


class ComputeDemand(Part):
    """A VDU's requirements on the VIM's flavors (capability ``virtual_compute``)."""

    capability_name: str | None = None
    """``requested_additional_capability_name``: Tacker's packages write the Nova flavor's name there."""
    vcpus: int = 0
    memory_bytes: int = 0
    disk_bytes: int = 0


class Vdu(Part):
    """A virtualisation deployment unit."""

    vdu_id: str
    """The node template's name."""
    kind: Literal["compute", "container"] = "compute"
    name: str = ""
    """``properties.name``; in a CNF: the Kubernetes object that it represents (capi.md CR-030)."""
    description: str = ""
    min_instances: int = 0
    max_instances: int | None = None
    image: SoftwareImage | None = None
    compute: ComputeDemand = ComputeDemand()
    storages: tuple[str, ...] = ()


class Storage(Part):
    """A virtual storage (SOL001 ``Vdu.VirtualBlockStorage`` and its like)."""

    storage_id: str
    kind: Literal["block", "object", "file"] = "block"
    size_bytes: int = 0
    image: SoftwareImage | None = None


class InterfaceRequirement(Part):
    """A requirement on the network interface of a connection point (SOL001 ``virtual_network_interface_requirements``)."""

    name: str
    """As the VNFD names it, else its place in the list."""
    is_mandatory: bool = False
    asks: tuple[str, ...] = ()
    """The keys of its ``network_interface_requirements`` and ``nic_io_requirements``."""


class Cp(Part):
    """A connection point of a VDU, or of the VNF."""

    cp_id: str
    kind: Literal["vdu", "external", "virtual"] = "vdu"
    vdu_id: str | None = None
    order: int | None = None
    virtual_link: str | None = None
    """Its internal virtual link; None: the request gives the link (extVirtualLinks)."""
    is_external: bool = False
    """Whether extVirtualLinks may name it: exposed by substitution_mappings, on no internal link, or a VnfExtCp."""
    vnic_type: str = "normal"
    interface_requirements: tuple[InterfaceRequirement, ...] = ()


class LinkSubnet(Part):
    """A subnet of an internal virtual link (SOL001 ``l3_protocol_data``)."""

    is_ipv6: bool = False
    cidr: str | None = None
    """None: one that none of the VNF's networks has."""
    dhcp_enabled: bool | None = None
    gateway: str | None = None
    pools: tuple[tuple[str, str], ...] = ()
    """The first and the last address of each range of which addresses are given."""
    ipv6_address_mode: str | None = None


class VirtualLink(Part):
    """An internal virtual link."""

    virtual_link_id: str
    description: str = ""
    subnets: tuple[LinkSubnet, ...] = ()
    """Empty: one of IPv4."""

    @model_validator(mode="before")
    @classmethod
    def _read_one(cls, data: Any) -> Any:
        """Read the form of earlier versions, which had one subnet for each link."""
        if not isinstance(data, dict) or "subnets" in data:
            return data
        one = {name: data[name] for name in ("cidr", "dhcp_enabled") if data.get(name) is not None}
        version = str(data.get("ip_version") or "").lower()
        if version:
            one["is_ipv6"] = version == "ipv6"
        return {**data, "subnets": [one]} if one else data


class PhaseDriver(Part):
    """The implementation of a phase of the life cycle (``interfaces.Vnflcm``)."""

    phase: str
    """``instantiate_end`` ..."""
    name: str
    """The implementation's name: ``mgmt-drivers-kubernetes``."""
    file: str
    """The script's path in the package; of a file that is missing, as the VNFD names it."""
    sha256: str = ""
    """The script's digest when the package was onboarded."""
    dependencies: tuple[str, ...] = ()
    """Further files that it needs."""
    driver_class: str = ""
    """The driver class of Tacker's v1 that the file defines; empty: it is run as a script (sequences.md 6.6)."""
    problem: str = ""
    """Why the file cannot be run (sequences.md 6.5): it is missing, or of another form."""


class ScalingAspect(Part):
    """A scaling aspect with the change of each VDU per step."""

    aspect_id: str
    name: str = ""
    description: str = ""
    max_scale_level: int
    deltas: tuple[dict[str, int], ...] = ()
    """Instances added by VDU, for the step from level i to i + 1; the last one applies to all further steps."""

    def delta(self, vdu_id: str, *, level: int) -> int:
        """Return how many instances of the VDU ``level`` has more than level 0."""
        if not self.deltas:
            return 0
        given = [step.get(vdu_id, 0) for step in self.deltas[: max(level, 0)]]
        # Multiplied, not added step by step: max_scale_level is any number that the VNFD gives.
        return sum(given) + max(level - len(self.deltas), 0) * self.deltas[-1].get(vdu_id, 0)

    @property
    def vdu_ids(self) -> tuple[str, ...]:
        """The VDUs that the aspect scales."""
        return tuple(sorted({vdu_id for step in self.deltas for vdu_id in step}))


class Level(Part):
    """An instantiation level."""

    level_id: str
    description: str = ""
    scale_levels: dict[str, int] = Field(default_factory=dict)
    """Scale level by aspect; other aspects are at 0."""
    counts: dict[str, int] = Field(default_factory=dict)
    """Instances by VDU, from VduInstantiationLevels."""


class AffinityRule(Part):
    """An affinity or anti-affinity rule; groups are resolved to their members."""

    name: str
    kind: Literal["affinity", "anti-affinity"]
    scope: str
    """``nfvi_node``, ``zone`` ..."""
    targets: tuple[str, ...]
    group: str | None = None
    """The placement group that the rule names, if it names one."""


class PackageChange(Part):
    """A VnfPackageChange policy: the packages that can be changed to this one."""

    name: str
    selector: tuple[JsonObject, ...] = ()


class InitialValues(Part):
    """The initial values of a new instance's free attributes."""

    configurable_properties: JsonObject = Field(default_factory=dict)
    extensions: JsonObject = Field(default_factory=dict)
    metadata: JsonObject = Field(default_factory=dict)


class Flavour(Part):
    """A deployment flavour."""

    flavour_id: str
    file: str
    """The service template that describes it."""
    description: str = ""
    vnf_node: str | None = None
    vdus: dict[str, Vdu] = Field(default_factory=dict)
    cps: dict[str, Cp] = Field(default_factory=dict)
    virtual_links: dict[str, VirtualLink] = Field(default_factory=dict)
    storages: dict[str, Storage] = Field(default_factory=dict)
    phases: dict[str, PhaseDriver] = Field(default_factory=dict)
    """Drivers by phase; phases without implementation (``[]``) are left out."""
    aspects: dict[str, ScalingAspect] = Field(default_factory=dict)
    initial_deltas: dict[str, int] = Field(default_factory=dict)
    """Instances by VDU at scale level 0 (VduInitialDelta)."""
    levels: dict[str, Level] = Field(default_factory=dict)
    default_level: str | None = None
    affinity_rules: tuple[AffinityRule, ...] = ()
    package_changes: tuple[PackageChange, ...] = ()
    initial_values: InitialValues = InitialValues()
    parameters: dict[str, JsonObject] = Field(default_factory=dict)
    """JSON Schemas of additionalParams by the operation of ``Vnflcm``, of those for which the VNFD declares any."""

    @property
    def drivers(self) -> tuple[PhaseDriver, ...]:
        """Every driver once, by name and file."""
        return tuple({(driver.name, driver.file): driver for driver in self.phases.values()}.values())

    def level(self, level_id: str | None) -> Level | None:
        """Return the level, or the default one; None if the flavour has no levels. Raises UnknownLevel."""
        if level_id is None:
            return self.levels.get(self.default_level) if self.default_level is not None else None
        if level_id not in self.levels:
            raise UnknownLevel(level_id, known=tuple(self.levels))
        return self.levels[level_id]

    def initial_counts(self, level_id: str | None = None) -> dict[str, int]:
        """Return the instances by VDU at an instantiation level. Raises UnknownLevel."""
        level = self.level(level_id)
        counts = self.counts_at(self.scale_levels(level_id))
        # VduInstantiationLevels give numbers outright, so they win over those that the scale levels add up to.
        return {**counts, **level.counts} if level is not None else counts

    def scale_levels(self, level_id: str | None = None) -> dict[str, int]:
        """Return the scale level by aspect at an instantiation level: the instance's first scaleStatus."""
        level = self.level(level_id)
        given = level.scale_levels if level is not None else {}
        return {aspect_id: given.get(aspect_id, 0) for aspect_id in self.aspects}

    def counts_at(self, scale_levels: Mapping[str, int]) -> dict[str, int]:
        """Return the instances by VDU at these scale levels (aspects left out: 0).

        A VDU without a VduInitialDelta starts with its profile's minimum, as in Tacker.
        """
        return {
            vdu_id: self.initial_deltas.get(vdu_id, vdu.min_instances)
            + sum(aspect.delta(vdu_id, level=scale_levels.get(name, 0)) for name, aspect in self.aspects.items())
            for vdu_id, vdu in self.vdus.items()
        }

    def max_count(self, vdu_id: str) -> int:
        """Return the most instances that scaling and levels can bring the VDU to."""
        top = self.counts_at({name: aspect.max_scale_level for name, aspect in self.aspects.items()}).get(vdu_id, 0)
        # A level may start a VDU with more instances than scaling alone reaches.
        return max([top, *(self.initial_counts(level_id).get(vdu_id, 0) for level_id in self.levels)])

    def scaled_vdus(self, aspect_id: str) -> tuple[str, ...]:
        """Return the VDUs that an aspect scales; none for an unknown aspect."""
        aspect = self.aspects.get(aspect_id)
        return aspect.vdu_ids if aspect is not None else ()


class Vnfd(Part):
    """A VNF descriptor with all its flavours."""

    vnfd_id: str
    """``descriptor_id``."""
    provider: str
    product_name: str
    software_version: str
    descriptor_version: str
    vnfm_info: tuple[str, ...] = ()
    default_flavour_id: str | None = None
    """The default of the input by which the top file selects the flavour."""
    files: tuple[str, ...] = ()
    """Every definition file that was read, the entry file first."""
    flavours: dict[str, Flavour] = Field(default_factory=dict)
    initial_values: InitialValues = InitialValues()
    """The initial values of a new instance, whose flavour is not known yet."""
    warnings: tuple[str, ...] = ()
    """Contradictions that concern nothing which the VNF uses, each with its file."""
    secret_names: tuple[str, ...] = ()
    """The attributes whose values the package marks as secret (`marks`)."""

    def flavour(self, flavour_id: str) -> Flavour:
        """Return the flavour. Raises UnknownFlavour."""
        if flavour_id not in self.flavours:
            raise UnknownFlavour(flavour_id, known=tuple(self.flavours))
        return self.flavours[flavour_id]

    @property
    def software_images(self) -> tuple[SoftwareImage, ...]:
        """Every image of every flavour; one that several flavours share is listed once."""
        parts: list[Vdu | Storage] = []
        for flavour in self.flavours.values():
            parts.extend([*flavour.vdus.values(), *flavour.storages.values()])
        found = [part.image for part in parts if part.image is not None]
        return tuple({(image.image_id, image.name, image.path): image for image in found}.values())
