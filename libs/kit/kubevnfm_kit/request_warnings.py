"""Warnings about parts of a request that are not used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator

from kubevnfm_kit.json_pointer import escaped

_LONGEST: int = 2_000
"""Characters of a pointer: a name of a sender may have megabytes."""


class RequestWarning(BaseModel):
    """One part of a request that is not used, and why."""

    model_config = ConfigDict(frozen=True)

    text: str
    """The place and the reason."""
    field: str | None = None
    """The part: a JSON Pointer (RFC 6901) into the request."""
    nearest: str | None = None
    """The known name that is most like the one that is not known."""

    @model_validator(mode="before")
    @classmethod
    def _read_text(cls, data: Any) -> Any:
        """Read the form of earlier versions: the text alone."""
        return {"text": data} if isinstance(data, str) else data


def pointer(path: Sequence[str | int]) -> str | None:
    """Return the JSON Pointer of a place; None if it is too long to be shown."""
    found = "".join(f"/{escaped(str(part))}" for part in path)
    return found if len(found) <= _LONGEST else None


def place(path: Sequence[str | int], *, separator: str = "/") -> str:
    """Return how texts name a place: ``extVirtualLinks[0]/resourceId``."""
    found = ""
    for part in path:
        found += f"[{part}]" if isinstance(part, int) else f"{separator if found else ''}{part}"
    return found
