"""The kinds and the two contracts of Cluster API, and one reader of conditions for both (capi.md CR-036, CR-053).

v1beta2 has ordinary conditions in ``status.conditions``; those of v1beta1 are in ``status.deprecated.v1beta1.conditions``.
v1beta1 has conditions with a severity in ``status.conditions``; those of v1beta2 are in ``status.v1beta2.conditions``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from kubevnfm_csar.capi_providers import is_definition_of_cluster_api

from kubevnfm_infra_k8s.domain.objects import Body, ObjectKey, annotations_of, field_at, is_outdated

CORE: Final = "cluster.x-k8s.io"
BOOTSTRAP: Final = "bootstrap.cluster.x-k8s.io"
CONTROL_PLANE: Final = "controlplane.cluster.x-k8s.io"
INFRASTRUCTURE: Final = "infrastructure.cluster.x-k8s.io"
GROUPS: Final = frozenset({CORE, BOOTSTRAP, CONTROL_PLANE, INFRASTRUCTURE, "addons.cluster.x-k8s.io"})

NAME_LABEL: Final = "cluster.x-k8s.io/cluster-name"
"""On every object of a cluster: the name of its Cluster."""
CONTROL_PLANE_LABEL: Final = "cluster.x-k8s.io/control-plane"
POOL_LABEL: Final = "cluster.x-k8s.io/pool-name"
DEPLOYMENT_LABEL: Final = "cluster.x-k8s.io/deployment-name"
PAUSED_ANNOTATION: Final = "cluster.x-k8s.io/paused"


class Contract(StrEnum):
    """The contract between the providers of Cluster API."""

    V1BETA1 = "v1beta1"
    V1BETA2 = "v1beta2"


def contract_of(api_version: str, labels: Mapping[str, str] | None = None) -> Contract | None:
    """Return the contract of an ``apiVersion``; None if it is unclear.

    ``labels``: those of the kind's CRD (``cluster.x-k8s.io/v1beta2: v1beta2_v1beta3``), which are more exact than the
    version's own name: a provider numbers its versions as it likes.
    """
    version = api_version.rpartition("/")[2]
    # A version that serves both contracts is read as the newer one, as Cluster API itself does.
    for contract in reversed(Contract):
        if version in (labels or {}).get(f"{CORE}/{contract}", "").split("_"):
            return contract
    return next((contract for contract in Contract if contract == version), None)


def is_cluster(key: ObjectKey) -> bool:
    """Return whether the object is a Cluster of Cluster API."""
    return (key.group, key.kind) == (CORE, "Cluster")


def is_of_management(keys: Iterable[ObjectKey]) -> bool:
    """Return whether objects make a cluster a management cluster: they define kinds of Cluster API."""
    return any(is_provider_definition(key) for key in keys)


def is_provider_definition(key: ObjectKey) -> bool:
    """Return whether the object defines a kind of Cluster API or of a provider."""
    return key.kind == "CustomResourceDefinition" and is_definition_of_cluster_api(key.name)


@dataclass(frozen=True)
class Condition:
    """One condition of either contract."""

    type: str
    status: str
    """True, False or Unknown."""
    reason: str = ""
    message: str = ""
    since: str = ""
    """RFC 3339; "" if it is not known."""

    @property
    def is_true(self) -> bool:
        return self.status == "True"

    @property
    def in_words(self) -> str:
        """The condition as text: ``ControlPlaneAvailable False, NotAvailable: 1 of 3``."""
        said = ": ".join(part for part in (self.reason, self.message) if part)
        return f"{self.type} {self.status}" + (f", {said}" if said else "")


class Conditions:
    """The conditions of one object, those of its own contract first."""

    def __init__(self, body: Body) -> None:
        status = field_at(body, "status")
        generation = field_at(body, "metadata", "generation")
        self._own = list(_read(field_at(status, "conditions"), generation))
        deprecated = _read(field_at(status, "deprecated", "v1beta1", "conditions"), generation)
        self._newer = list(_read(field_at(status, "v1beta2", "conditions"), generation))
        self._other = [*self._newer, *deprecated]

    def __getitem__(self, type: str) -> Condition | None:
        """Return the condition of this type; None if there is none, or if it describes an earlier generation."""
        return next((each for each in (*self._own, *self._other) if each.type == type), None)

    def is_true(self, type: str) -> bool:
        """Return whether the condition is True."""
        found = self[type]
        return found is not None and found.is_true

    def is_against(self, type: str) -> bool:
        """Return whether the condition exists and is not True."""
        found = self[type]
        return found is not None and not found.is_true

    def in_words(self, type: str) -> str:
        """Return the condition as text; ``<type> unknown`` if there is none."""
        found = self[type]
        return found.in_words if found is not None else f"{type} unknown"

    def first_lacking(self, names: Iterable[str]) -> str:
        """Return the first of these conditions that is not True, as text; "" if all are."""
        return next((self.in_words(name) for name in names if not self.is_true(name)), "")

    def first_against(self, names: Iterable[str]) -> str:
        """Return the first of these conditions that exists and is not True, as text; "" if there is none."""
        return next((self.in_words(name) for name in names if self.is_against(name)), "")

    def first_false(self, ignored: frozenset[str] = frozenset()) -> str:
        """Return the message of the first condition that is False; "" if there is none.

        First those of v1beta2: they say why, where those of v1beta1 say how many of their parts are done.
        """
        for each in (*self._newer, *self._own):
            if each.status == "False" and each.message and each.type not in ignored:
                return f"{each.type}: {each.message}"
        return ""


def _read(listed: object, generation: object) -> Iterator[Condition]:
    for each in listed if isinstance(listed, Sequence) else ():
        if not isinstance(each, Mapping) or not each.get("type"):
            continue
        # Until the controller has seen the latest change, the condition describes the earlier object (CR-054).
        if is_outdated(each, generation):
            continue
        text = {name: str(each.get(name) or "") for name in ("reason", "message", "lastTransitionTime")}
        yield Condition(
            str(each["type"]),
            str(each.get("status")),
            text["reason"],
            in_one_line(text["message"]),
            text["lastTransitionTime"],
        )


def in_one_line(message: str) -> str:
    """Return a message of Cluster API, which can be a nested list of several lines, as one line."""
    lines = [line.strip().removeprefix("* ") for line in message.splitlines()]
    text = "; ".join(line for line in lines if line)
    # A line that ends so is the head of those below it.
    return text.replace(":; ", ": ")


def is_paused(body: Body) -> bool:
    """Return whether the controllers leave the object alone (CR-057)."""
    return (
        field_at(body, "spec", "paused") is True
        or PAUSED_ANNOTATION in annotations_of(body)
        or Conditions(body).is_true("Paused")
    )
