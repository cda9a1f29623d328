"""The settings of cloud regions; a part of the settings of the processes that register some."""

from __future__ import annotations

from pydantic import BaseModel


class RegionSettings(BaseModel):
    """The settings that decide which kubeconfigs of regions are accepted."""

    region_insecure: bool = False
    """Whether a kubeconfig may leave the certificate of its API server unverified (``insecure-skip-tls-verify``); off, because anybody
    between could then read its credentials."""
