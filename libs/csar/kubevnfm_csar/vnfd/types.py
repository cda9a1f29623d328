"""TOSCA types: what derives from what, and the properties and defaults that a type brings.

Those of ETSI and OASIS are built in (`standard`), because packages often name them without holding them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from kubevnfm_kit.json_types import JsonMapping, JsonObject

from kubevnfm_csar.errors import PackageRefused
from kubevnfm_csar.vnfd.standard import EITHER, OPEN, STANDARD
from kubevnfm_csar.vnfd.values import boolean, mapping, sequence, text

_DEPTH: Final = 50
"""The longest chain of types; those of SOL001 have six."""
_CONTAINERS: Final = frozenset({"list", "map", EITHER})
TYPE_SECTIONS: Final = tuple(
    f"{kind}_types"
    for kind in ("node", "data", "artifact", "policy", "group", "capability", "interface", "relationship")
)
"""The sections of a service template with type definitions."""
_NESTED_PROPERTIES: Final = 10_000
STANDARD_FILE: Final = re.compile(
    r"^((etsi_)?nfv_sol001_\w*types?|tosca_(simple|definitions)_\w+)\.ya?ml$", re.IGNORECASE
)
"""Type files of the standards by their last name, in the spellings of all editions; see `standard`."""

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


class TypeTree:
    """The types of a set of service templates."""

    def __init__(self, documents: Iterable[JsonMapping]) -> None:
        self._definitions: dict[str, JsonMapping] = {}
        self._lineages: dict[str, tuple[str, ...]] = {}
        self._properties: dict[str, dict[str, JsonMapping]] = {}
        self._defaults: dict[str, JsonObject] = {}
        for document in documents:
            for section in TYPE_SECTIONS:
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
                parent = next(
                    (one.get("derived_from") for one in self.definitions(current) if one.get("derived_from")), None
                )
                current = parent if isinstance(parent, str) else None
            self._lineages[name] = tuple(found)
        return self._lineages[name]

    def knows(self, name: str) -> bool:
        """Whether the package or a standard defines the type."""
        return name in self._definitions or name in STANDARD

    def names(self) -> Iterator[str]:
        """Yield the names of all types, those of the standards first."""
        yield from STANDARD
        yield from self._definitions

    def parts(self, name: str, section: str) -> Iterator[Any]:
        """Yield a section (``requirements``) of each definition of the type and of what it derives from, the package's first."""
        for ancestor in self.lineage(name):
            for definition in self.definitions(ancestor):
                yield definition.get(section)

    def is_open(self, name: str) -> bool:
        """Whether values of the type may have properties that no definition of it lists."""
        own, *others = ({definition.get(OPEN) for definition in self.definitions(each)} for each in self.lineage(name))
        return (
            bool({"*", "**"} & own)
            or any("**" in one for one in others)
            or not all(map(self.knows, self.lineage(name)))
        )

    def definitions(self, name: str) -> tuple[JsonMapping, ...]:
        """Return the definitions of a type: the package's, and that of a standard, which a package may hold in another edition."""
        found = (self._definitions.get(name), STANDARD.get(name))
        return tuple(one for one in found if one is not None)

    def is_a(self, name: object, ancestor: str) -> bool:
        """Whether the type is ``ancestor`` or derives from it."""
        return isinstance(name, str) and ancestor in self.lineage(name)

    def properties(self, name: str) -> dict[str, JsonMapping]:
        """Return the property definitions of the type, inherited ones overridden."""
        if name not in self._properties:
            merged: dict[str, JsonMapping] = {}
            for ancestor in reversed(self.lineage(name)):
                for one in reversed(self.definitions(ancestor)):
                    for key, definition in mapping(one.get("properties")).items():
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
