"""Which workloads of a set of manifests get which interfaces on virtual links, and what of that cannot be (multicloud.md chapter 10)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kubevnfm_events.objects import NetworkAttachment, VduTarget
from kubevnfm_kit.foreign_json import read_foreign

from kubevnfm_csar.pod_templates import MACHINE_TEMPLATES, POD_TEMPLATES, api_kind

NETWORKS: Final = "k8s.v1.cni.cncf.io/networks"
"""The annotation of a pod with its interfaces beside ``eth0``: JSON, or ``namespace/name@interface`` separated by commas."""
_TEMPLATES: Final = {**POD_TEMPLATES, **MACHINE_TEMPLATES}
_SRIOV: Final = "sriov"
_KUBE_OVN: Final = "kube-ovn"
_OVN4NFV: Final = frozenset({"ovn4nfv", "ovn4nfv-provider"})

Fault = tuple[str, str]
"""A place of the request, and what was expected there."""


@dataclass(frozen=True)
class NetworkedWorkload:
    """A workload whose pods or machines get interfaces."""

    position: int
    """Its number in the set, from 0."""
    path: tuple[str, ...]
    """To what has the metadata and the spec of a pod or machine."""
    is_machine: bool
    networks: Sequence[tuple[int, NetworkAttachment]]
    """Each with its position in the request, in the order of the request."""
    body: Mapping[str, Any] = field(repr=False)

    def __str__(self) -> str:
        return f"{self.body.get('kind')} {_name(self.body)}"


def networked_workloads(
    bodies: Sequence[object], networks: Sequence[NetworkAttachment], vdus: Sequence[VduTarget]
) -> tuple[Sequence[NetworkedWorkload], Sequence[Fault]]:
    """Return the workloads with their interfaces, and a fault for each network whose VDU has no workload, or several."""
    targets = {vdu.vdu_id: vdu for vdu in vdus}
    found: dict[int, list[tuple[int, NetworkAttachment]]] = {}
    faults: list[Fault] = []
    for index, network in enumerate(networks):
        target = targets.get(network.vdu_id) or VduTarget(vdu_id=network.vdu_id, name=network.vdu_id)
        positions = workload_positions(bodies, target)
        if len(positions) == 1:
            found.setdefault(positions[0], []).append((index, network))
            continue
        what = "several workloads are" if positions else "no workload that pods or machines come of is"
        faults.append((f"networks[{index}]/vdu_id", f"{what} named {target.name} in the manifests"))
    workloads = []
    for position in sorted(found):
        body = bodies[position]
        assert isinstance(body, Mapping)
        kind = api_kind(body)
        workloads.append(
            NetworkedWorkload(position, _TEMPLATES[kind], kind in MACHINE_TEMPLATES, found[position], body)
        )
    return workloads, faults


def network_faults(workload: NetworkedWorkload, vdus: Sequence[VduTarget]) -> Iterator[Fault]:
    """Yield what the workload cannot have of its interfaces."""
    name = _name(workload.body)
    mine = (vdu for vdu in vdus if vdu.name == name or (vdu.is_in_chart and vdu.name == name.rpartition("-")[0]))
    replicas = next((vdu.replicas for vdu in mine), None)
    taken = set(_given_names(workload))
    for index, network in workload.networks:
        place = f"networks[{index}]"
        if network.interface in taken:
            yield f"{place}/interface", f"another name expected: {workload} has the interface {network.interface}"
        taken.add(network.interface)
        if network.ip_address is not None and bears_several(workload.body, replicas):
            yield f"{place}/ip_address", f"not expected: {workload} can have more than one pod, and each needs another"
        if workload.is_machine:
            yield from _machine_faults(network, place, str(workload))
        elif network.binding is not None or network.plugin is not None:
            yield f"{place}/binding", f"not expected: {workload} is no virtual machine of KubeVirt"


def given_networks(body: Mapping[str, Any], path: tuple[str, ...]) -> Sequence[dict[str, Any]]:
    """Return the interfaces that a manifest itself gives its pods; unreadable ones, which Multus refuses, are left out."""
    annotations = _at(body, *path, "metadata", "annotations")
    text = annotations.get(NETWORKS) if isinstance(annotations, Mapping) else None
    if not isinstance(text, str) or not text.strip():
        return []
    if text.lstrip().startswith("["):
        try:
            read = read_foreign(text)
        except ValueError:
            return []
        return [dict(entry) for entry in read if isinstance(entry, Mapping)] if isinstance(read, list) else []
    return [_short_form(part.strip()) for part in text.split(",") if part.strip()]


def _given_names(workload: NetworkedWorkload) -> Iterator[str]:
    """Yield the names of the interfaces that the manifest itself gives."""
    if not workload.is_machine:
        for number, entry in enumerate(given_networks(workload.body, workload.path), start=1):
            yield str(entry.get("interface") or f"net{number}")
        return
    networks = _at(workload.body, *workload.path, "spec", "networks")
    # Without any, a machine is on the network of the pods, under this name.
    yield "default"
    for entry in networks if isinstance(networks, Sequence) else ():
        yield str(_at(entry, "name"))


def _short_form(text: str) -> dict[str, Any]:
    name, _, interface = text.partition("@")
    namespace, slash, own = name.partition("/")
    return {
        "name": own if slash else name,
        **({"namespace": namespace} if slash else {}),
        **({"interface": interface} if interface else {}),
    }


def _machine_faults(network: NetworkAttachment, place: str, workload: str) -> Iterator[Fault]:
    """Yield what a machine of KubeVirt cannot have (MC-066)."""
    link_type = network.link.type
    is_sriov = link_type == _SRIOV
    given = network.plugin or network.binding
    if link_type in _OVN4NFV:
        yield (
            f"{place}/virtual_link_id",
            f"a link of another type expected: OVN4NFV names interfaces, and so does KubeVirt ({workload})",
        )
    if given is not None and (given == _SRIOV) != is_sriov:
        yield f"{place}/binding", "sriov expected on a link of type sriov, and only there"
    if network.ip_address is not None and link_type != _KUBE_OVN:
        yield (
            f"{place}/ip_address",
            f"not expected: the guest of {workload} sets its address on links of type {link_type}",
        )
    if network.default_gateway:
        yield f"{place}/default_gateway", f"not expected: the guest of {workload} sets its routes"


def workload_positions(bodies: Sequence[object], target: VduTarget) -> Sequence[int]:
    """Return the positions of the workloads of a VDU; in a chart also those with its name up to their last dash."""
    fitting = [
        (index, _name(body))
        for index, body in enumerate(bodies)
        if isinstance(body, Mapping)
        and api_kind(body) in _TEMPLATES
        and body.get("kind") == (target.kind or body.get("kind"))
    ]
    exact = [index for index, name in fitting if name == target.name]
    if exact or not target.is_in_chart:
        return exact
    return [index for index, name in fitting if name.rpartition("-")[0] == target.name]


def bears_several(body: Mapping[str, Any], replicas: int | None) -> bool:
    """Return whether there can be two pods of a workload at a time; a placeholder in the place of a number is not known yet."""
    kind = body.get("kind")
    if kind == "DaemonSet":
        return True
    if kind in {"Job", "CronJob"}:
        spec = _at(body, "spec", "jobTemplate", "spec") if kind == "CronJob" else body.get("spec")
        counts = [_at(spec, name) for name in ("parallelism", "completions")]
        return any(isinstance(count, int) and count > 1 for count in counts)
    count = replicas if replicas is not None else _at(body, "spec", "replicas")
    return isinstance(count, int) and count > 1


def _name(body: Mapping[str, Any]) -> str:
    return str(_at(body, "metadata", "name") or "")


def _at(body: object, *path: str) -> Any:
    for name in path:
        body = body.get(name) if isinstance(body, Mapping) else None
    return body
