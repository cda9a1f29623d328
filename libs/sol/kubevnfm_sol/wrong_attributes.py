"""The attributes that are wrong in a document: a place and a reason for each."""

from __future__ import annotations

from typing import Final

from kubevnfm_kit.json_pointer import escaped
from kubevnfm_kit.nearest import no_such
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from kubevnfm_sol.attributes import attributes_at

_OF_PYDANTIC: Final = "Input should be "
_PYTHON_DICT: Final = "a valid dictionary"
"""It may be followed by the name of our type."""
_COMPARISONS: Final = ("greater ", "less ")


def wrong_attributes(error: ValidationError, model: type[BaseModel], place: str = "") -> tuple[tuple[str, str], ...]:
    """Return (place, reason) for each, never with what was given; ``model``: the type of the document, ``place``: where that is."""
    found = error.errors(include_input=False)
    # Values under a wrong name follow from it: one that says that they are secret hides them, so that no text is found there.
    names = {each["loc"][:-1] for each in found if each["loc"][-1:] == ("[key]",)}
    return tuple(
        (_path(each["loc"], place), _reason(each, model))
        for each in found
        if each["loc"][-1:] == ("[key]",) or not any(each["loc"][:n] in names for n in range(len(each["loc"]) + 1))
    )


def _path(location: tuple[int | str, ...], place: str) -> str:
    # pydantic ends the place of a wrong name of a dict with this.
    parts = location[:-1] if location[-1:] == ("[key]",) else location
    return (place + "".join(f"[{part}]" if isinstance(part, int) else f"/{escaped(part)}" for part in parts)).lstrip(
        "/"
    )


def _reason(each: ErrorDetails, model: type[BaseModel]) -> str:
    if each["type"] != "extra_forbidden":
        text = each["msg"].removeprefix("Value error, ")
        wanted = text.removeprefix(_OF_PYDANTIC)
        if wanted == text:
            return text
        if wanted.startswith(_PYTHON_DICT):
            wanted = "a JSON object"
        return f"{'a value ' if wanted.startswith(_COMPARISONS) else ''}{wanted} expected"
    *location, name = each["loc"]
    return no_such(str(name), attributes_at(model, location))
