"""The common part of the models of answers that no SOL type describes; only the document uses such models."""

from __future__ import annotations

from pydantic import BaseModel, Field


class Shown(BaseModel):
    """Attributes spelled as they are on the wire."""


class Link(Shown):
    """A link (SOL013 clause 5.1)."""

    href: str
    """Absolute."""


class Linked(Shown):
    """A resource with links: ``self`` always, the others as the state allows."""

    links: dict[str, Link] = Field(alias="_links")
