"""The base of the types of links: what a request says, and what is made of it. No I/O."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Annotated, ClassVar, Final

from kubevnfm_kit.json_types import JsonMapping, JsonObject
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from kubevnfm_infra_k8s.domain.links.subnets import Network, read_network
from kubevnfm_infra_k8s.domain.objects import Body

NAD: Final = ("k8s.cni.cncf.io/v1", "NetworkAttachmentDefinition")
RESOURCE_NAME: Final = "k8s.v1.cni.cncf.io/resourceName"
"""On a NAD: the resource of a node that each attached pod takes one of."""
CNI_VERSION: Final = "0.3.1"

Fault = tuple[str, str]
"""A place in the request, and what was expected there."""
ApiKind = tuple[str, str]
"""ApiVersion and kind."""
Text = Annotated[str, Field(min_length=1, max_length=253)]
VlanId = Annotated[int, Field(ge=1, le=4094, strict=True)]
VlanOrNone = Annotated[int, Field(ge=0, le=4094, strict=True)]
"""0: none."""
Mtu = Annotated[int, Field(ge=0, le=65535, strict=True)]


def _network(text: str) -> str:
    read_network(text)
    return text


def _address(text: str) -> str:
    try:
        ip_address(text)
    except ValueError:
        raise ValueError("an IP address expected") from None
    return text


def _networks(texts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(_network, texts))


def _addresses(texts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(_address, texts))


Cidr = Annotated[str, AfterValidator(_network)]
"""A subnet without host bits."""
Cidrs = Annotated[tuple[str, ...], AfterValidator(_networks)]
Address = Annotated[Text, AfterValidator(_address)]
Addresses = Annotated[tuple[Text, ...], AfterValidator(_addresses)]


class Unattachable(Exception):
    """Pods cannot name the link."""


@dataclass(frozen=True)
class Places:
    """The namespaces of a link."""

    namespaces: Sequence[str] = ()
    """Those of its users."""
    links: str = "default"
    """The region's, for objects that are not in the namespaces of users."""
    sriov: str = "sriov-network-operator"
    """The region's, of the SR-IOV network operator."""


@dataclass(frozen=True)
class Definition:
    """The NetworkAttachmentDefinition by which pods name a link."""

    name: str
    namespace: str = ""
    """Empty: that of the pod."""
    is_by_namespace: bool = False
    """Whether a dash and the namespace of the pod follow in the name."""


@dataclass(frozen=True)
class Addressing:
    """The addresses that an interface may ask of a link (MC-092)."""

    why_no_address: str = ""
    """Why the link cannot fix an address; empty: it can."""
    why_no_mac: str = ""
    needs_prefix: bool = False
    """Whether a fixed address has its prefix length, since the link has no subnet that says it."""
    gateways: Sequence[str] = ()
    excluded: Sequence[str] = ()
    """Addresses and ranges: ``a``, ``a..b``."""


@dataclass(frozen=True)
class LinkBody:
    """An object to make."""

    body: Body
    is_shared: bool = False
    """Whether several links have the same object: it goes with the last of them."""
    is_as_found: bool = False
    """Whether an object of this name that exists is used as it is."""


class Part(BaseModel):
    """Base of the parts of a spec: unknown members are refused, because they would not reach the object."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, frozen=True, extra="forbid", hide_input_in_errors=True
    )

    def given(self) -> JsonObject:
        """Return what was given, with the names of the API."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


class LinkSpec(Part):
    """The spec of one type of link."""

    lacks: ClassVar[str]
    """The name of what a region without the kinds lacks, for an error."""

    @abstractmethod
    def kinds(self) -> Sequence[tuple[ApiKind, str]]:
        """Return the kinds that the region must serve, each with the place in the request that asks for it."""

    @abstractmethod
    def objects(self, name: str, places: Places) -> Sequence[LinkBody]:
        """Return the objects of the link, in their order."""

    @abstractmethod
    def definition(self, name: str, places: Places) -> Definition | None:
        """Return how pods name the link; None if they do not: it is the primary network of their namespace.

        Raises Unattachable.
        """

    @property
    @abstractmethod
    def addressing(self) -> Addressing:
        """The addresses that an interface may ask of the link."""

    def named_namespaces(self) -> Sequence[tuple[str, str]]:
        """Return the namespaces that the spec itself names, each with its place in it."""
        return ()

    @property
    def uses_operator(self) -> bool:
        """Whether the link needs the namespace of the SR-IOV network operator."""
        return False

    def needs(self) -> Sequence[tuple[ApiKind, str, str]]:
        """Return the objects without namespace that others make, without which the link is never ready: kind, name, and the way out."""
        return ()

    def namespace_label(self, name: str) -> str | None:
        """Return the label that selects the namespaces of the link, if its type has one."""
        return None

    @property
    def needs_primary(self) -> bool:
        """Whether a namespace must have been created for a primary network."""
        return False

    def faults(self) -> Iterator[Fault]:
        """Yield what is wrong beyond the types of members, with places inside the spec."""
        return iter(())

    @property
    def most_namespaces(self) -> int | None:
        """How many namespaces the link can serve; None: any number."""
        return None

    def subnets(self) -> Sequence[tuple[str, Network]]:
        """Return the subnets with their places in the spec; the faulty ones are left out."""
        return ()

    def vlans(self) -> Sequence[tuple[str, int]]:
        """Return the interfaces of nodes and the VLAN that the link takes on each."""
        return ()


class Dns(Part):
    """The DNS configuration of an interface."""

    nameservers: Addresses = Field(default=(), max_length=16)
    domain: Text | None = None
    search: tuple[Text, ...] = Field(default=(), max_length=32)
    options: tuple[Text, ...] = Field(default=(), max_length=32)

    def given(self) -> JsonObject:
        return {name: value for name, value in super().given().items() if value}


class Route(Part):
    """A route of an interface."""

    dst: Cidr
    gw: Address | None = None


def nad(name: str, namespace: str, config: JsonMapping | str, *, annotations: JsonMapping | None = None) -> LinkBody:
    """Return a NetworkAttachmentDefinition; its configuration is a text in the object."""
    text = config if isinstance(config, str) else json.dumps(config)
    metadata: JsonObject = {"name": name, "namespace": namespace}
    if annotations:
        metadata["annotations"] = dict(annotations)
    api_version, kind = NAD
    return LinkBody({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": {"config": text}})


def network_configuration(
    name: str,
    plugin: JsonMapping,
    *,
    ipam: JsonMapping | None = None,
    routes: Sequence[Route] = (),
    dns: Dns | None = None,
    more_plugins: Sequence[JsonMapping] = (),
) -> JsonObject:
    """Return the configuration of a CNI network: one plug-in, or a list of them."""
    main = dict(plugin)
    own = ipam_with_routes(ipam, routes)
    if own is not None:
        main["ipam"] = own
    if dns is not None:
        main["dns"] = dns.given()
    if more_plugins:
        return {"cniVersion": CNI_VERSION, "name": name, "plugins": [main, *more_plugins]}
    return {"cniVersion": CNI_VERSION, "name": name, **main}


def ipam_with_routes(ipam: JsonMapping | None, routes: Sequence[Route]) -> JsonObject | None:
    """Return the address management with the routes, which are members of it; None if there is none."""
    if ipam is None:
        return None
    added = [route.given() for route in routes]
    return {**ipam, "routes": [*ipam.get("routes", []), *added]} if added else dict(ipam)
