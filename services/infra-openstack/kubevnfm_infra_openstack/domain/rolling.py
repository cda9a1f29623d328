"""Definitions of a stack between two others: some of its machines have the new form, the rest the earlier one.

A part is a resource of the top template that holds machines: a server, a nested template or a group. It owns what only
it uses, such as its ports and volumes. A part is changed or restored with all it owns: its resources, the values of the
parameters that they read, and the files that they name. Parts that read the same value, or name the same file, can have
only one form of it; if its two forms differ, these parts change together.

Between two definitions a stack has all that either of them has: what is new comes with the first change, what is gone
leaves with the last one. A network has ports as long as a machine has its earlier form, and its subnet, to which no port
refers, has their addresses.

The result is an ordinary definition: no value is written into a template, so an operation that stops in the middle leaves
a stack that every later operation can change.
"""

from __future__ import annotations

import copy
import itertools
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from kubevnfm_infra_openstack.domain.hot import (
    AUTO_SCALING_GROUP,
    RESOURCE_GROUP,
    SERVER,
    Templates,
    declared,
    resources_of,
)
from kubevnfm_infra_openstack.domain.scaling import parameter_path, present_value
from kubevnfm_infra_openstack.domain.stack import StackDefinition

_HOLDERS: Final = frozenset({SERVER, AUTO_SCALING_GROUP, RESOURCE_GROUP})
_FILE: Final = "file"
_PARAMETER: Final = "parameter"

Use = tuple[str, ...]
"""A thing that a resource reads: ``("file", name)`` or ``("parameter", name, key ...)``."""


@dataclass(frozen=True)
class ReadDefinition:
    """A stack's definition with its nested templates parsed."""

    definition: StackDefinition
    nested: Templates

    @cached_property
    def resources(self) -> Templates:
        """The top template's resources by name."""
        return resources_of(self.definition.template)

    @cached_property
    def references(self) -> Mapping[str, frozenset[str]]:
        """The names of the resources that a resource refers to."""
        return {name: frozenset(_references(one)) & self.resources.keys() for name, one in self.resources.items()}

    @cached_property
    def owned(self) -> Mapping[str, frozenset[str]]:
        """By part: itself, what only it refers to, and what refers only to these."""
        parts = {
            name
            for name, one in self.resources.items()
            if one.get("type") in _HOLDERS or one.get("type") in self.definition.files
        }
        below = {part: self._below(part, parts) for part in parts}
        users = Counter(name for names in below.values() for name in names)
        owned = {part: {part, *(name for name in names if users[name] == 1)} for part, names in below.items()}
        holder = {name: part for part, names in owned.items() for name in names}
        for name in self.resources.keys() - users.keys() - parts:
            holders = {holder[one] for one in self.references[name] if one in holder}
            if len(holders) == 1:
                owned[holders.pop()].add(name)
        return {part: frozenset(names) for part, names in owned.items()}

    def _below(self, part: str, parts: Collection[str]) -> set[str]:
        found: set[str] = set()
        left = [part]
        while left:
            new = {name for name in self.references[left.pop()] if name not in found and name not in parts}
            found |= new
            left += new
        return found

    def uses(self, names: Iterable[str]) -> set[Use]:
        """Return what these resources read."""
        found: set[Use] = set()
        for name in names:
            if name in self.resources:
                found.update((_PARAMETER, *path) for path in _paths(self.resources[name]))
                found.update((_FILE, file) for file in self._files(self.resources[name], set()))
        return found

    def _files(self, node: object, known: set[str]) -> set[str]:
        """Return the files that a node names, and those that these name; ``known``: those found so far."""
        for name in _texts(node):
            if name in self.definition.files and name not in known:
                known.add(name)
                self._files(self.nested.get(name), known)
        return known

    def value(self, use: Use) -> object:
        """Return a file's content or a parameter's value; None if there is none."""
        kind, name, *path = use
        if kind == _FILE:
            # Parsed where possible: user data classes write the package's templates in a form of their own.
            return self.nested.get(name, self.definition.files.get(name))
        found = present_value(self.definition, name)
        for key in path:
            found = found.get(key) if isinstance(found, Mapping) else None
        return found


def separable(new: ReadDefinition, old: ReadDefinition, names: Collection[str]) -> frozenset[str]:
    """Return those of the parts that can keep their old form while all else has its new one."""
    return _kept(new, old, names)[0]


