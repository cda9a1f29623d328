"""Identifiers: random ones, ones that are derived from facts, and the form of those in paths."""

from __future__ import annotations

import re
from typing import Final
from uuid import NAMESPACE_URL, uuid4, uuid5

_FORM: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


def is_id(text: str) -> bool:
    """Return whether a text has the form of an id: 1 to 128 of letters, digits, ``.``, ``_``, ``-``; no sign at the start.

    Every id that kubevnfm makes is a UUID. The form is wider for ids with an ending (``.json``), and so narrow that an
    id is one segment of a path and no ``..``, in whatever way it is quoted.
    """
    return _FORM.fullmatch(text) is not None


def new_id() -> str:
    """Return a random UUID (RFC 4122, version 4)."""
    return str(uuid4())


def derived_id(*facts: str) -> str:
    """Return the UUID (version 5) of these facts: the same facts, the same id."""
    return str(uuid5(NAMESPACE_URL, "kubevnfm:" + "|".join(facts)))
