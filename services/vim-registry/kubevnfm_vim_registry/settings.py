"""The settings of vim-registry."""

from __future__ import annotations

from kubevnfm_clients.credentials_settings import CredentialsTokenSettings
from kubevnfm_clients.outbound_settings import OutboundSettings
from kubevnfm_clients.vnf_network_settings import VnfNetworkSettings
from kubevnfm_kit.settings import ProcessSettings
from pydantic import Field
from pydantic_settings import SettingsConfigDict

from kubevnfm_vim_registry.region_settings import RegionSettings


class Settings(ProcessSettings, CredentialsTokenSettings, VnfNetworkSettings, RegionSettings, OutboundSettings):
    """Environment variables ``KUBEVNFM_VIM_REGISTRY_<NAME>``."""

    model_config = SettingsConfigDict(env_prefix="KUBEVNFM_VIM_REGISTRY_")

    host: str = "127.0.0.1"
    """The address on which the internal API listens."""
    port: int = 9891
    mongo_database: str = "kubevnfm_vim_registry"
    lcm_api_url: str = "http://127.0.0.1:9890"
    """lcm-api, which knows the instances that use a VIM."""
    credentials_receiver_url: str = "http://127.0.0.1:9893"
    """credentials-receiver, which stores called-back kubeconfigs."""
    verify_timeout_s: float = Field(default=30.0, gt=0)
    """Time limit for the log-in to a VIM before it is registered (api.md 8)."""
    monitor_every_s: float = Field(default=30.0, gt=0)
    """Interval between two light calls to the same VIM."""
    monitor_timeout_s: float = Field(default=10.0, gt=0)
    """Time limit for such a call; a VIM that takes longer is UNREACHABLE."""
    monitor_tolerance_s: float = Field(default=180.0, ge=0)
    """How long a cluster may be silent while an operation runs on the instance that built it, before it is UNREACHABLE: its
    control plane may be replaced (capi.md CR-101)."""
    monitor_parallel: int = Field(default=16, ge=1)
    """Number of VIMs that are called at the same time."""
    inventory_every_s: float = Field(default=5.0, gt=0)
    """Interval between two looks for inventories of cloud regions that are to be read again."""
    credentials_tries_s: float = Field(default=300.0, ge=0)
    """The registration of a cluster that called back fails if it has not answered after this time (capi.md CR-080)."""
    lease_s: float = 15.0
