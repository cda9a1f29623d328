"""HOT's intrinsic functions over a scope that knows parameters, resources, files and conditions."""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from kubevnfm_lab.openstack.orchestration.failures import validation_failed


class _Unknown:
    """Placeholder, while a template is validated, for a value that only a created resource has."""

    def __repr__(self) -> str:
        return "<not known yet>"


UNKNOWN: Final = _Unknown()


class Scope(Protocol):
    """The values that functions can read from their stack."""

    def parameter(self, name: str) -> Any:
        """Return a parameter's value; raise ServiceError if there is no such parameter."""
        ...

    def reference(self, name: str) -> Any:
        """Return what ``get_resource`` gives for a resource."""
        ...

    def attribute(self, name: str, attribute: str, path: Sequence[Any]) -> Any:
        """Return what ``get_attr`` gives."""
        ...

    def file(self, name: str) -> str:
        """Return a file's text; raise ServiceError if it was not sent."""
        ...

    def condition(self, name: str) -> bool:
        """Return whether a named condition holds."""
        ...


def resolve(scope: Scope, snippet: Any) -> Any:
    """Return the snippet with every function in it resolved."""
    if isinstance(snippet, dict):
        if len(snippet) == 1:
            ((key, argument),) = snippet.items()
            function = _FUNCTIONS.get(key) if isinstance(key, str) else None
            # A map with one key is a function call only if the key is a function's name.
            if function is not None:
                return function(scope, argument)
        return {key: resolve(scope, value) for key, value in snippet.items()}
    if isinstance(snippet, list):
        return [resolve(scope, value) for value in snippet]
    return snippet


def resolve_condition(scope: Scope, snippet: Any) -> bool:
    """Return whether a condition holds: a name, a boolean, or a function of conditions."""
    if isinstance(snippet, bool):
        return snippet
    if isinstance(snippet, str):
        return scope.condition(snippet)
    value = resolve(scope, snippet)
    if not isinstance(value, bool):
        raise validation_failed(f'Invalid condition "{snippet}"')
    return value


def is_unknown(value: Any) -> bool:
    """Return whether any part of a value is not known yet."""
    if value is UNKNOWN:
        return True
    if isinstance(value, dict):
        return any(is_unknown(one) for one in value.values())
    if isinstance(value, list):
        return any(is_unknown(one) for one in value)
    return False


def walk(value: Any, path: Sequence[Any]) -> Any:
    """Follow keys and indexes into a value; None if the path ends early."""
    for step in path:
        if value is UNKNOWN:
            return UNKNOWN
        if isinstance(value, str):
            try:
                value = json.loads(value)
            except ValueError:
                return None
        if isinstance(value, dict):
            # YAML reads a numeric key as a number, JSON always as text.
            value = value.get(step, value.get(str(step)))
        elif isinstance(value, list):
            try:
                value = value[int(step)]
            except (ValueError, IndexError):
                return None
        else:
            return None
    return value


def _arguments(scope: Scope, name: str, argument: Any, count: int) -> list[Any]:
    resolved = resolve(scope, argument)
    if not isinstance(resolved, list) or len(resolved) < count:
        raise validation_failed(f'Incorrect arguments to "{name}": a list of {count} or more is expected')
    return resolved


def _get_param(scope: Scope, argument: Any) -> Any:
    resolved = resolve(scope, argument)
    if not resolved:
        raise validation_failed('Function "get_param" must have arguments')
    if not isinstance(resolved, str | list):
        raise validation_failed('Argument to "get_param" must be string or list')
    name, path = (resolved, []) if isinstance(resolved, str) else (resolved[0], resolved[1:])
    if not isinstance(name, str):
        raise validation_failed('Parameter name in "get_param" must be string')
    try:
        return functools.reduce(_component, path, scope.parameter(name))
    except (KeyError, IndexError, TypeError, ValueError):
        # Heat hides every mistake in a path behind an empty string: packages rely on it for optional keys.
        return ""


