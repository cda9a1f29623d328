"""What an operator sets of addresses that callers name, and of packages' signatures; a part of lcm-api's settings, and
of those of the single process.
"""

from __future__ import annotations

from pathlib import Path
from typing import Self

from kubevnfm_clients.outbound import AddressRules
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator


class OutsideSettings(BaseModel):
    """Where calls may go that others ask for, and whose packages are taken."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    allowed_networks: str = ""
    """Networks that packages may be fetched from, and subscribers be called in, besides public addresses; divided by
    commas: ``10.20.0.0/16``."""
    outbound_ca_file: Path | None = None
    """PEM of the CAs that those servers' certificates must come from; None: the system's."""
    package_trust_anchors: Path | None = None
    """PEM of the authorities, or signers, whose signatures of packages are trusted; None: it is only judged whether a
    signature fits what it signs."""
    require_signed_packages: bool = False
    """Whether packages that are not signed by them are refused."""
    fetch_timeout_s: float = Field(default=3600.0, gt=0)
    """How long fetching one package may take."""

    @field_validator("allowed_networks")
    @classmethod
    def _are_networks(cls, value: str) -> str:
        AddressRules.from_text(value)
        return value

    @model_validator(mode="after")
    def _somebody_is_trusted(self) -> Self:
        if self.require_signed_packages and self.package_trust_anchors is None:
            raise ValueError("require_signed_packages: needs package_trust_anchors")
        return self
