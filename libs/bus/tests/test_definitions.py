"""The definitions that administrators load are those of the contract."""

from __future__ import annotations

from pathlib import Path

from kubevnfm_bus.definitions import text
from kubevnfm_events.contract import services

PROJECT = Path(__file__).parents[3]


def test_the_file_of_definitions_is_current() -> None:
    """`make schemas` writes it."""
    assert (PROJECT / "deploy" / "base" / "rabbitmq" / "definitions.json").read_text(encoding="utf-8") == text()


def test_every_service_has_a_user() -> None:
    assert services() == sorted(path.parent.name for path in (PROJECT / "services").glob("*/pyproject.toml"))
