"""What can be set for the six services in one process: by ``KUBEVNFM_<NAME>``, or in one TOML file."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Self

from kubevnfm_access.settings import AccessSettings
from kubevnfm_kit.settings import ListenerTls, ServiceSettings
from kubevnfm_kit.tls import ClientTls
from kubevnfm_lcm_api.settings import SubjectSettings
from pydantic import Field, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, TomlConfigSettingsSource


class Settings(ServiceSettings, ListenerTls, AccessSettings, SubjectSettings):
    """The environment goes before the file ``$KUBEVNFM_CONFIG`` (default ``kubevnfm.toml``), which may hold these names only."""

    model_config = SettingsConfigDict(env_prefix="KUBEVNFM_", extra="forbid")

    host: str = "127.0.0.1"
    """Where the gateway listens; beyond loopback with authentication only, unless ``auth_open_to_network``."""
    port: int = Field(default=9890, ge=0, le=65_535)
    """The gateway's port; 0: a free one."""
    public_url: str | None = None
    """What links begin with; None: as each caller reached us."""
    data_dir: Path = Path(".run/kubevnfm")
    """The database, the packages, and (made at the first start, mode 0600) the keys."""
    ssh_port: int = Field(default=22, ge=1, le=65_535)
    """Where the VNFs' machines take SSH."""
    page_size: int = Field(default=100, ge=1)
    """Entries that a list answers at once (SOL013 5.4)."""
    lease_s: float = Field(default=15.0, gt=0)
    """How long a command stays a dead process's before it is taken up again."""
    log_level: str = "INFO"

    @model_validator(mode="after")
    def _the_parts_can_call_the_gateway(self) -> Self:
        """They call it over its own listener, as everybody does."""
        if self.tls_client_ca and self.tls_client_required and not self.internal_tls_certificate:
            raise ValueError(
                "tls_client_ca: needs internal_tls_certificate and internal_tls_key, or tls_client_required off"
            )
        return self

    @property
    def internal_tls(self) -> ClientTls:
        """What the parts' calls of the gateway use: they know its certificate, and need no name in it."""
        pinned = self.tls_certificate is not None
        return ClientTls(self.tls_certificate, self.internal_tls_certificate, self.internal_tls_key, is_pinned=pinned)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Arguments, then environment, then the file. Ends the process when the file cannot be read."""
        named = os.environ.get("KUBEVNFM_CONFIG")
        path = Path(named or "kubevnfm.toml")
        if named and not path.exists():
            sys.exit(f"KUBEVNFM_CONFIG: there is no file {path}")
        try:
            return init_settings, env_settings, TomlConfigSettingsSource(settings_cls, path)
        except ValueError as error:  # no TOML, or no UTF-8
            sys.exit(f"{path}: {error}")
