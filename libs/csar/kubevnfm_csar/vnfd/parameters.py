"""The parameters that a VNFD declares for ``additionalParams``: JSON Schemas made from the data types of the inputs of ``Vnflcm``.

SOL001 V4.2.1 6.7: the input ``additional_parameters`` of an operation has a data type of the package. The parts that a schema cannot say, or that are
nested too deep, are left open.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from kubevnfm_kit.json_types import JsonMapping, JsonObject
from kubevnfm_secrets import is_secret_name

from kubevnfm_csar.hot_parameters import is_plain_pattern
from kubevnfm_csar.vnfd.topology import Node, Topology
from kubevnfm_csar.vnfd.types import TypeTree
from kubevnfm_csar.vnfd.values import boolean, mapping, sequence, text

OPERATIONS: Final = (
    "instantiate", "scale", "scale_to_level", "change_flavour", "heal", "terminate", "operate", "change_external_connectivity",
    "change_current_package",
)  # fmt: skip
_INPUT: Final = "additional_parameters"
_INTERFACE: Final = "Vnflcm"
_DEEPEST: Final = 8
_MOST: Final = 1000
"""Attributes of all operations of a flavour."""
_LONGEST: Final = 500_000
"""Characters of all their names, texts, constraints and defaults: a type can be used many times."""
_SIMPLE: Final[Mapping[str, Any]] = {
    "string": "string", "integer": "integer", "float": "number", "boolean": "boolean", "timestamp": "string", "version": ["string", "number"],
    "scalar-unit.size": ["string", "number"], "scalar-unit.time": ["string", "number"], "scalar-unit.frequency": ["string", "number"],
    "scalar-unit.bitrate": ["string", "number"], "range": "array",
}  # fmt: skip
_NUMBERS: Final = {
    "greater_than": "exclusiveMinimum",
    "greater_or_equal": "minimum",
    "less_than": "exclusiveMaximum",
    "less_or_equal": "maximum",
}
_LENGTHS: Final = {"string": "Length", "array": "Items", "object": "Properties"}
_LARGEST_LENGTH: Final = 2**31


def declared_parameters(topology: Topology, vnf: Node | None) -> dict[str, JsonObject]:
    """Return the JSON Schema of additionalParams by the name of the operation, of those that declare something."""
    if vnf is None:
        return {}
    making = _Making(topology.tree)
    found: dict[str, JsonObject] = {}
    bodies = list(_interfaces(topology.tree, vnf))
    for operation in OPERATIONS:
        kinds = (_kind(body, operation) for body in bodies)
        kind = next((each for each in kinds if each is not None), None)
        if kind is not None:
            schema = making.of_type(kind, 0)
            if schema.get("properties"):
                found[operation] = schema
    return found


def _interfaces(tree: TypeTree, vnf: Node) -> Iterator[JsonMapping]:
    """Yield what is said of the interface: by the node, by its types, and by the types of the interface."""
    given = [vnf.body.get("interfaces"), *tree.parts(vnf.type, "interfaces")]
    for one in given:
        body = mapping(mapping(one).get(_INTERFACE))
        yield body
        yield mapping(body.get("operations"))
        kind = body.get("type")
        for ancestor in tree.lineage(kind) if isinstance(kind, str) else ():
            for definition in tree.definitions(ancestor):
                yield definition
                yield mapping(definition.get("operations"))


def _kind(body: JsonMapping, operation: str) -> str | None:
    inputs = mapping(mapping(body.get(operation)).get("inputs"))
    kind = mapping(inputs.get(_INPUT)).get("type")
    return kind if isinstance(kind, str) else None


class _Making:
    """The making of the schemas of a flavour, within limits."""

    def __init__(self, tree: TypeTree) -> None:
        self._tree = tree
        self._attributes, self._characters = _MOST, _LONGEST
        """How many there can be further."""

    def of_type(self, kind: str, depth: int, definition: JsonMapping | None = None) -> JsonObject:
        """Return the schema of a value; ``definition``: of the property that has it."""
        about = definition or {}
        lineage = self._tree.lineage(kind)
        simple = next((each for each in lineage if each in _SIMPLE), None)
        found: JsonObject = {}
        if simple is not None:
            found["type"] = _SIMPLE[simple]
        elif kind in ("list", "map"):
            schema = about.get("entry_schema")
            entry: JsonMapping = {"type": schema} if isinstance(schema, str) else mapping(schema)
            inner = self._of(entry, depth + 1)
            found |= (
                {"type": "array", "items": inner}
                if kind == "list"
                else {"type": "object", "additionalProperties": inner}
            )
        elif self._tree.knows(kind):
            found |= self._of_data(kind, depth)
        definitions = [one for ancestor in lineage for one in self._tree.definitions(ancestor)]
        for one in (*reversed(definitions), about):
            found |= self._within(_described(one))
            for name, rule in _constraints(one):
                found |= self._within(_rule(name, self._typed(name, rule, simple), found.get("type")))
        return found

    def _typed(self, name: str, rule: Any, kind: str | None) -> Any:
        """Return a constraint with the values that it names as those of the type are: the text ``1`` in the place of the number."""
        if name == "equal":
            return self._tree.typed(rule, {"type": kind})
        if name == "valid_values" and isinstance(rule, list):
            return [self._tree.typed(one, {"type": kind}) for one in rule]
        return rule

    def _within(self, said: JsonObject) -> JsonObject:
        """Return a part of a schema; nothing once all are too long."""
        if self._characters > 0 and said:
            self._characters -= len(json.dumps(said))
        return said if self._characters > 0 else {}

    def _of_data(self, kind: str, depth: int) -> JsonObject:
        if depth > _DEEPEST:
            return {}
        named: dict[str, JsonMapping] = {}
        for name, definition in self._tree.properties(kind).items():
            self._attributes -= 1
            self._characters -= len(name)
            if self._attributes < 0 or self._characters < 0:
                break
            # A request has no such names.
            if not name.startswith("$"):
                named[name] = definition
        properties: JsonObject = {}
        required = []
        # After all names: a type that has itself takes the rest for its first attribute.
        for name, definition in named.items():
            found = self._of(definition, depth + 1)
            # A refusal names the values that there can be.
            hidden = ("enum", "const") if is_secret_name(name) else ()
            properties[name] = {key: each for key, each in found.items() if key not in hidden}
            # TOSCA's default is true, and authors leave it out for what may be missing.
            if boolean(definition.get("required")) is True and definition.get("default") is None:
                required.append(name)
        return {"type": "object", "properties": properties, **({"required": required} if required else {})}

    def _of(self, definition: JsonMapping, depth: int) -> JsonObject:
        kind = definition.get("type")
        if not isinstance(kind, str) or depth > _DEEPEST:
            return {}
        found = self.of_type(kind, depth, definition)
        if definition.get("default") is not None:
            found |= self._within({"default": self._tree.typed(definition["default"], definition)})
        return found


def _described(definition: JsonMapping) -> JsonObject:
    said = definition.get("description")
    return {"description": text(said)} if isinstance(said, str) and said.strip() else {}


def _constraints(definition: JsonMapping) -> Iterator[tuple[str, Any]]:
    for one in sequence(definition.get("constraints")):
        yield from mapping(one).items()


def _rule(name: str, rule: Any, kind: Any) -> JsonObject:
    """Return what a schema says for a constraint of TOSCA; nothing if it cannot."""
    length = _LENGTHS.get(kind) if isinstance(kind, str) else None
    is_number = kind in ("integer", "number")
    match name:
        case "equal" if _is_plain(rule):
            return {"const": rule}
        case "valid_values" if isinstance(rule, list) and rule and all(map(_is_plain, rule)):
            return {"enum": list(dict.fromkeys(rule))}
        case "greater_than" | "greater_or_equal" | "less_than" | "less_or_equal" if is_number and _is_number(rule):
            return {_NUMBERS[name]: rule}
        case "in_range" if is_number and isinstance(rule, list) and len(rule) == 2:
            return {key: each for key, each in zip(("minimum", "maximum"), rule, strict=True) if _is_number(each)}
        case "length" if length is not None and _is_length(rule):
            return {f"min{length}": rule, f"max{length}": rule}
        case "min_length" | "max_length" if length is not None and _is_length(rule):
            return {f"{name[:3]}{length}": rule}
        case "pattern" if kind == "string" and isinstance(rule, str) and is_plain_pattern(rule):
            return {"pattern": f"^(?:{rule})$"}
    return {}


def _is_plain(value: Any) -> bool:
    return isinstance(value, str | int | float | bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_length(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LARGEST_LENGTH
