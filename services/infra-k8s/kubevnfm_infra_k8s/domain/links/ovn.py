"""Links by OVN: OVN4NFV, Kube-OVN and the user-defined networks of OVN-Kubernetes. No I/O."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from ipaddress import IPv4Network
from typing import ClassVar, Final, Literal

from kubevnfm_clients.multicloud.types import NamespaceName as Label
from kubevnfm_kit.json_types import JsonObject
from pydantic import Field, ValidationInfo, field_validator

from kubevnfm_infra_k8s.domain.links.spec import (
    CNI_VERSION,
    NAD,
    Addressing,
    ApiKind,
    Cidr,
    Cidrs,
    Definition,
    Dns,
    Fault,
    LinkBody,
    LinkSpec,
    Mtu,
    Part,
    Places,
    Route,
    Text,
    VlanId,
    nad,
)
from kubevnfm_infra_k8s.domain.links.subnets import (
    Network,
    overlaps_among,
    read_address,
    read_network,
    read_range,
    read_ranges,
)

_OVN4NFV: Final = "k8s.plugin.opnfv.org/v1alpha1"
_KUBE_OVN: Final = "kubeovn.io/v1"
_UDN: Final = "k8s.ovn.org/v1"
_MOST_SUBNETS: Final = 64
_NETWORK_OBJECT: Final = "ovn-networkobj"
"""The NAD by which pods of a namespace reach OVN4NFV, whatever their networks."""
LABEL_VALUE: Final = "true"
"""The value of the label on a namespace that a network selects."""
_LONGEST_PROVIDER: Final = 12


class Subnet(Part):
    """A subnet of OVN4NFV."""

    name: Label
    subnet: Cidr
    gateway: str | None = None
    """With or without a prefix length."""
    exclude_ips: str | None = None
    """Addresses and ranges: ``10.1.0.2 10.1.0.5..10.1.0.9``."""

    @field_validator("gateway")
    @classmethod
    def _is_inside(cls, given: str | None, info: ValidationInfo) -> str | None:
        if given is not None and "subnet" in info.data:
            read_address(given, read_network(info.data["subnet"]))
        return given

    @field_validator("exclude_ips")
    @classmethod
    def _are_inside(cls, given: str | None, info: ValidationInfo) -> str | None:
        if given is not None and "subnet" in info.data:
            read_ranges(given, read_network(info.data["subnet"]))
        return given


class Ovn4nfvSpec(LinkSpec):
    """A network of OVN4NFV (icn-nodus)."""

    lacks: ClassVar[str] = "OVN4NFV"
    cni_type: Literal["ovn4nfv"] = "ovn4nfv"
    ipv4_subnets: tuple[Subnet, ...] = Field(default=(), max_length=_MOST_SUBNETS)
    ipv6_subnets: tuple[Subnet, ...] = Field(default=(), max_length=_MOST_SUBNETS)
    dns: Dns | None = None
    routes: tuple[Route, ...] = Field(default=(), max_length=64)
    kind: ClassVar[str] = "Network"

    def kinds(self) -> Sequence[tuple[ApiKind, str]]:
        return ((_OVN4NFV, self.kind), "type"), (NAD, "type")

    def faults(self) -> Iterator[Fault]:
        if not self.ipv4_subnets:
            # The definition of Network requires them.
            yield "ipv4Subnets", "at least one IPv4 subnet expected: OVN4NFV has no networks with IPv6 alone"
        for place, network in self.subnets():
            is_ipv4 = isinstance(network, IPv4Network)
            if place.startswith("ipv4") != is_ipv4:
                yield place, f"an {'IPv4' if place.startswith('ipv4') else 'IPv6'} subnet expected"
        yield from overlaps_among(self.subnets())
        yield from _same_names("ipv4Subnets", self.ipv4_subnets)
        yield from _same_names("ipv6Subnets", self.ipv6_subnets)

    def objects(self, name: str, places: Places) -> Sequence[LinkBody]:
        spec: JsonObject = {"cniType": self.cni_type, "ipv4Subnets": [each.given() for each in self.ipv4_subnets]}
        if self.ipv6_subnets:
            spec["ipv6Subnets"] = [each.given() for each in self.ipv6_subnets]
        if self.dns is not None:
            spec["dns"] = self.dns.given()
        if self.routes:
            spec["routes"] = [route.given() for route in self.routes]
        # Pods name it without a namespace.
        metadata = {"name": name, "namespace": places.links}
        network = {
            "apiVersion": _OVN4NFV,
            "kind": self.kind,
            "metadata": metadata,
            "spec": {**spec, **self._provider()},
        }
        config = {"cniVersion": CNI_VERSION, "name": "ovn4nfv-k8s-plugin", "type": "ovn4nfvk8s-cni"}
        shared = [LinkBody(nad(_NETWORK_OBJECT, each, config).body, is_shared=True) for each in places.namespaces]
        return [LinkBody(network), *shared]

    def definition(self, name: str, places: Places) -> Definition:
        return Definition(_NETWORK_OBJECT)

    @property
    def addressing(self) -> Addressing:
        subnets = [*self.ipv4_subnets, *self.ipv6_subnets]
        gateways = [each.gateway.partition("/")[0] for each in subnets if each.gateway]
        ranges = [part for each in subnets for part in (each.exclude_ips or "").split()]
        return Addressing(gateways=gateways, excluded=[*ranges, *gateways])

    def subnets(self) -> Sequence[tuple[str, Network]]:
        return [
            (f"{member}[{index}]/subnet", read_network(each.subnet))
            for member, subnets in (("ipv4Subnets", self.ipv4_subnets), ("ipv6Subnets", self.ipv6_subnets))
            for index, each in enumerate(subnets)
        ]

    def _provider(self) -> JsonObject:
        return {}


class Vlan(Part):
    """A VLAN on an interface of nodes."""

    vlan_id: VlanId = Field(alias="vlanID")
    provider_interface_name: Text
    logical_interface_name: Text | None = None
    vlan_node_selector: Literal["any", "all", "specific"]
    node_label_list: tuple[Text, ...] = Field(default=(), max_length=64)


class Direct(Part):
    """An interface of nodes as it is."""

    provider_interface_name: Text
    direct_node_selector: Literal["any", "all", "specific"]
    node_label_list: tuple[Text, ...] = Field(default=(), max_length=64)


class Ovn4nfvProviderSpec(Ovn4nfvSpec):
    """A network of OVN4NFV on interfaces of nodes."""

    provider_net_type: Literal["VLAN", "DIRECT"]
    vlan: Vlan | None = None
    direct: Direct | None = None
    kind: ClassVar[str] = "ProviderNetwork"

    def faults(self) -> Iterator[Fault]:
        yield from super().faults()
        wanted, other = ("vlan", "direct") if self.provider_net_type == "VLAN" else ("direct", "vlan")
        if getattr(self, wanted) is None:
            yield wanted, f"required with providerNetType {self.provider_net_type}"
        if getattr(self, other) is not None:
            yield other, f"not expected with providerNetType {self.provider_net_type}"
        for place, selector, labels in self._selections():
            if (selector == "specific") != bool(labels):
                yield f"{place}/nodeLabelList", "labels expected if the selector is specific, and only then"

    def vlans(self) -> Sequence[tuple[str, int]]:
        return () if self.vlan is None else ((self.vlan.provider_interface_name, self.vlan.vlan_id),)

    def _selections(self) -> Iterator[tuple[str, str, tuple[str, ...]]]:
        if self.vlan is not None:
            yield "vlan", self.vlan.vlan_node_selector, self.vlan.node_label_list
        if self.direct is not None:
            yield "direct", self.direct.direct_node_selector, self.direct.node_label_list

    def _provider(self) -> JsonObject:
        own: JsonObject = {"providerNetType": self.provider_net_type}
        if self.vlan is not None:
            vlan = self.vlan.given()
            # The object spells the name otherwise, and has a text.
            own["vlan"] = {"vlanId": str(vlan.pop("vlanID")), **_without_empty(vlan)}
        if self.direct is not None:
            own["direct"] = _without_empty(self.direct.given())
        return own


class KubeOvnVlan(Part):
    """A VLAN of a Kube-OVN underlay, and its provider network."""

    id: VlanId
    provider: Label
    default_interface: Text | None = None
    """If given, the provider network is made unless the region has one of this name."""
    custom_interfaces: tuple[JsonObject, ...] = Field(default=(), max_length=64)
    exclude_nodes: tuple[Text, ...] = Field(default=(), max_length=1024)


class KubeOvnSpec(LinkSpec):
    """A subnet of Kube-OVN, and the NAD by which pods of all namespaces attach to it."""

    lacks: ClassVar[str] = "Kube-OVN"
    cidr_block: tuple[str, ...]
    """A subnet, or one of each IP version."""
    gateway: tuple[str, ...] = ()
    exclude_ips: tuple[str, ...] = Field(default=(), max_length=256)
    vpc: Label | None = None
    protocol: Literal["IPv4", "IPv6", "Dual"] | None = None
    vlan: KubeOvnVlan | None = None
    mtu: Mtu | None = None
    private: bool | None = None
    allow_subnets: Cidrs = Field(default=(), max_length=256)
    nat_outgoing: bool | None = None
    enable_dhcp: bool | None = Field(default=None, alias="enableDHCP")
    dhcp_v4_options: Text | None = Field(default=None, alias="dhcpV4Options")
    dhcp_v6_options: Text | None = Field(default=None, alias="dhcpV6Options")

    @field_validator("cidr_block", "gateway", mode="before")
    @classmethod
    def _as_list(cls, given: object) -> object:
        return tuple(part.strip() for part in given.split(",")) if isinstance(given, str) else given

    @field_validator("cidr_block")
    @classmethod
    def _are_subnets(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        networks = [read_network(part) for part in given]
        if not networks or len(networks) > 2 or len({network.version for network in networks}) != len(networks):
            raise ValueError("a subnet, or one of each IP version expected")
        return given

    @field_validator("gateway")
    @classmethod
    def _is_inside(cls, given: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        blocks = [read_network(part) for part in info.data.get("cidr_block", ())]
        if given and blocks:
            if len(given) != len(blocks):
                raise ValueError("a gateway for each subnet expected, in their order")
            for gateway, block in zip(given, blocks, strict=True):
                read_address(gateway, block)
        return given

    @field_validator("exclude_ips")
    @classmethod
    def _are_inside(cls, given: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        blocks = [read_network(part) for part in info.data.get("cidr_block", ())]
        for each in given if blocks else ():
            read_range(each, next((block for block in blocks if (":" in each) == (block.version == 6)), blocks[0]))
        return given

    def kinds(self) -> Sequence[tuple[ApiKind, str]]:
        vlan = [((_KUBE_OVN, kind), "type") for kind in ("Vlan", "ProviderNetwork")] if self.vlan is not None else []
        return [((_KUBE_OVN, "Subnet"), "type"), *vlan, (NAD, "type")]

    def faults(self) -> Iterator[Fault]:
        if self.protocol is not None and self.protocol != self._protocol():
            yield "protocol", f"{self._protocol()} expected, as cidrBlock is"
        if self.vlan is not None:
            # Kube-OVN makes bridges whose names have the provider's, and a Linux interface has 15 characters.
            if self.vlan.default_interface is not None and len(self.vlan.provider) > _LONGEST_PROVIDER:
                yield "vlan/provider", f"up to {_LONGEST_PROVIDER} characters expected for a new provider network"
            if self.vlan.default_interface is None and (self.vlan.custom_interfaces or self.vlan.exclude_nodes):
                yield "vlan/defaultInterface", "required for a new provider network"

    def objects(self, name: str, places: Places) -> Sequence[LinkBody]:
        spec: JsonObject = {
            **_without_empty(self.given()),
            "cidrBlock": ",".join(self.cidr_block),
            "protocol": self._protocol(),
            "provider": f"{name}.{places.links}.ovn",
        }
        if self.gateway:
            spec["gateway"] = ",".join(self.gateway)
        if self.vlan is not None:
            spec["vlan"] = name
        socket = "/run/openvswitch/kube-ovn-daemon.sock"
        config = {"cniVersion": CNI_VERSION, "type": "kube-ovn", "server_socket": socket, "provider": spec["provider"]}
        return [
            *self._underlay(name),
            nad(name, places.links, config),
            LinkBody({"apiVersion": _KUBE_OVN, "kind": "Subnet", "metadata": {"name": name}, "spec": spec}),
        ]

    def definition(self, name: str, places: Places) -> Definition:
        return Definition(name, places.links)

    @property
    def addressing(self) -> Addressing:
        # Without one, Kube-OVN takes the first address of a subnet.
        blocks = [read_network(part) for part in self.cidr_block]
        gateways = [each.partition("/")[0] for each in self.gateway] or [
            str(each.network_address + min(1, each.num_addresses - 1)) for each in blocks
        ]
        return Addressing(gateways=gateways, excluded=[*self.exclude_ips, *gateways])

    def needs(self) -> Sequence[tuple[ApiKind, str, str]]:
        if self.vlan is None or self.vlan.default_interface is not None:
            return ()
        return (((_KUBE_OVN, "ProviderNetwork"), self.vlan.provider, "create it, or give vlan.defaultInterface"),)

    def subnets(self) -> Sequence[tuple[str, Network]]:
        return [("cidrBlock", read_network(part)) for part in self.cidr_block]

    def vlans(self) -> Sequence[tuple[str, int]]:
        if self.vlan is None:
            return ()
        return ((f"provider network {self.vlan.provider}", self.vlan.id),)

    def _underlay(self, name: str) -> Iterator[LinkBody]:
        if self.vlan is None:
            return
        if self.vlan.default_interface is not None:
            members = _without_empty(self.vlan.given())
            spec = {key: value for key, value in members.items() if key not in {"id", "provider"}}
            metadata = {"name": self.vlan.provider}
            body = {"apiVersion": _KUBE_OVN, "kind": "ProviderNetwork", "metadata": metadata, "spec": spec}
            yield LinkBody(body, is_shared=True, is_as_found=True)
        vlan = {"id": self.vlan.id, "provider": self.vlan.provider}
        yield LinkBody({"apiVersion": _KUBE_OVN, "kind": "Vlan", "metadata": {"name": name}, "spec": vlan})

    def _protocol(self) -> str:
        versions = {read_network(part).version for part in self.cidr_block}
        return "Dual" if len(versions) == 2 else f"IPv{versions.pop()}"


class UdnSubnet(Part):
    """A subnet of a network with Layer3, and the part of it that a node has."""

    cidr: Cidr
    host_subnet: int | None = Field(default=None, ge=1, le=127, strict=True)


class UdnIpam(Part):
    """The management of addresses of a user-defined network."""

    mode: Literal["Enabled", "Disabled"] | None = None
    lifecycle: Literal["Persistent"] | None = None


class UdnSpec(LinkSpec):
    """A user-defined network of OVN-Kubernetes, which makes the NADs."""

    lacks: ClassVar[str] = "OVN-Kubernetes with user-defined networks"
    scope: Literal["namespace", "cluster"]
    topology: Literal["Layer2", "Layer3", "Localnet"]
    role: Literal["Secondary", "Primary"] = "Secondary"
    subnets_: tuple[UdnSubnet, ...] = Field(default=(), alias="subnets", max_length=400)
    join_subnets: Cidrs = Field(default=(), max_length=2)
    mtu: Mtu | None = None
    ipam: UdnIpam | None = None
    physical_network_name: Text | None = None
    vlan: VlanId | None = None

    @field_validator("subnets_", mode="before")
    @classmethod
    def _as_subnets(cls, given: object) -> object:
        if not isinstance(given, list):
            return given
        return [{"cidr": each} if isinstance(each, str) else each for each in given]

    def kinds(self) -> Sequence[tuple[ApiKind, str]]:
        return (((_UDN, self._kind), "type"),)

    @property
    def _kind(self) -> str:
        return "UserDefinedNetwork" if self.scope == "namespace" else "ClusterUserDefinedNetwork"

    @property
    def most_namespaces(self) -> int | None:
        return 1 if self.scope == "namespace" else None

    @property
    def needs_primary(self) -> bool:
        return self.role == "Primary"

    def namespace_label(self, name: str) -> str | None:
        return f"links.kubevnfm.io/{name}" if self.scope == "cluster" else None

    def faults(self) -> Iterator[Fault]:
        is_localnet, is_layer3 = self.topology == "Localnet", self.topology == "Layer3"
        if is_localnet and self.scope == "namespace":
            yield "scope", "cluster expected with topology Localnet"
        if is_localnet and self.role == "Primary":
            yield "role", "Secondary expected with topology Localnet"
        if is_localnet and self.physical_network_name is None:
            yield "physicalNetworkName", "required with topology Localnet"
        if is_layer3 and not self.subnets_:
            yield "subnets", "required with topology Layer3"
        if is_layer3 and self.ipam is not None:
            yield "ipam", "not expected with topology Layer3"
        for member, given in (("physicalNetworkName", self.physical_network_name), ("vlan", self.vlan)):
            if given is not None and not is_localnet:
                yield member, "expected with topology Localnet alone"
        if self.join_subnets and (is_localnet or self.role != "Primary"):
            yield "joinSubnets", "expected with role Primary alone"
        is_disabled = self.ipam is not None and self.ipam.mode == "Disabled"
        if not is_layer3 and is_disabled == bool(self.subnets_):
            yield (
                "subnets",
                "not expected with ipam.mode Disabled" if is_disabled else "required unless ipam.mode is Disabled",
            )
        for index, each in enumerate(self.subnets_):
            if each.host_subnet is not None and not is_layer3:
                yield f"subnets[{index}]/hostSubnet", "expected with topology Layer3 alone"
        yield from overlaps_among(self.subnets())

    def objects(self, name: str, places: Places) -> Sequence[LinkBody]:
        member = self.topology.lower()
        network: JsonObject = {"topology": self.topology, member: self._topology()}
        if self.scope == "namespace":
            return [
                LinkBody({**_udn(self._kind, name), "metadata": {"name": name, "namespace": each}, "spec": network})
                for each in places.namespaces
            ]
        selector = {"matchLabels": {self.namespace_label(name): LABEL_VALUE}}
        return [LinkBody({**_udn(self._kind, name), "spec": {"namespaceSelector": selector, "network": network}})]

    def definition(self, name: str, places: Places) -> Definition | None:
        return None if self.role == "Primary" else Definition(name)

    @property
    def addressing(self) -> Addressing:
        has_none = not self.subnets_
        return Addressing(
            why_no_address="" if has_none else "OVN-Kubernetes gives the addresses of its subnets",
            needs_prefix=has_none,
        )

    def subnets(self) -> Sequence[tuple[str, Network]]:
        return [(f"subnets[{index}]", read_network(each.cidr)) for index, each in enumerate(self.subnets_)]

    def _topology(self) -> JsonObject:
        own: JsonObject = {"role": self.role}
        if self.topology == "Layer3":
            own["subnets"] = [each.given() for each in self.subnets_]
        elif self.subnets_:
            own["subnets"] = [each.cidr for each in self.subnets_]
        if self.join_subnets:
            own["joinSubnets"] = list(self.join_subnets)
        if self.mtu is not None:
            own["mtu"] = self.mtu
        if self.ipam is not None:
            own["ipam"] = self.ipam.given()
        if self.physical_network_name is not None:
            own["physicalNetworkName"] = self.physical_network_name
        if self.vlan is not None:
            own["vlan"] = {"mode": "Access", "access": {"id": self.vlan}}
        return own


def _udn(kind: str, name: str) -> JsonObject:
    return {"apiVersion": _UDN, "kind": kind, "metadata": {"name": name}}


def _without_empty(given: JsonObject) -> JsonObject:
    return {name: value for name, value in given.items() if value != []}


def _same_names(member: str, subnets: Sequence[Subnet]) -> Iterator[Fault]:
    names: set[str] = set()
    for index, each in enumerate(subnets):
        if each.name in names:
            yield f"{member}[{index}]/name", f"another name expected: {each.name} is given twice"
        names.add(each.name)
