"""The bodies of webhooks, as the OpenAPI document shows them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from kubevnfm_kit.json_types import JsonObject
from pydantic import BaseModel, ConfigDict, Field, StrictStr

from kubevnfm_lcm_api.lifecycle.core.server_notifier import FAULT_LENGTH
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


class ServerFault(BaseModel):
    """A fault of a server; it may have more attributes."""

    # Notifiers may write secrets: no error repeats what was sent.
    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True, defer_build=True)

    alarm_id: _Identifier
    fault_id: Annotated[StrictStr, Field(min_length=FAULT_LENGTH, max_length=FAULT_LENGTH)]
    fault_type: Annotated[StrictStr, Field(min_length=2, max_length=2)]
    host_id: _Identifier | None = None
    fault_option: JsonObject | None = None


class ServerNotification(BaseModel):
    """A notification of a server notifier."""

    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True, defer_build=True)

    notification: ServerFault
