"""Every query of a dashboard and of an alert finds its series on a system that has done the main job."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import aiohttp
import promql_parser
import yaml
from callers.user import GRACEFUL, User, sample_body
from dashboards import DASHBOARDS, FOLDER, dashboard
from prometheus_client.parser import text_string_to_metric_families
from servers.installations import SixInstallation
from servers.processes import PROJECT

PAGE: Final = PROJECT / "docs" / "monitoring.md"
RULES: Final = PROJECT / "deploy" / "monitoring" / "kubevnfm.rules.yml"
OF_PROMETHEUS: Final = frozenset({"job", "instance", "le"})
"""Labels that Prometheus adds, and that of buckets."""
NEEDS_MORE: Final = frozenset(
    {
        "kubevnfm_aai_requests_total",  # an A&AI: infra-k8s, test_inventory_export.py
        "kubevnfm_region_export_lag_seconds",  # the same
        "kubevnfm_callbacks_total",  # credentials-receiver, test_requirements.py
        "kubevnfm_command_repeats_total",  # a command that waits: libs/worker, test_command_metrics.py
        "kubevnfm_region_virtual_links",  # infra-k8s, test_service.py
        "kubevnfm_vim_credentials_end_seconds",  # a second look at the cluster: vim-registry, test_monitor.py
        "kubevnfm_webhook_alerts_total",  # lcm-api, test_alarms_of_monitoring.py
    }
)
"""Metrics that need what the main job has not; the tests that show their series."""
SERVICES: Final = frozenset(
    {"lcm-api", "infra-openstack", "infra-k8s", "mgmt-executor", "vim-registry", "credentials-receiver"}
)
ROW: Final = re.compile(r"^\| `((?:kubevnfm|process)_\w+)` \| (\w+) \|([^|]*)\|", re.MULTILINE)


@dataclass(frozen=True)
class Shown:
    """The metrics of a whole installation."""

    types: Mapping[str, str]
    labels: Mapping[str, frozenset[str]]
    """By the name of a metric with samples: the labels that any of them has."""
    services: frozenset[str]
    """Those that count their requests."""


def documented() -> Mapping[str, tuple[str, frozenset[str]]]:
    """Return type and labels of each metric that the page has."""
    return {
        name: (kind, frozenset(re.findall(r"`(\w+)`", labels))) for name, kind, labels in ROW.findall(PAGE.read_text())
    }


async def read(url: str) -> str:
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        assert answer.status == 200, url
        return await answer.text()


async def shown_by(user: User) -> Shown:
    """Return what Prometheus reads of all processes."""
    urls = [f"{user.installation.url}/kubevnfm/v1/metrics"]
    if isinstance(user.installation, SixInstallation):
        ports = {service: port for service, (port, _) in user.installation.listeners.items()}
        urls += [f"http://127.0.0.1:{port}/metrics" for service, port in ports.items() if service != "lcm-api"]
    types: dict[str, str] = {}
    labels: dict[str, set[str]] = {}
    services: set[str] = set()
    for url in urls:
        text = await read(url)
        names: set[str] = set()
        for family in text_string_to_metric_families(text):
            name = f"{family.name}{'_total' * (family.type == 'counter')}"
            assert name not in names, f"{url} has {name} twice"
            names.add(name)
            assert types.setdefault(name, family.type) == family.type
            for sample in family.samples:
                labels.setdefault(name, set()).update(set(sample.labels) - {"le"})
                if name == "kubevnfm_http_requests_running":
                    services.add(sample.labels["service"])
    return Shown(types, {name: frozenset(found) for name, found in labels.items()}, frozenset(services))


def queries() -> Iterator[tuple[str, str]]:
    """Yield each query with the place where it is."""
    for name in DASHBOARDS:
        for panel in json.loads((FOLDER / f"{name}.json").read_text())["panels"]:
            for target in panel.get("targets", ()):
                yield f"{name}: {panel['title']}", target["expr"].replace("$__rate_interval", "5m")
    for group in yaml.safe_load(RULES.read_text())["groups"]:
        for rule in group["rules"]:
            yield rule["alert"], rule["expr"]


def selected(node: Any, by: frozenset[str] = frozenset()) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield the name of each metric that a parsed query reads, and the labels that it uses of it."""
    if isinstance(node, promql_parser.VectorSelector):
        yield str(node.name), by | {matcher.name for matcher in node.matchers.matchers}
    elif isinstance(node, promql_parser.MatrixSelector):
        yield from selected(node.vector_selector, by)
    elif isinstance(node, promql_parser.AggregateExpr):
        named = frozenset(node.modifier.labels) if node.modifier is not None else frozenset()
        yield from selected(node.expr, by | named)
    elif isinstance(node, promql_parser.BinaryExpr):
        yield from selected(node.lhs, by)
        yield from selected(node.rhs, by)
    elif isinstance(node, promql_parser.Call):
        for argument in node.args:
            yield from selected(argument, by)
    elif isinstance(node, promql_parser.ParenExpr | promql_parser.UnaryExpr):
        yield from selected(node.expr, by)
    else:
        assert isinstance(node, promql_parser.NumberLiteral | promql_parser.StringLiteral), type(node)


def missing(shown: Shown) -> list[str]:
    """Return which series that a query reads are not there."""
    page, found = documented(), list[str]()
    for place, query in queries():
        for selector, used in selected(promql_parser.parse(query)):
            name = re.sub(r"_(bucket|sum|count)$", "", selector)
            labels = page[name][1] if name in NEEDS_MORE else shown.labels.get(name)
            if name not in shown.types or labels is None or not used <= labels | OF_PROMETHEUS:
                found.append(f"{place}: {selector} by {sorted(used)}, there is {labels}")
    return found


def test_the_dashboards_are_those_of_their_table() -> None:
    for name in DASHBOARDS:
        assert (FOLDER / f"{name}.json").read_text(encoding="utf-8") == dashboard(name)


async def test_every_query_finds_its_series_after_the_main_job(user: User) -> None:
    cluster_id = await user.create(await user.sample("cluster"))
    await user.do(cluster_id, "instantiate", user.cluster())
    vim = await user.vim_of_cluster(cluster_id)
    cnf_id = await user.create(await user.sample("cnf"))
    await user.do(cnf_id, "instantiate", user.on_vim(sample_body("cnf", "instantiate"), vim))
    async with asyncio.timeout(300):
        # VIMs are checked in rounds, which nothing announces.
        while "kubevnfm_vim_up" not in (shown := await shown_by(user)).labels:  # noqa: ASYNC110
            await asyncio.sleep(1.0)
    left = missing(shown)
    assert not left
    assert {name: kind for name, (kind, _) in documented().items()} == shown.types
    wrong = {name: found for name, found in shown.labels.items() if found != documented()[name][1]}
    assert not wrong
    # In one process there is no listener of infra-openstack.
    in_one = SERVICES - {"infra-openstack"}
    assert shown.services == (SERVICES if isinstance(user.installation, SixInstallation) else in_one)
    await user.terminate(cnf_id)
    await user.do(cluster_id, "terminate", GRACEFUL)
    await user.delete(cluster_id)
