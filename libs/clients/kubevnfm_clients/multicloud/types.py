"""The bases of the types of ``/multicloud/v1``: names are spelled as they are here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Generic, TypeVar

from kubevnfm_kit.errors import InvalidInput
from kubevnfm_kit.kubernetes_names import LABEL
from kubevnfm_secrets import Secret
from kubevnfm_sol.access import check_url
from kubevnfm_sol.base import SolRequest, SolType
from pydantic import AfterValidator, BeforeValidator, ConfigDict, StringConstraints

T = TypeVar("T")


def _is_url(value: str | Secret) -> str:
    # A URL with credentials was hidden when the request was read.
    text = "" if isinstance(value, Secret) else value
    try:
        check_url(text, "")
    except InvalidInput as error:
        raise ValueError(error.reason) from error
    return text


def _refuse_secret(value: object) -> object:
    return _is_url(value) if isinstance(value, Secret) else value


Visible = Annotated[str, StringConstraints(min_length=1, max_length=2048, pattern=r"^[!-~]+$")]
HttpUrl = Annotated[Visible, AfterValidator(_is_url), BeforeValidator(_refuse_secret)]
"""An http or https URL without credentials."""

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


def revision_query(revision: int | None) -> dict[str, str]:
    """Return the query of a write of what has this revision; None: any."""
    return {} if revision is None else {"revision": str(revision)}


def revision_of(query: Mapping[str, str]) -> int | None:
    """Return the revision that a write names; None: any."""
    given = query.get("revision")
    return None if given is None else int(given)
