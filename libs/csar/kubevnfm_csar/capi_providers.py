"""The providers of Cluster API among Kubernetes objects: of a package, or as a cluster shows them (capi.md CR-045, CR-046).

Providers differ in their labels alone: ``cluster.x-k8s.io/provider`` is on all their objects, and on the definitions of all
but the core provider there is a label for each contract. Nothing has their version but the image of their Deployment.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kubevnfm_events import CapiKind, CapiProvider, CapiProviders

Body = Mapping[str, Any]
"""An object in JSON form, which a package or a cluster has written: members may be missing, or of another type."""

CORE: Final = "cluster.x-k8s.io"
PROVIDER_LABEL: Final = f"{CORE}/provider"
_VERSION_LABEL: Final = "app.kubernetes.io/version"
_CORE_NAME: Final = "cluster-api"
_CLUSTERS: Final = f"clusters.{CORE}"
_PREFIXES: Final[Mapping[str, str]] = {
    "bootstrap": "bootstrap-",
    "control_plane": "control-plane-",
    "infrastructure": "infrastructure-",
}
"""The beginning of the label's value, by role: ``infrastructure-openstack``."""
ROLE_BY_GROUP: Final[Mapping[str, str]] = {
    CORE: "core",
    f"bootstrap.{CORE}": "bootstrap",
    f"controlplane.{CORE}": "control_plane",
    f"infrastructure.{CORE}": "infrastructure",
}
"""The role of the providers that define the kinds of a group."""
_CONTRACT: Final = re.compile(r"v(\d{1,9})(?:(alpha|beta)(\d{1,9}))?")
_STAGES: Final = ("alpha", "beta", None)


def providers_of(objects: Iterable[Body]) -> CapiProviders | None:
    """Return the providers that the objects install; None if they define no kind of Cluster API."""
    listed = list(objects)
    definitions = [
        each
        for each in listed
        if each.get("kind") == "CustomResourceDefinition" and is_definition_of_cluster_api(_name(each))
    ]
    if not definitions:
        return None
    deployments = [each for each in listed if each.get("kind") == "Deployment"]
    found: dict[tuple[str, str], list[Body]] = {}
    for each in definitions:
        place = _provider(each)
        if place is not None:
            found.setdefault(place, []).append(each)
    versions = {place: _version(each) for each in deployments if (place := _provider(each)) is not None}
    by_role: dict[str, list[CapiProvider]] = {}
    for (role, name), mine in sorted(found.items()):
        by_role.setdefault(role, []).append(
            CapiProvider(
                name=name,
                version=versions.get((role, name)),
                contract=_core_contract(mine) if role == "core" else _labelled_contract(mine),
                kinds=tuple(sorted(map(_kind, mine), key=lambda kind: (kind.group, kind.kind))),
            )
        )
    return CapiProviders(
        core=next(iter(by_role.get("core", ())), None),
        **{role: tuple(by_role.get(role, ())) for role in _PREFIXES},
    )


def is_definition_of_cluster_api(name: str) -> bool:
    """Return whether a CustomResourceDefinition of this name (``clusters.cluster.x-k8s.io``) is one of a provider's role.

    The core provider also has kinds of further groups, such as ``addons.cluster.x-k8s.io``.
    """
    return name.partition(".")[2] in ROLE_BY_GROUP


@dataclass(frozen=True)
class ContractLoss:
    """A provider that would go back to an earlier contract."""

    provider: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.provider}: contract {self.after}, which is older than {self.before}, the present one"


def contract_losses(before: CapiProviders | None, after: CapiProviders | None) -> Sequence[ContractLoss]:
    """Return the providers whose contract would go back: what exists in the newer one could not be read any more."""
    new = dict(_named(after))
    return [
        ContractLoss(label, old.contract, present.contract)
        for label, old in _named(before)
        for present in [new.get(label)]
        if present is not None
        and old.contract is not None
        and present.contract is not None
        and _rank(present.contract) < _rank(old.contract)
    ]


def _named(providers: CapiProviders | None) -> Iterator[tuple[str, CapiProvider]]:
    """Yield each provider with the value of its label."""
    if providers is None:
        return
    if providers.core is not None:
        yield providers.core.name, providers.core
    for role, prefix in _PREFIXES.items():
        for each in getattr(providers, role):
            yield f"{prefix}{each.name}", each


def _rank(contract: str) -> tuple[int, int, int]:
    """Return the sort key, as Kubernetes orders versions: v1alpha1, v1beta1, v1."""
    found = _CONTRACT.fullmatch(contract)
    if found is None:
        return (-1, -1, -1)
    major, stage, minor = found.groups()
    return int(major), _STAGES.index(stage), int(minor or 0)


def _provider(body: Body) -> tuple[str, str] | None:
    """Return role and name of the provider that an object belongs to; None if it is none of these."""
    label = _labels(body).get(PROVIDER_LABEL)
    if label == _CORE_NAME:
        return "core", _CORE_NAME
    if label is not None:
        named = [(role, label.removeprefix(prefix)) for role, prefix in _PREFIXES.items() if label.startswith(prefix)]
        return named[0] if named else None
    role = ROLE_BY_GROUP.get(_name(body).partition(".")[2]) if body.get("kind") == "CustomResourceDefinition" else None
    return None if role is None else (role, _CORE_NAME if role == "core" else "")


def _version(deployment: Body) -> str | None:
    labelled = _labels(deployment).get(_VERSION_LABEL)
    if labelled:
        return labelled
    containers = _at(deployment, "spec", "template", "spec", "containers")
    images = [
        str(each.get("image") or "")
        for each in (containers if isinstance(containers, list) else ())
        if isinstance(each, Mapping)
    ]
    # The controllers are the first container; a proxy in front of their metrics comes after it.
    tag = images[0].partition("@")[0].rpartition("/")[2].partition(":")[2] if images else ""
    return tag or None


def _core_contract(definitions: Sequence[Body]) -> str | None:
    # By convention, the contract is the version in which the core provider stores its Clusters.
    for each in definitions:
        if _name(each) == _CLUSTERS:
            return next((str(one.get("name")) for one in _versions(each) if one.get("storage")), None)
    return None


def _labelled_contract(definitions: Sequence[Body]) -> str | None:
    labelled = {
        name.removeprefix(f"{CORE}/")
        for each in definitions
        for name, value in _labels(each).items()
        if name.startswith(f"{CORE}/") and _CONTRACT.fullmatch(name.removeprefix(f"{CORE}/")) and value
    }
    return max(labelled, key=_rank, default=None)


def _kind(definition: Body) -> CapiKind:
    return CapiKind(
        group=str(_at(definition, "spec", "group") or ""),
        kind=str(_at(definition, "spec", "names", "kind") or ""),
        versions=tuple(str(each.get("name")) for each in _versions(definition) if each.get("served")),
    )


def _versions(definition: Body) -> Sequence[Body]:
    found = _at(definition, "spec", "versions")
    return [each for each in found if isinstance(each, Mapping)] if isinstance(found, list) else []


def _labels(body: Body) -> Mapping[str, str]:
    found = _at(body, "metadata", "labels")
    return {str(name): str(value) for name, value in found.items()} if isinstance(found, Mapping) else {}


def _name(body: Body) -> str:
    return str(_at(body, "metadata", "name") or "")


def _at(body: Any, *path: str) -> Any:
    for name in path:
        body = body.get(name) if isinstance(body, Mapping) else None
    return body