def _kept(
    new: ReadDefinition, old: ReadDefinition, names: Collection[str], *, takes_gone: bool = True
) -> tuple[frozenset[str], frozenset[str]]:
    """Return those of the parts that can keep their old form, and those of the resources that are gone that can stay.

    ``takes_gone``: False: nothing that is gone stays.
    """
    keeping = frozenset(name for name in names if name in old.owned and name in new.resources)
    gone = _gone(new, old) if takes_gone else frozenset()
    groups = _connected(old, gone)
    while True:
        earlier = _owned(old, keeping) | gone
        others = new.uses(new.resources.keys() - _owned(new, keeping) - earlier)
        clashing = {name for name in earlier if _meet(_differing(new, old, [name]), others)}
        left = {name for group in groups if not clashing.isdisjoint(group) for name in group}
        staying = frozenset(part for part in keeping if not _needs(old, old.owned[part], clashing | left))
        if (staying, gone - left) == (keeping, gone):
            return keeping, gone
        keeping, gone = staying, gone - left


def put_back(new: ReadDefinition, old: ReadDefinition, names: Collection[str]) -> frozenset[str]:
    """Return the parts, and those that get their old form back together with them."""
    back = frozenset(name for name in names if name in old.owned)
    while True:
        differing = _differing(new, old, _owned(old, back))
        more = {
            name
            for name, owned in new.owned.items()
            if name in old.owned and name not in back and _meet(differing, new.uses(owned))
        }
        if not more:
            return back
        back |= more


def with_earlier(new: ReadDefinition, old: ReadDefinition, names: Collection[str]) -> StackDefinition:
    """Return the new definition with the old form of these parts and of what they own, and with all that it lacks.

    An old resource that cannot stay beside the new ones, because both read one value, is left out unless a part needs it.
    """
    between = _joined(new, old, _owned(old, names) | _kept(new, old, names)[1])
    # Heat gives the members of a group their new form one after the other; those that wait name the earlier files.
    return replace(between, files={**old.definition.files, **between.files})


def with_parts(present: ReadDefinition, other: ReadDefinition, names: Collection[str]) -> StackDefinition:
    """Return the present definition in which those of these parts that can have the other's form without the rest have it.

    A part that the present one lacks is added. The present definition itself if there is no such part.
    """
    added = {name for name in names if name in other.owned and name not in present.resources}
    taken = _kept(present, other, names, takes_gone=False)[0] | added
    return _joined(present, other, _owned(other, taken)) if taken else present.definition


def _joined(new: ReadDefinition, old: ReadDefinition, earlier: Collection[str]) -> StackDefinition:
    """Return the new definition with the old form of these resources, and with what they need."""
    resources = {**new.resources, **{name: old.resources[name] for name in earlier}}
    owned = _owned(old, old.owned)
    # An old resource may refer to a shared one that the new template does not have, and a subnet refers to that one.
    left = list(earlier)
    while left:
        last = left.pop()
        beside = (
            () if last in owned else {n for n, others in old.references.items() if last in others and n not in owned}
        )
        for name in (old.references[last] | frozenset(beside)) - resources.keys():
            resources[name] = old.resources[name]
            left.append(name)
    added = {*earlier, *(resources.keys() - new.resources.keys())}
    template = {**new.definition.template, "resources": resources}
    declarations = dict(declared(new.definition.template))
    parameters, files = dict(new.definition.parameters), dict(new.definition.files)
    for kind, name, *_ in old.uses(added):
        if kind == _PARAMETER and name in declared(old.definition.template) and name not in declarations:
            declarations[name] = declared(old.definition.template)[name]
    if declarations:
        template["parameters"] = declarations
    for use in sorted(_differing(new, old, added)):
        kind, name, *path = use
        if kind == _FILE:
            files[name] = old.definition.files[name]
        elif not path:
            _put(parameters, name, old.value(use))
        else:
            # Only this value: the other entries of the parameter are those of other parts.
            if parameters.get(name) is new.definition.parameters.get(name):
                parameters[name] = copy.deepcopy(present_value(new.definition, name))
            place = parameters[name]
            for key in path[:-1]:
                place = place[key]
            _put(place, path[-1], old.value(use))
    return StackDefinition(template, parameters, files)


