"""The settings of performance management; part of the settings of lcm-api and of the single process."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from kubevnfm_kit.service_urls import check_service_url
from kubevnfm_kit.tls import ClientTls
from pydantic import BaseModel, Field, SecretStr, model_validator


class PerformanceSettings(BaseModel):
    """The Prometheus that measures, and how its values are reported and kept."""

    prometheus_url: str | None = None
    """The root of the Prometheus that has the series of the VNFs: queries go to ``<prometheus_url>/api/v1/query_range``. None: only
    jobs and thresholds that name one are measured."""
    prometheus_user: str = ""
    """The user's name, for HTTP Basic; empty: ``prometheus_password`` is a bearer token."""
    prometheus_password: SecretStr = SecretStr("")
    """The password, or the token; empty: no credentials are sent."""
    prometheus_ca: Path | None = None
    """PEM file of the CAs that may have issued its certificate; None: the CAs of the operating system."""
    prometheus_scrape_s: float = Field(default=15.0, gt=0)
    """Seconds between two scrapes of the series, as the Prometheus has it: a rate needs two values, so none is asked for less time."""
    prometheus_delay_s: float = Field(default=2.0, ge=0)
    """Seconds after the end of a collection period until it is asked for: the last values of it are stored then."""
    pm_sample_s: float = Field(default=15.0, ge=1)
    """Seconds between two samples of pods, where clusters are measured by ``metrics.k8s.io``: metrics-server has a new value each 15 s."""
    pm_sample_delay_s: float = Field(default=30.0, ge=0)
    """Seconds after the end of a collection period until its samples of pods are complete: their times are some time ago."""
    pm_catch_up_s: float = Field(default=3600.0, gt=0)
    """Seconds for which a period that could not be measured is still asked for; after that it is a gap in its report."""
    pm_reports_kept: int = Field(default=100, ge=1, le=1000)
    """The most reports that are kept of a job: the oldest ones are removed first."""
    pm_report_days: float = Field(default=7.0, gt=0)
    """Days after which a report is removed."""
    pm_most_jobs: int = Field(default=1000, ge=1)
    """The most PM jobs, and the most thresholds."""
    threshold_period_s: float = Field(default=30.0, ge=1)
    """Seconds between two measurements of a threshold, each over this time."""

    @model_validator(mode="after")
    def _prometheus_can_be_asked(self) -> Self:
        if self.prometheus_url is not None:
            check_service_url("prometheus_url", self.prometheus_url)
        if self.prometheus_user and not self.prometheus_password.get_secret_value():
            raise ValueError("prometheus_user: needs prometheus_password")
        return self

    @property
    def prometheus_tls(self) -> ClientTls:
        """The TLS settings for calls to it."""
        return ClientTls(self.prometheus_ca)
