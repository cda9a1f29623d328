"""The attributes that a package marks as secret: by TOSCA metadata, by data type, or as hidden parameters of Heat."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from kubevnfm_kit.json_types import JsonMapping

from kubevnfm_csar.vnfd.types import TypeTree
from kubevnfm_csar.vnfd.values import mapping

_CREDENTIAL: Final = "tosca.datatypes.Credential"
"""TOSCA Simple Profile 5.3.2."""
_SCHEMAS: Final = ("entry_schema", "key_schema")
"""Parts of a definition; they define no attribute of their own."""
_TRUE: Final = frozenset({"true", "yes", "1"})


def secret_names(documents: Iterable[JsonMapping], tree: TypeTree) -> tuple[str, ...]:
    """Return the names of properties, inputs and attributes whose definitions say that their values are secret.

    A definition says so by ``metadata: {sensitive: true}`` (its own, or of its data type) or by the type
    tosca.datatypes.Credential or one that derives from it; a list or map by its ``entry_schema``.
    """
    given = list(documents)
    sensitive = {_CREDENTIAL} | {
        name
        for document in given
        for name, body in mapping(document.get("data_types")).items()
        if _is_sensitive(mapping(body))
    }
    found: set[str] = set()
    # Types are definitions themselves, but their names are no attributes: the walk begins below them.
    nodes: list[Any] = [
        body
        for document in given
        for section in ("data_types", "node_types", "interface_types", "capability_types")
        for body in mapping(document.get(section)).values()
    ]
    nodes.extend(document.get("topology_template") for document in given)
    while nodes:
        node = nodes.pop()
        if isinstance(node, list):
            nodes.extend(node)
        elif isinstance(node, Mapping):
            found.update(
                str(name)
                for name, value in node.items()
                if name not in _SCHEMAS and _is_marked(mapping(value), tree, sensitive)
            )
            nodes.extend(node.values())
    return tuple(sorted(found))


def hidden_parameters(template: JsonMapping) -> frozenset[str]:
    """Return the parameters of a Heat template that are ``hidden`` (HOT specification, parameters section)."""
    declared = mapping(template.get("parameters"))
    return frozenset(str(name) for name, body in declared.items() if str(mapping(body).get("hidden")).lower() in _TRUE)


def _is_marked(definition: JsonMapping, tree: TypeTree, sensitive: set[str]) -> bool:
    schema = definition.get("entry_schema")
    kinds = (definition.get("type"), schema if isinstance(schema, str) else mapping(schema).get("type"))
    return _is_sensitive(definition) or any(
        isinstance(kind, str) and not sensitive.isdisjoint(tree.lineage(kind)) for kind in kinds
    )


def _is_sensitive(definition: JsonMapping) -> bool:
    return str(mapping(definition.get("metadata")).get("sensitive")).lower() in _TRUE
