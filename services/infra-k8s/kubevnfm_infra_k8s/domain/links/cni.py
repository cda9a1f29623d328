"""Links by NetworkAttachmentDefinitions: any CNI, and typed forms of bridge, macvlan, ipvlan, SR-IOV and Open vSwitch. No I/O."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, ClassVar, Final, Literal

from kubevnfm_kit.foreign_json import read_foreign
from kubevnfm_kit.json_types import JsonMapping, JsonObject
from pydantic import BeforeValidator, Field, field_validator

from kubevnfm_infra_k8s.domain.links.spec import (
    NAD,
    RESOURCE_NAME,
    Addressing,
    ApiKind,
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
    VlanOrNone,
    ipam_with_routes,
    nad,
    network_configuration,
)
from kubevnfm_infra_k8s.domain.links.subnets import Network, ipam_faults, ipam_gateways, ipam_networks

_OPERATOR_API: Final = "sriovnetwork.openshift.io/v1"
_MOST_PLUGINS: Final = 16


def _as_switch(given: object) -> object:
    # YAML 1.1 reads an unquoted `on` as true; the object has the text.
    return ("on" if given else "off") if isinstance(given, bool) else given


Switch = Annotated[Literal["on", "off"], BeforeValidator(_as_switch)]
Rate = Annotated[int, Field(ge=0, strict=True)]


class _Addressed(Part):
    """A plug-in whose interfaces have addresses."""

    ipam: JsonObject | None = None
    dns: Dns | None = None
    routes: tuple[Route, ...] = Field(default=(), max_length=64)

    def address_faults(self, place: str = "") -> Iterator[Fault]:
        """Yield what is wrong with the addresses."""
        at = f"{place}/" if place else ""
        if self.ipam is not None:
            yield from ipam_faults(self.ipam, f"{at}ipam")
        elif self.routes:
            yield f"{at}routes", "routes are a part of ipam, which is absent"

    def networks(self, place: str = "") -> Sequence[tuple[str, Network]]:
        """Return the valid subnets."""
        return ipam_networks(self.ipam, f"{place}/ipam" if place else "ipam") if self.ipam is not None else ()

    def own(self, *left_out: str) -> JsonObject:
        """Return the members that only this plug-in has."""
        return {name: value for name, value in self.given().items() if name not in {"ipam", "dns", "routes", *left_out}}


class Bridge(_Addressed):
    """The CNI plug-in bridge."""

    bridge: Text
    vlan: VlanOrNone | None = None
    mtu: Mtu | None = None
    is_gateway: bool | None = None
    is_default_gateway: bool | None = None
    ip_masq: bool | None = None
    hairpin_mode: bool | None = None
    promisc_mode: bool | None = None
    force_address: bool | None = None
    macspoofchk: bool | None = None


class Macvlan(_Addressed):
    """The CNI plug-in macvlan."""

    master: Text
    mode: Literal["bridge", "private", "vepa", "passthru"] | None = None
    mtu: Mtu | None = None
    link_in_container: bool | None = None


class Ipvlan(_Addressed):
    """The CNI plug-in ipvlan."""

    master: Text
    mode: Literal["l2", "l3", "l3s"] | None = None
    mtu: Mtu | None = None
    link_in_container: bool | None = None

    def address_faults(self, place: str = "") -> Iterator[Fault]:
        yield from super().address_faults(place)
        if self.ipam is not None and self.ipam.get("type") == "dhcp":
            yield (
                f"{place}/ipam/type",
                "dhcp does not work with ipvlan: all its interfaces have the MAC of their master",
            )


class NadSpec(LinkSpec):
    """A NetworkAttachmentDefinition: a configuration as given, or one typed form."""

    lacks: ClassVar[str] = "Multus"
    config: JsonObject | str | None = None
    bridge: Bridge | None = None
    macvlan: Macvlan | None = None
    ipvlan: Ipvlan | None = None

    @field_validator("config")
    @classmethod
    def _is_configuration(cls, given: JsonObject | str | None) -> JsonObject | str | None:
        if given is None:
            return None
        read = read_foreign(given) if isinstance(given, str) else given
        if not isinstance(read, Mapping):
            raise ValueError("a CNI configuration expected: a JSON object, or a text with one")
        plugins = read.get("plugins", [read])
        if not isinstance(plugins, list) or not plugins or not all(_is_plugin(one) for one in plugins):
            raise ValueError("a CNI configuration expected: `type`, or `plugins` each with a `type`")
        return given

    def kinds(self) -> Sequence[tuple[ApiKind, str]]:
        return ((NAD, "type"),)

    def objects(self, name: str, places: Places) -> Sequence[LinkBody]:
        return [nad(name, namespace, self._configuration(name)) for namespace in places.namespaces]

    def faults(self) -> Iterator[Fault]:
        forms = [form for form in ("config", "bridge", "macvlan", "ipvlan") if getattr(self, form) is not None]
        if len(forms) != 1:
            yield "", "one of config, bridge, macvlan and ipvlan expected"
        for form, plugin in self._typed():
            yield from plugin.address_faults(form)

    def definition(self, name: str, places: Places) -> Definition:
        return Definition(name)

    @property
    def addressing(self) -> Addressing:
        if self.config is None:
            form, plugin = next(self._typed())
            return _addressing(plugin.ipam, has_macs=form != "ipvlan")
        plugins = self._plugins()
        ipam = next((dict(one["ipam"]) for one in plugins if isinstance(one.get("ipam"), Mapping)), None)
        abilities = [one["capabilities"] for one in plugins if isinstance(one.get("capabilities"), Mapping)]
        found = _addressing(ipam, has_macs=any(each.get("mac") for each in abilities))
        if not any(each.get("ips") for each in abilities):
            return replace(found, why_no_address="no plug-in of config has the capability ips")
        return found

    def subnets(self) -> Sequence[tuple[str, Network]]:
        if self.config is None:
            return [found for form, plugin in self._typed() for found in plugin.networks(form)]
        found: list[tuple[str, Network]] = []
        for plugin in self._plugins():
            if isinstance(plugin.get("ipam"), Mapping):
                found += ipam_networks(plugin["ipam"], "config/ipam")
        return found

    def _plugins(self) -> Sequence[JsonMapping]:
        read = read_foreign(self.config) if isinstance(self.config, str) else self.config
        return list(read.get("plugins", [read])) if isinstance(read, Mapping) else []

    def _typed(self) -> Iterator[tuple[str, _Addressed]]:
        for form, plugin in (("bridge", self.bridge), ("macvlan", self.macvlan), ("ipvlan", self.ipvlan)):
            if plugin is not None:
                yield form, plugin

    def _configuration(self, name: str) -> JsonMapping | str:
        if self.config is not None:
            return self.config
        form, plugin = next(self._typed())
        return network_configuration(
            name,
            {"type": form, **plugin.own(), **_some(capabilities_of(plugin.ipam, has_macs=form != "ipvlan"))},
            ipam=plugin.ipam,
            routes=plugin.routes,
            dns=plugin.dns,
        )


class _ByOperator(LinkSpec, _Addressed):
    """A network that a plain NAD describes, or an object of the SR-IOV network operator, which makes the NAD itself."""

    operator: bool = False
    capabilities: dict[str, bool] | None = None
    meta_plugins: tuple[JsonObject, ...] = Field(default=(), max_length=_MOST_PLUGINS)
    operator_kind: ClassVar[ApiKind]

    @field_validator("meta_plugins")
    @classmethod
    def _are_plugins(cls, given: tuple[JsonObject, ...]) -> tuple[JsonObject, ...]:
        if not all(_is_plugin(one) for one in given):
            raise ValueError("configurations of CNI plug-ins expected, each with a `type`")
        return given

    def kinds(self) -> Sequence[tuple[ApiKind, str]]:
        operated = [(self.operator_kind, "spec/operator")] if self.operator else []
        return [(NAD, "type"), *operated]

    @property
    def uses_operator(self) -> bool:
        return self.operator

    def faults(self) -> Iterator[Fault]:
        yield from self.address_faults()
        if self.operator and self.dns is not None:
            yield "dns", "the operator's object has no DNS configuration: use operator: false"

    def definition(self, name: str, places: Places) -> Definition:
        # The operator gives the definition the name of its own object, and these are all in one namespace.
        return Definition(name, is_by_namespace=self.operator)

    @property
    def addressing(self) -> Addressing:
        return _addressing(self.ipam, has_macs=True)

    def subnets(self) -> Sequence[tuple[str, Network]]:
        return self.networks()

    def _operated(self, name: str, namespace: str, places: Places, own: JsonMapping) -> LinkBody:
        """Return the operator's object for one namespace; structures are JSON texts in it."""
        spec: JsonObject = {"networkNamespace": namespace, **own}
        ipam = ipam_with_routes(self.ipam, self.routes)
        if ipam is not None:
            spec["ipam"] = json.dumps(ipam)
        spec |= {name: json.dumps(value) for name, value in self._capabilities().items()}
        if self.meta_plugins:
            # The operator puts this text behind its own plug-in, inside the brackets of a list.
            spec["metaPlugins"] = ",".join(json.dumps(plugin) for plugin in self.meta_plugins)
        api_version, kind = self.operator_kind
        # All of them are in one namespace, and the NAD gets the name of its object.
        metadata = {"name": f"{name}-{namespace}", "namespace": places.sriov}
        return LinkBody({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec})

    def _capabilities(self) -> JsonObject:
        made = capabilities_of(self.ipam, has_macs=True)
        return {"capabilities": {**made["capabilities"], **(self.capabilities or {})}}

    def _plain(self, name: str, namespace: str, own: JsonMapping, resource: str | None) -> LinkBody:
        plugin = {**own, **self._capabilities()}
        config = network_configuration(
            name, plugin, ipam=self.ipam, routes=self.routes, dns=self.dns, more_plugins=self.meta_plugins
        )
        return nad(name, namespace, config, annotations={RESOURCE_NAME: resource} if resource else None)


