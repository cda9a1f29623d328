"""The settings of the life cycle; part of the settings of lcm-api and of the single process."""

from __future__ import annotations

from pydantic import BaseModel, Field


class LifecycleSettings(BaseModel):
    """How instances are compared with the resources that exist."""

    drift_every_s: float = Field(default=60.0, ge=0)
    """Seconds between two comparisons of the instances with the stacks, servers and Kubernetes objects that exist, to find what
    others have deleted or changed. One comparison costs an OpenStack VIM three list calls, and a cluster none unless something
    differs. For as long, the Machines and the kubeconfig Secrets of workload clusters are watched before they are asked for
    again. 0: never."""
    multicloud_group_parallel: int = Field(default=10, ge=1, le=100)
    """The most regions in which a group operation of multi-cloud brings VNFs up at a time."""
    multicloud_revisions: int = Field(default=20, ge=2, le=1000)
    """How many revisions of a VNF of multi-cloud are offered, of the newest ones; always also the newest one that was READY."""
