"""What can be set for the six services in one process: by ``KUBEVNFM_<NAME>``, or in one TOML file."""

from __future__ import annotations

import os
from pathlib import Path

from kubevnfm_kit.settings import ServiceSettings
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, TomlConfigSettingsSource


class Settings(ServiceSettings):
    """The environment goes before the file ``$KUBEVNFM_CONFIG`` (default ``kubevnfm.toml``)."""

    model_config = SettingsConfigDict(env_prefix="KUBEVNFM_")

    host: str = "127.0.0.1"
    """Where the gateway listens; loopback, as there is no authentication yet."""
    port: int = 9890
    """The gateway's port; 0: a free one."""
    public_url: str | None = None
    """What links begin with; None: as each caller reached us."""
    data_dir: Path = Path(".run/kubevnfm")
    """The database, the packages, and (made at the first start, mode 0600) the keys."""
    ssh_port: int = 22
    """Where the VNFs' machines take SSH."""
    page_size: int = 100
    test_callbacks: bool = True
    lease_s: float = 15.0
    log_level: str = "INFO"

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Arguments, then environment, then the file."""
        file = TomlConfigSettingsSource(settings_cls, Path(os.environ.get("KUBEVNFM_CONFIG", "kubevnfm.toml")))
        return init_settings, env_settings, file
