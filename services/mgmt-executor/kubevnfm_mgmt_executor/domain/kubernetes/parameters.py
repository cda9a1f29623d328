"""``k8s_cluster_installation_param`` of the request's additionalParams, checked (sequences.md 2.2 to 2.5).

lcm-api checks the same before it accepts a request; here it is checked again because values reach machines from here.
Groups that this driver does not use (registries, storage) are ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Network
from pathlib import PurePosixPath
from typing import Annotated, Any, Final, Literal

from kubevnfm_kit.errors import InvalidInput
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from kubevnfm_mgmt_executor.domain.ports import Login

ROOT: Final = "k8s_cluster_installation_param"
FIRST_MINOR, LAST_MINOR = 28, 34
"""Kubernetes 1.28 is the first of the community's package repositories by minor version."""


def _inside_package(path: str) -> str:
    parts = PurePosixPath(path)
    if not path or parts.is_absolute() or ".." in parts.parts or "\\" in path or "\n" in path:
        raise ValueError("a path inside the package expected")
    return path


def _network(value: Any) -> IPv4Network:
    try:
        return IPv4Network(value, strict=False)  # host bits are allowed: 192.168.3.0/16 is in the seed's own sample
    except ValueError as error:
        raise ValueError("an IPv4 network such as 192.168.0.0/16 expected") from error


def _given(value: Any) -> Any:
    return None if value == "" else value  # requests leave a proxy out by giving it empty


def _release(value: Any) -> Any:
    return value.removeprefix("v") if isinstance(value, str) else value


def _supported(release: str) -> str:
    minor = int(release.split(".")[1])
    if not FIRST_MINOR <= minor <= LAST_MINOR:
        raise ValueError(f"Kubernetes 1.{FIRST_MINOR} to 1.{LAST_MINOR} expected")
    return release


PackagePath = Annotated[str, AfterValidator(_inside_package)]
Network = Annotated[IPv4Network, BeforeValidator(_network)]
Url = Annotated[str, Field(pattern=r'^https?://[^\s"\\]+$', max_length=2048)]
OptionalUrl = Annotated[Url | None, BeforeValidator(_given)]
UserName = Annotated[str, Field(pattern=r"^[a-z_][a-z0-9_-]{0,31}$")]
Release = Annotated[
    str, BeforeValidator(_release), Field(pattern=r"^1\.[0-9]{1,3}\.[0-9]{1,3}$"), AfterValidator(_supported)
]
Seconds = Annotated[int, Field(gt=0, le=86_400)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True, use_attribute_docstrings=True)


class NodeGroup(_Part):
    """How to log in to the machines of one role."""

    username: UserName
    password: Annotated[str, Field(min_length=1, pattern=r"^[^\r\n\x00]+$")] = Field(repr=False)
    """No line end: sudo reads it as a line."""

    @property
    def login(self) -> Login:
        return Login(self.username, self.password)


class MasterGroup(NodeGroup):
    """The control plane, and the cluster's networks."""

    pod_cidr: Network = IPv4Network("192.168.0.0/16")
    cluster_cidr: Network = IPv4Network("10.96.0.0/12")
    """Addresses of Services."""


class Proxy(_Part):
    """Proxies of the machines; each works alone."""

    http_proxy: OptionalUrl = Field(default=None, repr=False)
    https_proxy: OptionalUrl = Field(default=None, repr=False)
    no_proxy: Annotated[str, Field(pattern=r"^[A-Za-z0-9.,:/*_\s-]*$", max_length=8192)] = ""
    k8s_node_cidr: Network | None = None
    """None: the /24 of the first master."""


class Mirror(_Part):
    """Where machines without internet find packages and images (``x_mirror``)."""

    apt: Url | None = None
    """A copy of the Kubernetes project's apt repository for the minor version."""
    apt_key: Url | None = None
    """Its signing key; None: ``Release.key`` beside it."""
    images: Url | None = None
    """A registry that serves the images of all others (containerd's ``_default`` host)."""


class Timeouts(_Part):
    """Deadlines in seconds (``x_timeouts``)."""

    ssh_ready: Seconds = 600
    node_install: Seconds = 2700
    command: Seconds = 60
    drain: Seconds = 300
    node_ready: Seconds = 600


class ClusterParameters(_Part):
    """The whole cluster configuration."""

    script_path: PackagePath
    master_node: MasterGroup
    worker_node: NodeGroup
    proxy: Proxy = Proxy()
    x_kubernetes_version: Release | None = None
    """None: the script's own."""
    x_cri: Literal["containerd"] = "containerd"
    x_cni: PackagePath = "Files/kubernetes/cni.yaml"
    """The pod network's manifest in the package."""
    x_max_parallel_nodes: Annotated[int, Field(ge=1, le=100)] = 10
    x_timeouts: Timeouts = Timeouts()
    x_mirror: Mirror = Mirror()

    def login(self, role: str) -> Login:
        """Return the login of a role's machines."""
        return (self.master_node if role == "master" else self.worker_node).login


def cluster_parameters(additional_params: Mapping[str, Any]) -> ClusterParameters:
    """Read the parameters, in clear. Raises InvalidInput naming the field; values are never quoted."""
    given = additional_params.get(ROOT)
    if not isinstance(given, Mapping):
        raise InvalidInput(f"additionalParams.{ROOT}", "an object expected" if given else "missing")
    present = {name: value for name, value in given.items() if value is not None}
    try:
        return ClusterParameters.model_validate(present)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        field = ".".join([f"additionalParams.{ROOT}", *map(str, first["loc"])])
        reason = "missing" if first["type"] == "missing" else first["msg"].removeprefix("Value error, ")
        raise InvalidInput(field, reason) from None
