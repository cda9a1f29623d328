"""The setting of webhooks; part of the settings of lcm-api and of the single process."""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network
from typing import Annotated, Any

from pydantic import BaseModel, Field, field_validator
from pydantic_settings import NoDecode


class WebhookSettings(BaseModel):
    """Which monitoring systems are admitted."""

    webhook_open_networks: Annotated[tuple[IPv4Network | IPv6Network, ...], NoDecode] = Field(default=())
    """Networks of monitoring systems that send no credentials, such as those of an Alertmanager that was set up for Tacker,
    separated by commas. Every program there may report alerts, and thereby have VNFs healed and scaled that allow it. Empty: a user of the
    role ``operator`` is needed."""

    @field_validator("webhook_open_networks", mode="before")
    @classmethod
    def _networks(cls, given: Any) -> Any:
        return [part.strip() for part in given.split(",") if part.strip()] if isinstance(given, str) else given
