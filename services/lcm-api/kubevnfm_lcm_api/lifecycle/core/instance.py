"""A VNF instance as lcm-api stores it: the public data type, and internal facts that no API shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, Self

from kubevnfm_cluster.parameters import ClusterParameters
from kubevnfm_csar.capi_providers import CORE, is_definition_of_cluster_api
from kubevnfm_events import ApiVersion, CapiProviders, ServiceFacts
from kubevnfm_events.common import PackageRef
from kubevnfm_events.objects import (
    ClaimedVolume,
    HookFacts,
    LeftObject,
    NetworkAttachment,
    ObjectFacts,
    ObjectsApplied,
    PodFacts,
)
from kubevnfm_events.outputs import OutputsRead, WantedOutput
from kubevnfm_events.stacks import StackResources, UserData
from kubevnfm_secrets import KeyRing, SecretParams, sealing
from kubevnfm_sol.base import SolType
from kubevnfm_sol.lcm import InstantiationState, OperationState, VnfInstance
from pydantic import BaseModel, ConfigDict, Field

from kubevnfm_lcm_api.event_chain import EventRef
from kubevnfm_lcm_api.lifecycle.core.cloud_place import CloudPlace
from kubevnfm_lcm_api.lifecycle.core.released import upgraded_internals, with_cluster
from kubevnfm_lcm_api.lifecycle.core.rotation import Rotation
from kubevnfm_lcm_api.lifecycle.core.workload_cluster import WorkloadInternals

COLLECTION = "vnf_instances"
ON_UNREGISTERED_VIM: Final = "internal/isOnUnregisteredVim"
OF_WORKLOAD_CLUSTER: Final = "internal/workload/cluster/name"
DST_VNFD_ID: Final = "internal/dstVnfdId"
REMAINS_OF: Final = "internal/remainsOf"
"""Paths that few instances have: a sparse index leads to those."""


class Release(BaseModel):
    """The objects and pods of a CNF in a cluster."""

    model_config = ConfigDict(frozen=True)

    namespace: str
    objects: tuple[ObjectFacts, ...] = ()
    hooks: tuple[HookFacts, ...] = ()
    pods: tuple[PodFacts, ...] = ()
    services: tuple[ServiceFacts, ...] = ()
    providers: CapiProviders | None = None
    """The providers of Cluster API among the objects."""
    outputs: OutputsRead | None = None
    """Those that an operation has read, until it ends: then the metadata show them."""
    kept_objects: tuple[LeftObject, ...] = ()
    """The objects that changes have kept, which belong to no instance any more."""

    left_counts: dict[str, int] | None = None
    """The pods by VDU that the last operation has left; None: those of ``pods``, which nothing has changed since."""

    @classmethod
    def from_applied(cls, applied: ObjectsApplied) -> Self:
        """Return what infra-k8s reported."""
        return cls(**{name: getattr(applied, name) for name in cls.model_fields if name != "left_counts"})

    @property
    def counts(self) -> Mapping[str, int]:
        """The pods by VDU that the last operation has left: another number is drift, or that of an autoscaler."""
        return Counter(pod.vdu_id for pod in self.pods) if self.left_counts is None else self.left_counts

    def with_pods(self, pods: tuple[PodFacts, ...]) -> Self:
        """Return the release with the pods that exist now, although no operation ran."""
        return self.model_copy(update={"pods": pods, "left_counts": dict(self.counts)})

    @property
    def is_management(self) -> bool:
        """Whether the objects make the cluster a management cluster: they define kinds of Cluster API."""
        return any(
            each.kind == "CustomResourceDefinition" and is_definition_of_cluster_api(each.name) for each in self.objects
        )

    @property
    def has_cluster(self) -> bool:
        """Whether a Cluster of Cluster API is among the objects, which needs the providers there."""
        return any(each.kind == "Cluster" and each.api_version.startswith(f"{CORE}/") for each in self.objects)


class StackDeployment(SolType):
    """Machines: a Heat stack."""

    kind: Literal["stack"]
    vim_key: str
    """The entry of vimConnectionInfo for its VIM."""
    stack_name: str
    resources: StackResources | None = None
    """None until infra-openstack has reported them."""
    left_package: PackageRef | None = None
    """A package that parts of it are made by, if a modification has named another one since; None: all are by the instance's."""


class ReleaseDeployment(SolType):
    """Containers: objects in a Kubernetes cluster."""

    kind: Literal["release"]
    vim_key: str
    """The entry of vimConnectionInfo for its VIM."""
    release: Release | None = None


Deployment = Annotated[StackDeployment | ReleaseDeployment, Field(discriminator="kind")]


