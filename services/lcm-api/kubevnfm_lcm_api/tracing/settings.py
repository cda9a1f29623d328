"""The settings of the export of operations' traces; part of the settings of lcm-api and of the single process."""

from __future__ import annotations

from kubevnfm_kit.otlp_settings import OtlpSettings
from pydantic import Field


class TraceSettings(OtlpSettings):
    """Where the traces of operations are sent, and for how long."""

    trace_hours: float = Field(default=24.0, gt=0, le=720)
    """How long the trace of an operation is tried to be sent after its end; then it is no longer sent."""
