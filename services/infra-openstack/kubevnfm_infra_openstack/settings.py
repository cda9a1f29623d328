"""The settings of infra-openstack."""

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
    """lcm-api, which serves VNF packages."""
    vim_registry_url: str = "http://127.0.0.1:9891"
    """vim-registry, which serves the access data of VIMs."""
    health_host: str = "127.0.0.1"
    """The address that serves ``/health/live`` and ``/health/ready``; loopback by default."""
    health_port: int = 9895
    default_zone: str | None = Field(default=None, min_length=1)
    """The availability zone of the machines where no NFVO grants one and the package reads one; None: `nova`, or the only
    available zone of the cloud."""
    cache_dir: Path = Path("/var/cache/kubevnfm/infra-openstack")
    """Cache of unpacked VNF packages; its content may be deleted at any time."""
    concurrency: int = Field(default=64, ge=1)
    """Number of commands handled at the same time. A command that waits for Heat uses no thread."""
    lease_s: float = Field(default=15.0, gt=0)
    """Time after which another process takes over the command of a process that has died."""
    threads: int = Field(default=32, ge=2)
    """Number of simultaneous calls to OpenStack. Each uses a thread, because openstacksdk blocks."""
    call_timeout_s: float = Field(default=60.0, gt=0)
    """Time limit for one call to OpenStack. Heat accepts a stack of 100 servers within seconds; after a minute it hangs."""
    wait_s: float = Field(default=20.0, ge=0)
    """How long a command waits for Heat before it is put back and delivered again. Must be below the broker's timeout
    for acknowledgements."""
    user_data_timeout_s: float = Field(default=60.0, gt=0)
    """LCM operation user data of a package is killed after this time; Tacker has the same limit."""
    user_data_memory_mib: int = Field(default=512, ge=64)
    """Address space of a user data process."""
    user_data_parallel: int = Field(default=4, ge=1)
    """Number of user data processes at the same time."""
    trust_packages: bool = False
    """Whether code of packages is also run where the kernel refuses to confine it. Off, because such code could then read
    what this service can read: the key ring, the token of the services and the database."""
    cache_disk_gib: float = Field(default=20.0, gt=0)
    """The limit of that folder: above it the least recently used copies are removed, but none that was used in the last day."""
