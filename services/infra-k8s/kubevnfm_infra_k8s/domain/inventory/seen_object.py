"""The facts that the inventory keeps of an object, read from it as the API server shows it. No I/O.

A region may be hostile: each text has a limit, addresses are addresses, and their number is bounded.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kubevnfm_events.inventory import NetworkAddresses
from kubevnfm_kit.foreign_json import read_foreign
from kubevnfm_kit.printable import printable

from kubevnfm_infra_k8s.domain.inventory.pod_state import readiness_of, trouble_of
from kubevnfm_infra_k8s.domain.objects import (
    INSTANCE_LABEL,
    OPERATION_ANNOTATION,
    Body,
    Resource,
    annotations_of,
    field_at,
    group_of,
    labels_of,
)

_STATUS: Final = "k8s.v1.cni.cncf.io/network-status"
"""The annotation in which Multus and its like say which addresses a pod has in which network."""
_LONGEST: Final = 253
_LARGEST_STATUS: Final = 64 * 1024
_MOST_NETWORKS: Final = 32
_MOST_ADDRESSES: Final = 16
"""The limit for one network."""
_HASH_LABEL: Final = "pod-template-hash"


@dataclass(frozen=True)
class Owner:
    """The controller of an object; of a pod of a Deployment, the Deployment."""

    group: str
    kind: str
    name: str


@dataclass(frozen=True)
class SeenObject:
    """An object as it was seen."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str
    vnf_instance_id: str
    """As its label says."""
    created_at: str = ""
    operation: str = ""
    """The operation that has applied it last; empty for what controllers have made."""
    owner: Owner | None = None
    node: str = ""
    phase: str = ""
    networks: tuple[NetworkAddresses, ...] = ()
    ready: bool | None = None
    """Whether a pod or virtual machine is ready; None: it does not say."""
    trouble: str = ""
    """Why it does not start, or has ended."""

    @property
    def group(self) -> str:
        return group_of(self.api_version)

    @classmethod
    def from_body(cls, body: Body, resource: Resource) -> SeenObject:
        """Return it for an object of the kind, of which the metadata are enough unless it `is_placed`."""
        read = _PLACED.get((group_of(resource.api_version), resource.kind))
        node, phase, networks = read(body) if read is not None else ("", "", ())
        is_ready = readiness_of(body) if read is not None else None
        return cls(
            api_version=resource.api_version,
            kind=resource.kind,
            namespace=_text(field_at(body, "metadata", "namespace")),
            name=_text(field_at(body, "metadata", "name")),
            uid=_text(field_at(body, "metadata", "uid")),
            vnf_instance_id=_text(labels_of(body).get(INSTANCE_LABEL)),
            created_at=_text(field_at(body, "metadata", "creationTimestamp")),
            operation=_text(annotations_of(body).get(OPERATION_ANNOTATION)),
            owner=_owner(body),
            node=node,
            phase=phase,
            networks=networks,
            ready=is_ready,
            # One that works may have containers that have ended.
            trouble=trouble_of(body) if read is not None and not is_ready else "",
        )


def is_placed(api_version: str, kind: str) -> bool:
    """Return whether objects of the kind have a node and addresses."""
    return (group_of(api_version), kind) in _PLACED


def parts_of(api_version: str, kind: str) -> Sequence[Sequence[str]]:
    """Return the paths beside the metadata that are read of objects of the kind."""
    return _PARTS.get((group_of(api_version), kind), ())


def _text(value: object) -> str:
    return printable(value[:_LONGEST]) if isinstance(value, str) else ""


def _owner(body: Body) -> Owner | None:
    references = field_at(body, "metadata", "ownerReferences")
    for each in references if isinstance(references, list) else ():
        if field_at(each, "controller") is not True:
            continue
        group, kind, name = group_of(_text(each.get("apiVersion"))), _text(each.get("kind")), _text(each.get("name"))
        # The name of a ReplicaSet of a Deployment is that of the Deployment and the hash of its pod template.
        end = f"-{_text(labels_of(body).get(_HASH_LABEL))}"
        if (group, kind) == ("apps", "ReplicaSet") and len(end) > 1 and name.endswith(end):
            return Owner(group, "Deployment", name.removesuffix(end))
        return Owner(group, kind, name)
    return None


def _pod(body: Body) -> tuple[str, str, tuple[NetworkAddresses, ...]]:
    networks = list(_status_of(body))
    named = {address for network in networks for address in network.addresses}
    listed = _mappings(field_at(body, "status", "podIPs")) or [{"ip": field_at(body, "status", "podIP")}]
    rest = [each for each in _addresses([one.get("ip") for one in listed]) if each not in named]
    if rest:
        networks.insert(0, NetworkAddresses(addresses=tuple(rest)))
    return _text(field_at(body, "spec", "nodeName")), _text(field_at(body, "status", "phase")), tuple(networks)


def _status_of(pod: Body) -> Iterator[NetworkAddresses]:
    text = annotations_of(pod).get(_STATUS)
    if not isinstance(text, str) or len(text) > _LARGEST_STATUS:
        return
    try:
        found = read_foreign(text)
    except ValueError:
        return
    for each in _mappings(found)[:_MOST_NETWORKS]:
        ips = each.get("ips")
        addresses = _addresses(ips if isinstance(ips, list) else [])
        yield NetworkAddresses(
            network=_text(each.get("name")), interface=_text(each.get("interface")), addresses=addresses
        )


def _virtual_machine(body: Body) -> tuple[str, str, tuple[NetworkAddresses, ...]]:
    networks = []
    for each in _mappings(field_at(body, "status", "interfaces"))[:_MOST_NETWORKS]:
        several = each.get("ipAddresses")
        addresses = _addresses(several if isinstance(several, list) and several else [each.get("ipAddress")])
        networks.append(
            NetworkAddresses(
                network=_text(each.get("name")), interface=_text(each.get("interfaceName")), addresses=addresses
            )
        )
    return _text(field_at(body, "status", "nodeName")), _text(field_at(body, "status", "phase")), tuple(networks)


def _mappings(value: object) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


def _addresses(values: list[Any]) -> tuple[str, ...]:
    found = (address_of(each) for each in values[:_MOST_ADDRESSES])
    return tuple(dict.fromkeys(each for each in found if each is not None))


def address_of(value: object) -> str | None:
    """Return an address in the one form in which addresses are stored and searched; None if it is none."""
    # The longest has 45 characters; a prefix length, which some CNIs add, is no part of it.
    text = value.partition("/")[0] if isinstance(value, str) and len(value) <= 64 else ""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    return None if getattr(address, "scope_id", None) else str(address)


_PLACED: Final[Mapping[tuple[str, str], Callable[[Body], tuple[str, str, tuple[NetworkAddresses, ...]]]]] = {
    ("", "Pod"): _pod,
    ("kubevirt.io", "VirtualMachineInstance"): _virtual_machine,
}
"""The kinds with a node and addresses, by API group and kind."""
_PARTS: Final[Mapping[tuple[str, str], Sequence[Sequence[str]]]] = {
    ("", "Pod"): (
        ("spec", "nodeName"),
        *(("status", name) for name in ("phase", "podIP", "podIPs", "conditions", "reason", "message")),
        *(("status", name) for name in ("initContainerStatuses", "containerStatuses")),
    ),
    ("kubevirt.io", "VirtualMachineInstance"): tuple(
        ("status", name) for name in ("nodeName", "phase", "interfaces", "conditions")
    ),
}
