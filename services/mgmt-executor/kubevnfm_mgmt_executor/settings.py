"""Everything that an operator can set of mgmt-executor."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from kubevnfm_kit.settings import ListenerTls, ServiceSettings
from pydantic import Field, SecretStr
from pydantic_settings import SettingsConfigDict


class Settings(ServiceSettings, ListenerTls):
    """Environment variables ``KUBEVNFM_MGMT_EXECUTOR_<NAME>``."""

    model_config = SettingsConfigDict(env_prefix="KUBEVNFM_MGMT_EXECUTOR_")

    host: str = "127.0.0.1"
    """Where the internal API and the health endpoints are served. Loopback unless told otherwise."""
    port: int = 9892
    amqp_url: SecretStr = SecretStr("amqp://guest:guest@127.0.0.1:5672/")
    """RabbitMQ, with credentials."""
    mongo_url: SecretStr = SecretStr("mongodb://127.0.0.1:27017")
    """MongoDB, with credentials."""
    mongo_database: str = "kubevnfm"
    lcm_api_url: str = "http://127.0.0.1:9890"
    """lcm-api, of which VNF packages are asked."""
    internal_token: SecretStr
    """What the services show one another; the same in all of them."""
    keys: SecretStr
    """The key ring: base64 keys of 32 bytes, divided by commas; the first encrypts; the same everywhere."""
    cache_dir: Path = Path("/var/cache/kubevnfm/mgmt-executor")
    """Unpacked VNF packages; may be emptied at any time."""
    ssh_port: int = Field(default=22, ge=1, le=65_535)
    """Where the machines' sshd listens."""
    concurrency: int = Field(default=32, ge=1)
    """Phases at a time; each holds a connection to every machine of its VNF."""
    lease_s: float = Field(default=15.0, gt=0)
    """How long a command stays a dead worker's; short for tests, long for slow databases."""
    log_level: str = "INFO"
    log_form: Literal["json", "console"] = "json"