def _component(collection: Any, key: Any) -> Any:
    """Return one step of a parameter's path; text counts as a list of characters, as in Heat."""
    if collection is UNKNOWN or key is UNKNOWN:
        return UNKNOWN
    if not isinstance(key, str | int):
        raise TypeError("a path has strings and indexes only")
    return collection[key] if isinstance(collection, dict) else collection[int(key)]


def _get_resource(scope: Scope, argument: Any) -> Any:
    return scope.reference(str(resolve(scope, argument)))


def _get_attr(scope: Scope, argument: Any) -> Any:
    resolved = resolve(scope, argument)
    if not isinstance(resolved, list) or not resolved:
        raise validation_failed('Arguments to "get_attr" must be of the form [resource_name, attribute, (path), ...]')
    if len(resolved) == 1:
        return scope.attribute(str(resolved[0]), "", ())
    return scope.attribute(str(resolved[0]), str(resolved[1]), resolved[2:])


def _get_file(scope: Scope, argument: Any) -> Any:
    return scope.file(str(resolve(scope, argument)))


def _str_replace(scope: Scope, argument: Any) -> Any:
    resolved = resolve(scope, argument)
    if not isinstance(resolved, dict) or "template" not in resolved or "params" not in resolved:
        raise validation_failed('"str_replace" syntax should be str_replace: {template: ..., params: {...}}')
    if is_unknown(resolved):
        return UNKNOWN
    params = resolved["params"] or {}
    if not isinstance(params, dict):
        raise validation_failed('"str_replace" parameters must be a mapping')
    text = str(resolved["template"])
    # Longest first, and substituted text is not searched again: a value may contain another's key.
    keys = sorted(params, key=len, reverse=True)
    return _replace(text, keys, params)


def _replace(text: str, keys: Sequence[str], params: dict[str, Any]) -> str:
    if not keys:
        return text
    key, rest = keys[0], keys[1:]
    return _as_text(params[key]).join(_replace(piece, rest, params) for piece in text.split(key))


def _as_text(value: Any) -> str:
    if value is None:
        return ""
    # As in Heat: maps and lists are JSON, with sorted keys, while a boolean is Python's text, "True".
    if isinstance(value, dict | list):
        return json.dumps(value, sort_keys=True)
    return str(value)


def _list_join(scope: Scope, argument: Any) -> Any:
    resolved = _arguments(scope, "list_join", argument, 2)
    if is_unknown(resolved):
        return UNKNOWN
    items = itertools.chain.from_iterable(part or [] for part in resolved[1:])
    return str(resolved[0]).join(_as_text(item) for item in items)


def _str_split(scope: Scope, argument: Any) -> Any:
    resolved = _arguments(scope, "str_split", argument, 2)
    if is_unknown(resolved):
        return UNKNOWN
    pieces = str(resolved[1]).split(str(resolved[0]))
    if len(resolved) < 3:
        return pieces
    index = int(resolved[2])
    if index >= len(pieces):
        raise validation_failed(f'Incorrect index to "str_split" should be between 0 and {len(pieces) - 1}')
    return pieces[index]


def _repeat(scope: Scope, argument: Any) -> Any:
    if not isinstance(argument, dict) or "template" not in argument or "for_each" not in argument:
        raise validation_failed('"repeat" syntax should be repeat: {template: ..., for_each: {...}}')
    lists = resolve(scope, argument["for_each"])
    if is_unknown(lists):
        return UNKNOWN
    names = list(lists)
    if argument.get("permutations", True):
        rows: Any = itertools.product(*(lists[name] or [] for name in names))
    else:
        rows = zip(*(lists[name] or [] for name in names), strict=True)
    return [resolve(scope, _fill(argument["template"], dict(zip(names, row, strict=True)))) for row in rows]


def _fill(template: Any, values: dict[str, Any]) -> Any:
    if isinstance(template, str):
        # A template that is only the variable takes the value with its type.
        if template in values:
            return values[template]
        for name, value in values.items():
            template = template.replace(name, _as_text(value))
        return template
    if isinstance(template, list):
        return [_fill(one, values) for one in template]
    if isinstance(template, dict):
        return {_fill(key, values): _fill(value, values) for key, value in template.items()}
    return template


