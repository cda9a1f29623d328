"""The settings of cloud regions; a part of the settings of the processes that register some."""

from __future__ import annotations

from kubevnfm_clients.kubeconfig import Allowed
from pydantic import BaseModel


class RegionSettings(BaseModel):
    """The settings that decide which kubeconfigs of regions are accepted."""

    region_insecure: bool = False
    """Whether a kubeconfig may leave the certificate of its API server unverified (``insecure-skip-tls-verify``); off, because anybody
    between could then read its credentials."""
    region_proxy: bool = False
    """Whether a kubeconfig may name a proxy (``proxy-url``); off, because the calls of all its region then depend on it."""

    @property
    def allowed(self) -> Allowed:
        """The attributes that kubeconfigs of regions may have."""
        return Allowed(skip_verification=self.region_insecure, proxy=self.region_proxy)
