"""Links by objects as given, for networks that no other type describes. No I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, Final

from kubevnfm_kit.json_types import JsonObject
from pydantic import Field

from kubevnfm_infra_k8s.domain.links.spec import ApiKind, Fault, LinkBody, LinkSpec, Places
from kubevnfm_infra_k8s.domain.objects import BUILT_IN_GROUPS, field_at, group_of

_MOST_OBJECTS: Final = 50
_NETWORKING: Final = "networking.k8s.io"
_LONGEST_NAME: Final = 253


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
            identity = (
                group,
                each["kind"],
                str(field_at(each, "metadata", "namespace") or ""),
                each["metadata"]["name"],
            )
            if identity in seen:
                yield place, "another object expected: this one is given twice"
            seen.add(identity)
            if not isinstance(field_at(each, "metadata", "labels") or {}, Mapping):
                yield f"{place}/metadata/labels", "an object expected"
