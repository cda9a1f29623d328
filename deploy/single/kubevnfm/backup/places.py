"""Where an installation has its data: by the same variables as its services."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kubevnfm_events.contract import services
from kubevnfm_kit.errors import VnfmError
from kubevnfm_kit.settings import ServiceSettings, check_backend_url, faults_of
from pydantic import SecretStr, ValidationError, field_validator
from pydantic_settings import SettingsConfigDict

_GATEWAY: Final = "lcm-api"


class SettingsIncomplete(VnfmError, code="settings-incomplete", title="Settings incomplete", status=500):
    """The variables do not say where the data are."""


@dataclass(frozen=True)
class OneProcess:
    """The six services in one process."""

    data_dir: Path

    @property
    def files(self) -> Path:
        """The folder with the packages."""
        return self.data_dir / "lcm-api"


@dataclass(frozen=True)
class Location:
    """A database on a server."""

    url: SecretStr
    database: str
    services: tuple[str, ...]


@dataclass(frozen=True)
class SixServices:
    """Six services with databases on servers."""

    locations: tuple[Location, ...]
    files: Path
    keys: SecretStr


def installation() -> OneProcess | SixServices:
    """Return the installation of the variables: six services if ``KUBEVNFM_LCM_API_MONGO_URL`` is set. Raises SettingsIncomplete."""
    if _variable(_GATEWAY, "mongo_url") in os.environ:
        return _six()
    # The settings of the process import those of all services.
    from kubevnfm.settings import Settings

    try:
        return OneProcess(Settings().data_dir)
    except ValidationError as error:
        raise SettingsIncomplete(faults_of(error, Settings.place_of)) from error


def _six() -> SixServices:
    found: dict[tuple[str, str], list[str]] = {}
    files, keys = Path("/var/lib/kubevnfm/lcm-api"), set[str]()
    for service in sorted(services()):
        settings = _settings_of(service)
        found.setdefault((settings.mongo_url.get_secret_value(), settings.mongo_database), []).append(service)
        keys.add(settings.keys.get_secret_value())
        if service == _GATEWAY:
            files = settings.data_dir or files
    if len(keys) > 1:
        raise SettingsIncomplete("KUBEVNFM_<SERVICE>_KEYS: the key ring is not the same in all services")
    locations = (Location(SecretStr(url), name, tuple(them)) for (url, name), them in found.items())
    return SixServices(tuple(locations), files, SecretStr(keys.pop()))


def _settings_of(service: str) -> _Stored:
    class Stored(_Stored):
        model_config = SettingsConfigDict(env_prefix=_variable(service, ""))

    try:
        return Stored()
    except ValidationError as error:
        raise SettingsIncomplete(faults_of(error, Stored.place_of)) from error


class _Stored(ServiceSettings):
    """The settings of a service with the place where it stores."""

    mongo_url: SecretStr
    mongo_database: str = "kubevnfm"
    keys: SecretStr
    data_dir: Path | None = None

    @field_validator("mongo_url")
    @classmethod
    def _is_of_a_database(cls, given: SecretStr) -> SecretStr:
        return check_backend_url(given, "mongodb", "mongodb+srv")


def _variable(service: str, name: str) -> str:
    return f"KUBEVNFM_{service.replace('-', '_')}_{name}".upper()
