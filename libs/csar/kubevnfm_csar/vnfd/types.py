"""TOSCA types: what derives from what, and the defaults that a type brings.

ETSI's and OASIS' own type files are built in (their names and parents, which is all we need), because packages often
name them without holding them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from kubevnfm_kit.json_types import JsonMapping, JsonObject

from kubevnfm_csar.errors import PackageRefused
from kubevnfm_csar.vnfd.values import boolean, mapping, sequence, text

_DEPTH: Final = 50
"""The longest chain of types; those of SOL001 have six."""
_CONTAINERS: Final = frozenset({"list", "map"})
_NESTED_PROPERTIES: Final = 10_000
STANDARD_FILE: Final = re.compile(
    r"^((etsi_)?nfv_sol001_\w*types?|tosca_(simple|definitions)_\w+)\.ya?ml$", re.IGNORECASE
)
"""Type files of the standards by their last name, in the spellings of all editions; see ``_STANDARD``."""

VNF: Final = "tosca.nodes.nfv.VNF"
COMPUTE: Final = "tosca.nodes.nfv.Vdu.Compute"
CONTAINER: Final = "tosca.nodes.nfv.Vdu.OsContainerDeployableUnit"
VDU_CP: Final = "tosca.nodes.nfv.VduCp"
EXT_CP: Final = "tosca.nodes.nfv.VnfExtCp"
VIRTUAL_CP: Final = "tosca.nodes.nfv.VirtualCp"
VIRTUAL_LINK: Final = "tosca.nodes.nfv.VnfVirtualLink"
STORAGES: Final = {
    "tosca.nodes.nfv.Vdu.VirtualBlockStorage": "block",
    "tosca.nodes.nfv.Vdu.VirtualObjectStorage": "object",
    "tosca.nodes.nfv.Vdu.VirtualFileStorage": "file",
}
SW_IMAGE: Final = "tosca.artifacts.nfv.SwImage"
PYTHON: Final = "tosca.artifacts.Implementation.Python"

_STANDARD: Final[Mapping[str, str]] = {
    VNF: "tosca.nodes.Root",
    COMPUTE: "tosca.nodes.Root",
    CONTAINER: "tosca.nodes.Root",
    "tosca.nodes.nfv.Cp": "tosca.nodes.Root",
    VDU_CP: "tosca.nodes.nfv.Cp",
    EXT_CP: "tosca.nodes.nfv.Cp",
    VIRTUAL_CP: "tosca.nodes.nfv.Cp",
    "tosca.nodes.nfv.VipCp": "tosca.nodes.nfv.Cp",
    VIRTUAL_LINK: "tosca.nodes.Root",
    **dict.fromkeys(STORAGES, "tosca.nodes.Root"),
    "tosca.nodes.nfv.VirtualBlockStorage": "tosca.nodes.nfv.Vdu.VirtualBlockStorage",
    "tosca.nodes.nfv.VirtualObjectStorage": "tosca.nodes.nfv.Vdu.VirtualObjectStorage",
    "tosca.nodes.nfv.VirtualFileStorage": "tosca.nodes.nfv.Vdu.VirtualFileStorage",
    SW_IMAGE: "tosca.artifacts.Deployment.Image",
    PYTHON: "tosca.artifacts.Implementation",
}
"""Parent by type. ``nfv.VirtualBlockStorage`` and its like are the spelling of SOL001 V2.5.1."""


class TypeTree:
    """The types of a set of service templates."""

    def __init__(self, documents: Iterable[JsonMapping]) -> None:
        self._definitions: dict[str, JsonMapping] = {}
        self._lineages: dict[str, tuple[str, ...]] = {}
        self._properties: dict[str, dict[str, JsonMapping]] = {}
        self._defaults: dict[str, JsonObject] = {}
        for document in documents:
            for section in ("node_types", "data_types", "artifact_types", "policy_types"):
                for name, definition in mapping(document.get(section)).items():
                    # The entry file comes first, so its definition wins over one in an import.
                    self._definitions.setdefault(name, mapping(definition))

    def lineage(self, name: str) -> tuple[str, ...]:
        """Return the type and what it derives from, nearest first; a loop ends where it closes.

        Raises: PackageRefused for a type that derives from too many.
        """
        if name not in self._lineages:
            found: list[str] = []
            current: str | None = name
            while current and current not in found:
                found.append(current)
                if len(found) > _DEPTH:
                    raise PackageRefused(f"type {name} derives from more than the {_DEPTH} types allowed")
                parent = self._definitions.get(current, {}).get("derived_from") or _STANDARD.get(current)
                current = parent if isinstance(parent, str) else None
            self._lineages[name] = tuple(found)
        return self._lineages[name]

    def is_a(self, name: object, ancestor: str) -> bool:
        """Whether the type is ``ancestor`` or derives from it."""
        return isinstance(name, str) and ancestor in self.lineage(name)

    def properties(self, name: str) -> dict[str, JsonMapping]:
        """Return the property definitions of the type, inherited ones overridden."""
        if name not in self._properties:
            merged: dict[str, JsonMapping] = {}
            for ancestor in reversed(self.lineage(name)):
                own = mapping(self._definitions.get(ancestor, {}).get("properties"))
                for key, definition in own.items():
                    merged[key] = {**merged.get(key, {}), **mapping(definition)}
            self._properties[name] = merged
        return self._properties[name]

    def defaults(self, name: str) -> JsonObject:
        """Return the values that the type gives to properties that a node does not set.

        A single valid value counts as a default: Tacker's and ETSI's sample types fix a property that way.
        """
        if name not in self._defaults:
            self._defaults[name] = {
                key: value
                for key, definition in self.properties(name).items()
                if (value := self._default(definition)) is not None
            }
        return self._defaults[name]

    def _default(self, definition: JsonMapping) -> Any:
        if definition.get("default") is not None:
            return definition["default"]
        for constraint in sequence(definition.get("constraints")):
            choices = sequence(mapping(constraint).get("valid_values"))
            if len(choices) == 1:
                return choices[0]
            if "equal" in mapping(constraint):
                return constraint["equal"]
        return None

    def typed(self, value: Any, definition: JsonMapping) -> Any:
        """Return a value in the form of its definition: a text as it is written, a boolean as one; others unchanged."""
        if value is None:
            return None
        kind = definition.get("type")
        if kind in _CONTAINERS:
            schema = definition.get("entry_schema")
            entry: JsonMapping = {"type": schema} if isinstance(schema, str) else mapping(schema)
            if isinstance(value, list):
                return [self.typed(item, entry) for item in value]
            return {key: self.typed(item, entry) for key, item in value.items()} if isinstance(value, dict) else value
        if not isinstance(kind, str):
            return value
        if isinstance(value, dict):
            properties = self.properties(kind)
            return {key: self.typed(item, properties.get(key, {})) for key, item in value.items()}
        base = self.lineage(kind)[-1]
        if base == "string":
            return value if isinstance(value, list) else text(value)
        found = boolean(value) if base == "boolean" else None
        return value if found is None else found

    def nested_defaults(self, data_type: str) -> JsonObject:
        """Return the defaults of a data type with those of its properties' own data types inside.

        Raises: PackageRefused if they are nested too deep, or too many: types that use one another twice double them.
        """
        return self._nested(data_type, above=(), budget=iter(range(_NESTED_PROPERTIES)))

    def _nested(self, data_type: str, *, above: tuple[str, ...], budget: Iterator[int]) -> JsonObject:
        if len(above) > _DEPTH:
            raise PackageRefused(f"data type {above[0]} is nested more than the {_DEPTH} levels allowed")
        found: JsonObject = {}
        for key, definition in self.properties(data_type).items():
            if next(budget, None) is None:
                raise PackageRefused(
                    f"data type {(*above, data_type)[0]} has more than the {_NESTED_PROPERTIES} nested properties allowed"
                )
            value = self._default(definition)
            inner = definition.get("type")
            if value is None and isinstance(inner, str) and inner in self._definitions and inner not in above:
                value = self._nested(inner, above=(*above, data_type), budget=budget) or None
            if value is not None:
                found[key] = value
        return found
