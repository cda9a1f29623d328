"""Parts that messages of several domains share, and the one failure event."""

from __future__ import annotations

from typing import Literal

from kubevnfm_kit.error_text import ErrorText
from kubevnfm_secrets import Secret, SecretParams
from pydantic import Field

from kubevnfm_events.base import EVERY_WORKER, Command, Event, Facts

ApiVersion = Literal["v1", "v2"]
"""A version of the API of VNF lifecycle management (SOL003)."""


class PackageRef(Facts):
    """The VNF package that an operation works from."""

    package_id: str
    """VnfPkgInfo id, by which lcm-api's internal API serves the package's files."""
    vnfd_id: str
    checksum: str = ""
    """SHA-256 of the CSAR, hex; the key of caches."""


class VimConnection(Facts):
    """SOL003 VimConnectionInfo (4.4.1.6): how to reach one VIM, with its access data.

    It has either ``vim_id``, with a region or alone, which vim-registry resolves at the moment of use, or the full data
    of a request.
    """

    vim_id: str | None = None
    vim_type: str = ""
    """``ETSINFV.OPENSTACK_KEYSTONE.V_3``, ``ETSINFV.KUBERNETES.V_1`` ..."""
    interface_info: dict[str, object] = Field(default_factory=dict)
    """``endpoint``; Kubernetes: ``ssl_ca_cert`` (PEM); OpenStack: ``skipCertificateVerification`` ..."""
    access_info: SecretParams = Field(default_factory=dict)
    """OpenStack: username, password, project, projectDomain, userDomain, region. Kubernetes: bearer_token, or
    username and password, or client_certificate and client_key."""
    extra: SecretParams = Field(default_factory=dict)
    of_vnf: bool = False
    """Whether a VNF has chosen the endpoint: a cluster that it has built or whose credentials it has sent. Connections go to
    addresses of the setting ``vnf_networks`` only."""

    @property
    def is_reference(self) -> bool:
        """Whether vim-registry must supply the access data: beside the id there is at most the region to use."""
        return self.vim_id is not None and not set(self.access_info) - {"region"}

    def resolved(self, registered: VimConnection) -> VimConnection:
        """Return the connection of the VIM that this one refers to, in the region that this one names."""
        region = self.access_info.get("region")
        if region is None:
            return registered
        return registered.model_copy(update={"access_info": {**registered.access_info, "region": region}})


class ClusterAccess(Facts):
    """How to reach a finished Kubernetes cluster as its administrator (sequences.md 4.5)."""

    server: str
    """``https://<address>:<port>``."""
    bearer_token: Secret
    ssl_ca_cert: str
    """PEM."""
    ssl_ca_cert_hash: str
    """``sha256:<hex>`` of the CA's public key, as kubeadm join expects it."""
    certificate_key: Secret | None = None
    """kubeadm's key for control-plane joins; it expires after two hours."""
    kubernetes_version: str = ""


class ServiceFacts(Facts):
    """A Service of type NodePort: each of its ports answers on every node of the cluster."""

    namespace: str
    name: str
    node_ports: tuple[int, ...]


class CapiKind(Facts):
    """A kind of Cluster API, as the CustomResourceDefinition of a provider defines it."""

    group: str
    kind: str
    versions: tuple[str, ...]
    """Those that are served."""


class CapiProvider(Facts):
    """A provider of Cluster API in a management cluster."""

    name: str
    """``cluster-api`` for the core provider; ``kubeadm``, ``openstack`` ...; "" if its objects do not say so."""
    version: str | None = None
    """The version of its controllers; None if neither a label nor the tag of an image has it."""
    contract: str | None = None
    """The newest contract that its definitions are labelled with; of the core provider, the version of its API."""
    kinds: tuple[CapiKind, ...] = ()


class CapiProviders(Facts):
    """The providers of Cluster API that a VNF has installed in its cluster (capi.md CR-045)."""

    core: CapiProvider | None = None
    """None: another VNF has installed it."""
    bootstrap: tuple[CapiProvider, ...] = ()
    control_plane: tuple[CapiProvider, ...] = ()
    infrastructure: tuple[CapiProvider, ...] = ()


class CommandFailed(Event, kind="service.command.failed", by=EVERY_WORKER):
    """A command failed; the same event for every service."""

    command: str
    """The type of the command that failed."""
    code: str
    """Stable slug of the cause, such as ``quota-exceeded``."""
    title: str
    """The layer that failed: "Stack creation failed", "Management driver failed" ..."""
    detail: ErrorText
    """One sentence for a person that names the node or resource; secrets are masked."""
    status: int = 500
    """HTTP semantics, for ProblemDetails (api.md 4.6)."""
    node: str = ""
    """The node (host name) where it failed, if it was one."""
    task: str = ""
    """The task on that node."""
    remains: dict[str, object] | None = None
    """The resources that the failed command left behind, in the form of the event of its success: the ``resources`` of
    ResourcesCreated, the whole of ObjectsApplied. None: not known, or the command creates nothing."""
    made_nothing: bool = False
    """Whether no delivery of the command has changed anything outside, so that a rollback has nothing to undo. False:
    not known."""


class CancelStep(Command):
    """Stop working on a command: its step is cancelled (CancelMode FORCEFUL). Each service has a class of its own.

    It has no reply of its own: the cancelled command ends in CommandFailed with code ``cancelled``, unless it had
    ended earlier.
    """

    command: SecretParams
    """The cancelled command's CloudEvent, as it was sent."""


DriftState = Literal["MISSING", "FAILED", "INCOMPLETE", "CHANGED"]
"""How the resources of a VNF differ from what its instance shows. A stack: it does not exist; Heat reports it as failed; it is
complete in Heat, but some of its servers do not exist or are in state ERROR in Nova. Kubernetes objects: none of them exists;
(INCOMPLETE) some of them do not exist; (CHANGED) all of them exist, but others have changed some."""
