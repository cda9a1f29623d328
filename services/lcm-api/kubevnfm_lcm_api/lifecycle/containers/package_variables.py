"""The variables of a package whose artifacts have an order (multicloud.md MC-022): what a request can set."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

from cachetools import LRUCache
from kubevnfm_clients.multicloud.variables import MOST_PLACES, PackageVariable, VariablePlace
from kubevnfm_csar.artifact_order import ArtifactOrder, find_order
from kubevnfm_csar.manifest_values import RESERVED
from kubevnfm_csar.ordered_manifests import all_values, documents_of
from kubevnfm_csar.unused_values import leaves
from kubevnfm_csar.values_schema import Described, SchemaRefused, described
from kubevnfm_csar.variable_uses import uses_in
from kubevnfm_events import PackageRef
from kubevnfm_kit.errors import Conflict, Unprocessable
from kubevnfm_secrets import hide, is_secret_name, mask

from kubevnfm_lcm_api.lifecycle.containers.manifests import package_texts
from kubevnfm_lcm_api.lifecycle.containers.ordering import order_in
from kubevnfm_lcm_api.lifecycle.core.ports import PackageCatalogue

_MOST_VARIABLES: Final = 2000
_MOST_USES: Final = 1_000_000
_KEPT: Final = 4
"""Packages whose lists are kept."""
_TYPES: Final = {
    bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object", type(None): "null",
}  # fmt: skip
_NOTHING: Final = object()
_LARGEST: Final = 8 * 2**20
"""Bytes of a list. Its schema may be small: many variables can refer to one default, description or enum."""


class PackageVariables:
    """Reads the variables of packages; those of the last few are kept."""

    def __init__(self, packages: PackageCatalogue) -> None:
        self._packages = packages
        self._kept: LRUCache[tuple[str, str, str | None], bytes] = LRUCache(_KEPT)
        # Reading takes seconds for the largest packages, and several at a time take no less.
        self._reading = asyncio.Lock()

    async def reference(self, package_id: str) -> PackageRef:
        """Return an onboarded package. Raises NotFound, Conflict."""
        found = await self._packages.reference(package_id)
        if not found.vnfd_id:
            raise Conflict(f"the package {package_id} is not ONBOARDED")
        return found

    async def variables(self, package: PackageRef, order_artifact: str | None) -> bytes:
        """Return the variables, by name, as JSON; none if the package has no order. Raises Unprocessable for a package at fault.

        ``order_artifact``: the order to take; None: the one that the package has.
        """
        key = (package.package_id, package.checksum, order_artifact)
        async with self._reading:
            if key not in self._kept:
                self._kept[key] = await self._read(package.package_id, order_artifact)
            return self._kept[key]

    async def _read(self, package_id: str, order_artifact: str | None) -> bytes:
        files = await self._packages.file_names(package_id)
        name = find_order(files, order_artifact)
        if name is None:
            return b"[]"
        order = await order_in(self._packages, package_id, name, files)
        texts = await package_texts(self._packages, package_id, order.files)
        return await asyncio.to_thread(_listed, order, texts)


def _listed(order: ArtifactOrder, texts: Sequence[tuple[str, str]]) -> bytes:
    in_schema, values = _described(order), all_values(order, {})
    places, needed = _places(order, texts)
    objects = {name.rpartition(".")[0] for name in in_schema}
    names = {*(in_schema.keys() - objects), *places, *leaves(values)}
    if len(names) > _MOST_VARIABLES:
        raise Unprocessable("", f"{order.name}: more than {_MOST_VARIABLES} variables")
    found: list[bytes] = []
    size = 0
    for name in sorted(names):
        variable = _variable(name, in_schema.get(name), values, places.get(name, ()), name in needed)
        found.append(variable.model_dump_json().encode())
        size = _checked(size + len(found[-1]), order)
    return b"[%s]" % b",".join(found)


def _checked(size: int, order: ArtifactOrder) -> int:
    if size > _LARGEST:
        raise Unprocessable("", f"{order.name}: the list of its variables has more than {_LARGEST} bytes")
    return size


def _variable(
    name: str, known: Described | None, values: Mapping[str, Any], places: Sequence[VariablePlace], is_needed: bool
) -> PackageVariable:
    path = name.split(".")
    is_secret = any(map(is_secret_name, path))
    parts = () if known is None else known.parts
    default = _at(values, path)
    if default is _NOTHING:
        default = next((part["default"] for part in parts if "default" in part), _NOTHING)
    has_default = default is not _NOTHING
    shown = mask(hide({path[-1]: default}, path if is_secret else ()))[path[-1]] if has_default else None
    return PackageVariable(
        name=name,
        type=_type(parts, default),
        default=shown,
        required=not has_default and (is_needed or (known is not None and known.is_required)),
        secret=is_secret,
        description=next((text for part in parts if isinstance(text := part.get("description"), str)), None),
        enum=next((listed for part in parts if isinstance(listed := part.get("enum"), list)), None),
        places=list(places),
    )


def _type(parts: Sequence[Mapping[str, Any]], default: object) -> str | None:
    for part in parts:
        given = part.get("type")
        named = [each for each in given if each != "null"] if isinstance(given, list) else [given]
        if len(named) == 1 and isinstance(named[0], str):
            return named[0]
    return None if default is _NOTHING else _TYPES.get(type(default))


def _described(order: ArtifactOrder) -> Mapping[str, Described]:
    if order.schema is None:
        return {}
    try:
        return described(order.schema)
    except SchemaRefused as error:
        raise Unprocessable("", f"{order.schema.name}: {error}") from None


def _places(
    order: ArtifactOrder, texts: Sequence[tuple[str, str]]
) -> tuple[Mapping[str, Sequence[VariablePlace]], frozenset[str]]:
    """Return the places of each variable, and the variables that a place without a default needs."""
    places: dict[str, list[VariablePlace]] = {}
    needed: set[str] = set()
    uses = size = 0
    for document in documents_of(order, texts):
        for use in uses_in(document.body) if document.artifact.is_filled_in else ():
            uses += 1
            if uses > _MOST_USES:
                raise Unprocessable("", f"{document.place}: more than {_MOST_USES} places with variables")
            if use.name.partition(".")[0] in RESERVED:
                continue
            listed = places.setdefault(use.name, [])
            if len(listed) < MOST_PLACES:
                file, number = document.artifact.file, document.number - 1
                listed.append(VariablePlace(file=file, document=number, path=str(use.path)))
                size = _checked(size + len(file) + len(listed[-1].path), order)
            if not use.has_default:
                needed.add(use.name)
    return places, frozenset(needed)


def _at(values: Mapping[str, Any], path: Sequence[str]) -> Any:
    node: Any = values
    for name in path:
        node = node.get(name, _NOTHING) if isinstance(node, Mapping) else _NOTHING
    return node
