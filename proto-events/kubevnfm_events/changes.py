"""The events that subscriptions to changes deliver (multicloud.md MC-052)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, get_args

ChangeType = Literal[
    "infra.link.changed", "infra.placement.changed", "infra.volume.changed",
    "lcm.instance.created", "lcm.instance.deleted", "lcm.instance.drifted", "lcm.instance.orphaned",
    "lcm.operation.changed", "lcm.outputs.changed",
    "vim.credentials.expiring", "vim.features.changed", "vim.inventory.lost", "vim.reachable", "vim.unreachable",
]  # fmt: skip
"""Their routing keys."""
CHANGE_TYPES: Final[Sequence[ChangeType]] = get_args(ChangeType)
