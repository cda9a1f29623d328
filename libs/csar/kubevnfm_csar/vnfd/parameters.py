"""The parameters that a VNFD declares for ``additionalParams``: JSON Schemas made from the data types of the inputs of ``Vnflcm``.

SOL001 V4.2.1 6.7: the input ``additional_parameters`` of an operation has a data type of the package. The parts that a schema cannot say, or that are
nested too deep, are left open.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kubevnfm_kit.json_types import JsonMapping, JsonObject

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
    budget = iter(range(_MOST))
    found: dict[str, JsonObject] = {}
    bodies = list(_interfaces(topology.tree, vnf))
    for operation in OPERATIONS:
        kinds = (_kind(body, operation) for body in bodies)
        kind = next((each for each in kinds if each is not None), None)
        if kind is not None:
            schema = _Making(topology.tree, budget).of_type(kind, 0)
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
    """The making of one schema, within limits."""

    def __init__(self, tree: TypeTree, budget: Iterator[int]) -> None:
        self._tree, self._budget = tree, budget

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
            found |= _described(one)
            for name, rule in _constraints(one):
                found |= _rule(name, rule, found.get("type"))
        return found

    def _of_data(self, kind: str, depth: int) -> JsonObject:
        if depth > _DEEPEST:
            return {}
        properties: JsonObject = {}
        required = []
        for name, definition in self._tree.properties(kind).items():
            if next(self._budget, None) is None:
                break
            # A request has no such names.
            if name.startswith("$"):
                continue
            properties[name] = self._of(definition, depth + 1)
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
            found["default"] = self._tree.typed(definition["default"], definition)
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
