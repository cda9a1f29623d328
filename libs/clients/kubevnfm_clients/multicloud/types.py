"""The bases of the types of ``/multicloud/v1``: names are spelled as they are here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from kubevnfm_sol.base import SolRequest, SolType
from pydantic import ConfigDict

T = TypeVar("T")


class MultiCloudType(SolType):
    """Base of what the API shows."""

    model_config = ConfigDict(alias_generator=None)


class MultiCloudRequest(SolRequest, MultiCloudType):
    """Base of what the API takes: null means absent, and an unknown attribute is refused (multicloud.md chapter 6)."""

    model_config = ConfigDict(alias_generator=None, extra="forbid")


@dataclass(frozen=True)
class Page(Generic[T]):
    """A part of a list (multicloud.md MC-007)."""

    items: Sequence[T]
    next_after: str | None = None
    """The id behind which the next page begins; None: this page is the last."""
