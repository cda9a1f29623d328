"""Gives the workloads of a set of manifests what compute profiles say, and finds what of that cannot be (multicloud.md MC-035, MC-070, MC-121)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from decimal import Decimal
from hashlib import sha256
from typing import Any, Final

from kubevnfm_events.compute_profiles import AffinityTerm, ComputeProfile, DeviceClaim, Toleration
from kubevnfm_events.objects import VduTarget
from kubevnfm_kit.json_pointer import escaped

from kubevnfm_csar.networked_workloads import Fault, workload_positions
from kubevnfm_csar.pod_templates import MACHINE_TEMPLATES, POD_TEMPLATES, REPLICATED, api_kind

Body = Mapping[str, Any]
_CLAIM_API: Final = "resource.k8s.io/v1"
_CLAIM_KIND: Final = "ResourceClaimTemplate"
_QUANTITY: Final = re.compile(r"(\d*\.?\d*)(m|[kMGTPE]|[KMGTPE]i|[eE][+-]?\d{1,2})?")
_FACTORS: Final = {"m": Decimal("0.001"), "": Decimal(1), "k": Decimal(1000)}
_PREFIXES: Final = "KMGTPE"


@dataclass(frozen=True)
class Profiled:
    """A set of manifests with its profiles."""

    bodies: Sequence[Any]
    """As they were given, those of workloads with a profile changed."""
    claims: Sequence[tuple[int, Body]] = ()
    """Objects that come before a workload, whose position is with each: templates of its claims of devices."""
    faults: Sequence[Fault] = field(default=())


def profiled(bodies: Sequence[Any], profiles: Sequence[ComputeProfile], vdus: Sequence[VduTarget]) -> Profiled:
    """Return the manifests with the profiles of their workloads, and a fault for what cannot be; ``bodies``: in any form."""
    changed, claims, faults = list(bodies), list[tuple[int, Body]](), list[Fault]()
    targets = {vdu.vdu_id: vdu for vdu in vdus}
    taken: dict[int, int] = {}
    for index, profile in enumerate(profiles):
        place = f"compute_profiles[{index}]"
        target = targets.get(profile.vdu_id) or VduTarget(vdu_id=profile.vdu_id, name=profile.vdu_id)
        positions = workload_positions(bodies, target)
        if len(positions) != 1:
            what = "several workloads are" if positions else "no workload that pods or machines come of is"
            faults.append((f"{place}/vdu_id", f"{what} named {target.name} in the manifests"))
            continue
        position = positions[0]
        if position in taken:
            faults.append((f"{place}/vdu_id", f"compute_profiles[{taken[position]}] is for this workload too"))
            continue
        taken[position] = index
        workload = _Workload.copied(bodies[position])
        found = list(_faults(workload, profile, target))
        if found:
            faults += [(f"{place}/{where}", reason) for where, reason in found]
            continue
        workload.apply(profile)
        faults += [(f"{place}/{where}", reason) for where, reason in _over_limits(workload, profile)]
        changed[position] = workload.body
        claims += [(position, _claim_template(workload.body, claim)) for claim in profile.resource_claims]
    faults += [(f"compute_profiles[{taken[at]}]/resource_claims", reason) for at, reason in _doubles(bodies, claims)]
    return Profiled(changed, claims, faults)


@dataclass(frozen=True)
class _Workload:
    """A copy of a workload's manifest, which is changed."""

    body: dict[str, Any]
    spec: dict[str, Any] | None
    """That of its pods or machines; None: it has another form than Kubernetes takes."""
    is_machine: bool

    @classmethod
    def copied(cls, given: Mapping[str, Any]) -> _Workload:
        """Return a copy of a manifest of a workload."""
        body: dict[str, Any] = deepcopy(dict(given))
        kind = api_kind(body)
        is_machine = kind in MACHINE_TEMPLATES
        node: Any = body
        for name in (*(MACHINE_TEMPLATES if is_machine else POD_TEMPLATES)[kind], "spec"):
            node = node.get(name) if isinstance(node, dict) else None
        return cls(body, node if isinstance(node, dict) else None, is_machine)

    def __str__(self) -> str:
        return f"{self.body.get('kind')} {self.body['metadata']['name']}"

    def holder(self, profile: ComputeProfile) -> dict[str, Any] | None:
        """Return the container, or the domain of the machine, that has the resources; None if there is none."""
        assert self.spec is not None
        if self.is_machine:
            domain = self.spec.setdefault("domain", {})
            return domain if isinstance(domain, dict) else None
        containers = self.spec.get("containers")
        found = [each for each in containers if isinstance(each, dict)] if isinstance(containers, list) else []
        named = (
            found[:1] if profile.container is None else [one for one in found if one.get("name") == profile.container]
        )
        return named[0] if named else None

    def apply(self, profile: ComputeProfile) -> None:
        """Change the workload as the profile says."""
        spec, holder = self.spec, self.holder(profile)
        assert spec is not None
        assert holder is not None
        if profile.replicas is not None:
            self.body["spec"]["replicas"] = profile.replicas
        self._give_resources(holder, profile)
        if profile.node_selector:
            spec["nodeSelector"] = {**(spec.get("nodeSelector") or {}), **profile.node_selector}
        if profile.affinity:
            _require(spec, [_expression(term) for term in profile.affinity])
        added = [_toleration(each) for each in profile.tolerations]
        if added:
            present = list(spec.get("tolerations") or [])
            spec["tolerations"] = [*present, *(each for each in added if each not in present)]
        if profile.runtime_class is not None:
            spec["runtimeClassName"] = profile.runtime_class
        if profile.resource_claims:
            added_claims = [
                {"name": each.name, "resourceClaimTemplateName": _claim_template(self.body, each)["metadata"]["name"]}
                for each in profile.resource_claims
            ]
            spec["resourceClaims"] = [*(spec.get("resourceClaims") or []), *added_claims]

    def _give_resources(self, holder: dict[str, Any], profile: ComputeProfile) -> None:
        pages = {} if self.is_machine else {f"hugepages-{size}": amount for size, amount in profile.hugepages.items()}
        added = {"requests": {**profile.requests, **pages}, "limits": {**profile.limits, **pages}}
        resources = dict(holder.get("resources") or {})
        for name, amounts in added.items():
            if amounts:
                resources[name] = {**(resources.get(name) or {}), **amounts}
        if profile.resource_claims:
            resources["claims"] = [
                *(resources.get("claims") or []),
                *({"name": each.name} for each in profile.resource_claims),
            ]
        if resources:
            holder["resources"] = resources
        if self.is_machine and profile.hugepages:
            ((size, amount),) = profile.hugepages.items()
            holder["memory"] = {**(holder.get("memory") or {}), "hugepages": {"pageSize": size}, "guest": amount}