class SriovSpec(_ByOperator):
    """Virtual functions of SR-IOV."""

    lacks: ClassVar[str] = "SR-IOV"
    operator_kind: ClassVar[ApiKind] = (_OPERATOR_API, "SriovNetwork")
    resource_name: Text
    """As pods ask for it: ``intel.com/intel_sriov_700``. The operator's object has it without the prefix."""
    vlan: VlanOrNone | None = None
    vlan_qo_s: int | None = Field(default=None, alias="vlanQoS", ge=0, le=7, strict=True)
    vlan_proto: Literal["802.1q", "802.1ad"] | None = None
    spoof_chk: Switch | None = None
    trust: Switch | None = None
    link_state: Literal["auto", "enable", "disable"] | None = None
    min_tx_rate: Rate | None = None
    max_tx_rate: Rate | None = None

    def faults(self) -> Iterator[Fault]:
        yield from super().faults()
        if self.ipam is not None and self.ipam.get("type") == "dhcp":
            yield "ipam/type", "dhcp cannot be fulfilled on SR-IOV: static, host-local or whereabouts expected"
        if not self.operator and "/" not in self.resource_name:
            yield "resourceName", "a name with its prefix expected, such as intel.com/intel_sriov_700"
        for member, value in (("vlanQoS", self.vlan_qo_s), ("vlanProto", self.vlan_proto)):
            if value is not None and not self.vlan:
                yield member, "needs a vlan above 0"
        if self.max_tx_rate and self.min_tx_rate is not None and self.min_tx_rate > self.max_tx_rate:
            yield "minTxRate", f"at most maxTxRate, {self.max_tx_rate}, expected"

    def objects(self, name: str, places: Places) -> Sequence[LinkBody]:
        members = {
            member: value
            for member, value in (
                ("vlan", self.vlan), ("vlanQoS", self.vlan_qo_s), ("vlanProto", self.vlan_proto),
                ("spoofChk", self.spoof_chk), ("trust", self.trust), ("linkState", self.link_state),
                ("minTxRate", self.min_tx_rate), ("maxTxRate", self.max_tx_rate),
            )
            if value is not None
        }  # fmt: skip
        if self.operator:
            own = {"resourceName": self.resource_name.rpartition("/")[2], **members}
            return [self._operated(name, each, places, own) for each in places.namespaces]
        plugin = {"type": "sriov", **{_OF_PLUGIN.get(member, member): value for member, value in members.items()}}
        return [self._plain(name, each, plugin, self.resource_name) for each in places.namespaces]


