"""The access data of clusters that run on the lab's machines."""

from __future__ import annotations

import base64
import json

from callers.user import User
from clouds.lab_process import LabControl

from clusters.masters import kubectl


async def admin_kubeconfig(user: User, lab: LabControl, cluster_id: str) -> str:
    """Return a kubeconfig of the cluster's administrator, in base64."""
    get = "get secret -n kubevnfm-system vnfm-admin-token -o jsonpath={.data.token}"
    token = await kubectl(user.installation.lab, await lab.master_of(cluster_id), get)
    access = (await user.vim_of_cluster(cluster_id))["interfaceInfo"]
    ca = base64.b64encode(access["ssl_ca_cert"].encode()).decode()
    config = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": access["endpoint"], "certificate-authority-data": ca}}],
        "users": [{"name": "u", "user": {"token": base64.b64decode(token).decode()}}],
    }
    return base64.b64encode(json.dumps(config).encode()).decode()
