"""The names that the attributes of a type have on the wire, and the types in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, get_args

from pydantic import AliasChoices, BaseModel


@cache
def attributes_of(model: type[BaseModel]) -> tuple[str, ...]:
    """Return the names of a type's attributes on the wire."""
    aliases = [field.validation_alias or field.alias or name for name, field in model.model_fields.items()]
    choices = [alias.choices if isinstance(alias, AliasChoices) else [alias] for alias in aliases]
    return tuple(str(name) for names in choices for name in names)


@cache
def inner_types(model: type[BaseModel]) -> Mapping[str, type[BaseModel]]:
    """Return the types of the attributes that hold objects: alone, in a list or in a map."""
    return {name: types[0] for name, types in _all_inner(model).items()}


def attributes_at(model: type[BaseModel], location: Sequence[int | str]) -> tuple[str, ...]:
    """Return the names that the object at a place in a document can have, as pydantic says places."""
    types: Sequence[type[BaseModel]] = [model]
    for part in location:
        inner = [one for each in types for one in _all_inner(each).get(str(part), ())]
        # Within a union, the place has the name of the type that was tried; other parts are those of lists and maps.
        types = inner or [each for each in types if each.__name__ == part] or types
    return tuple(dict.fromkeys(name for each in types for name in attributes_of(each)))


@cache
def _all_inner(model: type[BaseModel]) -> Mapping[str, Sequence[type[BaseModel]]]:
    found: dict[str, Sequence[type[BaseModel]]] = {}
    for name, field in model.model_fields.items():
        types = [one for one in _types(field.annotation) if isinstance(one, type) and issubclass(one, BaseModel)]
        if types:
            found[str(field.alias or name)] = types
    return found


def _types(annotation: Any) -> Iterator[Any]:
    arguments = get_args(annotation)
    if not arguments:
        yield annotation
    for one in arguments:
        yield from _types(one)
