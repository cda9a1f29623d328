"""What every service's settings share: frozen, from the environment and one file, unknown names refused."""

from __future__ import annotations

from pydantic_settings import BaseSettings, SettingsConfigDict


class ServiceSettings(BaseSettings):
    """Base of a service's ``Settings``; a subclass sets ``env_prefix="KUBEVNFM_<SERVICE>_"`` in its model_config."""

    model_config = SettingsConfigDict(frozen=True, extra="ignore", use_attribute_docstrings=True, env_file=None)
