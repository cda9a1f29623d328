"""Reads YAML of a package into plain JSON data: no objects, no dates, no endless aliases."""

from __future__ import annotations

from typing import Any, Final

import yaml
from kubevnfm_kit.json_types import JsonObject

from kubevnfm_csar.errors import PackageRefused
from kubevnfm_csar.files import PackageFiles, read_text

NODES: Final = 500_000
"""Nodes of one document with its aliases written out; ETSI's largest type file has about 20,000."""
DEPTH: Final = 100
_LARGEST: Final = 2**63 - 1

_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _PlainLoader(_Base):  # type: ignore[misc]  # the C loader where PyYAML was built with it: ten times as fast
    """The safe loader without dates: ``heat_template_version: 2013-05-23`` is a text, as Heat itself reads it."""


_PlainLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in _Base.yaml_implicit_resolvers.items()
}
# `None` is the constructor for unknown tags, which raises an error. Without those for dates, sets and binary data every
# value is JSON.
_PlainLoader.yaml_constructors = {
    tag: constructor
    for tag, constructor in _Base.yaml_constructors.items()
    if tag is None or tag.rpartition(":")[2] in ("null", "bool", "int", "float", "str", "seq", "map")
}


def read_yaml(files: PackageFiles, name: str) -> JsonObject:
    """Return the one YAML document of a file. Raises PackageRefused when it is not YAML, or not a mapping."""
    return parse_yaml(read_text(files, name), name=name)


def parse_yaml(text: str, *, name: str) -> JsonObject:
    """Read YAML from text as ``read_yaml`` does; ``name`` is for the error."""
    documents = parse_documents(text, name=name)
    if len(documents) > 1:
        raise PackageRefused("not YAML: expected a single document, but found another document", file=name)
    if not documents or not isinstance(documents[0], dict):
        raise PackageRefused("the YAML document is not a mapping", file=name)
    return documents[0]


def parse_documents(text: str, *, name: str) -> list[Any]:
    """Return all YAML documents of a text, None for one without content. Raises PackageRefused when it is not YAML."""
    _check_depth(text, name=name)
    loader = _PlainLoader(text)
    found: list[Any] = []
    try:
        while loader.check_node():
            node = loader.get_node()
            _measure(node, name=name, done={}, above=())
            found.append(_as_json(loader.construct_document(node)))
    except (yaml.YAMLError, ValueError) as error:
        raise PackageRefused(f"not YAML: {_place(error)}", file=name) from error
    finally:
        loader.dispose()
    return found


def _check_depth(text: str, *, name: str) -> None:
    """Refuse deep nesting before composing: libyaml's composer recurses in C, and an overflow ends the process."""
    loader = _PlainLoader(text)
    depth = 0
    try:
        while loader.check_event():
            event = loader.get_event()
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
            if depth > DEPTH:
                raise PackageRefused(f"nested more than {DEPTH} deep", file=name)
    except yaml.YAMLError as error:
        raise PackageRefused(f"not YAML: {_place(error)}", file=name) from error
    finally:
        loader.dispose()


def _measure(node: Any, *, name: str, done: dict[int, int], above: tuple[int, ...]) -> int:
    """Return the number of nodes with aliases written out; refuse loops and exponential growth."""
    if id(node) in above:
        raise PackageRefused("an alias that contains itself", file=name)
    # An alias is the same node object: measuring it once keeps this check linear on input that grows exponentially.
    if id(node) in done:
        return done[id(node)]
    here = (*above, id(node))
    size = 1
    if isinstance(node, yaml.SequenceNode):
        size += sum(_measure(child, name=name, done=done, above=here) for child in node.value)
    elif isinstance(node, yaml.MappingNode):
        size += sum(
            _measure(key, name=name, done=done, above=here) + _measure(value, name=name, done=done, above=here)
            for key, value in node.value
        )
    if size > NODES:
        raise PackageRefused(f"more than {NODES} nodes once its aliases are written out", file=name)
    done[id(node)] = size
    return size


def _as_json(tree: Any) -> Any:
    """Return the tree as other systems can store it.

    Keys are texts: ``1: x`` and ``true: x`` become ``"1"`` and ``"true"``. So are numbers that are infinite, no number, or
    of more than 64 bits, such as a digest of digits only without quotes. Raises ValueError for an integer that is too
    long to be written.
    """
    if isinstance(tree, dict):
        return {_key(key): _as_json(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [_as_json(item) for item in tree]
    is_stored = not isinstance(tree, int | float) or -_LARGEST <= tree <= _LARGEST
    return tree if is_stored else str(tree)


def _key(key: Any) -> str:
    if isinstance(key, str):
        return key
    return str(key).lower() if isinstance(key, bool) or key is None else str(key)


def _place(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error) or type(error).__name__
    return f"line {mark.line + 1}, column {mark.column + 1}: {problem}" if mark is not None else str(problem)
