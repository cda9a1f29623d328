"""Adds the interfaces on virtual links to pods and to machines of KubeVirt (multicloud.md MC-065 to MC-068)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from copy import deepcopy
from typing import Any, Final

from kubevnfm_csar.networked_workloads import (
    NETWORKS,
    NetworkedWorkload,
    given_networks,
    network_faults,
    networked_workloads,
)
from kubevnfm_csar.profiled_workloads import profiled
from kubevnfm_events.objects import NetworkAttachment, ObjectsOrder
from kubevnfm_kit.errors import Unprocessable
from kubevnfm_kit.foreign_json import read_foreign

from kubevnfm_infra_k8s.domain.objects import Body, field_at

_NFN: Final = "k8s.plugin.opnfv.org/nfn-network"
"""The annotation of a pod with its interfaces of OVN4NFV."""
_OVN4NFV: Final = frozenset({"ovn4nfv", "ovn4nfv-provider"})
_KUBE_OVN: Final = "kube-ovn"


def check_networks(bodies: Sequence[Body], order: ObjectsOrder) -> Sequence[NetworkedWorkload]:
    """Return the workloads that get interfaces. Raises Unprocessable for what they cannot have, with all wrong places."""
    # A profile can have several pods where the manifest has one.
    bodies = profiled(bodies, order.compute_profiles, order.vdus).bodies
    workloads, lacking = networked_workloads(bodies, order.networks, order.vdus)
    faults = [*lacking]
    for each in workloads:
        if malformed := _malformed(each):
            faults.append(malformed)
        else:
            faults += network_faults(each, order.vdus)
    if faults:
        raise Unprocessable(*faults[0], *faults[1:])
    return workloads


def with_networks(body: Body, workload: NetworkedWorkload, namespace: str) -> Body:
    """Return the workload with its interfaces; what its manifest has stays, and stands before them.

    ``namespace``: that of its pods. Raises Unprocessable for a manifest in another form than Kubernetes takes.
    """
    if malformed := _malformed(workload):
        raise Unprocessable(*malformed)
    changed: dict[str, Any] = deepcopy(dict(body))
    template = changed
    for name in workload.path:
        template = template[name]
    networks = [each for _, each in workload.networks if each.link.definition]
    annotations: dict[str, str] = _of_kube_ovn(networks)
    if workload.is_machine:
        template["spec"] = _with_interfaces(template.get("spec") or {}, networks, namespace)
    else:
        given = given_networks(body, workload.path)
        annotations |= _of_pod(template, given, networks, namespace)
    if annotations:
        metadata = {**(template.get("metadata") or {})}
        template["metadata"] = {**metadata, "annotations": {**(metadata.get("annotations") or {}), **annotations}}
    return changed


def _of_pod(
    template: Body, given: Sequence[dict[str, Any]], networks: Sequence[NetworkAttachment], namespace: str
) -> dict[str, str]:
    """Return the annotations by which Multus and OVN4NFV make the interfaces of a pod."""
    entries = list(given)
    for each in networks:
        if each.link.type not in _OVN4NFV:
            entries.append(_entry(each, namespace))
        # One entry serves all interfaces of OVN4NFV, whose annotation names them.
        elif not any(entry.get("name") == each.link.definition for entry in entries):
            entries.append({"name": each.link.definition})
    added = {} if entries == list(given) else {NETWORKS: json.dumps(entries)}
    own = [_nfn_interface(each) for each in networks if each.link.type in _OVN4NFV]
    if own:
        present = _nfn(template)
        added[_NFN] = json.dumps({**present, "type": "ovn4nfv", "interface": [*present.get("interface", []), *own]})
    return added


def _entry(network: NetworkAttachment, namespace: str) -> dict[str, Any]:
    """Return an element of the annotation of Multus."""
    link = network.link
    entry: dict[str, Any] = {
        "name": _definition(network, namespace),
        "namespace": link.definition_namespace or namespace,
        "interface": network.interface,
    }
    # Kube-OVN has the addresses in annotations of its own.
    if link.type != _KUBE_OVN:
        if network.ip_address is not None:
            entry["ips"] = [network.ip_address]
        if network.mac_address is not None:
            entry["mac"] = network.mac_address
    if network.default_gateway:
        entry["default-route"] = list(link.gateways)
    return entry


def _nfn_interface(network: NetworkAttachment) -> dict[str, str]:
    return {
        "name": network.link.name,
        "interface": network.interface,
        "defaultGateway": "true" if network.default_gateway else "false",
        **({"ipAddress": network.ip_address} if network.ip_address is not None else {}),
        **({"macAddress": network.mac_address} if network.mac_address is not None else {}),
    }


def _nfn(template: Body) -> dict[str, Any]:
    """Return the interfaces of OVN4NFV that the manifest has."""
    text = ((template.get("metadata") or {}).get("annotations") or {}).get(_NFN)
    try:
        read = read_foreign(text) if isinstance(text, str) else {}
    except ValueError:
        return {}
    return dict(read) if isinstance(read, dict) and isinstance(read.get("interface", []), list) else {}


def _of_kube_ovn(networks: Sequence[NetworkAttachment]) -> dict[str, str]:
    """Return the annotations from which Kube-OVN takes addresses of pods and machines."""
    found: dict[str, str] = {}
    for each in networks:
        if each.link.type == _KUBE_OVN:
            provider = f"{each.link.definition}.{each.link.definition_namespace}.ovn.kubernetes.io"
            if each.ip_address is not None:
                found[f"{provider}/ip_address"] = each.ip_address
            if each.mac_address is not None:
                found[f"{provider}/mac_address"] = each.mac_address
    return found


def _malformed(workload: NetworkedWorkload) -> tuple[str, str] | None:
    """Return what of a workload has another form than Kubernetes takes, so that nothing can be added to it; None if nothing has."""
    path, maps, lists = workload.path, [("metadata",), ("metadata", "annotations")], list[tuple[str, ...]]()
    if workload.is_machine:
        maps += [("spec",), ("spec", "domain"), ("spec", "domain", "devices")]
        lists += [("spec", "networks"), ("spec", "domain", "devices", "interfaces")]
    template = field_at(workload.body, *path)
    wrong = [f"{'.'.join(path)}: an object"] if not isinstance(template, dict) else []
    wrong += [f"{'.'.join((*path, *each))}: an object" for each in maps if not _fits(template, each, dict)]
    wrong += [f"{'.'.join((*path, *each))}: a list" for each in lists if not _fits(template, each, list)]
    index, _ = workload.networks[0]
    return (f"networks[{index}]/vdu_id", f"{wrong[0]} expected in {workload}") if wrong else None


def _fits(template: object, path: tuple[str, ...], kind: type) -> bool:
    """Return whether what is there is of a kind, or is absent."""
    for name in path:
        template = template.get(name) if isinstance(template, dict) else None
    return template is None or isinstance(template, kind)


def _with_interfaces(given: Body, networks: Sequence[NetworkAttachment], namespace: str) -> Body:
    """Return the spec of a VirtualMachineInstance with networks and their interfaces."""
    spec = {**given, "domain": {**(given.get("domain") or {})}}
    devices = spec["domain"]["devices"] = {**(spec["domain"].get("devices") or {})}
    present, interfaces = list(spec.get("networks") or []), list(devices.get("interfaces") or [])
    # Without any network a machine is on that of the pods; with others it would lose this one.
    if networks and not present and not interfaces and devices.get("autoattachPodInterface") is not False:
        present.append({"name": "default", "pod": {}})
        interfaces.append({"name": "default", "masquerade": {}})
    for each in networks:
        place = each.link.definition_namespace or namespace
        present.append({"name": each.interface, "multus": {"networkName": f"{place}/{_definition(each, namespace)}"}})
        interfaces.append(_machine_interface(each))
    devices["interfaces"] = interfaces
    return {**spec, "networks": present}


def _machine_interface(network: NetworkAttachment) -> dict[str, Any]:
    usual = "sriov" if network.link.type == "sriov" else "bridge"
    binding = {"binding": {"name": network.plugin}} if network.plugin else {network.binding or usual: {}}
    mac = {"macAddress": network.mac_address} if network.mac_address is not None else {}
    return {"name": network.interface, **binding, **mac}


def _definition(network: NetworkAttachment, namespace: str) -> str:
    link = network.link
    return f"{link.definition}-{namespace}" if link.is_definition_by_namespace else link.definition
