"""The bases of the types of ``/multicloud/v1``: names are spelled as they are here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Generic, TypeVar

from kubevnfm_kit.kubernetes_names import LABEL
from kubevnfm_sol.base import SolRequest, SolType
from pydantic import ConfigDict, StringConstraints

T = TypeVar("T")

NamespaceName = Annotated[str, StringConstraints(max_length=63, pattern=f"^{LABEL}$")]
"""An RFC 1123 label (multicloud.md MC-008)."""
LabelKey = Annotated[
    str,
    StringConstraints(
        max_length=317,
        pattern=r"^([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$",
    ),
]
LabelValue = Annotated[
    str, StringConstraints(max_length=63, pattern=r"^([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?$")
]
Labels = dict[LabelKey, LabelValue]


class MultiCloudType(SolType):
    """Base of what the API shows."""

    model_config = ConfigDict(alias_generator=None)


class MultiCloudRequest(SolRequest, MultiCloudType):
    """Base of what the API takes: null means absent, and an unknown attribute is refused (multicloud.md chapter 3)."""

    model_config = ConfigDict(alias_generator=None, extra="forbid")


@dataclass(frozen=True)
class Page(Generic[T]):
    """A part of a list (multicloud.md MC-007)."""

    items: Sequence[T]
    next_after: str | None = None
    """The id behind which the next page begins; None: this page is the last."""
