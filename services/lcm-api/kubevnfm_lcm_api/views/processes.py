"""``/kubevnfm/v1/services``: the services with their processes and what they lack, and the settings of the gateway."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from aiohttp import web
from kubevnfm_clients.multicloud.object_health import Health
from kubevnfm_kit.clock import rfc3339

from kubevnfm_lcm_api.http.models import Shown
from kubevnfm_lcm_api.http.routes import Answer, Route
from kubevnfm_lcm_api.siblings import SeenProcess, SeenService
from kubevnfm_lcm_api.views.causes.wording import line
from kubevnfm_lcm_api.views.instance_rows import PREFIX
from kubevnfm_lcm_api.views.services import views
from kubevnfm_lcm_api.views.shown_settings import SettingShown

_WORK: Final = {
    "lcm-api": "the gateway: requests, operations, packages, notifications",
    "infra-openstack": "machines and networks on OpenStack",
    "infra-k8s": "objects on Kubernetes, virtual links, persistent volumes",
    "mgmt-executor": "work on machines over SSH, scripts of packages",
    "vim-registry": "VIMs and their access data",
    "credentials-receiver": "credentials that workload clusters send",
}


class TroubleShown(Shown):
    """A part that a process lacks."""

    part: str
    """``store``, ``broker``, ``sandbox``, ``disk``, ``parked-commands`` or ``certificates``."""
    text: str
    isBlocking: bool  # noqa: N815  # as it is on the wire
    """Whether nothing that needs the part is done."""
    since: str | None = None
    """Since when, as the process has seen it."""


class ProcessShown(Shown):
    """A process of a service."""

    id: str
    """Another one after each start."""
    host: str
    pid: int
    version: str
    startedAt: str  # noqa: N815  # as it is on the wire
    seenAt: str  # noqa: N815  # as it is on the wire
    """When it reported last; each process does so every 10 s."""
    state: Literal["ready", "not-ready", "away", "unknown"]
    """``away``: no report for 25 s; ``unknown``: no report is heard, as the broker does not answer."""
    since: str
    """Since when it is in this state, as the gateway has seen it."""
    troubles: list[TroubleShown]


class ServiceShown(Shown):
    """A service."""

    name: str
    work: str
    """The work that it does."""
    state: Literal["ready", "not-ready", "away", "missing", "unknown"]
    """That of its best process; ``missing``: no process has reported since the gateway was started."""
    since: str
    health: Health
    text: str | None = None
    """Why the health is not ``ok``."""
    processes: list[ProcessShown]


class ServicesView(Shown):
    """The services, and the settings of the gateway."""

    sequence: str
    """The place in the event stream. Changes of services are no events of it: read the view again, every 5 to 10 s."""
    services: list[ServiceShown]
    settings: list[SettingShown]


async def show(request: web.Request) -> web.Response:
    """GET services: as this gateway knows them; none is called."""
    known = views(request)
    sequence = known.sequence()
    shown = ServicesView(
        sequence=sequence,
        services=[shown_service(each) for each in await known.siblings.services()],
        settings=list(known.settings()),
    )
    return web.json_response(text=shown.model_dump_json(exclude_none=True))


def shown_service(seen: SeenService) -> ServiceShown:
    """Return a service as the view shows it."""
    health, text = _judged(seen)
    return ServiceShown(
        name=seen.name,
        work=_WORK.get(seen.name, ""),
        state=seen.state,
        since=rfc3339(seen.since),
        health=health,
        text=text,
        processes=[_process(each) for each in seen.processes],
    )


def _judged(seen: SeenService) -> tuple[Health, str | None]:
    since = rfc3339(seen.since)
    match seen.state:
        case "missing":
            return (
                "problem",
                f"no process of it has reported since the gateway was started: it does not run, or cannot reach the broker ({since})",
            )
        case "away":
            return (
                "problem",
                f"none of its processes has reported since {since}: they were killed, hang, or cannot reach the broker",
            )
        case "unknown":
            return "unknown", "no report is heard: the gateway was just started, or the broker does not answer"
        case "not-ready":
            return "problem", _troubles(seen.processes) or "none of its processes is ready"
        case "ready":
            pass
    away = [each for each in seen.processes if each.state in {"away", "not-ready"}]
    lacks = _troubles(seen.processes)
    if away:
        return "progressing", lacks or f"{len(away)} of its processes do not report, or are not ready; others are"
    return ("progressing", lacks) if lacks else ("ok", None)


def _troubles(processes: Sequence[SeenProcess]) -> str:
    """Return what processes that report lack: what one has lacked that does not, nothing is known of now."""
    reporting = [each for each in processes if each.state in {"ready", "not-ready"}]
    texts = dict.fromkeys(line(each.text) for process in reporting for each in process.report.troubles)
    return " ".join(texts)


def _process(seen: SeenProcess) -> ProcessShown:
    report = seen.report
    return ProcessShown(
        id=line(report.process),
        host=line(report.host),
        pid=report.pid,
        version=line(report.version),
        startedAt=rfc3339(report.started_at),
        seenAt=rfc3339(seen.seen_at),
        state=seen.state,
        since=rfc3339(seen.since),
        troubles=[
            TroubleShown(
                part=line(each.part),
                text=line(each.text),
                isBlocking=each.is_blocking,
                since=rfc3339(each.since) if each.since else None,
            )
            for each in report.troubles
        ],
    )


def routes() -> list[Route]:
    """Return the route of services."""
    shown = {200: Answer("The services and the settings", ServicesView)}
    return [Route("Views", "GET", f"{PREFIX}/services", show, "Show the services and the settings", shown)]
