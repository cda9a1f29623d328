"""Everything that an operator can set of infra-k8s."""

from __future__ import annotations

from pathlib import Path

from kubevnfm_kit.settings import ProcessSettings
from pydantic import Field
from pydantic_settings import SettingsConfigDict


class Settings(ProcessSettings):
    """Environment variables ``KUBEVNFM_INFRA_K8S_<NAME>``."""

    model_config = SettingsConfigDict(env_prefix="KUBEVNFM_INFRA_K8S_")

    lcm_api_url: str = "http://127.0.0.1:9890"
    """lcm-api, of which VNF packages are asked."""
    vim_registry_url: str = "http://127.0.0.1:9891"
    """vim-registry, of which VIMs' access data are asked."""
    cache_dir: Path = Path("/var/cache/kubevnfm/infra-k8s")
    """Unpacked VNF packages; may be emptied at any time."""
    health_host: str = "127.0.0.1"
    """Where ``/health/live`` and ``/health/ready`` are served. Loopback unless told otherwise."""
    health_port: int = 9894
    concurrency: int = Field(default=64, ge=1)
    """Commands handled at a time. One that waits for a cluster costs a few watches."""
    lease_s: float = Field(default=15.0, gt=0)
    """How long a command stays a dead worker's; short for tests, long for slow databases."""
    wait_s: float = Field(default=20.0, gt=0)
    """How long a command waits for its objects before it is put back to come again: below every broker's timeout."""
    settle_s: float = Field(default=5.0, ge=0)
    """How long a custom resource without a status must stay as it is to count as ready: controllers take a moment."""
    ready_timeout_s: float = Field(default=500.0, gt=0)
    """When objects have failed to become ready; the limit that existing CNF packages were made for."""
    cluster_ready_timeout_s: float = Field(default=1800.0, gt=0)
    """The same for packages that build a cluster with Cluster API."""
    gone_timeout_s: float = Field(default=500.0, gt=0)
    """When objects have failed to go away."""
    fetch_inner_addresses: bool = False
    """Whether manifests may be fetched from private, loopback and link-local addresses. A request names the URL."""
