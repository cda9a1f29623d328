"""The variables of packages, as the multi-cloud API lists them (multicloud.md MC-022)."""

from __future__ import annotations

from typing import Final

from pydantic import BaseModel, ConfigDict, Field, JsonValue

MOST_PLACES: Final = 100
"""Places of one variable that are listed."""


class VariablePlace(BaseModel):
    """A place at which a variable is used."""

    model_config = ConfigDict(frozen=True)

    file: str
    """The path in the package."""
    document: int
    """The position of the object in the file, from 0."""
    path: str
    """A JSON pointer."""


class PackageVariable(BaseModel):
    """A variable of a package."""

    model_config = ConfigDict(frozen=True)

    name: str
    """``db.port``: the member ``port`` of the value ``db``."""
    type: str | None = Field(default=None, exclude_if=lambda value: value is None)
    """A type of JSON Schema: of the schema, otherwise of the default; absent if neither names one."""
    default: JsonValue = Field(default=None, exclude_if=lambda value: value is None)
    """Its value without one in the request; ``***`` for a secret."""
    required: bool
    """Whether a request must give it."""
    secret: bool
    """Whether its value is encrypted and not shown, because of its name."""
    description: str | None = Field(default=None, exclude_if=lambda value: value is None)
    enum: list[JsonValue] | None = Field(default=None, exclude_if=lambda value: value is None)
    """The values that it may have."""
    places: list[VariablePlace]
    """At most 100: further ones are left out."""
