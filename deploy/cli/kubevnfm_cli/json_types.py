"""The types of JSON, and its reading."""

from __future__ import annotations

import json
from typing import Any

from kubevnfm_cli.faults import Fault

JsonObject = dict[str, Any]


def read_json(content: bytes | str, source: str) -> Any:
    """Return a JSON value. Raises Fault, which names ``source``."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise Fault(f"{source}: JSON expected: {str(error) or type(error).__name__}") from error


def objects(value: object) -> list[JsonObject]:
    """Return the objects of a list; of anything else none."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def part(value: object, *names: str) -> Any:
    """Return what is at the names one below the other; None if there is nothing."""
    for name in names:
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value
