"""One service template with the types that it sees: the ground that a flavour is read from."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from typing import Any, Final

from kubevnfm_kit.json_types import JsonMapping

from kubevnfm_csar.errors import PackageRefused
from kubevnfm_csar.files import PackageFiles
from kubevnfm_csar.vnfd import types
from kubevnfm_csar.vnfd.types import TypeTree
from kubevnfm_csar.vnfd.values import input_defaults, mapping, resolve, sequence, size_bytes, whole_number

_WARNINGS: Final = 20
"""The most warnings of one template: those after them add nothing for its author."""
_TARGETS: Final = 100_000
"""The most targets of all policies of a kind, groups written out: groups of groups' size would take their product."""


@dataclass(frozen=True)
class Node:
    """A node template, its inputs filled in and the type's defaults below its own properties."""

    name: str
    type: str
    properties: JsonMapping
    body: JsonMapping

    def requirement(self, name: str) -> str | None:
        """Return the node that a requirement names; None: it is left open."""
        return next(self.requirements(name), None)

    def requirements(self, name: str) -> Iterator[str]:
        """Yield the nodes that all requirements of this name point to."""
        for entry in sequence(self.body.get("requirements")):
            target = mapping(entry).get(name)
            target = target.get("node") if isinstance(target, dict) else target
            if isinstance(target, str):
                yield target


class Topology:
    """A service template's ``topology_template``."""

    def __init__(self, document: JsonMapping, *, file: str, tree: TypeTree, files: PackageFiles) -> None:
        self.document, self.file, self.tree, self.files = document, file, tree, files
        self.template = mapping(document.get("topology_template"))
        self.inputs = input_defaults(document)
        self.nodes = {node.name: node for node in self._nodes()}
        self.warnings: list[str] = []

    def warn(self, warning: str) -> None:
        """Keep a fault of the template that makes nothing unusable which the VNF needs."""
        if len(self.warnings) < _WARNINGS:
            self.warnings.append(f"{self.file}: {warning}")

    def warn_of(self, warnings: Iterable[str]) -> int:
        """Keep these warnings, as many as there is room for; return how many."""
        found = list(islice(warnings, _WARNINGS - len(self.warnings)))
        for warning in found:
            self.warn(warning)
        return len(found)

    def refused(self, rule: str) -> PackageRefused:
        """Return the error of a rule that the template breaks."""
        return PackageRefused(rule, file=self.file)

    def whole_number(self, value: Any, what: str) -> int:
        """Return a number of at least 0; nothing is 0. Raises PackageRefused, which names ``what``."""
        return whole_number(value, file=self.file, what=what)

    def size_bytes(self, value: Any, what: str) -> int:
        """Return a TOSCA size in bytes; nothing is 0. Raises PackageRefused, which names ``what``."""
        return size_bytes(value, file=self.file, what=what)

    def _nodes(self) -> Iterator[Node]:
        for name, body in mapping(self.template.get("node_templates")).items():
            kind = mapping(body).get("type")
            if not isinstance(kind, str):
                raise self.refused(f"node {name}: a type expected")
            # A null, or an input without a value, must not hide the type's default.
            own = {
                key: value
                for key, value in mapping(resolve(mapping(body).get("properties"), self.inputs)).items()
                if value is not None
            }
            # Not merged: a type with many defaults and many nodes of it would take their product.
            yield Node(name=name, type=kind, properties=ChainMap(own, self.tree.defaults(kind)), body=body)

    def of_type(self, ancestor: str) -> Iterator[Node]:
        """Yield the nodes of a type or one derived from it."""
        return (node for node in self.nodes.values() if self.tree.is_a(node.type, ancestor))

    @property
    def substitution(self) -> JsonMapping:
        """The ``substitution_mappings`` section."""
        return mapping(self.template.get("substitution_mappings"))

    @property
    def flavour_id(self) -> str | None:
        """The flavour that this template describes; None when it describes none (types, or the selecting top file)."""
        given = resolve(mapping(self.substitution.get("properties")).get("flavour_id"), self.inputs)
        if given is None:  # TOSCA 1.3 writes it as a filter
            for condition in sequence(mapping(self.substitution.get("substitution_filter")).get("properties")):
                given = mapping(mapping(condition).get("flavour_id")).get("equal", given)
        return str(given) if given is not None else None

    @cached_property
    def exposed(self) -> frozenset[str]:
        """The connection points that substitution_mappings hands to the outside (``[CP1, virtual_link]``).

        TOSCA has a map of requirements; SOL001 also writes a list of maps, since several may have one name.
        """
        found: set[str] = set()
        given = self.substitution.get("requirements")
        for target in (value for one in sequence(given) or [given] for value in mapping(one).values()):
            pairs = sequence(target)
            for pair in pairs if pairs and isinstance(pairs[0], list) else [pairs]:
                if pair and isinstance(pair[0], str):
                    found.add(pair[0])
        return frozenset(found)

    def vnf_node(self) -> Node | None:
        """Return the node that stands for the VNF: by its type, else by the name ``VNF``, else by its interfaces.

        Tacker v1 takes the node named VNF and v2 the first with interfaces; packages made for either are read.
        """
        node_type, nodes = self.substitution.get("node_type"), self.nodes.values()
        candidates = chain(
            self.of_type(types.VNF),
            (node for node in nodes if node.type == node_type),
            (node for node in nodes if node.name == "VNF"),
            (node for node in nodes if node.body.get("interfaces")),
        )
        return next(candidates, None)

    def policies(self, kind: str) -> Iterator[tuple[str, JsonMapping, tuple[str, ...]]]:
        """Yield (name, properties, targets) of each policy ``tosca.policies.nfv.<kind>``; groups are written out."""
        groups = {
            name: tuple(str(member) for member in sequence(mapping(group).get("members")))
            for name, group in mapping(self.template.get("groups")).items()
        }
        written = 0
        for entry in sequence(self.template.get("policies")):
            for name, policy in mapping(entry).items():
                # By lineage: packages may derive policy types of their own.
                if not self.tree.is_a(mapping(policy).get("type"), f"tosca.policies.nfv.{kind}"):
                    continue
                properties = mapping(resolve(mapping(policy).get("properties"), self.inputs))
                targets: list[str] = []
                for target in sequence(policy.get("targets")):
                    members = groups.get(str(target), (str(target),))
                    written += len(members)
                    if written > _TARGETS:
                        raise self.refused(f"policies of type {kind} have more than the {_TARGETS} targets allowed")
                    targets.extend(members)
                yield name, properties, tuple(targets)
