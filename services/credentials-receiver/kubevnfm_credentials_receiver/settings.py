"""Everything that an operator can set of credentials-receiver."""

from __future__ import annotations

from kubevnfm_kit.settings import ProcessSettings
from pydantic import Field, SecretStr
from pydantic_settings import SettingsConfigDict


class Settings(ProcessSettings):
    """Environment variables ``KUBEVNFM_CREDENTIALS_RECEIVER_<NAME>``."""

    model_config = SettingsConfigDict(env_prefix="KUBEVNFM_CREDENTIALS_RECEIVER_")

    host: str = "127.0.0.1"
    """Where call-backs and internal questions are answered. Loopback unless told otherwise: then use TLS."""
    port: int = 9893
    """0: one that the system chooses."""
    mongo_database: str = "kubevnfm_credentials_receiver"
    lcm_api_url: str = "http://127.0.0.1:9890"
    """lcm-api, which is asked whether a VNF instance exists."""
    master_keys: SecretStr
    """Base64 keys of 32 bytes that instances' signing keys are derived from; at most two, divided by a comma, while
    one takes the place of the other: ``vnf-<id>`` names the first, ``vnf-<id>.k2`` the second."""
    failures_a_minute: int = Field(default=20, ge=1)
    """Refused signatures from one address before it has to wait."""
