"""The lab's Kubernetes: clusters that live in this process and speak the real API over TLS.

`clusters.py` is the interface to the rest of the lab; `server.py` takes requests, `verbs.py` and `registry.py` hold the
rules, `ownership.py` does server-side apply, `store.py` keeps objects and their history, `controllers/` reconcile.
"""

from kubevnfm_lab.kubernetes.cluster import LabCluster
from kubevnfm_lab.kubernetes.clusters import LabClusters

__all__ = ["LabCluster", "LabClusters"]
