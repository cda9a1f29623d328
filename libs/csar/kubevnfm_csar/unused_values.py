"""Finds the values of a request that name no variable of the package (multicloud.md MC-022)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from itertools import islice
from typing import Any, Final

from kubevnfm_kit.nearest import Work, nearest, shown
from kubevnfm_kit.request_warnings import RequestWarning, pointer
from kubevnfm_secrets import SECRET_NAMES

from kubevnfm_csar.artifact_order import ArtifactOrder
from kubevnfm_csar.manifest_values import NAME, RESERVED, VALUES
from kubevnfm_csar.values_schema import Described, SchemaRefused, described, described_root

_MOST: Final = 20
"""Values that are named."""
_OPEN: Final = frozenset(
    {
        "additionalProperties", "patternProperties", "unevaluatedProperties", "propertyNames", "anyOf", "oneOf", "if", "then",
        "else", "dependentSchemas", "dependencies", "$dynamicRef", "$recursiveRef",
    }
)  # fmt: skip
"""The members of a schema by which an object may have others than those of its ``properties``."""


def unused_values(order: ArtifactOrder, given: Mapping[str, Any], named: Collection[str]) -> Sequence[RequestWarning]:
    """Return a warning for each of the given values that is used nowhere; ``named``: the variables in the artifacts.

    None for an order with charts, since their templates alone say what they use, and where the schema lets objects have any members.
    """
    if not given or order.charts:
        return ()
    in_schema: Mapping[str, Described] = {}
    whole: Set[str] = frozenset()
    if order.schema is not None:
        try:
            in_schema = {"": described_root(order.schema), **described(order.schema)}
        except SchemaRefused:
            return ()
        whole = {name for name, each in in_schema.items() if _is_open(each)}
    objects = {name.rpartition(".")[0] for name in in_schema if name}
    names = {*named, *(in_schema.keys() - objects - {""}), *leaves(order.values)}
    if "" in whole:
        return ()
    above = {name[:at] for name in (*names, *whole) for at, character in enumerate(name) if character == "."}
    work = Work()
    return [_warning(path, names, work) for path in islice(_unused(given, names | whole, above), _MOST)]


def leaves(values: Mapping[str, Any], inside: str = "") -> Iterator[str]:
    """Yield the names of values that are no objects with members, as variables name them."""
    for name, value in values.items():
        path = f"{inside}.{name}" if inside else name
        if not inside and (NAME.fullmatch(name) is None or name in RESERVED):
            continue
        if isinstance(value, Mapping) and value:
            yield from leaves(value, path)
        else:
            yield path


def _unused(
    given: Mapping[str, Any], used: Set[str], above: Set[str], inside: tuple[str, ...] = ()
) -> Iterator[tuple[str, ...]]:
    """Yield the paths that lead to no variable, each without what is below it; ``above``: the objects that variables are in."""
    for name, value in given.items():
        path = *inside, name
        dotted = ".".join(path)
        if dotted in used or name == SECRET_NAMES or (not inside and name in RESERVED):
            continue
        if dotted not in above:
            yield path
        elif isinstance(value, Mapping):
            yield from _unused(value, used, above, path)


def _is_open(described: Described) -> bool:
    return any(part.get(name) is not False for part in described.parts for name in _OPEN & part.keys())


def _warning(path: tuple[str, ...], names: Collection[str], work: Work) -> RequestWarning:
    dotted = ".".join(path)
    near = nearest(dotted, names, work)
    what = f"the nearest is {near}" if near is not None else "GET /artifacts/{csar_id}/variables lists them"
    place = f"{VALUES}/{shown(dotted).replace('.', '/')}"
    text = f"{place}: not used, since the package has no variable of this name; {what}"
    return RequestWarning(text=text, field=pointer([*VALUES.split("/"), *path]), nearest=near)
