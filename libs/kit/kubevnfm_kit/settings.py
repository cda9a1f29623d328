"""The base of every service's settings: frozen, read from the environment, checked when they are read."""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Self
from urllib.parse import urlsplit

from kubevnfm_proxies.rule import ProxyFault
from pydantic import BaseModel, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from kubevnfm_kit.logging import LogForm
from kubevnfm_kit.nearest import nearest, shown
from kubevnfm_kit.otlp_settings import OtlpSettings
from kubevnfm_kit.proxies import environment_proxies
from kubevnfm_kit.tls import ClientTls, ServerTls

_HOST: Final = re.compile(r"(?:\[[0-9A-Fa-f:.%\w]+\]|[\w.%-]+)(?::\d{1,5})?")


_VARIABLES: Final = "KUBEVNFM_"
_PROGRAMS: Final = tuple(
    f"{_VARIABLES}{each}_"
    for each in (
        "LCM_API", "INFRA_OPENSTACK", "INFRA_K8S", "MGMT_EXECUTOR", "VIM_REGISTRY", "CREDENTIALS_RECEIVER", "CLIENT", "HEALTH",
    )
)  # fmt: skip
"""The first part of the names of one program's variables. The six services may share one environment; the last two are those of the command
line and of the check of a container's health."""
_OTHERS: Final = frozenset({"KUBEVNFM_CONFIG", "KUBEVNFM_URL", "KUBEVNFM_CONTEXT"})
"""The file of one process, and the gateway of the command line."""


class ServiceSettings(BaseSettings):
    """Base of a service's ``Settings``; a subclass sets ``env_prefix="KUBEVNFM_<SERVICE>_"`` in its model_config."""

    model_config = SettingsConfigDict(frozen=True, extra="ignore", env_file=None, defer_build=True)

    @field_validator("log_level", check_fields=False)
    @classmethod
    def _is_a_level(cls, given: str) -> str:
        if given.upper() not in logging.getLevelNamesMapping():
            raise ValueError("must be DEBUG, INFO, WARNING or ERROR")
        return given

    @classmethod
    def read_or_exit(cls, *others: type[ServiceSettings]) -> Self:
        """Return the settings; ends the process with one line on stderr and code 1 if they are invalid.

        The line names each variable and its fault, never its value: that may be a secret. A variable ``KUBEVNFM_*`` that
        nothing reads is a fault: it would start the process with other settings than its user expects. So is a proxy in the environment that
        cannot be read.
        ``others``: settings that this process reads, too.
        """
        read: tuple[type[ServiceSettings], ...] = (cls, *others)
        faults = unknown_variables(os.environ, [name for each in read for name in each.variables()])
        try:
            settings = cls()
        except ValidationError as error:
            faults = [faults_of(error, cls.place_of, list(cls.model_fields)), *faults]
        try:
            environment_proxies()
        except ProxyFault as fault:
            faults.append(str(fault))
        if faults:
            sys.exit("; ".join(faults))
        return settings

    @classmethod
    def variables(cls) -> list[str]:
        """Return the names of the environment's variables with the settings."""
        return [cls._variable(name) for name in cls.model_fields]

    @classmethod
    def place_of(cls, name: str) -> str:
        """Return where the value of a setting is given, for messages."""
        return cls._variable(name)

    @classmethod
    def _variable(cls, name: str) -> str:
        return f"{cls.model_config.get('env_prefix', '')}{name}".upper()


def unknown_variables(environment: Mapping[str, str], known: Sequence[str]) -> list[str]:
    """Return the fault of each variable ``KUBEVNFM_*`` that has no ``known`` name and is not of another program of the project."""
    mine = {each for each in _PROGRAMS if any(name.startswith(each) for name in known)}
    elsewhere = tuple(each for each in _PROGRAMS if each not in mine)
    named = sorted(each for each in environment if each.upper().startswith(_VARIABLES))
    unknown = [
        each for each in named if each.upper() not in {*known, *_OTHERS} and not each.upper().startswith(elsewhere)
    ]
    return [f"{shown(each)}: {_no_setting(each, known)}" for each in unknown]


def _no_setting(name: str, known: Sequence[str]) -> str:
    meant = nearest(name, known)
    return "no such setting" + (f": did you mean {meant}?" if meant is not None else "")


def faults_of(error: ValidationError, place_of: Callable[[str], str] = str, known: Sequence[str] = ()) -> str:
    """Return one line with each setting and its fault. Not the error's own text: it repeats the rejected values, which may be secrets.

    ``place_of``: returns where the setting of a name is given. ``known``: the names of all settings. A rule about several settings names them
    itself.
    """
    faults = []
    for one in error.errors():
        name = ".".join(map(str, one["loc"]))
        is_unknown = one["type"] == "extra_forbidden"
        said = _no_setting(name, known) if is_unknown else one["msg"].removeprefix("Value error, ")
        faults.append(f"{place_of(name)}: {said}" if name else said)
    return "; ".join(faults)


