"""The settings of infra-k8s that limit what packages of CNFs may do."""

from __future__ import annotations

import tomllib
from pathlib import Path

from kubevnfm_sandbox.runs import Limits
from pydantic import BaseModel, Field, ValidationError, field_validator

from kubevnfm_infra_k8s.domain.planning.cnf_policy import Policies

_MODES = ("warn", "strict")


class PolicySettings(BaseModel):
    """The settings that limit what packages of CNFs may do."""

    cnf_policy: str = "warn"
    """The limits for what CNFs ask of clusters (docs/cnf-policy.md): ``warn``, ``strict``, or the path of a TOML file with rules for all VIMs
    and for some. ``warn``, because CNFs that were installed before would be refused."""

    @field_validator("cnf_policy")
    @classmethod
    def _can_be_read(cls, given: str) -> str:
        policies_of(given)
        return given


class ChartSettings(BaseModel):
    """How Helm charts are rendered. The program of ``helm`` is confined, so it must be the program itself, not a script that calls it."""

    chart_timeout_s: float = Field(default=60.0, gt=0)
    """A chart that is not rendered after this time is refused; user data has the same limit."""
    chart_memory_mib: int = Field(default=512, ge=128)
    """Memory of a helm program that renders a chart; helm itself needs 60 MiB."""
    chart_parallel: int = Field(default=4, ge=1)
    """Number of charts that are rendered at the same time."""
    trust_packages: bool = False
    """Whether Helm charts are also rendered where the kernel refuses to confine it. Off, because templates could then read what
    this service can read."""

    @property
    def chart_limits(self) -> Limits:
        """The limits of each helm program."""
        return Limits(
            timeout_s=self.chart_timeout_s,
            memory_mib=self.chart_memory_mib,
            parallel=self.chart_parallel,
            trust_packages=self.trust_packages,
        )


def policies_of(setting: str) -> Policies:
    """Return the policy that ``cnf_policy`` names. Raises ValueError with the file's fault and where it is."""
    if setting in _MODES:
        return Policies.model_validate({"mode": setting})
    if "/" not in setting and not setting.endswith(".toml"):
        raise ValueError("warn, strict, or the path of a TOML file expected")
    try:
        given = tomllib.loads(Path(setting).read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"{setting}: {error.strerror or error}") from error
    except ValueError as error:  # not TOML, or not UTF-8
        raise ValueError(f"{setting}: {error}") from error
    if given.get("mode") not in _MODES:
        raise ValueError(f"{setting}: mode: warn or strict expected")
    try:
        return Policies.model_validate(given)
    except ValidationError as error:
        found = [
            f"{'.'.join(map(str, one['loc']))}: {'no such rule' if one['type'] == 'extra_forbidden' else one['msg'].removeprefix('Value error, ')}"
            for one in error.errors()
        ]
        raise ValueError(f"{setting}: {'; '.join(found)}") from error
