"""The OpenAPI documents of the gateway: that of the APIs of SOL and Tacker at the root, and those of subjects with an API of their own."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from aiohttp import web
from kubevnfm_kit.error_text import ErrorText
from kubevnfm_kit.errors import VnfmError
from kubevnfm_sol.base import SolType
from kubevnfm_sol.problem import ProblemDetails
from pydantic import Field


@dataclass(frozen=True)
class Document:
    """One document, served at ``<prefix>/openapi.json`` and ``.yaml``, and as a page at ``<prefix>/docs``."""

    title: str
    summary: str
    tags: tuple[str, ...]
    """The headings of the page, in their order."""
    prefix: str = ""
    """Its routes are those below it; empty: those that no other document has."""
    further: tuple[str, ...] = ()
    """Further prefixes of its routes."""
    roots: tuple[str, ...] = ()
    """Paths below which all its routes are served too."""
    plain_status: Callable[[VnfmError], int] | None = None
    """The status of an error, which is plain text; None: it has its own status, and is ProblemDetails."""

    @property
    def has_pointers(self) -> bool:
        """Whether errors have JSON Pointers; those of SOL and Tacker have forms of their own."""
        return self.prefix != "" and self.plain_status is None

    def has(self, path: str) -> bool:
        """Return whether it describes a path, or has its place."""
        return any(
            path.startswith(f"{root}{prefix}/") for root in ("", *self.roots) for prefix in (self.prefix, *self.further)
        )


_INDEX: Final = re.compile(r"\[([0-9]+)\]")
DOCUMENTS: Final = web.AppKey("documents", list[Document])


def document_of(app: web.Application, path: str) -> Document:
    """Return the document that describes a path."""
    return max((each for each in app[DOCUMENTS] if each.has(path)), key=lambda document: len(document.prefix))


class PointedError(SolType):
    """One wrong attribute."""

    pointer: str
    """JSON Pointer (RFC 6901) into the body; empty for the whole."""
    message: ErrorText
    """It says what was expected."""


class PointedProblem(ProblemDetails):
    """An error with a pointer to each wrong attribute."""

    errors: tuple[PointedError, ...] = Field(default=(), exclude_if=lambda value: not value)
    holders: tuple[str, ...] | None = None
    """At most 100 users of what is in use."""
    holder_count: int | None = Field(default=None, alias="holder_count")
    """The number of all of them."""


def json_pointer(field: str) -> str:
    """Return the JSON Pointer of the ``field`` of an `InvalidInput`, which has the form ``ports[0]/name``."""
    return "/" + _INDEX.sub(r"/\1", field) if field else ""