def check_backend_url(given: SecretStr, *schemes: str) -> SecretStr:
    """Return the URL of a database or broker. Raises ValueError, which repeats no part of it: any may be one of the password.

    The client libraries wait for ever with a URL that they cannot read, or quote it.
    """
    url = given.get_secret_value()
    expected = f"{schemes[0]}://<user>:<password>@<host>:<port>/ expected, with %2F, %40 and %3A for / @ : in user and password"
    try:
        parts = urlsplit(url)
    except ValueError:
        raise ValueError(expected) from None
    login, _, hosts = parts.netloc.rpartition("@")
    is_readable = parts.scheme in schemes and all(map(_HOST.fullmatch, hosts.split(",")))
    if not is_readable or login.count(":") > 1 or "@" in login or "@" in parts.path or parts.fragment:
        raise ValueError(expected)
    return given


class ListenerTls(BaseModel):
    """TLS settings of a service: those of its listener, and those of its calls of other services."""

    tls_certificate: Path | None = None
    """PEM file of the server's certificate and its chain; with ``tls_key``: HTTPS, TLS 1.2 or later. Reloaded when replaced."""
    tls_key: Path | None = None
    """PEM file of its key."""
    tls_client_ca: Path | None = None
    """PEM file of the CAs that must have issued callers' certificates (mTLS); the other services are callers too."""
    tls_client_required: bool = True
    """With ``tls_client_ca``: whether a caller without a certificate is rejected in the handshake."""
    internal_tls_ca: Path | None = None
    """PEM file of the CAs that issued the other services' certificates; None: the CAs of the machine."""
    internal_tls_certificate: Path | None = None
    """PEM file of the certificate to present to the other services; with ``internal_tls_key``."""
    internal_tls_key: Path | None = None
    """PEM file of its key."""

    @model_validator(mode="after")
    def _pairs_are_whole(self) -> Self:
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise ValueError("tls_certificate and tls_key: set both or none")
        if (self.internal_tls_certificate is None) != (self.internal_tls_key is None):
            raise ValueError("internal_tls_certificate and internal_tls_key: set both or none")
        if self.tls_client_ca is not None and self.tls_certificate is None:
            raise ValueError("tls_client_ca: needs tls_certificate and tls_key")
        return self

    @property
    def server_tls(self) -> ServerTls | None:
        """The listener's TLS; None: plain HTTP."""
        if self.tls_certificate is None or self.tls_key is None:
            return None
        return ServerTls(self.tls_certificate, self.tls_key, self.tls_client_ca, self.tls_client_required)

    @property
    def internal_tls(self) -> ClientTls:
        """The TLS of calls of the other services."""
        return ClientTls(self.internal_tls_ca, self.internal_tls_certificate, self.internal_tls_key)


class ProcessSettings(ServiceSettings, ListenerTls, OtlpSettings):
    """Settings that every service has as a process of its own; a subclass adds its own and its defaults."""

    amqp_url: SecretStr = SecretStr("amqp://guest:guest@127.0.0.1:5672/")
    """RabbitMQ, with user and password."""
    amqp_declares: bool = True
    """Whether the service declares its exchanges and queues. False: an administrator has loaded
    ``deploy/base/rabbitmq/definitions.json``, and the user of the service may configure nothing."""
    mongo_url: SecretStr = SecretStr("mongodb://127.0.0.1:27017")
    """MongoDB, with user and password."""
    mongo_database: str = "kubevnfm"
    internal_token: SecretStr
    """Authenticates the other services' calls of this one."""
    peer_tokens: Annotated[Mapping[str, SecretStr], NoDecode] = {}
    """The tokens of the services that this one calls: ``<service>=<token>``, separated by commas. A service that is not
    named has the same ``internal_token`` as this one."""
    keys: SecretStr
    """The key ring that seals secrets: base64 keys of 32 bytes, separated by commas; the first one encrypts. The same
    in all services."""
    log_level: str = "INFO"
    """DEBUG, INFO, WARNING or ERROR."""
    log_form: LogForm = "json"
    """``json`` or ``console``: for programs or for people."""

    @field_validator("amqp_url")
    @classmethod
    def _is_of_a_broker(cls, given: SecretStr) -> SecretStr:
        return check_backend_url(given, "amqp", "amqps")

    @field_validator("mongo_url")
    @classmethod
    def _is_of_a_database(cls, given: SecretStr) -> SecretStr:
        return check_backend_url(given, "mongodb", "mongodb+srv")

    @field_validator("peer_tokens", mode="before")
    @classmethod
    def _by_service(cls, given: Any) -> Any:
        if not isinstance(given, str):
            return given
        pairs = [part.strip().partition("=") for part in given.split(",") if part.strip()]
        # The rejected value is a token: the error must not repeat it.
        if not all(name and equals and token for name, equals, token in pairs):
            raise ValueError("<service>=<token> expected, separated by commas")
        return {name: token for name, _, token in pairs}

    def token_for(self, peer: str) -> str:
        """Return the token with which to call another service."""
        return self.peer_tokens.get(peer, self.internal_token).get_secret_value()
