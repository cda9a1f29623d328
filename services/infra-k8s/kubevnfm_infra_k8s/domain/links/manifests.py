"""Links by objects as given, for networks that no other type describes. No I/O."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, Final

from kubevnfm_kit.json_types import JsonMapping, JsonObject
from kubevnfm_kit.kubernetes_names import is_label
from pydantic import Field

from kubevnfm_infra_k8s.domain.links.spec import (
    NAD,
    Addressing,
    ApiKind,
    Definition,
    Fault,
    LinkBody,
    LinkSpec,
    Places,
    Unattachable,
)
from kubevnfm_infra_k8s.domain.objects import BUILT_IN_GROUPS, field_at, group_of
from kubevnfm_infra_k8s.domain.reconciling.permitted import reserved

_MOST_OBJECTS: Final = 50
_NETWORKING: Final = "networking.k8s.io"
_LONGEST_NAME: Final = 253
_METADATA: Final = frozenset({"name", "namespace", "labels", "annotations"})
_NAME: Final = r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?"


class ManifestsSpec(LinkSpec):
    """Objects of custom kinds, and of networking.k8s.io.

    Others are refused: what the operator's policy for CNFs forbids must not come as a link.
    """

    lacks: ClassVar[str] = "a kind of the objects"
    objects_: tuple[JsonObject, ...] = Field(alias="objects", min_length=1, max_length=_MOST_OBJECTS)

    def kinds(self) -> Sequence[tuple[ApiKind, str]]:
        return [
            ((str(each.get("apiVersion")), str(each.get("kind"))), f"spec/objects[{index}]")
            for index, each in enumerate(self.objects_)
        ]

    def objects(self, name: str, places: Places) -> Sequence[LinkBody]:
        return [LinkBody(each) for each in self.objects_]

    def definition(self, name: str, places: Places) -> Definition:
        found = [each["metadata"] for each in self.objects_ if (each["apiVersion"], each["kind"]) == NAD]
        if len(found) != 1:
            raise Unattachable(f"one {NAD[1]} expected among the objects of the link, found {len(found)}")
        return Definition(found[0]["name"], found[0].get("namespace", ""))

    @property
    def addressing(self) -> Addressing:
        return Addressing(*2 * ("the objects of the link are as they were given",))

    def named_namespaces(self) -> Sequence[tuple[str, str]]:
        return [
            (f"objects[{index}]/metadata/namespace", str(namespace))
            for index, each in enumerate(self.objects_)
            if (namespace := field_at(each, "metadata", "namespace"))
        ]

    def faults(self) -> Iterator[Fault]:
        seen: set[tuple[str, str, str, str]] = set()
        for index, each in enumerate(self.objects_):
            place = f"objects[{index}]"
            missing = [
                member
                for member, value in (
                    ("apiVersion", each.get("apiVersion")),
                    ("kind", each.get("kind")),
                    ("metadata/name", field_at(each, "metadata", "name")),
                )
                if not isinstance(value, str) or not 0 < len(value) <= _LONGEST_NAME
            ]
            for member in missing:
                yield f"{place}/{member}", "a text expected"
            if missing:
                continue
            group = group_of(each["apiVersion"])
            if group in BUILT_IN_GROUPS and group != _NETWORKING:
                yield (
                    f"{place}/apiVersion",
                    f"a custom API group or {_NETWORKING} expected, because a link is a network",
                )
            yield from _metadata_faults(each["metadata"], f"{place}/metadata")
            identity = (
                group,
                each["kind"],
                str(each["metadata"].get("namespace") or ""),
                each["metadata"]["name"],
            )
            if identity in seen:
                yield place, "another object expected: this one is given twice"
            seen.add(identity)


def _metadata_faults(metadata: JsonMapping, place: str) -> Iterator[Fault]:
    """Yield what is wrong with the metadata of an object: it must not claim to be of another owner, or refuse to go."""
    for member in sorted({*metadata} - _METADATA):
        yield f"{place}/{member}", f"no such attribute expected: {', '.join(sorted(_METADATA))} are kept"
    if re.fullmatch(_NAME, metadata["name"]) is None:
        yield f"{place}/name", "lower case letters, digits, - and . expected"
    namespace = metadata.get("namespace")
    if namespace is not None and (not isinstance(namespace, str) or not is_label(namespace)):
        yield f"{place}/namespace", "1 to 63 lower case letters, digits and - expected"
    for member in ("labels", "annotations"):
        given = metadata.get(member)
        if given is None:
            continue
        if not isinstance(given, Mapping) or not all(isinstance(value, str) for value in given.values()):
            yield f"{place}/{member}", "an object with texts expected"
            continue
        if own := reserved(given):
            yield f"{place}/{member}", f"other prefixes expected: kubevnfm writes {', '.join(own)}"