def _doubles(bodies: Sequence[Any], claims: Sequence[tuple[int, Body]]) -> Iterator[tuple[int, str]]:
    """Yield the position of each workload that has a template of claims whose name is taken, and by what."""
    own, made = {_template_name(each) for each in bodies}, set[tuple[object, str]]()
    for position, body in claims:
        name, namespace = body["metadata"]["name"], body["metadata"].get("namespace")
        if name in own:
            yield position, f"the manifests have a {_CLAIM_KIND} {name} of their own"
        # Two workloads of one name, of different kinds.
        elif (namespace, name) in made:
            yield position, f"another profile has a {_CLAIM_KIND} {name}: another name of the claim expected"
        made.add((namespace, name))


def _faults(workload: _Workload, profile: ComputeProfile, target: VduTarget) -> Iterator[Fault]:
    """Yield what a workload cannot have of its profile."""
    if profile.replicas is not None:
        if target.replicas is not None:
            yield (
                "replicas",
                f"not expected: the instantiation level says how many instances of {target.vdu_id} there are",
            )
        elif api_kind(workload.body) not in REPLICATED:
            yield "replicas", f"not expected: a {workload.body.get('kind')} has no number of replicas"
    if workload.spec is None:
        yield "vdu_id", f"{workload} has no spec of its pods or machines"
        return
    if workload.is_machine:
        yield from _machine_faults(workload, profile)
    holder = workload.holder(profile)
    if holder is None:
        has = "no containers" if profile.container is None else f"no container {profile.container}"
        yield ("vdu_id" if profile.container is None else "container"), f"{workload} has {has}"
    claims = workload.spec.get("resourceClaims")
    present = [each for each in claims if isinstance(each, Mapping)] if isinstance(claims, list) else []
    names = {str(each.get("name")) for each in present}
    for index, claim in enumerate(profile.resource_claims):
        if claim.name in names:
            yield f"resource_claims[{index}]/name", f"another name expected: {workload} has a claim {claim.name}"
        names.add(claim.name)
    yield from (("vdu_id", f"{workload}: {reason}") for reason in _malformed(workload.spec, holder))


def _machine_faults(workload: _Workload, profile: ComputeProfile) -> Iterator[Fault]:
    why = f"not expected: {workload} is a virtual machine of KubeVirt"
    if profile.container is not None:
        yield "container", why
    if profile.runtime_class is not None:
        yield "runtime_class", why
    if profile.resource_claims:
        # KubeVirt claims devices in a form of its own.
        yield "resource_claims", why
    if len(profile.hugepages) > 1:
        yield "hugepages", f"pages of one size expected: {workload} is a virtual machine of KubeVirt"


