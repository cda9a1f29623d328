"""The settings of the six services in one process: by ``KUBEVNFM_<NAME>``, or in one TOML file."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final, Self

import kubevnfm_credentials_receiver.settings as credentials_receiver
import kubevnfm_infra_k8s.settings as infra_k8s
import kubevnfm_infra_openstack.settings as infra_openstack
import kubevnfm_lcm_api.settings as lcm_api
import kubevnfm_mgmt_executor.settings as mgmt_executor
import kubevnfm_vim_registry.settings as vim_registry
from kubevnfm_access.settings import AccessSettings
from kubevnfm_infra_k8s.export_settings import ExportSettings
from kubevnfm_infra_k8s.policy_settings import PolicySettings
from kubevnfm_kit.logging import LogForm
from kubevnfm_kit.settings import ListenerTls, ServiceSettings
from kubevnfm_kit.tls import ClientTls
from kubevnfm_lcm_api.settings import SubjectSettings
from kubevnfm_mgmt_executor.settings import ReceiverSettings
from kubevnfm_vim_registry.region_settings import RegionSettings
from pydantic import Field, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, TomlConfigSettingsSource

SERVICES: Final[tuple[type[ServiceSettings], ...]] = (
    lcm_api.Settings,
    infra_openstack.Settings,
    infra_k8s.Settings,
    mgmt_executor.Settings,
    vim_registry.Settings,
    credentials_receiver.Settings,
)
"""Each service in the process also reads the variables with its own prefix."""


def service_variable(name: str) -> str:
    """Return the variable of the environment that gives one of the services this setting, for messages."""
    named = {each.place_of(name) for each in SERVICES} & set(map(str.upper, os.environ))
    return " or ".join(sorted(named)) or name


def _file() -> Path:
    return Path(os.environ.get("KUBEVNFM_CONFIG") or "kubevnfm.toml")


class Settings(
    ServiceSettings,
    ListenerTls,
    AccessSettings,
    SubjectSettings,
    ReceiverSettings,
    PolicySettings,
    ExportSettings,
    RegionSettings,
):
    """The environment has precedence over the file ``$KUBEVNFM_CONFIG`` (default ``kubevnfm.toml``). Unknown names are errors."""

    model_config = SettingsConfigDict(env_prefix="KUBEVNFM_", extra="forbid")

    host: str = "127.0.0.1"
    """The address on which the gateway listens; beyond loopback with authentication only."""
    port: int = Field(default=9890, ge=0, le=65_535)
    """The gateway's port; 0: a free one."""
    public_url: str | None = None
    """The root of all links; None: the address by which each caller reached the gateway, if ``allowed_hosts`` admits it."""
    data_dir: Path = Path(".run/kubevnfm")
    """The database, the packages, and the keys (created at the first start, mode 0600)."""
    ssh_port: int = Field(default=22, ge=1, le=65_535)
    """The SSH port of the VNFs' machines."""
    page_size: int = Field(default=100, ge=1)
    """Entries on one page of a list (SOL013 5.4)."""
    default_zone: str | None = Field(default=None, min_length=1)
    """The availability zone of machines where no NFVO grants one (docs/granting.md); None: the cloud's."""
    lease_s: float = Field(default=15.0, gt=0)
    """How long a command stays assigned to a process that died."""
    trust_packages: bool = False
    """Whether code of packages is also run where the kernel refuses to confine it (docs/security.md)."""
    log_level: str = "INFO"
    """DEBUG, INFO, WARNING or ERROR."""
    log_form: LogForm | None = None
    """``json`` or ``console``; None: console on a terminal, else JSON."""

    @model_validator(mode="after")
    def _the_parts_can_call_the_gateway(self) -> Self:
        """The services call the gateway over its own listener, as every caller does, so they need a certificate."""
        if self.tls_client_ca and self.tls_client_required and not self.internal_tls_certificate:
            raise ValueError(
                "tls_client_ca: needs internal_tls_certificate and internal_tls_key, or tls_client_required off"
            )
        return self

    @property
    def form_of_log(self) -> LogForm:
        """The form of the log's lines."""
        return self.log_form or ("console" if sys.stderr.isatty() else "json")

    @property
    def internal_tls(self) -> ClientTls:
        """The TLS of the services' calls of the gateway: its certificate is pinned, so its names do not matter."""
        pinned = self.tls_certificate is not None
        return ClientTls(self.tls_certificate, self.internal_tls_certificate, self.internal_tls_key, is_pinned=pinned)

    @classmethod
    def place_of(cls, name: str) -> str:
        """Return the variable or the file that gives a setting, for messages."""
        variable = super().place_of(name)
        is_in_environment = variable in map(str.upper, os.environ)
        return variable if is_in_environment or not _file().exists() else f"{_file()}: {name}"

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Arguments, then environment, then the file. Ends the process if the file cannot be read."""
        path = _file()
        # The default file is optional, a file that is named must exist: a typing error would start with other settings.
        if os.environ.get("KUBEVNFM_CONFIG") and not path.exists():
            sys.exit(f"KUBEVNFM_CONFIG: there is no file {path}")
        try:
            return init_settings, env_settings, TomlConfigSettingsSource(settings_cls, path)
        except ValueError as error:  # not TOML, or not UTF-8
            sys.exit(f"{path}: {error}")
