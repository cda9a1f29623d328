"""The parts of a VNFD that no standard and no type of the package has: each is a warning, because nothing reads it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, Final

from kubevnfm_kit.json_types import JsonMapping
from kubevnfm_kit.nearest import nearest, shown

from kubevnfm_csar.vnfd.standard import EITHER
from kubevnfm_csar.vnfd.topology import Topology
from kubevnfm_csar.vnfd.types import TYPE_SECTIONS
from kubevnfm_csar.vnfd.values import boolean, mapping, sequence

_FILE: Final = frozenset({
    "tosca_definitions_version", "tosca_default_namespace", "namespace", "profile", "metadata", "template_name", "template_author",
    "template_version", "description", "dsl_definitions", "repositories", "imports", "topology_template", *TYPE_SECTIONS,
})  # fmt: skip
_TEMPLATE: Final = frozenset({
    "description", "inputs", "node_templates", "relationship_templates", "groups", "policies", "outputs", "substitution_mappings",
    "workflows",
})  # fmt: skip
_NODE: Final = frozenset({
    "type", "description", "metadata", "directives", "properties", "attributes", "requirements", "capabilities", "interfaces",
    "artifacts", "node_filter", "copy",
})  # fmt: skip
_POLICY: Final = frozenset({"type", "description", "metadata", "properties", "targets", "triggers"})
_GROUP: Final = frozenset({"type", "description", "metadata", "properties", "attributes", "members", "interfaces"})
_SUBSTITUTION: Final = frozenset({
    "node_type", "description", "substitution_filter", "properties", "attributes", "capabilities", "requirements", "interfaces",
})  # fmt: skip
_TYPE: Final = frozenset({
    "derived_from", "version", "metadata", "description", "properties", "attributes", "requirements", "capabilities", "interfaces",
    "artifacts", "constraints", "key_schema", "entry_schema", "mime_type", "file_ext", "valid_source_types", "valid_target_types",
    "members", "targets", "triggers", "inputs", "operations", "notifications",
})  # fmt: skip
_PROPERTY: Final = frozenset({
    "type", "description", "required", "default", "value", "status", "constraints", "key_schema", "entry_schema", "metadata",
    "external-schema", "external_schema",
})  # fmt: skip
_OPERATIONS: Final = (
    "instantiate", "scale", "scale_to_level", "change_flavour", "change_external_connectivity", "operate", "heal", "terminate",
    "modify_information", "change_current_package", "create_snapshot", "revert_to_snapshot",
)  # fmt: skip
_LIFE_CYCLE: Final = frozenset({
    *_OPERATIONS, "type", "inputs", "operations", "notifications", "description",
    *(f"{name}_{moment}" for name in _OPERATIONS for moment in ("start", "end", "rollback_start", "rollback_end")),
})  # fmt: skip
"""Keys of the interface Vnflcm: SOL001 6.7, with the phases of a rollback that Tacker v2 has."""
_INTERFACES: Final = frozenset({"Vnflcm", "VnfIndicator", "Standard"})
_FUNCTIONS: Final = frozenset({
    "get_input", "get_property", "get_attribute", "get_artifact", "get_nodes_of_type", "get_operation_output", "concat", "join",
    "token",
})  # fmt: skip


def unknown_parts(topology: Topology) -> Iterator[str]:
    """Yield a warning for each part of a service template that is not known, with the nearest known name."""
    return _Look(topology).all()


class _Look:
    def __init__(self, topology: Topology) -> None:
        self._tree, self._document, self._template = topology.tree, topology.document, topology.template

    def all(self) -> Iterator[str]:
        yield from _keys("", self._document, _FILE)
        yield from self._definitions()
        yield from _shape("topology_template", self._document.get("topology_template"), dict)
        yield from _keys("topology_template", self._template, _TEMPLATE)
        for section, expected in (
            ("inputs", dict), ("node_templates", dict), ("groups", dict), ("policies", list), ("substitution_mappings", dict)
        ):  # fmt: skip
            yield from _shape(section, self._template.get(section), expected)
        for name, body in mapping(self._template.get("inputs")).items():
            yield from _keys(f"input {name}", mapping(body), _PROPERTY)
        for name, body in mapping(self._template.get("node_templates")).items():
            yield from self._node(f"node {name}", mapping(body))
        for name, body in mapping(self._template.get("groups")).items():
            yield from self._typed(f"group {name}", mapping(body), _GROUP)
            yield from _shape(f"group {name}: members", mapping(body).get("members"), list)
        for number, entry in enumerate(sequence(self._template.get("policies"))):
            yield from _shape(f"policies[{number}]", entry, dict)
            for name, body in mapping(entry).items():
                yield from _shape(f"policy {name}", body, dict)
                yield from self._typed(f"policy {name}", mapping(body), _POLICY)
                yield from _shape(f"policy {name}: targets", mapping(body).get("targets"), list)
        substitution = mapping(self._template.get("substitution_mappings"))
        yield from self._typed("substitution_mappings", substitution, _SUBSTITUTION, key="node_type")

    def _definitions(self) -> Iterator[str]:
        for section in TYPE_SECTIONS:
            yield from _shape(section, self._document.get(section), dict)
            for name, body in mapping(self._document.get(section)).items():
                what = f"type {name}"
                # In TOSCA 1.0 to 1.2, the operations of an interface type are keys of their own.
                if section != "interface_types":
                    yield from _keys(what, mapping(body), _TYPE)
                yield from self._kind(f"{what}: derived_from", mapping(body).get("derived_from"))
                yield from _shape(f"{what}: properties", mapping(body).get("properties"), dict)
                for key, definition in mapping(mapping(body).get("properties")).items():
                    yield from _keys(f"{what}.{key}", mapping(definition), _PROPERTY)

    def _node(self, what: str, body: JsonMapping) -> Iterator[str]:
        yield from self._typed(what, body, _NODE)
        kind = body.get("type")
        yield from _shape(f"{what}: requirements", body.get("requirements"), list)
        for section in ("capabilities", "interfaces", "artifacts"):
            yield from _shape(f"{what}: {section}", body.get(section), dict)
        for name, artifact in mapping(body.get("artifacts")).items():
            yield from self._kind(f"{what}: artifact {name}", mapping(artifact).get("type"))
        if not isinstance(kind, str) or not all(map(self._tree.knows, self._tree.lineage(kind))):
            return
        if not self._tree.is_open(kind):
            needs = {
                name
                for part in self._tree.parts(kind, "requirements")
                for one in sequence(part)
                for name in mapping(one)
            }
            for entry in sequence(body.get("requirements")):
                yield from _keys(f"{what}: requirement", mapping(entry), needs)
        yield from self._capabilities(what, body, kind)
        yield from self._interfaces(what, body, kind)

    def _capabilities(self, what: str, body: JsonMapping, kind: str) -> Iterator[str]:
        known: dict[str, Any] = {}
        for part in self._tree.parts(kind, "capabilities"):
            for name, definition in mapping(part).items():
                known.setdefault(name, definition if isinstance(definition, str) else mapping(definition).get("type"))
        given = mapping(body.get("capabilities"))
        if not self._tree.is_open(kind):
            yield from _keys(f"{what}: capability", given, known)
        for name, capability in given.items():
            place, kind_of = f"{what}: {name}", known.get(name)
            if isinstance(kind_of, str) and self._tree.knows(kind_of):
                yield from self._properties(place, mapping(capability).get("properties"), kind_of)

    def _interfaces(self, what: str, body: JsonMapping, kind: str) -> Iterator[str]:
        of_types = [mapping(part) for part in self._tree.parts(kind, "interfaces")]
        given = mapping(body.get("interfaces"))
        yield from _keys(f"{what}: interface", given, _INTERFACES.union(*of_types))
        declared = [mapping(one.get("Vnflcm")) for one in of_types]
        for definition in tuple(declared):
            name = definition.get("type")
            if isinstance(name, str):
                declared += [{key: None for part in self._tree.parts(name, section) for key in mapping(part)}
                             for section in ("operations", "notifications")]  # fmt: skip
                declared += [one for ancestor in self._tree.lineage(name) for one in self._tree.definitions(ancestor)]
        known = _LIFE_CYCLE.union(*declared, *(mapping(one.get("operations")) for one in declared))
        life_cycle = mapping(given.get("Vnflcm"))
        for section in (life_cycle, mapping(life_cycle.get("operations"))):
            yield from _keys(f"{what}: Vnflcm", section, known)

    def _typed(self, what: str, body: JsonMapping, known: Collection[str], *, key: str = "type") -> Iterator[str]:
        """Yield the unknown keys of a part that has a type, its unknown type, and its unknown properties."""
        yield from _keys(what, body, known)
        kind = body.get(key)
        yield from self._kind(what, kind)
        if isinstance(kind, str) and self._tree.knows(kind):
            yield from self._properties(what, body.get("properties"), kind)

    def _kind(self, what: str, kind: object) -> Iterator[str]:
        if isinstance(kind, str) and not self._tree.knows(kind) and kind not in _PRIMITIVES:
            yield f"{what}: type {_unknown(kind, self._tree.names())}"

    def _properties(self, what: str, given: object, kind: str) -> Iterator[str]:
        yield from _shape(f"{what}: properties", given, dict)
        known = self._tree.properties(kind)
        if not self._tree.is_open(kind):
            yield from _keys(what, mapping(given), known)
        for name, value in mapping(given).items():
            if name in known:
                yield from self._value(f"{what}.{name}", value, known[name])

    def _value(self, what: str, value: Any, definition: JsonMapping) -> Iterator[str]:
        if value is None or (isinstance(value, dict) and len(value) == 1 and next(iter(value)) in _FUNCTIONS):
            return
        kind, schema = definition.get("type"), definition.get("entry_schema")
        entry: JsonMapping = {"type": schema} if isinstance(schema, str) else mapping(schema)
        if isinstance(value, str):
            yield from _word(what, value, definition)
        if kind == "boolean":
            if boolean(value) is None:
                yield f"{what}: true or false expected, got {shown(str(value))!r}"
        elif kind in ("list", "map"):
            yield from _shape(what, value, list if kind == "list" else dict)
            for key, item in _items(value):
                yield from self._value(f"{what}[{key}]", item, entry)
        elif kind == EITHER:
            of_entry = self._tree.properties(str(entry.get("type")))
            if isinstance(value, dict) and not of_entry.keys().isdisjoint(value):
                yield from self._value(what, value, entry)
            else:
                for key, item in _items(value):
                    yield from self._value(f"{what}[{key}]", item, entry)
        elif isinstance(kind, str) and self._tree.knows(kind) and self._tree.properties(kind):
            yield from _shape(what, value, dict)
            yield from self._properties(what, mapping(value), kind)


_PRIMITIVES: Final = frozenset({
    "string", "integer", "float", "boolean", "timestamp", "null", "version", "range", "list", "map", "json", "xml", "scalar-unit",
    "scalar-unit.size", "scalar-unit.time", "scalar-unit.frequency", "scalar-unit.bitrate",
})  # fmt: skip


def _items(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        yield from value.items()
    elif isinstance(value, list):
        yield from ((str(number), item) for number, item in enumerate(value))


def _shape(what: str, value: object, expected: type) -> Iterator[str]:
    # Hand-written VNFDs leave sections empty.
    if value is not None and not isinstance(value, expected):
        yield f"{what}: a {'map' if expected is dict else 'list'} expected, so it is not read"


def _word(what: str, value: str, definition: JsonMapping) -> Iterator[str]:
    """Yield that a word is none of those that its definition allows (``valid_values``)."""
    for constraint in map(mapping, sequence(definition.get("constraints"))):
        words = {str(word) for word in sequence(constraint.get("valid_values"))}
        # The editions of SOL001 differ in the case of theirs.
        if words and value.lower() not in {word.lower() for word in words}:
            yield f"{what}: {_unknown(value, words)}"


def _keys(what: str, given: JsonMapping, known: Collection[str]) -> Iterator[str]:
    for key in given:
        if key not in known:
            yield f"{what}: {_unknown(key, known)}" if what else _unknown(key, known)


def _unknown(name: str, known: Collection[str] | Iterator[str]) -> str:
    near = nearest(name, known)
    return f"{shown(name)} is not known" + (f" (nearest known name: {near})" if near is not None else "")
