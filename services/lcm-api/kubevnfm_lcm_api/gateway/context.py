"""What the gateway's handlers work with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from aiohttp import web
from kubevnfm_access.middleware import PROXIES
from kubevnfm_clients.ports import NodeLogs, Vims
from kubevnfm_kit.clock import Clock
from kubevnfm_secrets import KeyRing
from kubevnfm_store.port import DocumentStore

from kubevnfm_lcm_api.gateway.render import ApiVersion
from kubevnfm_lcm_api.lifecycle.engine import Engine
from kubevnfm_lcm_api.lifecycle.instances import Instances
from kubevnfm_lcm_api.lifecycle.progress import Progress
from kubevnfm_lcm_api.lifecycle.requests.instantiate import Instantiate
from kubevnfm_lcm_api.lifecycle.requests.tasks import Tasks
from kubevnfm_lcm_api.lifecycle.requests.terminate import Terminate
from kubevnfm_lcm_api.notifications.event_feed import EventFeed
from kubevnfm_lcm_api.notifications.subscriptions import Subscriptions
from kubevnfm_lcm_api.packages.catalogue import Packages
from kubevnfm_lcm_api.packages.domain.ports import PackageFiles
from kubevnfm_lcm_api.packages.onboarding import Onboarding


@dataclass(frozen=True)
class Gateway:
    """The services of lcm-api, and what an operator has set for the gateway."""

    store: DocumentStore
    engine: Engine
    instances: Instances
    instantiate: Instantiate
    terminate: Terminate
    tasks: Tasks
    packages: Packages
    onboarding: Onboarding
    files: PackageFiles
    subscriptions: Subscriptions
    events: EventFeed
    progress: Progress
    vims: Vims
    node_logs: NodeLogs
    ring: KeyRing
    clock: Clock
    public_url: str | None
    internal_token: str
    page_size: int
    package_limit_bytes: int


GATEWAY: Final = web.AppKey("gateway", Gateway)


def gateway(request: web.Request) -> Gateway:
    """Return the services behind a request."""
    return request.app[GATEWAY]


def api_version(request: web.Request) -> ApiVersion:
    """Return v1 or v2 by the request's path."""
    return "v1" if request.path.startswith("/vnflcm/v1/") else "v2"


def api_root(request: web.Request) -> str:
    """Return the absolute root of every link: the configured public URL, else as the caller reached us."""
    return gateway(request).public_url or request.app[PROXIES].root(request)


def accepted(location: str) -> web.Response:
    """Return 202 without a body (SOL003 tasks): existing clients print nothing when there is one."""
    return web.Response(status=202, headers={"Location": location})