def _if(scope: Scope, argument: Any) -> Any:
    if not isinstance(argument, list) or len(argument) not in (2, 3):
        raise validation_failed(
            'Arguments to "if" must be of the form: [condition_name, value_if_true, value_if_false]'
        )
    # Only the chosen branch is resolved: the other may refer to resources that do not exist.
    chosen = argument[1] if resolve_condition(scope, argument[0]) else argument[2] if len(argument) == 3 else None
    return resolve(scope, chosen)


def _equals(scope: Scope, argument: Any) -> Any:
    left, right = _arguments(scope, "equals", argument, 2)[:2]
    return bool(left == right)


def _not(scope: Scope, argument: Any) -> Any:
    return not resolve_condition(scope, argument)


def _and(scope: Scope, argument: Any) -> Any:
    return all(resolve_condition(scope, one) for one in argument)


def _or(scope: Scope, argument: Any) -> Any:
    return any(resolve_condition(scope, one) for one in argument)


def _contains(scope: Scope, argument: Any) -> Any:
    value, sequence = _arguments(scope, "contains", argument, 2)[:2]
    return UNKNOWN if sequence is UNKNOWN else value in sequence


def _digest(scope: Scope, argument: Any) -> Any:
    algorithm, text = _arguments(scope, "digest", argument, 2)[:2]
    return UNKNOWN if text is UNKNOWN else hashlib.new(str(algorithm), str(text).encode()).hexdigest()


def _map_merge(scope: Scope, argument: Any) -> Any:
    merged: dict[Any, Any] = {}
    for one in _arguments(scope, "map_merge", argument, 0):
        if one is UNKNOWN:
            return UNKNOWN
        merged.update(one or {})
    return merged


def _map_replace(scope: Scope, argument: Any) -> Any:
    value, change = _arguments(scope, "map_replace", argument, 2)[:2]
    if is_unknown([value, change]):
        return UNKNOWN
    keys, values = change.get("keys") or {}, change.get("values") or {}
    return {
        keys.get(key, key): values.get(one, one) if isinstance(one, str | int | float | bool) else one
        for key, one in value.items()
    }


def _list_concat(scope: Scope, argument: Any) -> Any:
    resolved = _arguments(scope, "list_concat", argument, 0)
    return UNKNOWN if UNKNOWN in resolved else list(itertools.chain.from_iterable(one or [] for one in resolved))


def _list_concat_unique(scope: Scope, argument: Any) -> Any:
    joined = _list_concat(scope, argument)
    if joined is UNKNOWN:
        return UNKNOWN
    unique: list[Any] = []
    for one in joined:
        if one not in unique:
            unique.append(one)
    return unique


def _filter(scope: Scope, argument: Any) -> Any:
    unwanted, sequence = _arguments(scope, "filter", argument, 2)[:2]
    return UNKNOWN if is_unknown([unwanted, sequence]) else [one for one in sequence if one not in unwanted]


_FUNCTIONS: Final[dict[str, Callable[[Scope, Any], Any]]] = {
    "get_param": _get_param,
    "get_resource": _get_resource,
    "get_attr": _get_attr,
    "get_file": _get_file,
    "str_replace": _str_replace,
    # The strict forms only differ for parameters that the template does not contain.
    "str_replace_strict": _str_replace,
    "str_replace_vstrict": _str_replace,
    "list_join": _list_join,
    "str_split": _str_split,
    "repeat": _repeat,
    "if": _if,
    "equals": _equals,
    "not": _not,
    "and": _and,
    "or": _or,
    "contains": _contains,
    "digest": _digest,
    "map_merge": _map_merge,
    "map_replace": _map_replace,
    "list_concat": _list_concat,
    "list_concat_unique": _list_concat_unique,
    "filter": _filter,
}