class VnfFacts(SolType):
    """The facts about the instance that events carry, stored with an occurrence so that no second read is needed."""

    vnf_instance_name: str = ""
    vnfd_id: str = ""
    vnf_provider: str = ""
    vnf_product_name: str = ""
    vnf_software_version: str = ""
    vnfd_version: str = ""
    vim_ids: tuple[str, ...] = ()


class EndedRevision(SolType):
    """A revision whose operation has ended."""

    number: int
    state: OperationState


class InstanceInternals(SolType):
    """Never shown; stored under ``internal`` in the document, which filters of the API cannot use."""

    current_operation: str | None = None
    """The occurrence that has claimed the instance; set and cleared by compare-and-set."""
    is_withdrawing: bool = False
    """Whether this occurrence takes away what other instances may use (`domain.dependencies`)."""
    dst_vnfd_id: str | None = None
    """The VNFD that this occurrence changes to: its package is in use until the occurrence ends."""
    deployments: tuple[Deployment, ...] = ()
    """The parts of the instance while INSTANTIATED, each on one VIM."""
    vim_ids: tuple[str, ...] = ()
    """The registered VIMs on which its resources exist or are being created; their deletion is refused."""
    is_on_unregistered_vim: bool = False
    """Whether its resources are on a VIM whose access data came with a request; absent unless true."""
    parameters: SecretParams = Field(default_factory=dict)
    """additionalParams of the instantiate request: the defaults of later operations."""
    cluster: ClusterParameters | None = None
    """The cluster that they describe; None: they describe none."""
    instantiation_level_id: str | None = None
    api_version: ApiVersion = "v2"
    """The API version of the instantiate request."""
    user_data: UserData | None = None
    """The package's user data class that the instantiate request named: the default of later operations."""
    request: SecretParams = Field(default_factory=dict)
    """The instantiate request, in the shape of its API version."""
    connections: SecretParams = Field(default_factory=dict)
    """``extVirtualLinks`` and ``extManagedVirtualLinks`` as they are now, in v2 form."""
    networks: tuple[NetworkAttachment, ...] = ()
    """The interfaces of a CNF on virtual links, which it holds."""
    volumes: tuple[ClaimedVolume, ...] = ()
    """The persistent volumes that a CNF uses."""
    holds_more: bool = False
    """Whether a change that has failed may have left it with further links and volumes."""
    outputs: tuple[WantedOutput, ...] = ()
    """The values of its objects that a CNF shows."""
    outputs_number: int = 0
    """That of the reading whose values its metadata show."""
    external_cps: dict[str, str] = Field(default_factory=dict)
    """Name of the external CP's descriptor by the internal CP behind it."""
    tasks: tuple[str, ...] = ()
    """The operations that the VNFD allows while INSTANTIATED, without terminate."""
    cluster_vim_id: str | None = None
    """The id under which the instance's own cluster is registered as a VIM."""
    cluster_vim_key: str | None = None
    management_vim_id: str | None = None
    """The VIM that its providers of Cluster API have made a management cluster."""
    management_vim_ids: tuple[str, ...] = ()
    """The VIM whose providers of Cluster API its own cluster needs, or will need."""
    registries: tuple[str, ...] = ()
    """The private registries that its cluster pulls from, or will pull from: ``address:port`` each."""
    own_registry: tuple[str, ...] = ()
    """Where the private registry that it is answers: ``address:port`` for each address of its machine."""
    workload: WorkloadInternals | None = None
    """The cluster that Cluster API has built for it."""
    rotation: Rotation | None = None
    """Its credentials that are being sent between operations."""
    phases: dict[str, str] = Field(default_factory=dict)
    """Management driver by phase, as the flavour maps them."""
    last_news: EventRef | None = None
    """The last event about the instance, operations' states included."""
    secret_names: tuple[str, ...] = ()
    """The attributes that its package, or an earlier one, marks as secret, and those that its requests have listed."""
    remains_of: str | None = None
    """The FAILED instantiate occurrence whose resources may still exist."""
    revision: int = 0
    """The number of its newest revision (multicloud.md MC-042); 0: none yet."""
    warnings: tuple[str, ...] = ()
    """The warnings about the request for that revision."""
    ended_revision: EndedRevision | None = None
    """The last revision whose operation has ended: written with the instance that it has released, before the occurrence."""
    site_entry: str | None = None
    """The entry of a site file that it was created as (`site_entries`)."""
    multicloud: CloudPlace | None = None
    """The place of an instance that the multi-cloud API has made; None: SOL003 has made it."""


