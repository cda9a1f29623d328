from __future__ import annotations

import pytest
from kubevnfm_bus.routing import fits, owner_of


@pytest.mark.parametrize(
    ("pattern", "key", "is_fit"),
    [
        ("lcm.operation.changed", "lcm.operation.changed", True),
        ("lcm.*.changed", "lcm.operation.changed", True),
        ("lcm.*", "lcm.operation.changed", False),
        ("lcm.#", "lcm.operation.changed", True),
        ("lcm.#", "lcm", True),
        ("lcm.#", "lcmx.operation", False),
        ("#", "anything.at.all", True),
        ("#.changed", "lcm.operation.changed", True),
        ("#.changed", "changed", True),
        ("*.changed", "changed", False),
        ("lcm.#.changed", "lcm.changed", True),
        ("lcm.#.changed", "lcm.a.b.changed", True),
        ("lcm.#.changed", "lcm.a.b.left", False),
        ("vim.status", "vim-status", False),
    ],
)
def test_a_pattern_fits_as_on_an_amqp_topic_exchange(pattern: str, key: str, is_fit: bool) -> None:
    assert fits(pattern, key) is is_fit


def test_an_event_queue_belongs_to_the_service_before_its_first_dot() -> None:
    assert owner_of("vim-registry.credentials.received") == "vim-registry"
    assert owner_of("lcm-api") == "lcm-api"