def lacks_shared(new: ReadDefinition, old: ReadDefinition) -> bool:
    """Return whether a network, or another resource that is no part's own, is gone and can stay beside the new ones."""
    return not _kept(new, old, ())[1] <= _owned(old, old.owned)


def _gone(new: ReadDefinition, old: ReadDefinition) -> frozenset[str]:
    """Return the old resources that the new definition lacks, except those of parts that it has in another form."""
    changing = _owned(old, old.owned.keys() & new.resources.keys())
    return frozenset(old.resources.keys() - new.resources.keys() - changing)


def _connected(old: ReadDefinition, names: Collection[str]) -> Sequence[frozenset[str]]:
    """Return the names in groups of those that refer to one another."""
    groups: list[frozenset[str]] = []
    for name in names:
        near = {name, *(other for other in names if other in old.references[name])}
        met = [group for group in groups if not near.isdisjoint(group)]
        groups = [group for group in groups if group not in met] + [frozenset(near).union(*met)]
    return groups


def _needs(old: ReadDefinition, owned: Collection[str], others: Collection[str]) -> bool:
    """Return whether a part is among the others, or refers to one of them."""
    return any(name in others or not old.references[name].isdisjoint(others) for name in owned)


def _put(place: dict[str, object], key: str, value: object) -> None:
    """Set the value; a value that the old definition does not have is removed."""
    if value is None:
        place.pop(key, None)
    else:
        place[key] = copy.deepcopy(value)


def _owned(definition: ReadDefinition, parts: Iterable[str]) -> set[str]:
    return {name for part in parts for name in definition.owned.get(part, ())}


def _differing(new: ReadDefinition, old: ReadDefinition, names: Iterable[str]) -> set[Use]:
    """Return what the old form of these resources reads and whose value differs between the definitions."""
    return {_common(use, new, old) for use in old.uses(names) if new.value(use) != old.value(use)}


def _common(use: Use, new: ReadDefinition, old: ReadDefinition) -> Use:
    """Return the beginning of a parameter's path up to the first key whose container only one definition has."""
    kind, *path = use
    if kind == _PARAMETER:
        for length in range(1, len(path)):
            inner = (kind, *path[:length])
            if not isinstance(new.value(inner), Mapping) or not isinstance(old.value(inner), Mapping):
                return inner
    return use


def _meet(one: Collection[Use], other: Collection[Use]) -> bool:
    """Return whether a use of the one is a use of the other, or a part of it."""
    return not {*one}.isdisjoint(_prefixes(other)) or not {*other}.isdisjoint(_prefixes(one))


def _prefixes(uses: Iterable[Use]) -> set[Use]:
    return {use[:length] for use in uses for length in range(2, len(use) + 1)}


def _references(node: object) -> Iterator[str]:
    """Yield the names of resources that a node refers to, and possibly other texts."""
    if isinstance(node, Mapping):
        for key, value in node.items():
            if key in ("get_resource", "depends_on") and isinstance(value, str):
                yield value
            elif key in ("get_attr", "depends_on") and isinstance(value, list):
                yield from (str(one) for one in (value[:1] if key == "get_attr" else value))
            else:
                yield from _references(value)
    elif isinstance(node, list):
        for value in node:
            yield from _references(value)


def _paths(node: object) -> Iterator[Use]:
    """Yield the parameter paths that a node reads; one with a computed key up to that key."""
    path = parameter_path(node)
    if path is not None:
        # Not into lists: an element of a list cannot be put back alone.
        fixed = tuple(itertools.takewhile(lambda key: isinstance(key, str), path))
        yield tuple(map(str, fixed))
        for key in path[len(fixed) :]:
            yield from _paths(key)
    elif isinstance(node, Mapping):
        for value in node.values():
            yield from _paths(value)
    elif isinstance(node, list):
        for value in node:
            yield from _paths(value)


def _texts(node: object) -> Iterator[str]:
    """Yield every text that may name a file: types of resources, also of a group's members, and ``get_file``."""
    if isinstance(node, Mapping):
        for key, value in node.items():
            if key in ("type", "get_file") and isinstance(value, str):
                yield value
            else:
                yield from _texts(value)
    elif isinstance(node, list):
        for value in node:
            yield from _texts(value)