def _malformed(spec: Mapping[str, Any], holder: Mapping[str, Any] | None) -> Iterator[str]:
    """Yield what has another form than the API server takes, so that nothing can be added to it."""
    lists = ("tolerations", "resourceClaims")
    yield from (f"{name}: a list expected" for name in lists if not isinstance(spec.get(name) or [], list))
    maps = ((spec, "nodeSelector"), (spec, "affinity"), (holder or {}, "resources"), (holder or {}, "memory"))
    yield from (f"{name}: an object expected" for node, name in maps if not isinstance(node.get(name) or {}, dict))
    resources = (holder or {}).get("resources") or {}
    if isinstance(resources, Mapping):
        wrong = [name for name in ("requests", "limits") if not isinstance(resources.get(name) or {}, dict)]
        yield from (f"resources.{name}: an object expected" for name in wrong)
        if not isinstance(resources.get("claims") or [], list):
            yield "resources.claims: a list expected"
    try:
        _require(deepcopy(dict(spec)), [])
    except (TypeError, ValueError):
        yield "affinity.nodeAffinity: another form than Kubernetes takes"


def _over_limits(workload: _Workload, profile: ComputeProfile) -> Iterator[Fault]:
    """Yield the amounts of which more is requested than the limit is: the API server refuses such pods."""
    resources = (workload.holder(profile) or {}).get("resources") or {}
    requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
    for name in sorted({*profile.requests, *profile.limits}):
        asked, limit = _amount(requests.get(name)), _amount(limits.get(name))
        if asked is not None and limit is not None and asked > limit:
            where = "limits" if name in profile.limits else "requests"
            yield f"{where}/{escaped(name)}", f"the limit {limits[name]} is below the request {requests[name]}"


def _amount(given: object) -> Decimal | None:
    """Return a quantity as a number; None if it is no text that Kubernetes reads so."""
    text = str(given) if isinstance(given, str | int | float) and not isinstance(given, bool) else ""
    fits = _QUANTITY.fullmatch(text[:64])
    if fits is None or not any(each.isdigit() for each in fits[1]):
        return None
    suffix = fits[2] or ""
    if suffix in _FACTORS:
        return Decimal(fits[1]) * _FACTORS[suffix]
    if suffix[0] in "eE" and suffix not in ("E", "Ei"):
        return Decimal(fits[1]).scaleb(int(suffix[1:]))
    power = _PREFIXES.index(suffix[0]) + 1
    factor: int = (1024 if suffix.endswith("i") else 1000) ** power
    return Decimal(fits[1]) * factor


def _require(spec: dict[str, Any], expressions: Sequence[Body]) -> None:
    """Add conditions on the labels of nodes to those of the manifest: terms are alternatives, so to each of them.

    Raises TypeError or ValueError for an affinity in another form than Kubernetes takes.
    """
    affinity = dict(spec.get("affinity") or {})
    of_nodes = dict(affinity.get("nodeAffinity") or {})
    required = dict(of_nodes.get("requiredDuringSchedulingIgnoredDuringExecution") or {})
    terms = [dict(each) for each in required.get("nodeSelectorTerms") or [{}]]
    required["nodeSelectorTerms"] = [
        {**each, "matchExpressions": [*(each.get("matchExpressions") or []), *expressions]} for each in terms
    ]
    of_nodes["requiredDuringSchedulingIgnoredDuringExecution"] = required
    spec["affinity"] = {**affinity, "nodeAffinity": of_nodes}


def _expression(term: AffinityTerm) -> Body:
    return {"key": term.key, "operator": term.operator, **({"values": list(term.values)} if term.values else {})}


def _toleration(given: Toleration) -> Body:
    found = {"key": given.key, "operator": given.operator, "value": given.value, "effect": given.effect}
    seconds = {} if given.toleration_seconds is None else {"tolerationSeconds": given.toleration_seconds}
    return {**{name: value for name, value in found.items() if value}, **seconds}


def _claim_template(workload: Body, claim: DeviceClaim) -> Body:
    """Return the object of which each pod gets a claim of its own (resource.k8s.io/v1, ResourceClaimTemplate)."""
    metadata = workload["metadata"]
    selectors = [{"cel": {"expression": each}} for each in claim.selectors]
    exactly: dict[str, Any] = {
        "deviceClassName": claim.device_class,
        "allocationMode": "ExactCount",
        "count": claim.count,
        **({"selectors": selectors} if selectors else {}),
    }
    namespace = {"namespace": metadata["namespace"]} if metadata.get("namespace") else {}
    spec = {"devices": {"requests": [{"name": claim.name, "exactly": exactly}]}}
    # The API server takes no change of the spec: another one is another object, and the old one is pruned.
    digest = sha256(json.dumps(spec, sort_keys=True).encode()).hexdigest()[:8]
    return {
        "apiVersion": _CLAIM_API,
        "kind": _CLAIM_KIND,
        "metadata": {"name": f"{metadata['name']}-{claim.name}-{digest}", **namespace},
        "spec": {"spec": spec},
    }


def _template_name(body: object) -> str | None:
    """Return the name of a template of claims; None of any other object."""
    if (
        not isinstance(body, Mapping)
        or body.get("kind") != _CLAIM_KIND
        or not isinstance(body.get("metadata"), Mapping)
    ):
        return None
    return str(body["metadata"].get("name"))
