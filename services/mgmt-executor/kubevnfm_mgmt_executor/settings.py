"""Everything that an operator can set of mgmt-executor."""

from __future__ import annotations

from pathlib import Path

from kubevnfm_kit.settings import ProcessSettings
from pydantic import Field
from pydantic_settings import SettingsConfigDict


class Settings(ProcessSettings):
    """Environment variables ``KUBEVNFM_MGMT_EXECUTOR_<NAME>``."""

    model_config = SettingsConfigDict(env_prefix="KUBEVNFM_MGMT_EXECUTOR_")

    host: str = "127.0.0.1"
    """Where the internal API and the health endpoints are served. Loopback unless told otherwise."""
    port: int = 9892
    lcm_api_url: str = "http://127.0.0.1:9890"
    """lcm-api, of which VNF packages are asked."""
    cache_dir: Path = Path("/var/cache/kubevnfm/mgmt-executor")
    """Unpacked VNF packages; may be emptied at any time."""
    ssh_port: int = Field(default=22, ge=1, le=65_535)
    """Where the machines' sshd listens."""
    concurrency: int = Field(default=32, ge=1)
    """Phases at a time; each holds a connection to every machine of its VNF."""
    lease_s: float = Field(default=15.0, gt=0)
    """How long a command stays a dead worker's; short for tests, long for slow databases."""
