"""The settings of infra-k8s."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Self

from kubevnfm_clients.outbound_settings import OutboundSettings
from kubevnfm_clients.vnf_network_settings import VnfNetworkSettings
from kubevnfm_kit.settings import ProcessSettings
from pydantic import Field, field_validator, model_validator
from pydantic_settings import SettingsConfigDict

from kubevnfm_infra_k8s.domain.concurrency import BURST, REQUESTS_PER_S
from kubevnfm_infra_k8s.export_settings import ExportSettings
from kubevnfm_infra_k8s.policy_settings import ChartSettings, PolicySettings


class Settings(ProcessSettings, OutboundSettings, VnfNetworkSettings, PolicySettings, ChartSettings, ExportSettings):
    """Environment variables ``KUBEVNFM_INFRA_K8S_<NAME>``."""

    model_config = SettingsConfigDict(env_prefix="KUBEVNFM_INFRA_K8S_")

    lcm_api_url: str = "http://127.0.0.1:9890"
    """lcm-api, which serves VNF packages."""
    vim_registry_url: str = "http://127.0.0.1:9891"
    """vim-registry, which serves the access data of VIMs."""
    cache_dir: Path = Path("/var/cache/kubevnfm/infra-k8s")
    """Cache of unpacked VNF packages; its content may be deleted at any time."""
    host: str = "127.0.0.1"
    """The address that serves the internal API, ``/health/live`` and ``/health/ready``; loopback by default."""
    port: int = 9894
    concurrency: int = Field(default=64, ge=1)
    """Number of commands handled at the same time. A command that waits for a cluster costs a few watches."""
    lease_s: float = Field(default=15.0, gt=0)
    """Time after which another process takes over the command, or the watches, of a process that has died."""
    wait_s: float = Field(default=20.0, gt=0)
    """How long a command waits for its objects before it is put back and delivered again. Must be below the broker's
    timeout for acknowledgements."""
    settle_s: float = Field(default=5.0, ge=0)
    """A custom resource without a status counts as ready after it has not changed for this time, or for six times as long if its kind has shown no
    status yet. Its controller needs
    a moment to write the first status."""
    ready_timeout_s: float = Field(default=500.0, gt=0)
    """Time limit for objects to become ready, for requests without ``wait_timeout``. Tacker has the same default. A
    command's own deadline ends the wait earlier."""
    cluster_ready_timeout_s: float = Field(default=1800.0, gt=0)
    """The same for packages that create a cluster with Cluster API."""
    gone_timeout_s: float = Field(default=500.0, gt=0)
    """Time limit for the deletion of objects, in addition to the pods' grace period. A command's own deadline ends the
    wait earlier."""
    region_requests_per_s: float = Field(default=REQUESTS_PER_S, gt=0)
    """Requests that one cluster is sent in a second. API servers share their time among callers themselves (429, which is obeyed), so
    the limit is one for faults of ours; that of old clients (50) would have 500 objects take 10 s."""
    region_burst: int = Field(default=BURST, ge=1)
    """Requests that it is sent without a pause, after a time with fewer."""
    link_timeout_s: float = Field(default=120.0, gt=0)
    """A virtual link that is not ready after this time shows FAILED with the reason. The work on it continues."""
    volume_timeout_s: float = Field(default=300.0, gt=0)
    """The same for a persistent volume, which shows Failed."""
    reconcile_rounds_s: float = Field(default=10.0, gt=0)
    """From one round over the virtual links and volumes that are not as wanted to the next; users' requests are worked on at once."""
    reconcile_drift_rounds_s: float = Field(default=60.0, gt=0)
    """The same for the others, whose objects other parties may have changed."""
    fetch_inner_addresses: bool = False
    """Replaced by ``allowed_networks``: the networks from which requests may have manifests fetched, beside public addresses."""
    health_host: str | None = None
    """Replaced by ``host``."""
    health_port: int | None = None
    """Replaced by ``port``."""
    helm: str = "helm"
    """The helm program (version 3), for packages with charts: its path, or its name in ``PATH``; the program itself, not a script that
    calls it, because it is run confined."""
    cache_disk_gib: float = Field(default=20.0, gt=0)
    """The limit of that folder: above it the least recently used copies are removed, but none that was used in the last day."""

    @field_validator("helm")
    @classmethod
    def _is_a_program(cls, given: str) -> str:
        # The default is tried when a chart needs it: most installations have no helm, or none for this service.
        program = shutil.which(given)
        if program is not None and os.access(program, os.R_OK):
            with Path(program).open("rb") as file:
                if file.read(2) == b"#!":
                    raise ValueError(
                        f"{program} is a script, which cannot run confined: the helm program itself expected"
                    )
        return given

    @model_validator(mode="after")
    def _names_networks(self) -> Self:
        if self.fetch_inner_addresses:
            raise ValueError(
                "fetch_inner_addresses: replaced by allowed_networks, which names the networks: 10.20.0.0/16,fd12::/16"
            )
        return self

    @model_validator(mode="after")
    def _names_its_listener(self) -> Self:
        for name in ("host", "port"):
            if getattr(self, f"health_{name}") is not None:
                raise ValueError(f"health_{name}: replaced by {name}, because the listener serves the internal API too")
        return self
