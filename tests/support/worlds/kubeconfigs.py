"""Kubeconfigs of the lab's clusters."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import yaml
from kubevnfm_lab.kubernetes.cluster import LabCluster


def a_kubeconfig(
    cluster: LabCluster,
    *,
    user: Mapping[str, Any] | None = None,
    entry: Mapping[str, Any] | None = None,
    context: str = "there",
) -> str:
    """Return the text of a kubeconfig with the administrator's token; ``user``, ``entry``: in place of what it has."""
    ca = base64.b64encode(cluster.ca_pem.encode()).decode()
    return str(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": context,
                "contexts": [{"name": context, "context": {"cluster": "c", "user": "u"}}],
                "clusters": [
                    {
                        "name": "c",
                        "cluster": entry or {"server": cluster.endpoint, "certificate-authority-data": ca},
                    }
                ],
                "users": [{"name": "u", "user": user or {"token": cluster.admin_token}}],
            }
        )
    )


def encoded(kubeconfig: str) -> str:
    """Return the base64 of a kubeconfig."""
    return base64.b64encode(kubeconfig.encode()).decode()
