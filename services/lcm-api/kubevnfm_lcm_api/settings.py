"""Everything that an operator can set for lcm-api."""

from __future__ import annotations

from pathlib import Path

from kubevnfm_access.settings import AccessSettings
from kubevnfm_kit.settings import ProcessSettings
from pydantic import Field
from pydantic_settings import SettingsConfigDict

from kubevnfm_lcm_api.granting.settings import GrantSettings
from kubevnfm_lcm_api.notifications.settings import CallbackSettings
from kubevnfm_lcm_api.outbound_settings import OutsideSettings


class Settings(ProcessSettings, AccessSettings, OutsideSettings, CallbackSettings, GrantSettings):
    """Environment variables ``KUBEVNFM_LCM_API_<NAME>``."""

    model_config = SettingsConfigDict(env_prefix="KUBEVNFM_LCM_API_")

    host: str = "127.0.0.1"
    """Where the gateway listens. Beyond loopback with authentication only, unless ``auth_open_to_network``."""
    port: int = Field(default=9890, ge=0, le=65_535)
    """As Tacker's API, which existing clients and scripts point at."""
    public_url: str | None = None
    """What links begin with; None: as each caller reached us (notifications then use host and port)."""
    vim_registry_url: str = "http://127.0.0.1:9891"
    mgmt_executor_url: str = "http://127.0.0.1:9892"
    data_dir: Path = Path("/var/lib/kubevnfm/lcm-api")
    """Where uploaded packages lie."""
    package_limit_gib: float = Field(default=16.0, gt=0)
    """The largest package that is taken: VM images are of some GiB."""
    page_size: int = Field(default=100, ge=1)
    """Documents a list answers at once (SOL013 5.4)."""
    lease_s: float = Field(default=15.0, gt=0)
    """How long a command is another worker's after that died; short for tests, long for slow databases."""
