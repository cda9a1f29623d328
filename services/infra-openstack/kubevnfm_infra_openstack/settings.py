"""Everything that an operator can set of infra-openstack."""

from __future__ import annotations

from pathlib import Path

from kubevnfm_kit.settings import ProcessSettings
from pydantic import Field
from pydantic_settings import SettingsConfigDict


class Settings(ProcessSettings):
    """Environment variables ``KUBEVNFM_INFRA_OPENSTACK_<NAME>``."""

    model_config = SettingsConfigDict(env_prefix="KUBEVNFM_INFRA_OPENSTACK_")

    mongo_database: str = "kubevnfm_infra_openstack"
    lcm_api_url: str = "http://127.0.0.1:9890"
    """lcm-api, of which VNF packages are asked."""
    vim_registry_url: str = "http://127.0.0.1:9891"
    """vim-registry, of which VIMs' access data are asked."""
    health_host: str = "127.0.0.1"
    """Where ``/health/live`` and ``/health/ready`` are served. Loopback unless told otherwise."""
    health_port: int = 9895
    cache_dir: Path = Path("/var/cache/kubevnfm/infra-openstack")
    """Unpacked VNF packages; may be emptied at any time."""
    concurrency: int = Field(default=64, ge=1)
    """Commands handled at a time. One that waits for Heat costs no thread."""
    lease_s: float = Field(default=15.0, gt=0)
    """How long a command stays a dead process's before another takes it over."""
    threads: int = Field(default=32, ge=2)
    """Calls to OpenStack under way at a time; each takes a thread, for openstacksdk blocks."""
    call_timeout_s: float = Field(default=60.0, gt=0)
    """One call to OpenStack. Heat answers a create within seconds, also for 100 servers; a minute means it hangs."""
    wait_s: float = Field(default=20.0, ge=0)
    """How long a command waits for Heat before it is put back to come again: below every broker's timeout."""
    user_data_timeout_s: float = Field(default=60.0, gt=0)
    """LCM operation user data of a package: after this it is killed (the limit that such classes are written for)."""
    user_data_memory_mib: int = Field(default=512, ge=64)
    """Address space of user data."""
    user_data_parallel: int = Field(default=4, ge=1)
    """User data processes at a time."""
