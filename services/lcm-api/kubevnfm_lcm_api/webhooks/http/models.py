"""The bodies of webhooks, as the OpenAPI document shows them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, Field, StrictStr

from kubevnfm_lcm_api.webhooks.domain.alerts import MOST_ALERTS

_Identifier = Annotated[StrictStr, Field(min_length=1, max_length=255)]


class PostedAlert(BaseModel):
    """An alert of Alertmanager; it may have more attributes."""

    status: Literal["firing", "resolved"]
    labels: dict[str, str | None]
    """``receiver_type`` (tacker), ``function_type``, and those of the path; it may have more."""
    annotations: dict[str, str | float | None]
    startsAt: datetime  # noqa: N815  # as it is on the wire
    endsAt: datetime | None = None  # noqa: N815  # as it is on the wire
    fingerprint: str


class AlertMessage(BaseModel):
    """A message of Alertmanager; it may have more attributes."""

    alerts: Annotated[list[PostedAlert], Field(max_length=MOST_ALERTS)]
