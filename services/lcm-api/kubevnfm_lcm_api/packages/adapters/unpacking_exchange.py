"""The requests to the process that unpacks packages, and its answers: apart from its work, whose imports the service does not need."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from kubevnfm_kit.json_types import JsonObject
from pydantic import BaseModel, ConfigDict

from kubevnfm_lcm_api.packages.domain.ports import OnboardedFiles

ANSWER_BYTES: Final = 8 * 1024 * 1024
"""The largest answer. A part of it becomes one document, which MongoDB limits to 16 MiB."""


class Request(BaseModel):
    """A package to check."""

    model_config = ConfigDict(frozen=True)

    folder: Path
    anchors: Path | None
    is_signature_required: bool
    cpu_s: int


class Refusal(BaseModel):
    """A PackageRefused, by its code."""

    model_config = ConfigDict(frozen=True)

    code: str
    rule: str
    file: str


class Missing(BaseModel):
    """An artifact outside of the package that has not been fetched."""

    model_config = ConfigDict(frozen=True)

    uri: str
    algorithm: str
    hash: str


class Answer(BaseModel):
    """The result: exactly one of ``found``, ``missing``, ``refused``, ``disk``, ``is_out_of_memory`` and ``bug``."""

    model_config = ConfigDict(frozen=True)

    found: OnboardedFiles | None = None
    missing: tuple[Missing, ...] = ()
    refused: Refusal | None = None
    disk: str = ""
    """An error of the disk."""
    is_out_of_memory: bool = False
    bug: str = ""
    """A traceback."""
    logged: tuple[JsonObject, ...] = ()
    """Log entries, each with ``level`` and ``event``: the parent writes them."""
    is_reusable: bool = True
    """Whether the process takes another package."""
