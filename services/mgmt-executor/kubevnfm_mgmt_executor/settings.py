"""The settings of mgmt-executor."""

from __future__ import annotations

from pathlib import Path

from kubevnfm_kit.settings import ProcessSettings
from pydantic import Field
from pydantic_settings import SettingsConfigDict


class Settings(ProcessSettings):
    """Environment variables ``KUBEVNFM_MGMT_EXECUTOR_<NAME>``."""

    model_config = SettingsConfigDict(env_prefix="KUBEVNFM_MGMT_EXECUTOR_")

    host: str = "127.0.0.1"
    """Where the internal API and the health endpoints are served. Only local processes reach the default."""
    port: int = 9892
    lcm_api_url: str = "http://127.0.0.1:9890"
    """lcm-api, from which VNF packages are fetched."""
    cache_dir: Path = Path("/var/cache/kubevnfm/mgmt-executor")
    """Unpacked VNF packages. The folder may be emptied at any time."""
    ssh_port: int = Field(default=22, ge=1, le=65_535)
    """The port at which the machines' sshd listens."""
    concurrency: int = Field(default=32, ge=1)
    """Phases that run at the same time. Each has a connection to every machine of its VNF."""
    lease_s: float = Field(default=15.0, gt=0)
    """How long a command stays with a worker that died: short for tests, long for slow databases."""
