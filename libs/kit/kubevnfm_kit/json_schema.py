"""JSON Schemas of models in which the docstrings of attributes are descriptions.

pydantic's `use_attribute_docstrings` reads and parses the source of every class when it is made, which is a sixth of the
start of a service. Here a source is read when a schema is made.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import pairwise
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from kubevnfm_kit.python_source import syntax_tree


class DescribedSchema(GenerateJsonSchema):
    """For the argument ``schema_generator`` of pydantic's functions."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._models: list[type[Any]] = []
        """The models around the schema that is being made."""

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        """Make the schema of a model."""
        self._models.append(schema["cls"])
        try:
            return super().model_schema(schema)
        finally:
            self._models.pop()

    def model_fields_schema(self, schema: core_schema.ModelFieldsSchema) -> JsonSchemaValue:
        """Make the schema of a model's attributes, described as if `Field` had the description."""
        texts = attribute_docstrings(self._models[-1])
        fields = {name: _described(field, texts.get(name)) for name, field in schema["fields"].items()}
        return super().model_fields_schema({**schema, "fields": fields})


def attribute_docstrings(model: type[BaseModel]) -> Mapping[str, str]:
    """Return the docstring of each attribute that has one, inherited ones too."""
    found = {}
    for name in model.model_fields:
        owner = next((one for one in model.__mro__ if name in inspect.get_annotations(one)), model)
        text = _docstrings(owner.__module__).get(owner.__qualname__, {}).get(name)
        if text is not None:
            found[name] = text
    return found


def _described(field: core_schema.ModelField, text: str | None) -> core_schema.ModelField:
    metadata = field.get("metadata", {})
    updates = metadata.get("pydantic_js_updates", {})
    if text is None or "description" in updates:
        return field
    return {**field, "metadata": {**metadata, "pydantic_js_updates": {**updates, "description": text}}}


@cache
def _docstrings(module: str) -> Mapping[str, Mapping[str, str]]:
    """Return the docstrings of attributes by the qualified name of their class."""
    return dict(_in_classes(syntax_tree(inspect.getsource(sys.modules[module])).body, ""))


def _in_classes(body: Iterable[ast.stmt], prefix: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield f"{prefix}{node.name}", dict(_in_class(node))
            yield from _in_classes(node.body, f"{prefix}{node.name}.")
        elif isinstance(node, ast.FunctionDef):
            yield from _in_classes(node.body, f"{prefix}{node.name}.<locals>.")


def _in_class(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for attribute, after in pairwise(node.body):
        if (
            isinstance(attribute, ast.AnnAssign)
            and isinstance(attribute.target, ast.Name)
            and isinstance(after, ast.Expr)
            and isinstance(after.value, ast.Constant)
            and isinstance(after.value.value, str)
        ):
            yield attribute.target.id, inspect.cleandoc(after.value.value)
