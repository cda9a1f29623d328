"""The setting that credentials-receiver and vim-registry share: the token for kubeconfigs, which no other service has."""

from __future__ import annotations

from typing import Self

from pydantic import BaseModel, Field, SecretStr, model_validator


class CredentialsTokenSettings(BaseModel):
    """A part of the settings of these two services."""

    credentials_token: SecretStr = Field(min_length=1)
    """Authenticates vim-registry when it reads a kubeconfig from credentials-receiver: the same value in both services,
    and in no other. It is neither the ``internal_token`` nor one of the ``peer_tokens``."""

    @model_validator(mode="after")
    def _is_a_token_of_its_own(self) -> Self:
        others = [getattr(self, "internal_token", None), *getattr(self, "peer_tokens", {}).values()]
        if self.credentials_token in others:
            raise ValueError("credentials_token: a token of its own expected, not that of a service")
        return self
