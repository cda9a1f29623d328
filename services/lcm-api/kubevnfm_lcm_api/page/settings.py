"""The settings of the web page; a part of the settings of each process that serves the public API."""

from __future__ import annotations

from pydantic import BaseModel, Field


class PageSettings(BaseModel):
    """How the page is used."""

    page_session_s: int = Field(default=12 * 3600, ge=60, le=30 * 24 * 3600)
    """How long a login to the web page lasts, in seconds; it ends earlier when its credentials are withdrawn."""
