"""The pages name paths that a server has, messages that the contract has, and metrics and headings that there are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest
import yaml
from callers.documented import an_app
from kubevnfm_clients import callback
from kubevnfm_events.contract import messages
from kubevnfm_kit import metrics
from kubevnfm_lcm_api.http.routes import ROUTES

PROJECT: Final = Path(__file__).parents[2]
PAGES: Final = tuple(
    path.relative_to(PROJECT).as_posix()
    for path in (
        PROJECT / "README.md",
        *sorted((PROJECT / "docs").rglob("*.md")),
        *sorted((PROJECT / "services").glob("*/README.md")),
        PROJECT / "proto-events" / "README.md",
    )
)
PATH: Final = re.compile(
    r"(?<![\w.:/-])/(?:vnflcm|vnfpkgm|vnffm|vnfpm|kubevnfm|multicloud|v1\.0|credentials|internal|health|metrics"
    r"|alert|pm_event|pm_threshold|server_notification)(?!\w)"
    r"(?:/[^\s`'\",;|()?#&\\\[]*)?"
)
MESSAGE: Final = re.compile(r"`((?:lcm|infra|mgmt|vim|credentials|service)(?:\.[a-z][a-z0-9_]*)+(?:\.\*)?)`")
METRICS: Final = PROJECT / "docs" / "monitoring.md"
RULES: Final = PROJECT / "deploy" / "monitoring" / "kubevnfm.rules.yml"
ELSEWHERE: Final = frozenset(
    {
        # Parts of one table cell or of a sentence: the versions or ids follow.
        "/vnflcm/{v1",
        "/vnfpkgm/{v1",
        "/vnffm",
        "/vnfpm",
        "/vnfpm/v2",
    }
)
METRIC: Final = re.compile(
    r"`(kubevnfm_(?:\w+_)?(?:total|seconds|bytes|running|ready|away|up|pending|open|failing|waiting))`"
)
"""By the ends of names: others begin as the names of packages and attributes do."""
NOT_MESSAGES: Final = frozenset({"credentials.kubeconfig"})
"""A collection of MongoDB."""

every_page = pytest.mark.parametrize("page", PAGES)


@cache
def routes() -> frozenset[str]:
    """Return the paths of all servers, with the names of their parameters."""
    return frozenset({path for _, path in an_app()[ROUTES]} | {callback.PATH, metrics.PATH, *_of_other_services()})


def _of_other_services() -> Iterator[str]:
    # Their routes are literals, some of them the beginning of several.
    for source in (PROJECT / "services").glob("*/kubevnfm_*/**/*.py"):
        if "adapters" in source.parts:
            yield from re.findall(r'"(/(?:internal/v1|health)[^"]*)"', source.read_text("utf-8"))


def is_served(path: str) -> bool:
    """Return whether a path is a route, or the beginning of one."""
    given = path.split("/")
    return any(
        len(given) <= len(parts := route.split("/"))
        and all(one == other or other.startswith("{") for one, other in zip(given, parts, strict=False))
        for route in routes()
    )


@every_page
def test_a_page_names_paths_that_a_server_has(page: str) -> None:
    named = {found.rstrip("/.*:") for found in PATH.findall((PROJECT / page).read_text(encoding="utf-8"))}
    assert sorted(path for path in named - ELSEWHERE if not is_served(path)) == []


@every_page
def test_a_page_names_messages_that_the_contract_has(page: str) -> None:
    types = {message.routing_key() for message in messages()}
    named = set(MESSAGE.findall((PROJECT / page).read_text(encoding="utf-8"))) - NOT_MESSAGES

    def exists(name: str) -> bool:
        return name in types or any(known.startswith(f"{name.removesuffix('.*')}.") for known in types)

    assert sorted(name for name in named if not exists(name)) == []


@every_page
def test_a_page_names_metrics_that_the_page_of_metrics_has(page: str) -> None:
    """`tests/e2e/test_metrics.py` compares that page with the metrics of a running system."""
    documented = re.findall(r"^\| `(kubevnfm_\w+)` \|", METRICS.read_text(encoding="utf-8"), re.MULTILINE)
    named = METRIC.findall((PROJECT / page).read_text(encoding="utf-8"))
    assert sorted(set(named) - set(documented)) == []


def test_each_alert_has_a_heading_that_says_what_to_do_and_no_heading_is_left_over() -> None:
    groups = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    runbooks = {rule["alert"]: rule["annotations"]["runbook"] for group in groups for rule in group["rules"]}
    assert runbooks == {alert: f"docs/monitoring.md#{alert.lower()}" for alert in runbooks}
    assert sorted(runbooks) == sorted(re.findall(r"^### (Kubevnfm\w+)$", METRICS.read_text("utf-8"), re.MULTILINE))
