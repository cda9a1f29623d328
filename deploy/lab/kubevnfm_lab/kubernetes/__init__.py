"""The lab's Kubernetes: clusters that live in this process and speak the real API over TLS.

`clusters.py` is what the rest of the lab sees; `server.py` takes requests, `verbs.py` and `registry.py` know the rules,
`ownership.py` server-side apply, `store.py` keeps and tells of everything, `controllers/` make specs come true.
"""

from kubevnfm_lab.kubernetes.cluster import LabCluster
from kubevnfm_lab.kubernetes.clusters import LabClusters

__all__ = ["LabCluster", "LabClusters"]
