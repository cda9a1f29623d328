"""The services that the handlers of our own views work with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from aiohttp import web
from kubevnfm_clients.ports import Vims

from kubevnfm_lcm_api.multicloud.waiting import OperationEnds
from kubevnfm_lcm_api.performance.jobs import PmJobs
from kubevnfm_lcm_api.performance.thresholds import Thresholds
from kubevnfm_lcm_api.siblings import Siblings
from kubevnfm_lcm_api.views.earlier_runs import EarlierRuns
from kubevnfm_lcm_api.views.followers import Followers
from kubevnfm_lcm_api.views.shown_settings import SettingShown
from kubevnfm_lcm_api.views.vim_names import VimNames


class OperationEvents(Protocol):
    """The stream of an operation's events."""

    async def __call__(
        self, request: web.Request, operation_id: str, first: Mapping[str, object]
    ) -> web.StreamResponse:
        """Answer with ``first`` as an event ``operation``, then with the operation's events as they happen."""
        ...


class Found(NamedTuple):
    """A thing without a name that a search has found."""

    id: str
    name: str
    """The type of an alarm's fault; the operation of an automatic action."""
    state: str


class Finder(Protocol):
    """The search for things of a kind."""

    async def with_id(self, text: str, *, limit: int) -> Sequence[Found]:
        """Return those whose ids begin so. Raises StoreUnavailable."""
        ...


@dataclass(frozen=True)
class ViewServices:
    """The services of the views."""

    sequence: Callable[[], str]
    """The place in the event stream at this moment: asked before a state is read, it is what the stream goes on from."""
    operation_events: OperationEvents
    vims: Vims
    vim_names: VimNames
    earlier_runs: EarlierRuns
    is_broker_ready: Callable[[], Awaitable[bool]]
    ends: OperationEnds
    followers: Followers
    siblings: Siblings
    alarms: Finder
    actions: Finder
    jobs: PmJobs
    thresholds: Thresholds
    settings: Callable[[], Sequence[SettingShown]]
    """Returns those of the gateway."""


SERVICES: Final = web.AppKey("views", ViewServices)


def views(request: web.Request) -> ViewServices:
    """Return the services behind a request."""
    return request.app[SERVICES]
