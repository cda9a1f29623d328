"""The base of SOL types: snake_case in Python, camelCase on the wire, absent rather than null."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from kubevnfm_kit.json_types import JsonObject
from kubevnfm_secrets import KeyRing, sealing
from pydantic import BaseModel, BeforeValidator, ConfigDict, model_validator
from pydantic.alias_generators import to_camel


def _no_truth_value(value: Any) -> Any:
    # For Python, true is 1.
    if isinstance(value, bool):
        raise ValueError("a number expected")
    return value


WHOLE: Final = BeforeValidator(_no_truth_value)
"""Marks a whole number, which may be a text of digits, as Tacker's own samples have one. It comes after the bounds, which the schema shows then."""
NUMBER: Final = WHOLE
"""Marks any other number in the same way."""


class SolType(BaseModel):
    """Base of every SOL data type.

    Unknown attributes of input are ignored (SOL013 forward compatibility).
    """

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        frozen=True,
        extra="ignore",
        # Requests hold passwords, and the text of a validation error may reach an answer or a log.
        hide_input_in_errors=True,
        # Rules are built when a type is first used: a process never uses most of them.
        defer_build=True,
    )

    def document(self, ring: KeyRing, secret_names: Collection[str] = ()) -> JsonObject:
        """Return the JSON object for the store: camelCase, no nulls, secrets sealed, also those with these names."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True, context=sealing(ring, secret_names))


class SolPatch(SolType):
    """Base of JSON Merge Patches (RFC 7396): null removes an attribute, and an unknown attribute is refused.

    If unknown attributes were ignored, a patch with a misspelled one would succeed and change nothing.
    """

    model_config = ConfigDict(extra="forbid")


class SolRequest(SolType):
    """Base of request types except JSON Merge Patches: null means absent, so a required attribute is then missing."""

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, given: Any) -> Any:
        if isinstance(given, Mapping):
            return {name: value for name, value in given.items() if value is not None}
        return given