_OF_PLUGIN: Final[Mapping[str, str]] = {
    "spoofChk": "spoofchk",
    "linkState": "link_state",
    "minTxRate": "min_tx_rate",
    "maxTxRate": "max_tx_rate",
}
"""How the CNI plug-in names members that the operator names otherwise."""


class Trunk(Part):
    """VLANs of a trunk: one, or from the first to the last."""

    id: VlanOrNone | None = None
    min_id: VlanOrNone | None = Field(default=None, alias="minID")
    max_id: VlanOrNone | None = Field(default=None, alias="maxID")


class OvsSpec(_ByOperator):
    """A bridge of Open vSwitch."""

    lacks: ClassVar[str] = "Open vSwitch"
    operator_kind: ClassVar[ApiKind] = (_OPERATOR_API, "OVSNetwork")
    bridge: Text | None = None
    resource_name: Text | None = None
    vlan: VlanOrNone | None = None
    trunk: tuple[Trunk, ...] = Field(default=(), max_length=256)
    mtu: Mtu | None = None
    interface_type: Text | None = None

    def faults(self) -> Iterator[Fault]:
        yield from super().faults()
        if self.operator and self.resource_name is None:
            yield "resourceName", "required with operator: true"
        if not self.operator and self.bridge is None:
            yield "bridge", "required without operator: true"
        for index, part in enumerate(self.trunk):
            if (part.id is None) == (part.min_id is None) or (part.min_id is None) != (part.max_id is None):
                yield f"trunk[{index}]", "id, or minID and maxID expected"
            elif part.min_id is not None and part.max_id is not None and part.min_id > part.max_id:
                yield f"trunk[{index}]/minID", f"at most maxID, {part.max_id}, expected"

    def objects(self, name: str, places: Places) -> Sequence[LinkBody]:
        given = self.given()
        own: JsonObject = {member: given[member] for member in ("bridge", "vlan", "mtu") if member in given}
        if self.trunk:
            own["trunk"] = [part.given() for part in self.trunk]
        if self.operator:
            resource = str(self.resource_name).rpartition("/")[2]
            members = {"resourceName": resource, **own}
            if self.interface_type:
                members["interfaceType"] = self.interface_type
            return [self._operated(name, each, places, members) for each in places.namespaces]
        resource = self.resource_name or f"ovs-cni.network.kubevirt.io/{self.bridge}"
        plugin = {"type": "ovs", **own}
        if self.interface_type:
            plugin["interface_type"] = self.interface_type
        return [self._plain(name, each, plugin, resource) for each in places.namespaces]


def capabilities_of(ipam: JsonMapping | None, *, has_macs: bool) -> JsonObject:
    """Return what pods may ask of an interface: an address if the addresses are static, and a MAC (MC-092)."""
    ips = {"ips": True} if ipam is not None and ipam.get("type") == "static" else {}
    return {"capabilities": {**ips, **({"mac": True} if has_macs else {})}}


def _addressing(ipam: JsonMapping | None, *, has_macs: bool) -> Addressing:
    is_static = ipam is not None and ipam.get("type") == "static"
    return Addressing(
        why_no_address="" if is_static else "the ipam of the link is not static",
        why_no_mac="" if has_macs else "the plug-in of the link takes no MAC address",
        needs_prefix=is_static,
        gateways=ipam_gateways(ipam),
    )


def _some(capabilities: JsonObject) -> JsonObject:
    return capabilities if capabilities["capabilities"] else {}


def _is_plugin(given: object) -> bool:
    return isinstance(given, Mapping) and isinstance(given.get("type"), str) and bool(given["type"])
