"""The settings of automatic operations; part of the settings of lcm-api and of the single process."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

_DAY_S = 86_400.0


class AutomationSettings(BaseModel):
    """How VNF instances are healed and scaled by kubevnfm itself, if their ``vnfConfigurableProperties`` allow it."""

    automatic_mode: Literal["on", "trial", "off"] = "on"
    """``on``: for each VNF instance that allows it. ``trial``: it is only recorded what would be done. ``off``: never."""
    automatic_heal_collects_s: float = Field(default=20.0, ge=0, le=_DAY_S)
    """Seconds from the first request for a heal until it begins: the VNFCs that are named meanwhile are healed together."""
    automatic_heal_after_s: float = Field(default=60.0, ge=0, le=_DAY_S)
    """Seconds that an alarm of kubevnfm itself must last before the VNFC is healed."""
    automatic_heal_cooldown_s: float = Field(default=300.0, ge=0, le=_DAY_S)
    """Seconds from the end of an automatic heal of a VNF instance to the begin of the next one; 0: none."""
    automatic_scale_cooldown_s: float = Field(default=120.0, ge=0, le=_DAY_S)
    """Seconds from the end of an automatic scaling of a VNF instance to the begin of the next one; 0: none."""
    automatic_operations_per_hour: int = Field(default=6, ge=0, le=1000)
    """The most automatic operations of a VNF instance that begin in an hour; 0: any number."""
    automatic_wait_s: float = Field(default=3600.0, ge=0, le=7 * _DAY_S)
    """Seconds that an automatic action waits for another operation, a cool-down or the budget of the hour before it is given up;
    0: it does not wait."""
    automatic_actions_days: float = Field(default=30.0, gt=0, le=3650)
    """Days after which an automatic action that has ended is removed from the list."""
