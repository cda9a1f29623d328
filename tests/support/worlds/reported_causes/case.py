"""A report of a service, and what is said of it."""

from __future__ import annotations

from typing import NamedTuple


class Case(NamedTuple):
    """One report."""

    name: str
    code: str
    """The code of the error."""
    report: str
    """Its text, without the step."""
    slug: str
    sentence: str
    about: str
    """The object: kind and name."""
