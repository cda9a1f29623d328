"""Writes the dashboards of Grafana in deploy/monitoring/dashboards: `.venv/bin/python tests/support/dashboards.py`.

A dashboard is a table of rows, a row a list of panels, and a panel a title, a unit and its queries with their legends. The queries
are proven on a running system (tests/e2e/test_metrics.py).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

FOLDER: Final = Path(__file__).parents[2] / "deploy" / "monitoring" / "dashboards"
_SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
_WIDE: Final = 24
_HIGH: Final = 8
_RATE: Final = "$__rate_interval"
_GATEWAY: Final = '{service="lcm-api"}'
_INTERNAL: Final = '{service!="lcm-api"}'


@dataclass(frozen=True)
class Panel:
    """A diagram over time."""

    title: str
    unit: str
    queries: Mapping[str, str]
    """By legend."""
    says: str = ""


def rate(counter: str, *by: str, which: str = "") -> str:
    """Return the query for what a counter gains in a second."""
    return f"sum by ({', '.join(by)}) (rate({counter}{which}[{_RATE}]))"


def quantile(share: float, histogram: str, *by: str, which: str = "") -> str:
    """Return the query for a quantile of a histogram."""
    return f"histogram_quantile({share}, sum by ({', '.join(('le', *by))}) (rate({histogram}_bucket{which}[{_RATE}])))"


def gained(counter: str, *by: str, which: str = "") -> str:
    """Return the query for what a counter whose series begin with their first event gains in an hour.

    The first event of a series is no increase: it is the least value of those that were not there before.
    """
    increase = f"increase({counter}{which}[1h])"
    begin = f"(min_over_time({counter}{which}[1h]) unless {counter}{which} offset 1h)"
    return f"sum by ({', '.join(by)}) (({increase} + {begin}) or {increase})"


OPERATIONS: Final[Mapping[str, Sequence[Panel]]] = {
    "Operations": [
        Panel(
            "Under way",
            "short",
            {
                "{{operation}}": "max by (operation) (kubevnfm_operations_running)",
                "FAILED_TEMP": "max(kubevnfm_operations_failed_temp)",
            },
            "FAILED_TEMP waits for a person: retry, rollback or fail.",
        ),
        Panel(
            "Stopped in an hour",
            "short",
            {"{{operation}} {{outcome}}": gained("kubevnfm_operations_total", "operation", "outcome")},
        ),
        Panel(
            "Failures in an hour, by cause",
            "short",
            {"{{cause}}": gained("kubevnfm_operations_total", "cause", which='{outcome=~"FAILED_TEMP|FAILED"}')},
            "The codes are those of docs/errors.md.",
        ),
        Panel(
            "Duration, 95 %",
            "s",
            {"{{operation}}": quantile(0.95, "kubevnfm_operation_seconds", "operation")},
        ),
    ],
    "Steps": [
        Panel("Duration, 95 %", "s", {"{{kind}}": quantile(0.95, "kubevnfm_step_seconds", "kind")}),
        Panel("Ended, by outcome", "ops", {"{{outcome}}": rate("kubevnfm_steps_total", "outcome")}),
        Panel("Oldest unfinished step", "s", {"age": "max(kubevnfm_step_oldest_seconds)"}),
        Panel(
            "From command to first try, 95 %",
            "s",
            {"{{service}}": quantile(0.95, "kubevnfm_command_start_seconds", "service")},
            "Long if a service is away, or has too few places for commands.",
        ),
    ],
    "Machines": [
        Panel("Tasks, by outcome", "ops", {"{{outcome}}": rate("kubevnfm_tasks_total", "outcome")}),
        Panel("Duration of tasks, 95 %", "s", {"{{task}}": quantile(0.95, "kubevnfm_task_seconds", "task")}),
    ],
    "What is there": [
        Panel(
            "VNF instances",
            "short",
            {
                "{{state}}": "max by (state) (kubevnfm_vnf_instances)",
                "drifted": "max(kubevnfm_vnf_instances_drifted)",
            },
        ),
        Panel("VNF packages", "short", {"{{state}}": "max by (state) (kubevnfm_vnf_packages)"}),
        Panel("Open alarms", "short", {"{{severity}}": "max by (severity) (kubevnfm_alarms_open)"}),
        Panel("Call-backs of clusters", "ops", {"{{status}}": rate("kubevnfm_callbacks_total", "status")}),
        Panel(
            "Prometheus servers of VNFs that do not answer",
            "short",
            {"{{source}}": "max by (source) (kubevnfm_measurement_sources_away)"},
        ),
        Panel(
            "Traces in an hour, by outcome",
            "short",
            {"{{outcome}}": "sum by (outcome) (increase(kubevnfm_traces_total[1h]))"},
            "Of operations that have ended: sent to the collector, or given up.",
        ),
    ],
}

SERVICES: Final[Mapping[str, Sequence[Panel]]] = {
    "Gateway": [
        Panel(
            "Requests, by status",
            "reqps",
            {"{{status}}": rate("kubevnfm_http_requests_total", "status", which=_GATEWAY)},
        ),
        Panel(
            "Duration by route, 95 %",
            "s",
            {
                "{{method}} {{route}}": quantile(
                    0.95, "kubevnfm_http_request_seconds", "method", "route", which=_GATEWAY
                )
            },
            "Exemplars lead to traces.",
        ),
        Panel("Requests under way", "short", {"requests": f"sum(kubevnfm_http_requests_running{_GATEWAY})"}),
    ],
    "Requests of the services to one another": [
        Panel(
            "Requests, by status",
            "reqps",
            {"{{service}} {{status}}": rate("kubevnfm_http_requests_total", "service", "status", which=_INTERNAL)},
            "Health checks and calls of Prometheus are among them.",
        ),
        Panel(
            "Duration by route, 95 %",
            "s",
            {
                "{{service}} {{method}} {{route}}": quantile(
                    0.95, "kubevnfm_http_request_seconds", "service", "method", "route", which=_INTERNAL
                )
            },
            "Exemplars lead to traces.",
        ),
        Panel(
            "Requests under way",
            "short",
            {"{{service}}": f"sum by (service) (kubevnfm_http_requests_running{_INTERNAL})"},
        ),
    ],
    "Commands": [
        Panel("Being handled", "short", {"{{service}}": "sum by (service) (kubevnfm_commands_running)"}),
        Panel(
            "With an outcome", "ops", {"{{service}} {{outcome}}": rate("kubevnfm_commands_total", "service", "outcome")}
        ),
        Panel(
            "Tries without an outcome",
            "ops",
            {"{{type}} {{reason}}": rate("kubevnfm_command_repeats_total", "type", "reason")},
        ),
        Panel("Duration of a try, 95 %", "s", {"{{type}}": quantile(0.95, "kubevnfm_command_seconds", "type")}),
        Panel(
            "Oldest without an outcome",
            "s",
            {"{{service}}": "max by (service) (kubevnfm_inbox_oldest_seconds)"},
        ),
        Panel("In hand", "short", {"{{service}}": "sum by (service) (kubevnfm_inbox_commands)"}),
        Panel(
            "Taken over, and parked",
            "short",
            {
                "taken over {{service}}": "sum by (service) (increase(kubevnfm_lease_takeovers_total[1h]))",
                "parked {{service}}": "max by (service) (kubevnfm_commands_parked)",
            },
        ),
    ],
    "Bus": [
        Panel("Messages in queues", "short", {"{{queue}}": "max by (queue) (kubevnfm_queue_messages)"}),
        Panel("Consumers", "short", {"{{queue}}": "max by (queue) (kubevnfm_queue_consumers)"}),
        Panel(
            "Redelivered, and dead",
            "short",
            {
                "again {{queue}}": "sum by (queue) (increase(kubevnfm_messages_redelivered_total[1h]))",
                "dead {{queue}}": "sum by (queue) (increase(kubevnfm_messages_dead_total[1h]))",
            },
        ),
        Panel(
            "Outboxes: messages not published",
            "short",
            {"{{collection}}": "max by (collection) (kubevnfm_outbox_messages)"},
        ),
        Panel(
            "Outboxes: age of the oldest",
            "s",
            {"{{collection}}": "max by (collection) (kubevnfm_outbox_oldest_seconds)"},
        ),
        Panel("Since the last round", "s", {"{{round}}": "min by (round) (kubevnfm_round_age_seconds)"}),
    ],
    "Processes": [
        Panel(
            "Lag of the event loop, mean",
            "s",
            {
                "{{instance}}": f"sum by (instance) (rate(kubevnfm_event_loop_lag_seconds_sum[{_RATE}]))"
                f" / sum by (instance) (rate(kubevnfm_event_loop_lag_seconds_count[{_RATE}]))"
            },
        ),
        Panel("Processors", "short", {"{{instance}}": f"rate(process_cpu_seconds_total[{_RATE}])"}),
        Panel("Memory", "bytes", {"{{instance}}": "process_resident_memory_bytes"}),
        Panel("Open files", "short", {"{{instance}}": "process_open_fds"}),
        Panel("Running since", "dateTimeAsIso", {"{{instance}}": "process_start_time_seconds * 1000"}),
        Panel(
            "Parts that are not ready",
            "short",
            {"{{instance}} {{part}}": "min by (instance, part) (kubevnfm_part_ready) < 1"},
            "0.5: degraded. docs/health.md has each part.",
        ),
        Panel("Versions", "short", {"{{version}}": "count by (version) (kubevnfm_build_info)"}),
    ],
}

VIMS: Final[Mapping[str, Sequence[Panel]]] = {
    "VIMs": [
        Panel("Up", "short", {"{{type}} {{vim_id}}": "max by (vim_id, type) (kubevnfm_vim_up)"}),
        Panel(
            "Access data end in",
            "d",
            {"{{vim_id}}": "(max by (vim_id) (kubevnfm_vim_credentials_end_seconds) - time()) / 86400"},
        ),
    ],
    "OpenStack": [
        Panel("Requests", "reqps", {"{{api}} {{code}}": rate("kubevnfm_openstack_requests_total", "api", "code")}),
        Panel("Duration, 95 %", "s", {"{{api}}": quantile(0.95, "kubevnfm_openstack_request_seconds", "api")}),
    ],
    "Kubernetes": [
        Panel("Requests", "reqps", {"{{vim_id}} {{code}}": rate("kubevnfm_region_requests_total", "vim_id", "code")}),
        Panel("Duration, 95 %", "s", {"{{vim_id}}": quantile(0.95, "kubevnfm_region_request_seconds", "vim_id")}),
        Panel("Objects", "ops", {"{{vim_id}} {{result}}": rate("kubevnfm_region_objects_total", "vim_id", "result")}),
        Panel("Not called, as it does not answer", "short", {"{{vim_id}}": "max by (vim_id) (kubevnfm_region_away)"}),
        Panel(
            "Watches",
            "short",
            {
                "open {{vim_id}}": "sum by (vim_id) (kubevnfm_region_watches)",
                "begun in an hour {{vim_id}}": "sum by (vim_id) (increase(kubevnfm_region_watch_starts_total[1h]))",
            },
        ),
        Panel(
            "Longest silence of a watch", "s", {"{{vim_id}}": "max by (vim_id) (kubevnfm_region_watch_silence_seconds)"}
        ),
        Panel(
            "Virtual links",
            "short",
            {"{{vim_id}} {{status}}": "max by (vim_id, status) (kubevnfm_region_virtual_links)"},
        ),
    ],
    "Notifications": [
        Panel("Waiting", "short", {"notifications": "max(kubevnfm_notifications_pending)"}),
        Panel(
            "Oldest for a subscriber that accepts none",
            "s",
            {"age": "max(kubevnfm_notifications_oldest_seconds)"},
        ),
        Panel(
            "Deliveries",
            "ops",
            {"{{outcome}}": rate("kubevnfm_notifications_total", "outcome")},
        ),
        Panel("Subscribers that accept none", "short", {"subscriptions": "max(kubevnfm_subscriptions_failing)"}),
    ],
    "A&AI": [
        Panel(
            "Waiting, and refused",
            "short",
            {"waiting": "max(kubevnfm_aai_waiting)", "refused": "max(kubevnfm_aai_refused)"},
        ),
        Panel(
            "Lag",
            "s",
            {
                "all": "max(kubevnfm_aai_lag_seconds)",
                "{{vim_id}}": "max by (vim_id) (kubevnfm_region_export_lag_seconds)",
            },
        ),
        Panel(
            "Requests, and whether it answers",
            "short",
            {"{{code}}": rate("kubevnfm_aai_requests_total", "code"), "answers": "min(kubevnfm_aai_reachable)"},
        ),
    ],
}

DASHBOARDS: Final = {
    "operations": ("kubevnfm: operations", OPERATIONS),
    "services": ("kubevnfm: services and bus", SERVICES),
    "vims": ("kubevnfm: VIMs and notifications", VIMS),
}


def dashboard(name: str) -> str:
    """Return the JSON text of a dashboard."""
    title, rows = DASHBOARDS[name]
    panels: list[Mapping[str, Any]] = []
    top = 0
    for row, shown in rows.items():
        panels.append({"type": "row", "id": len(panels) + 1, "title": row, "gridPos": _place(0, top, _WIDE, 1)})
        top += 1
        width = _WIDE // min(3, len(shown))
        for number, panel in enumerate(shown):
            column = number % (_WIDE // width)
            place = _place(column * width, top, width, _HIGH)
            panels.append(_panel(panel, len(panels) + 1, place))
            if column + 1 == _WIDE // width or number + 1 == len(shown):
                top += _HIGH
    made = {
        "uid": f"kubevnfm-{name}",
        "title": title,
        "tags": ["kubevnfm"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "templating": {
            "list": [{"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Prometheus"}]
        },
        "panels": panels,
    }
    return json.dumps(made, indent=2, ensure_ascii=False) + "\n"


def _place(x: int, y: int, width: int, height: int) -> Mapping[str, int]:
    return {"x": x, "y": y, "w": width, "h": height}


def _panel(panel: Panel, number: int, place: Mapping[str, int]) -> Mapping[str, Any]:
    return {
        "type": "timeseries",
        "id": number,
        "title": panel.title,
        "description": panel.says,
        "datasource": _SOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "options": {"tooltip": {"mode": "multi"}, "legend": {"showLegend": True}},
        "targets": [
            {
                "refId": chr(ord("A") + place_of),
                "datasource": _SOURCE,
                "expr": query,
                "legendFormat": legend,
                "exemplar": True,
            }
            for place_of, (legend, query) in enumerate(panel.queries.items())
        ],
    }


if __name__ == "__main__":
    for each in DASHBOARDS:
        (FOLDER / f"{each}.json").write_text(dashboard(each), encoding="utf-8")
