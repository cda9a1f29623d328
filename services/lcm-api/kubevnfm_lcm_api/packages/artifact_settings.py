"""The operator's settings for packages that are fetched on demand (multicloud.md MC-122 to MC-125)."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, Self

from kubevnfm_kit.service_urls import check_service_url
from pydantic import BaseModel, Field, SecretStr, model_validator


class ArtifactSettings(BaseModel):
    """Where packages are fetched from on demand, and the limits of that."""

    artifact_catalogue_url: str | None = None
    """The catalogue. ``sol``: the address of the VNF package API, such as ``https://nfvo.example.org/vnfpkgm/v2``; ``sdc``: the
    root of ONAP SDC. None: no package is fetched by its id alone."""
    artifact_catalogue_kind: Literal["sol", "sdc"] = "sol"
    """``sol``: the VNF package API of SOL003 or SOL005; ``sdc``: the catalogue of ONAP SDC."""
    artifact_catalogue_user: str = ""
    """The user's name, or the OAuth 2.0 client id if there is a token endpoint."""
    artifact_catalogue_password: SecretStr = SecretStr("")
    """The user's password, or the OAuth 2.0 client secret."""
    artifact_catalogue_token_url: str | None = None
    """The token endpoint of the catalogue; None: Basic, or no authentication without a user."""
    artifact_catalogue_instance: str = "kubevnfm"
    """``X-ECOMP-InstanceID`` for ONAP SDC."""
    artifact_hosts: str = ""
    """Hosts, divided by commas, that redirects and token endpoints of catalogues and registries may lead to, beside their own."""
    artifact_registry_logins: Path | None = None
    """A file in the form of Docker's ``config.json`` (``auths``) with the credentials for registries."""
    artifact_plain_registries: str = ""
    """Registries, divided by commas (``host`` or ``host:port``), that are called by http instead of https."""
    artifact_limit_gib: float = Field(default=1.0, gt=0)
    """The largest package or chart that is fetched on demand."""
    artifact_disk_gib: float = Field(default=50.0, gt=0)
    """The limit of all archives that were fetched on demand: beyond it, those least recently used are removed."""
    artifact_timeout_s: float = Field(default=3600.0, gt=0)
    """How long fetching one of them may take."""

    @model_validator(mode="after")
    def _catalogue_can_be_asked(self) -> Self:
        for name in ("artifact_catalogue_url", "artifact_catalogue_token_url"):
            given = getattr(self, name)
            if given is not None:
                check_service_url(name, given)
        if self.artifact_catalogue_token_url is not None and not self.artifact_catalogue_user:
            raise ValueError("artifact_catalogue_token_url: needs artifact_catalogue_user")
        if ":" in self.artifact_catalogue_user and self.artifact_catalogue_token_url is None:
            raise ValueError("artifact_catalogue_user: no colon expected, as Basic authentication has none")
        if self.artifact_disk_gib < self.artifact_limit_gib:
            raise ValueError("artifact_disk_gib: at least artifact_limit_gib expected")
        return self

    @property
    def artifact_limit_bytes(self) -> int:
        """The largest package or chart that is fetched on demand."""
        return int(self.artifact_limit_gib * 2**30)

    @property
    def artifact_disk_bytes(self) -> int:
        """The limit of all of them."""
        return int(self.artifact_disk_gib * 2**30)
