"""The stored form of documents with a wanted state. No I/O."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self

from kubevnfm_kit.json_types import JsonObject
from kubevnfm_store.query import Stored
from pydantic import BaseModel, ConfigDict


class Part(BaseModel):
    """A part of a document."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class WantedDocument(Part, ABC):
    """A document. Each write names the revision that it has read."""

    revision: int = 0

    @classmethod
    def from_stored(cls, stored: Stored) -> Self:
        """Return the document at its revision."""
        return cls.model_validate({**stored.body, "revision": stored.revision})

    def document(self) -> JsonObject:
        """Return the stored form."""
        # Rounds look for documents by the last member.
        return {**self.model_dump(mode="json", exclude={"revision"}), "settled": self.is_settled}

    @property
    @abstractmethod
    def is_settled(self) -> bool:
        """Whether nothing is to be done."""
