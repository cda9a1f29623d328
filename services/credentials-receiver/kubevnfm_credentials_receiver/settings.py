"""The settings of credentials-receiver."""

from __future__ import annotations

from kubevnfm_access.settings import AccessSettings
from kubevnfm_clients.credentials_settings import CredentialsTokenSettings
from kubevnfm_kit.settings import ProcessSettings
from pydantic import Field, SecretStr
from pydantic_settings import SettingsConfigDict


class Settings(ProcessSettings, AccessSettings, CredentialsTokenSettings):
    """Environment variables ``KUBEVNFM_CREDENTIALS_RECEIVER_<NAME>``."""

    model_config = SettingsConfigDict(env_prefix="KUBEVNFM_CREDENTIALS_RECEIVER_")

    host: str = "127.0.0.1"
    """The address on which call-backs, operators and vim-registry are served; beyond loopback with authentication of
    operators only. Use TLS there."""
    port: int = 9893
    """0: a port that the system chooses."""
    mongo_database: str = "kubevnfm_credentials_receiver"
    lcm_api_url: str = "http://127.0.0.1:9890"
    """lcm-api, which is asked for the call-back that a VNF instance awaits."""
    master_keys: SecretStr
    """Base64 keys of 32 bytes from which the instances' signing keys are derived. During a rotation there may be two,
    separated by a comma: the key id ``vnf-<id>`` names the first one, ``vnf-<id>.k2`` the second."""
    failures_a_minute: int = Field(default=20, ge=1)
    """Number of wrong signatures in a minute after which wrong ones of the address are answered 429. Right ones always pass."""
