"""Everything that an operator can set for vim-registry."""

from __future__ import annotations

from kubevnfm_kit.settings import ProcessSettings
from pydantic import Field
from pydantic_settings import SettingsConfigDict


class Settings(ProcessSettings):
    """Environment variables ``KUBEVNFM_VIM_REGISTRY_<NAME>``."""

    model_config = SettingsConfigDict(env_prefix="KUBEVNFM_VIM_REGISTRY_")

    host: str = "127.0.0.1"
    """Where the internal API listens."""
    port: int = 9891
    mongo_database: str = "kubevnfm_vim_registry"
    lcm_api_url: str = "http://127.0.0.1:9890"
    """lcm-api, which knows the instances that use a VIM."""
    credentials_receiver_url: str = "http://127.0.0.1:9893"
    """credentials-receiver, of which called-back kubeconfigs are asked."""
    verify_timeout_s: float = Field(default=30.0, gt=0)
    """How long a VIM may take to answer before it is registered (api.md 8)."""
    monitor_every_s: float = Field(default=30.0, gt=0)
    """How often each VIM gets one light call."""
    monitor_timeout_s: float = Field(default=10.0, gt=0)
    """How long a VIM may take for it; more is UNREACHABLE."""
    monitor_parallel: int = Field(default=16, ge=1)
    """VIMs asked side by side."""
    credentials_tries_s: float = Field(default=300.0, ge=0)
    """How long a cluster that called back may take to answer before its registration has failed (capi.md CR-080)."""
    lease_s: float = 15.0
