"""The operator's settings for VNF packages; a part of lcm-api's settings, and of those of the single process."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from pydantic import BaseModel, Field, model_validator


class PackageSettings(BaseModel):
    """How large packages may be, how they are fetched, and whose signatures are trusted."""

    package_trust_anchors: Path | None = None
    """PEM of the authorities, or signers, whose signatures of packages are trusted. None: a signature must fit its
    content, but any signer is accepted."""
    require_signed_packages: bool = False
    """Whether a package is rejected unless it has a signature of a trusted signer."""
    package_limit_gib: float = Field(default=16.0, gt=0)
    """The largest package that is accepted: VM images have some GiB."""
    fetch_timeout_s: float = Field(default=3600.0, gt=0)
    """How long fetching one package may take."""
    onboarding_cpu_s: int = Field(default=30, gt=0)
    """Processor time for checking and unpacking one package, beside one second for each MiB of the archive. A package of
    ordinary size takes less than a second."""

    @model_validator(mode="after")
    def _has_trust_anchors(self) -> Self:
        if self.require_signed_packages and self.package_trust_anchors is None:
            raise ValueError("require_signed_packages: needs package_trust_anchors")
        return self

    @property
    def package_limit_bytes(self) -> int:
        """The largest package that is accepted."""
        return int(self.package_limit_gib * 2**30)
