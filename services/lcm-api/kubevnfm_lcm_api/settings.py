"""Everything that an operator can set for lcm-api."""

from __future__ import annotations

from pathlib import Path

from kubevnfm_access.settings import AccessSettings
from kubevnfm_clients.outbound_settings import OutboundSettings
from kubevnfm_clients.vnf_network_settings import VnfNetworkSettings
from kubevnfm_kit.settings import ProcessSettings
from pydantic import Field
from pydantic_settings import SettingsConfigDict

from kubevnfm_lcm_api.automation.settings import AutomationSettings
from kubevnfm_lcm_api.faults.settings import FaultSettings
from kubevnfm_lcm_api.granting.settings import GrantSettings
from kubevnfm_lcm_api.lifecycle.settings import LifecycleSettings
from kubevnfm_lcm_api.notifications.settings import CallbackSettings
from kubevnfm_lcm_api.onap.settings import OnapSettings
from kubevnfm_lcm_api.packages.artifact_settings import ArtifactSettings
from kubevnfm_lcm_api.packages.settings import PackageSettings
from kubevnfm_lcm_api.page.settings import PageSettings
from kubevnfm_lcm_api.performance.settings import PerformanceSettings
from kubevnfm_lcm_api.tracing.settings import TraceSettings
from kubevnfm_lcm_api.webhooks.settings import WebhookSettings


class SubjectSettings(
    OutboundSettings,
    PackageSettings,
    ArtifactSettings,
    CallbackSettings,
    GrantSettings,
    LifecycleSettings,
    FaultSettings,
    PerformanceSettings,
    WebhookSettings,
    AutomationSettings,
    OnapSettings,
    PageSettings,
    TraceSettings,
    VnfNetworkSettings,
):
    """The settings of the subjects; the single process has them too."""


class Settings(ProcessSettings, AccessSettings, SubjectSettings):
    """Environment variables ``KUBEVNFM_LCM_API_<NAME>``."""

    model_config = SettingsConfigDict(env_prefix="KUBEVNFM_LCM_API_")

    host: str = "127.0.0.1"
    """The address that the gateway listens on; beyond loopback with authentication only."""
    port: int = Field(default=9890, ge=0, le=65_535)
    """The default is that of Tacker's API, which existing clients and scripts use."""
    public_url: str | None = None
    """The root of all links; None: the root that the caller has used, if ``allowed_hosts`` admits it, otherwise the
    address at which the request came in (in notifications, host and port)."""
    vim_registry_url: str = "http://127.0.0.1:9891"
    mgmt_executor_url: str = "http://127.0.0.1:9892"
    infra_k8s_url: str = "http://127.0.0.1:9894"
    data_dir: Path = Path("/var/lib/kubevnfm/lcm-api")
    """The folder of the uploaded packages."""
    page_size: int = Field(default=100, ge=1)
    """The number of documents on one page of a list (SOL013 5.4)."""
    lease_s: float = Field(default=15.0, gt=0)
    """How long a command stays reserved for a worker that has died; short for tests, long for slow databases."""

    @property
    def link_root(self) -> str:
        """The root of links that no request has led to: those in notifications and grant requests."""
        scheme = "https" if self.server_tls else "http"
        return self.public_url or f"{scheme}://{self.host}:{self.port}"