class InstanceRecord(BaseModel):
    """The document of one VNF instance."""

    model_config = ConfigDict(frozen=True)

    vnf: VnfInstance
    created_at: str
    updated_at: str
    # A default that is an object would be copied in depth for each record.
    internals: InstanceInternals = Field(default_factory=InstanceInternals)

    def document(self, ring: KeyRing) -> dict[str, Any]:
        """Return the body for the store: VnfInstance's attributes at the top, so that filters find them."""
        names = self.internals.secret_names
        context = sealing(ring, names)
        body = self.vnf.document(ring, names)
        internals = self.internals.model_dump(mode="json", by_alias=True, exclude_defaults=True, context=context)
        body.update({"createdAt": self.created_at, "updatedAt": self.updated_at, "internal": internals})
        return body

    @classmethod
    def from_document(cls, body: Mapping[str, Any]) -> Self:
        """Read what ``document`` wrote."""
        return cls(
            vnf=VnfInstance.model_validate(body),
            created_at=body["createdAt"],
            updated_at=body["updatedAt"],
            internals=InstanceInternals.model_validate(
                with_cluster(upgraded_internals(body.get("internal", {})), "cluster")
            ),
        )

    @property
    def facts(self) -> VnfFacts:
        """The facts that events about the instance carry."""
        vnf = self.vnf
        return VnfFacts(
            vnf_instance_name=vnf.vnf_instance_name or "",
            vnfd_id=vnf.vnfd_id,
            vnf_provider=vnf.vnf_provider,
            vnf_product_name=vnf.vnf_product_name,
            vnf_software_version=vnf.vnf_software_version,
            vnfd_version=vnf.vnfd_version,
            vim_ids=self._vim_ids,
        )

    @property
    def _vim_ids(self) -> tuple[str, ...]:
        # The region of an instance of the multi-cloud API is its own before its instantiation, too.
        place = self.internals.multicloud
        own = place.vim_id if place is not None else None
        return tuple(dict.fromkeys([*self.internals.vim_ids, *([own] if own is not None else [])]))

    @property
    def stack(self) -> StackDeployment | None:
        """The stack of a VNF of machines; None if it has none."""
        return next((one for one in self.internals.deployments if isinstance(one, StackDeployment)), None)

    def with_resources(self, resources: StackResources) -> Self:
        """Return the record with the present resources of its stack."""
        return self._with_deployment(StackDeployment, resources=resources)

    def with_left_package(self, package: PackageRef | None) -> Self:
        """Return the record with the package whose template its stack has; None: that of the instance."""
        return self._with_deployment(StackDeployment, left_package=package)

    @property
    def release(self) -> ReleaseDeployment | None:
        """The objects of a CNF; None if it has none."""
        return next((one for one in self.internals.deployments if isinstance(one, ReleaseDeployment)), None)

    def with_release(self, release: Release) -> Self:
        """Return the record with the present objects and pods of its release."""
        return self._with_deployment(ReleaseDeployment, release=release)

    def _with_deployment(self, kind: type[StackDeployment | ReleaseDeployment], **changes: object) -> Self:
        deployments = tuple(
            one.model_copy(update=changes) if isinstance(one, kind) else one for one in self.internals.deployments
        )
        return self.with_internals(deployments=deployments)

    def with_its_vims(self) -> Self:
        """Return the record, if INSTANTIATED, with the VIMs of its deployments recorded as in use."""
        # NOT_INSTANTIATED: `vim_ids` may name the VIM of a failed instantiate's remains, and stays as it is.
        if self.vnf.instantiation_state is not InstantiationState.INSTANTIATED:
            return self.with_internals(is_on_unregistered_vim=False)
        connections = [self.vnf.vim_connection_info.get(one.vim_key) for one in self.internals.deployments]
        # A modification may have removed an entry of vimConnectionInfo; the VIM is then still in use.
        if not connections or None in connections:
            return self
        vim_ids = [one.vim_id for one in connections if one is not None and one.vim_id is not None]
        is_on_unregistered_vim = not vim_ids
        workload = self.internals.workload
        if workload is not None and workload.capi.openstack_vim_id is not None:
            vim_ids.append(workload.capi.openstack_vim_id)
        return self.with_internals(vim_ids=tuple(dict.fromkeys(vim_ids)), is_on_unregistered_vim=is_on_unregistered_vim)

    def with_vnf(self, **changes: Any) -> Self:
        """Return the record with attributes of the public part changed."""
        return self.model_copy(update={"vnf": self.vnf.model_copy(update=changes)})

    def with_internals(self, **changes: Any) -> Self:
        """Return the record with internals changed."""
        return self.model_copy(update={"internals": self.internals.model_copy(update=changes)})
