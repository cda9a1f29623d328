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
    script_timeout_s: float = Field(default=3600.0, gt=0)
    """A script of a package is killed after this time. Tacker has no limit; scripts install whole applications."""
    script_memory_mib: int = Field(default=512, ge=64)
    """Address space of a script."""
    script_parallel: int = Field(default=16, ge=1)
    """Number of scripts at the same time."""
    trust_packages: bool = False
    """Whether scripts of packages are also run where the kernel refuses to confine them. Off, because such a script could
    then read what this service can read: the key ring, the token of the services and the database."""
    lease_s: float = Field(default=15.0, gt=0)
    """How long a command stays with a worker that died: short for tests, long for slow databases."""
