"""The setting of ONAP's paths; part of the settings of lcm-api and of the single process."""

from __future__ import annotations

from pydantic import BaseModel


class OnapSettings(BaseModel):
    """Whether clients of ONAP's multicloud-k8s are served."""

    onap_compat: bool = False
    """Serve the paths of ONAP's multicloud-k8s, below ``/v1`` and ``/api/multicloud-k8s/v1/v1``; without it they are 404."""
