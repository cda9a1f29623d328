"""The settings of mgmt-executor."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Self

from kubevnfm_clients.callback import PATH, master_keys
from kubevnfm_clients.vnf_network_settings import VnfNetworkSettings
from kubevnfm_kit.settings import ProcessSettings
from kubevnfm_kit.tls import ClientTls
from pydantic import BaseModel, Field, SecretStr, field_validator, model_validator
from pydantic_settings import SettingsConfigDict


class ReceiverSettings(BaseModel):
    """The settings of calls of receivers of credentials; a part of those of the single process too."""

    receiver_hosts: str = ""
    """Hosts that a request may name as another receiver (``capi.callback_url``), as ``host`` or ``host:port``, by commas."""
    receiver_ca_file: Path | None = None
    """PEM of the CAs that must have issued the receivers' certificates; None: the CAs of the machine."""
    receiver_certificate: Path | None = None
    """PEM of the certificate to present to receivers (mTLS); with ``receiver_key``."""
    receiver_key: Path | None = None
    """PEM of its key."""
    sender_access: Literal["token", "vim"] = "token"
    """The access data of the management cluster that a package's own sender of credentials gets: ``token``, for the time that it runs
    a token that reads the kubeconfig Secret of its cluster alone; ``vim``, those of the VIM. Not ``vim`` by default, because a VIM's
    account may do anything in the management cluster, and the script could send its access data to the receiver."""

    @model_validator(mode="after")
    def _receiver_pair_is_whole(self) -> Self:
        if (self.receiver_certificate is None) != (self.receiver_key is None):
            raise ValueError("receiver_certificate and receiver_key: set both or none")
        return self

    @property
    def receiver_tls(self) -> ClientTls:
        """The TLS of calls of receivers."""
        return ClientTls(self.receiver_ca_file, self.receiver_certificate, self.receiver_key)

    @property
    def allowed_receivers(self) -> frozenset[str]:
        """The hosts of ``receiver_hosts``."""
        return frozenset(host.strip() for host in self.receiver_hosts.split(",") if host.strip())


class Settings(ProcessSettings, ReceiverSettings, VnfNetworkSettings):
    """Environment variables ``KUBEVNFM_MGMT_EXECUTOR_<NAME>``."""

    model_config = SettingsConfigDict(env_prefix="KUBEVNFM_MGMT_EXECUTOR_")

    host: str = "127.0.0.1"
    """Where the internal API and the health endpoints are served. Only local processes reach the default."""
    port: int = 9892
    lcm_api_url: str = "http://127.0.0.1:9890"
    """lcm-api, from which VNF packages are fetched."""
    vim_registry_url: str = "http://127.0.0.1:9891"
    """vim-registry, which has the access data of management clusters."""
    receiver_url: str | None = f"http://127.0.0.1:9893{PATH}"
    """The receiver to which the credentials of workload clusters are sent; ``${vnfInstanceId}`` is filled in. HTTPS, but for a
    loopback address. The default is credentials-receiver on the same host. Empty: none."""
    callback_master_keys: SecretStr | None = None
    """The same as ``master_keys`` of credentials-receiver: one or two base64 keys of 32 bytes, by a comma. With two, the second
    one signs, as the newer of a rotation (docs/credentials-receiver.md). None: no credentials can be sent."""
    cache_dir: Path = Path("/var/cache/kubevnfm/mgmt-executor")
    """Unpacked VNF packages. The folder may be emptied at any time."""
    ssh_port: int = Field(default=22, ge=1, le=65_535)
    """The port at which the machines' sshd listens."""
    concurrency: int = Field(default=32, ge=1)
    """Phases that run at the same time. Each has a connection to every machine of its VNF."""
    script_timeout_s: float = Field(default=3600.0, gt=0)
    """A script of a package is killed after this time. Tacker has no limit; scripts install whole applications."""
    script_memory_mib: int = Field(default=512, ge=64)
    """Address space of a script."""
    script_parallel: int = Field(default=16, ge=1)
    """Number of scripts at the same time."""
    trust_packages: bool = False
    """Whether scripts of packages are also run where the kernel refuses to confine them. Off, because such a script could
    then read what this service can read: the key ring, the token of the services and the database."""
    lease_s: float = Field(default=15.0, gt=0)
    """How long a command stays with a worker that died: short for tests, long for slow databases."""
    cache_disk_gib: float = Field(default=20.0, gt=0)
    """The limit of that folder: above it the least recently used copies are removed, but none that was used in the last day."""

    @field_validator("receiver_url", "callback_master_keys", mode="before")
    @classmethod
    def _empty_is_none(cls, given: object) -> object:
        return None if given in ("", None) else given

    @field_validator("callback_master_keys")
    @classmethod
    def _are_keys(cls, given: SecretStr | None) -> SecretStr | None:
        if given is not None:
            master_keys(given.get_secret_value())
        return given

    @property
    def callback_keys(self) -> Sequence[bytes]:
        """The master keys; empty: none."""
        given = self.callback_master_keys
        return () if given is None else master_keys(given.get_secret_value())
